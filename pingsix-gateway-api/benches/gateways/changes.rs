//! Route changes: a route that clients use is changed again and again, and every response must be 200.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::figures::Figures;
use crate::lab::Lab;
use crate::objects::{self, Shape};
use crate::samples::Samples;

/// The number of changes, as in the public benchmark.
const FLIPS: usize = 10_000;

/// The number of changes beside many other routes, each of which takes longer.
const FLIPS_BESIDE_OTHERS: usize = 500;

/// The number of clients.
const CLIENTS: usize = 4;

/// The number of the changing route.
const ROUTE: usize = 0;

pub(crate) async fn measure(lab: &Lab, others: usize) -> Figures {
    let mut figures = Figures::default();
    let Some(client) = lab.contender().client() else { return figures };
    flip(&mut figures, lab, &client, FLIPS, "alone").await;
    let routes = 1..=others;
    let routes = routes.map(|index| objects::route(&lab.gateways(), "default", index, Shape::Simple));
    objects::create_all(&lab.client(), routes).await;
    lab.contender().settle().await;
    flip(&mut figures, lab, &client, FLIPS_BESIDE_OTHERS, &format!("beside {others} routes")).await;
    figures
}

/// Changes the route while clients send requests.
async fn flip(figures: &mut Figures, lab: &Lab, client: &Client, flips: usize, label: &str) {
    let (host, path) = (objects::host(ROUTE), format!("/{ROUTE}"));
    let mut route = objects::route(&lab.gateways(), "default", ROUTE, Shape::Simple);
    if label == "alone" {
        objects::create(&lab.client(), route.clone()).await;
    }
    client.wait_for_ok(&host, &path).await;
    let stop = CancellationToken::new();
    let (answers, failures) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, stop) = (client.clone(), stop.clone());
        let (answers, failures) = (answers.clone(), failures.clone());
        let (host, path) = (host.clone(), path.clone());
        clients.spawn(async move {
            while !stop.is_cancelled() {
                let response = client.get(&host, &path).await;
                let is_ok = response.is_some_and(|response| response.status() == StatusCode::OK);
                if is_ok { &answers } else { &failures }.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
    }
    let before = lab.contender().usage().await;
    let mut samples = Samples::default();
    for flip in 0..flips {
        let marker = format!("{label}-{flip}");
        let set = json!({"set": [{"name": "x-flip", "value": marker}]});
        route["spec"]["rules"][0]["filters"] =
            json!([{"type": "ResponseHeaderModifier", "responseHeaderModifier": set}]);
        let answered = objects::merge(&lab.client(), &route).await;
        // The time to the new answer is taken of some changes; the others follow at once.
        if flip % (flips / 100) == 0 {
            let is_new = |response: &http::Response<bytes::Bytes>| {
                response.headers().get("x-flip").is_some_and(|value| *value == marker.as_str())
            };
            // A client that polls counts each old answer as an error, so this one counts nothing.
            samples.push(client.wait_for(&host, &path, is_new).await.at.saturating_duration_since(answered));
        }
    }
    let used = lab.contender().usage().await.since(&before);
    stop.cancel();
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let changes = u32::try_from(flips).unwrap();
    figures.count(format!("{label}: changes"), flips);
    figures.count(format!("{label}: responses with 200"), answers.load(Ordering::Relaxed));
    figures.count(format!("{label}: failed requests"), failures.load(Ordering::Relaxed));
    figures.time(format!("{label}: change to the new answer, p50"), samples.percentile(50));
    figures.time(format!("{label}: processor time of the controller for each"), used.controller / changes);
    figures.time(format!("{label}: processor time of the data plane for each"), used.data_plane / changes);
}
