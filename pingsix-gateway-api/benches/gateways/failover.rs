//! Backend failover: one of four endpoints resets all connections for a while, as in the public benchmark, and comes back.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::backend;
use crate::client::Client;
use crate::figures::Figures;
use crate::lab::Lab;
use crate::network::ADDRESSES;
use crate::objects::{self, Shape};

/// How long the backend is broken, and how long it is well afterwards.
const PHASE: Duration = Duration::from_secs(22);

/// As in the public benchmark.
const REQUEST_INTERVAL: Duration = Duration::from_millis(5);

/// The index of the backend that breaks.
const BROKEN: usize = 3;

pub(crate) async fn measure(lab: &Lab) -> Figures {
    let mut figures = Figures::default();
    let Some(client) = lab.contender().client() else { return figures };
    let service = objects::service_name(0);
    let all: Vec<usize> = (0..ADDRESSES.len()).collect();
    objects::merge(&lab.client(), &objects::slice("default", &service, &backend::endpoints(&all))).await;
    objects::create(&lab.client(), objects::route(&lab.gateways(), "default", 0, Shape::Simple)).await;
    client.wait_for_ok(&objects::host(0), "/0").await;
    phases(&mut figures, lab, &client, "without a policy").await;
    if lab.contender().ours().is_some() {
        objects::create(&lab.client(), health_check(&service)).await;
        lab.contender().settle().await;
        phases(&mut figures, lab, &client, "active check each second").await;
    }
    figures
}

/// Our policy that takes failing endpoints out of use.
fn health_check(service: &str) -> Value {
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "BackendTrafficPolicy",
        "metadata": {"name": "bench", "namespace": "default"},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": service}],
            "healthCheck": {"active": {
                "type": "HTTP", "interval": "1s", "timeout": "1s", "healthyThreshold": 1, "unhealthyThreshold": 1,
            }},
        },
    })
}

async fn phases(figures: &mut Figures, lab: &Lab, client: &Client, label: &str) {
    lab.backends.set_broken(BROKEN, true);
    let broken = requests(client).await;
    lab.backends.set_broken(BROKEN, false);
    let well = requests(client).await;
    figures.count(format!("{label}: requests while it is broken"), broken.all);
    figures.count(format!("{label}: failed requests"), broken.failed);
    figures.time(format!("{label}: from the break to the last failure"), broken.last_failure);
    figures.time(format!("{label}: from its return to its first answer"), well.first_of_broken);
    figures.count(format!("{label}: failed requests after its return"), well.failed);
}

/// The responses of one phase.
#[derive(Default)]
struct Responses {
    all: usize,
    failed: usize,
    last_failure: Duration,
    first_of_broken: Duration,
}

async fn requests(client: &Client) -> Responses {
    let (started, mut responses, mut ticks) =
        (Instant::now(), Responses::default(), interval(REQUEST_INTERVAL));
    let address = ADDRESSES[BROKEN].to_string();
    while started.elapsed() < PHASE {
        ticks.tick().await;
        let response = client.get(&objects::host(0), "/0").await;
        responses.all += 1;
        match response {
            Some(response) if response.status() == StatusCode::OK => {
                if response.body() == address.as_bytes() && responses.first_of_broken.is_zero() {
                    responses.first_of_broken = started.elapsed();
                }
            }
            _ => {
                responses.failed += 1;
                responses.last_failure = started.elapsed();
            }
        }
    }
    responses
}
