//! Random Gateways and routes, translated and served to PingSIX: its answers are those of an independent reading of
//! Gateway API.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use pingsix_gateway_responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::pingsix::{Config, Document, Request, Upstream};
use pingsix_translate::{DataPlaneKey, Layout, Options, translate};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::client::{Reply, ask_all, speaks_http2};
use crate::echo::{BACKEND, Echo};
use crate::etcd::Etcd;
use crate::oracle::{Decided, Target, World};
use crate::probe::Probe;
use crate::process::{PATIENCE, PingSix, Verdict};
use crate::properties::case::snapshot;
use crate::properties::generate::{Taste, probe, table};
use crate::run::{binary, cases, say, seed};

/// Every data plane is published here in its turn.
const SCOPE: &str = "/contract/scenarios";

/// The backends, each standing for one node of some table, by the node's address there.
#[derive(Default)]
struct Nodes(BTreeMap<String, Echo>);

impl Nodes {
    /// A configuration whose nodes are the backends that stand for them.
    async fn stand_in(&mut self, config: &Config, responder: SocketAddr) -> Config {
        let mut changed = config.clone();
        for (key, document) in config.iter() {
            let mut document = document.clone();
            match &mut document {
                Document::Upstream(upstream) => self.replace(upstream, responder).await,
                Document::Route(route) => {
                    if let Some(upstream) = &mut route.upstream {
                        self.replace(upstream, responder).await;
                    }
                    let split =
                        route.plugins.raw("traffic-split").map(ToString::to_string).unwrap_or_default();
                    assert!(!split.contains("nodes"), "an inline upstream in a list: {split}");
                }
                Document::Service(_) | Document::GlobalRule(_) | Document::Ssl(_) => {}
            }
            changed.insert(&*key.id, document);
        }
        changed
    }

    async fn replace(&mut self, upstream: &mut Upstream, responder: SocketAddr) {
        let mut nodes = BTreeMap::new();
        for (node, weight) in &upstream.nodes {
            let node = if *node == responder.to_string() {
                node.clone()
            } else {
                if !self.0.contains_key(node) {
                    self.0.insert(node.clone(), Echo::start(node).await);
                }
                self.0[node].address.to_string()
            };
            nodes.insert(node, *weight);
        }
        upstream.nodes = nodes;
    }
}

/// Requests to a data plane. Most random ones find no rule; of those only a few are kept.
fn probes(rng: &mut SmallRng, world: &World, port: Option<u16>) -> Vec<Probe> {
    let (mut probes, mut lost) = (Vec::new(), 0);
    for _ in 0..1000 {
        let probe = probe(rng);
        if world.decide(port, &probe).rule.is_some() {
            probes.push(probe);
        } else if lost < 15 {
            probes.push(probe);
            lost += 1;
        }
        if probes.len() == 80 {
            break;
        }
    }
    probes
}

/// The index of the target that answered, among those the oracle names.
fn target_of(world: &World, decided: &Decided, reply: &Reply) -> Option<usize> {
    decided.answer.into_iter().position(|(target, _)| match target {
        Target::Status(status) => reply.status == *status && reply.header(BACKEND).is_none(),
        Target::Service { namespace, name, port } => {
            let served = |node: &str| world.nodes(namespace, name, *port).contains(node);
            reply.status == 200 && reply.header(BACKEND).is_some_and(served)
        }
    })
}

/// What a test has compared.
#[derive(Default)]
struct Tally {
    requests: usize,
    by_backend: usize,
    weighted: usize,
    refused: usize,
    shares: usize,
    planes: usize,
    tables: u64,
    starts: usize,
}

/// Asks one data plane and compares.
async fn compare(
    pingsix: &PingSix,
    world: &World,
    port: Option<u16>,
    probes: &[Probe],
    rng: &mut SmallRng,
    tally: &mut Tally,
) {
    let sent = |probe: &Probe, rng: &mut SmallRng| {
        let request = probe.request();
        if rng.random_ratio(1, 8) && speaks_http2(&request) { request.over_http2() } else { request }
    };
    let requests: Vec<Request> = probes.iter().map(|probe| sent(probe, rng)).collect();
    let replies = ask_all(pingsix.address, &requests).await;
    let mut to_be_counted = None;
    for ((probe, request), reply) in probes.iter().zip(&requests).zip(&replies) {
        let decided = world.decide(port, probe);
        assert!(
            target_of(world, &decided, reply).is_some(),
            "port {port:?}: {request:?}\n  the oracle: {decided:?}\n  PingSIX: {reply:?}"
        );
        tally.requests += 1;
        tally.by_backend += usize::from(reply.header(BACKEND).is_some());
        tally.refused += usize::from(matches!(reply.status, 500 | 503));
        if decided.answer.into_iter().count() > 1 {
            tally.weighted += 1;
            to_be_counted = Some((decided, request));
        }
    }
    // One list in a few is asked so often that its shares show.
    if let Some((decided, request)) = to_be_counted.filter(|_| rng.random_ratio(1, 6)) {
        count_shares(pingsix, world, &decided, request).await;
        tally.shares += 1;
        tally.requests += SHARE_SAMPLE;
    }
}

/// How often a weighted list is asked.
const SHARE_SAMPLE: usize = 300;

async fn count_shares(pingsix: &PingSix, world: &World, decided: &Decided, request: &Request) {
    let mut counted = BTreeMap::new();
    for reply in ask_all(pingsix.address, &vec![request.clone(); SHARE_SAMPLE]).await {
        *counted.entry(target_of(world, decided, &reply).unwrap()).or_insert(0) += 1;
    }
    let total: u64 = decided.answer.into_iter().map(|(_, weight)| weight).sum();
    for (index, (_, weight)) in decided.answer.into_iter().enumerate() {
        let share = *weight as f64 / total as f64;
        let expected = share * SHARE_SAMPLE as f64;
        let deviation = (expected * (1.0 - share)).sqrt();
        let got = f64::from(*counted.get(&index).unwrap_or(&0));
        // Chance goes beyond five deviations once in a million times.
        assert!(
            (got - expected).abs() <= 5.0 * deviation + 3.0,
            "{decided:?}: {got} of {SHARE_SAMPLE}, {expected:.1} expected: {counted:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_translated_tables_as_the_oracle_does() {
    const TEST: &str = "scenarios";
    let Some(binary) = binary(TEST) else { return };
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let responder = Responder::bind(loopback, Reach::Loopback, ResponderOptions::default()).await.unwrap();
    let address = responder.local_addr().unwrap();
    tokio::spawn(responder.run(std::future::pending()));
    let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
    let mut pingsix = PingSix::start(&binary, etcd.address, SCOPE).await;
    let mut nodes = Nodes::default();
    let mut tally = Tally { starts: 1, ..Tally::default() };
    while tally.requests < cases() {
        let mut rng = SmallRng::seed_from_u64(seed().wrapping_mul(1_000_003).wrapping_add(tally.tables));
        let objects = table(&mut rng, Taste { https: tally.tables % 2 == 1 });
        let world = World::read(&objects);
        tally.tables += 1;
        for layout in [Layout::Shared, Layout::PerPort] {
            let options = Options { layout, responder: Some(address), ..Options::default() };
            let translation = translate(&snapshot(&objects), &options);
            for (DataPlaneKey::Gateway { port, .. }, plane) in &translation.data_planes {
                let probes = probes(&mut rng, &world, *port);
                let config = nodes.stand_in(&plane.config, address).await;
                tally.planes += 1;
                let revision = etcd.publish(SCOPE, &config, tally.planes).await;
                if tally.planes % 25 == 0 {
                    pingsix = PingSix::start(&binary, etcd.address, SCOPE).await;
                    tally.starts += 1;
                }
                let verdict = pingsix.verdict(revision, PATIENCE).await;
                assert_eq!(
                    verdict,
                    Verdict::Accepted,
                    "table {}, {layout:?}: {}",
                    tally.tables,
                    config.to_static()
                );
                compare(&pingsix, &world, *port, &probes, &mut rng, &mut tally).await;
            }
        }
    }
    let Tally { requests, by_backend, weighted, refused, shares, planes, tables, starts } = tally;
    say(&format!(
        "{TEST}: {requests} requests compared on {planes} data planes of {tables} tables in {starts} process starts, \
         seed {}; {by_backend} were answered by backends, {refused} with 500 or 503, {weighted} met weights, and the \
         shares of {shares} lists were counted",
        seed(),
    ));
}
