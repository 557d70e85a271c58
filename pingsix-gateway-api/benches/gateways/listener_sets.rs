//! ListenerSets: each has a listener for HTTPS and sixteen routes of its own, up to the budget of a data plane and beyond.

use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::figures::Figures;
use crate::lab::Lab;
use crate::objects::{self, Shape};

/// The numbers of ListenerSets. The public benchmark has 2,500, with 40,000 routes.
const STEPS: [usize; 3] = [100, 400, 1_200];

/// The number of routes of each.
const ROUTES: usize = 16;

/// The time limit of a step.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

pub(crate) async fn measure(lab: &Lab) -> Figures {
    let (mut figures, contender, client) = (Figures::default(), lab.contender(), lab.client());
    objects::create(&client, secret()).await;
    let mut existing = 0;
    for step in STEPS {
        let before = contender.usage().await;
        let sets = (existing..step).map(|index| listener_set(&contender.gateway(), index));
        objects::create_all(&client, sets).await;
        let routes = (existing * ROUTES..step * ROUTES).map(route);
        let created = objects::create_all(&client, routes).await;
        existing = step;
        let (accepted, refused, at) = verdicts(&client, step * ROUTES).await;
        contender.settle().await;
        let used = contender.usage().await.since(&before);
        let label = format!("{step} ListenerSets, {} routes", step * ROUTES);
        figures.time(
            format!("{label}: last create to a verdict on every route"),
            at.saturating_duration_since(created),
        );
        figures.count(format!("{label}: routes that are accepted in full"), accepted);
        figures.count(format!("{label}: routes that are refused, at least in part"), refused);
        figures.time(format!("{label}: processor time of the controller"), used.controller);
        figures.time(format!("{label}: processor time of the data plane"), used.data_plane);
        let (controller, data_plane) = contender.peaks().await;
        figures.bytes(format!("{label}: peak RSS of the controller"), controller);
        figures.bytes(format!("{label}: peak RSS of the data plane"), data_plane);
    }
    figures
}

fn set_name(index: usize) -> String {
    format!("set-{index}")
}

fn set_host(index: usize) -> String {
    format!("{}.example.com", set_name(index))
}

fn secret() -> Value {
    let pair = rcgen::generate_simple_self_signed(["*.example.com".to_owned()]).unwrap();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "certificate", "namespace": "default"},
        "data": {
            "tls.crt": BASE64_STANDARD.encode(pair.cert.pem()),
            "tls.key": BASE64_STANDARD.encode(pair.signing_key.serialize_pem()),
        },
    })
}

fn listener_set(gateway: &str, index: usize) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ListenerSet",
        "metadata": {"name": set_name(index), "namespace": "default"},
        "spec": {
            "parentRef": {"name": gateway},
            "listeners": [{
                "name": "https", "hostname": set_host(index), "port": 443, "protocol": "HTTPS",
                "tls": {"mode": "Terminate", "certificateRefs": [{"name": "certificate"}]},
            }],
        },
    })
}

/// A route of the ListenerSet that its number belongs to.
fn route(index: usize) -> Value {
    let set = index / ROUTES;
    let mut route = objects::route(&[], "default", index, Shape::Simple);
    route["spec"]["parentRefs"] = json!([
        {"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": set_name(set)}
    ]);
    route["spec"]["hostnames"] = json!([set_host(set)]);
    route
}

/// Waits until each route has a verdict. Returns the numbers of the accepted and of the refused routes, and the time.
async fn verdicts(client: &kube::Client, routes: usize) -> (usize, usize, Instant) {
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let started = Instant::now();
    loop {
        let list = api.list(&ListParams::default()).await.unwrap();
        let at = Instant::now();
        let (mut accepted, mut refused) = (0, 0);
        for object in &list {
            let conditions = object.data["status"]["parents"][0]["conditions"].as_array();
            let has = |kind: &str, status: &str| {
                conditions
                    .is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == status))
            };
            if has("Accepted", "False") || has("PartiallyInvalid", "True") {
                refused += 1;
            } else if has("Accepted", "True") {
                accepted += 1;
            }
        }
        if accepted + refused == routes {
            return (accepted, refused, at);
        }
        assert!(
            started.elapsed() < WAIT_TIMEOUT,
            "{accepted} are accepted and {refused} refused, of {routes}"
        );
        sleep(Duration::from_millis(200)).await;
    }
}
