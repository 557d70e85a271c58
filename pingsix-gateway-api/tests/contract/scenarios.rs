//! Random Gateways and routes, translated and served to PingSIX: its answers are those of an independent reading of
//! Gateway API.

use std::net::{Ipv4Addr, SocketAddr};

use pingsix_gateway_sidecar::responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::{Layout, Options, translate};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use crate::comparison::{Comparison, Tally};
use crate::etcd::Etcd;
use crate::nodes::Nodes;
use crate::process::{Pair, Verdict, WAIT_TIMEOUT};
use crate::properties::case::snapshot;
use crate::properties::generate::{Taste, table, table_of_sets};
use crate::run::{binary, cases, print_message, seed};

/// Every data plane is published here in its turn.
const SCOPE: &str = "/contract/scenarios";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_translated_tables_as_the_oracle_does() {
    const TEST: &str = "scenarios";
    let Some(binary) = binary(TEST) else { return };
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let responder = Responder::bind(loopback, Reach::Loopback, ResponderOptions::default()).await.unwrap();
    let address = responder.local_addr().unwrap();
    tokio::spawn(responder.run(std::future::pending()));
    let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
    let mut pingsix = Pair::start(&binary, etcd.address, SCOPE).await;
    let mut nodes = Nodes::default();
    let mut tally = Tally { starts: 2, ..Tally::default() };
    let mut with_sets = 0;
    while tally.requests < cases() {
        let mut rng = SmallRng::seed_from_u64(seed().wrapping_mul(1_000_003).wrapping_add(tally.tables));
        // Every other table has ListenerSets, and every other pair HTTPS.
        let generate = if tally.tables % 2 == 1 { table_of_sets } else { table };
        let objects = generate(&mut rng, Taste { https: tally.tables % 4 >= 2 });
        let comparison = Comparison::new(&objects, |world, (namespace, name, port), backend| {
            world.nodes(namespace, name, port).contains(backend)
        });
        tally.tables += 1;
        with_sets += usize::from(objects.iter().any(|object| object["kind"] == "ListenerSet"));
        for layout in [Layout::Shared, Layout::PerPort] {
            let options = Options { layout, responder: Some(address), ..Options::default() };
            let translation = translate(&snapshot(&objects), &options);
            for (key, plane) in &translation.data_planes {
                let port = key.port();
                let probes = comparison.probes(&mut rng, port, 80);
                let config = nodes.stand_in(&plane.config, Some(address)).await;
                tally.planes += 1;
                let revision = etcd.publish(SCOPE, &config, tally.planes).await;
                if tally.planes.is_multiple_of(25) {
                    pingsix = Pair::start(&binary, etcd.address, SCOPE).await;
                    tally.starts += 2;
                }
                let verdict = pingsix.verdict(revision, WAIT_TIMEOUT).await;
                assert_eq!(
                    verdict,
                    Verdict::Accepted,
                    "table {}, {layout:?}: {}",
                    tally.tables,
                    config.to_static()
                );
                comparison.compare(pingsix.addresses(), port, &probes, &mut rng, &mut tally).await;
            }
        }
    }
    assert!(with_sets > 0, "{} tables, and no ListenerSet", tally.tables);
    print_message(&format!("{TEST}: {tally}; {with_sets} tables have ListenerSets; seed {}", seed()));
}
