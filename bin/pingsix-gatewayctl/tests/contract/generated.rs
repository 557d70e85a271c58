//! Random Gateways and routes, as manifests on disk.

use std::fs;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use crate::comparison::{Comparison, Tally};
use crate::echo::Echo;
use crate::process::PingSix;
use crate::properties::generate::{Taste, table, table_of_sets};
use crate::run::{binary, cases, print_message, seed};
use crate::serve::Serve;

/// The number of starts of PingSIX on each data plane; PingSIX draws another order each time.
const STARTS: usize = 3;

/// The number of requests after each start.
const REQUESTS_PER_START: usize = 120;

/// A table with endpoints on this machine, so that no request leaves it; the echoes replace most of them.
fn on_loopback(mut objects: Vec<Value>) -> Vec<Value> {
    for slice in objects.iter_mut().filter(|object| object["kind"] == "EndpointSlice") {
        for endpoint in slice["endpoints"].as_array_mut().into_iter().flatten() {
            for address in endpoint["addresses"].as_array_mut().into_iter().flatten() {
                let text = address.as_str().unwrap();
                *address =
                    json!(text.strip_prefix("10.").map_or("::1".to_owned(), |rest| format!("127.{rest}")));
            }
        }
    }
    objects
}

/// The manifests of a table, with the class that makes its Gateway ours.
fn manifests(objects: &[Value]) -> String {
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": { "name": "pingsix" },
        "spec": { "controllerName": "pingsix.io/gateway-controller" },
    });
    let items: Vec<&Value> = objects.iter().chain([&class]).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_served_tables_as_the_oracle_does() {
    const TEST: &str = "serve";
    let Some(binary) = binary(TEST) else { return };
    let mut echoes = Vec::new();
    // Service app/idle has only endpoints on their way out, which serve as long as there is no other.
    let services =
        ["infra", "app", "app-b"].into_iter().flat_map(|namespace| [(namespace, "one"), (namespace, "two")]);
    for (namespace, service) in services.chain([("app", "idle")]) {
        for port in [80, 81] {
            echoes.push(Echo::start(&format!("{namespace}/{service}:{port}")).await);
        }
    }
    let endpoints: Vec<_> = echoes.iter().map(|echo| (echo.name.clone(), echo.address)).collect();
    let mut tally = Tally::default();
    let mut with_sets = 0;
    while tally.requests < cases() {
        let mut rng = SmallRng::seed_from_u64(seed().wrapping_mul(1_000_003).wrapping_add(tally.tables));
        // Every second table has ListenerSets, and every second pair HTTPS.
        let generate = if tally.tables % 2 == 1 { table_of_sets } else { table };
        let objects = on_loopback(generate(&mut rng, Taste { https: tally.tables % 4 >= 2 }));
        with_sets += usize::from(objects.iter().any(|object| object["kind"] == "ListenerSet"));
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("table.json"), manifests(&objects)).unwrap();
        let comparison = Comparison::new(&objects, |_, (namespace, name, port), backend| {
            backend == format!("{namespace}/{name}:{port}")
        });
        let ports = comparison.world.ports();
        for layout in ["shared", "per-port"] {
            let planes: Vec<Option<u16>> = match layout {
                "shared" if ports.is_empty() => Vec::new(),
                "shared" => vec![None],
                _ => ports.iter().copied().map(Some).collect(),
            };
            let serve = Serve::start(directory.path(), &endpoints, layout).await;
            for port in planes {
                let scope = match port {
                    None => "/pingsix/infra/public".to_owned(),
                    Some(port) => format!("/pingsix/infra/public:{port}"),
                };
                tally.planes += 1;
                for _ in 0..STARTS {
                    let pingsix = PingSix::start(&binary, serve.etcd, &scope).await;
                    tally.starts += 1;
                    let probes = comparison.probes(&mut rng, port, REQUESTS_PER_START);
                    comparison.compare(pingsix.address.into(), port, &probes, &mut rng, &mut tally).await;
                }
            }
        }
        tally.tables += 1;
    }
    assert!(with_sets > 0, "{} tables, and no ListenerSet", tally.tables);
    print_message(&format!("{TEST}: {tally}; {with_sets} tables have ListenerSets; seed {}", seed()));
}
