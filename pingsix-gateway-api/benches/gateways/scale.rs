//! Propagation under route scale: 50 namespaces with 100 routes each, while Pods and routes change all the time.

use std::time::Duration;

use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::backend;
use crate::figures::Figures;
use crate::lab::Lab;
use crate::objects::{self, Shape};
use crate::samples::Samples;

const NAMESPACES: usize = 50;
const ROUTES_PER_NAMESPACE: usize = 100;

/// As in the public benchmark: a route of the cluster changes each second, and a Pod every two seconds.
const ROUTE_INTERVAL: Duration = Duration::from_secs(1);
const POD_INTERVAL: Duration = Duration::from_secs(2);

/// How long nothing but the changes happens.
const STEADY_TIME: Duration = Duration::from_secs(20);

/// The number of measured routes, which are the benchmark's own.
const PROBES: usize = 100;

pub(crate) async fn measure(lab: &Lab) -> Figures {
    let (mut figures, contender, client) = (Figures::default(), lab.contender(), lab.client());
    for namespace in 0..NAMESPACES {
        lab.cluster.namespace(&name(namespace)).await.unwrap();
    }
    let all =
        (0..NAMESPACES).flat_map(|namespace| (0..ROUTES_PER_NAMESPACE).map(move |index| (namespace, index)));
    let objects = all.flat_map(|(namespace, index)| {
        let [service, slice] = objects::service(
            &name(namespace),
            &objects::service_name(number(namespace, index)),
            &backend::endpoints(&[index % 4]),
        );
        let route =
            objects::route(&lab.gateways(), &name(namespace), number(namespace, index), Shape::Simple);
        [service, slice, route]
    });
    let before = contender.usage().await;
    objects::create_all(&client, objects).await;
    contender.settle().await;
    let used = contender.usage().await.since(&before);
    figures.time("5,000 routes created: processor time of the controller", used.controller);
    figures.time("5,000 routes created: processor time of the data plane", used.data_plane);

    let stop = CancellationToken::new();
    let churn = tokio::spawn(churn(client.clone(), lab.gateways(), stop.clone()));
    let before = contender.usage().await;
    tokio::time::sleep(STEADY_TIME).await;
    let used = contender.usage().await.since(&before);
    figures.cores("steady state: controller", used.controller, used.wall);
    figures.cores("steady state: data plane", used.data_plane, used.wall);

    if let Some(data_plane) = contender.client() {
        let (mut samples, mut errors) = (Samples::default(), 0);
        for index in 0..PROBES {
            let index = NAMESPACES * ROUTES_PER_NAMESPACE + index;
            let route = objects::route(&lab.gateways(), "default", index, Shape::Benchmark);
            let created = objects::create(&client, route).await;
            let awaited = data_plane.wait_for_ok(&objects::host(index), &format!("/{index}")).await;
            samples.push(awaited.at.saturating_duration_since(created));
            errors += awaited.errors;
        }
        figures.time("create to 200 under churn, p50", samples.percentile(50));
        figures.time("create to 200 under churn, p95", samples.percentile(95));
        figures.count("errors", errors);
    }
    stop.cancel();
    figures.count("changes", churn.await.unwrap());
    let (controller, data_plane) = contender.peaks().await;
    figures.bytes("peak RSS of the controller", controller);
    figures.bytes("peak RSS of the data plane", data_plane);
    figures
}

fn name(namespace: usize) -> String {
    format!("mesh-{namespace}")
}

/// The number of a route, which differs from all others.
fn number(namespace: usize, index: usize) -> usize {
    namespace * ROUTES_PER_NAMESPACE + index
}

/// Changes a route of the cluster each second, and an endpoint every two seconds. Returns the number of changes.
async fn churn(client: kube::Client, gateways: Vec<String>, stop: CancellationToken) -> usize {
    let (mut routes, mut pods) = (interval(ROUTE_INTERVAL), interval(POD_INTERVAL));
    routes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pods.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = 0;
    loop {
        let (namespace, index) = (changes * 7 % NAMESPACES, changes * 13 % ROUTES_PER_NAMESPACE);
        let (place, number) = (name(namespace), number(namespace, index));
        let object = tokio::select! {
            () = stop.cancelled() => return changes,
            _ = routes.tick() => {
                let mut route = objects::route(&gateways, &place, number, Shape::Simple);
                route["spec"]["rules"][0]["matches"][0]["path"]["value"] = format!("/{number}/{changes}").into();
                route
            }
            _ = pods.tick() => {
                let endpoints = json!({
                    "endpoints": [{"addresses": [format!("198.18.1.{}", changes % 250 + 1)], "conditions": {"ready": true}}],
                    "ports": [{"name": "web", "port": 8080, "protocol": "TCP"}],
                });
                objects::slice(&place, &objects::service_name(number), &endpoints)
            }
        };
        objects::merge(&client, &object).await;
        changes += 1;
    }
}
