//! The router model and PingSIX's router, on random tables.

mod closed;
mod requests;
mod tables;
mod worlds;

use std::path::Path;

use pingsix_translate::pingsix::router::UpstreamRef;
use pingsix_translate::pingsix::{Config, Outcome, Request, Upstream};

use crate::client::{Addresses, Reply, ask_all};
use crate::echo::{BACKEND, Echo, ROUTE_SEEN};
use crate::etcd::Etcd;
use crate::process::{Listener, PingSix, Verdict, WAIT_TIMEOUT};
use crate::rng::SeededRng;
use crate::run::{binary, cases, print_message, seed};
use worlds::Worlds;

/// The one prefix of these tests.
const SCOPE: &str = "/contract/routing";

/// A PingSIX with its configuration and the backends of all tables.
struct Harness<'b> {
    binary: &'b Path,
    etcd: Etcd,
    echoes: Vec<Echo>,
    pingsix: PingSix,
    edition: usize,
    /// The last that was published.
    revision: i64,
    starts: usize,
}

impl<'b> Harness<'b> {
    async fn start(binary: &'b Path) -> Self {
        let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
        let mut echoes = Vec::new();
        for name in tables::BACKENDS {
            echoes.push(Echo::start(name).await);
        }
        let pingsix = PingSix::start(binary, etcd.address, SCOPE).await;
        Self { binary, etcd, echoes, pingsix, edition: 0, revision: 0, starts: 1 }
    }

    /// Adds the upstreams of the backends to a table.
    fn with_upstreams(&self, mut config: Config) -> Config {
        for echo in &self.echoes {
            let nodes = [(echo.address.to_string(), 1)].into();
            config.insert(&*echo.name, Upstream { nodes, ..Upstream::default() });
        }
        config
    }

    async fn publish(&mut self, config: &Config) -> Verdict {
        self.edition += 1;
        self.revision = self.etcd.publish(SCOPE, config, self.edition).await;
        self.pingsix.verdict(self.revision, WAIT_TIMEOUT).await
    }

    /// Publishes valid documents, so that an earlier error ends.
    async fn clear(&mut self) {
        self.edition += 1;
        let revision = self.etcd.publish(SCOPE, &Config::new(), self.edition).await;
        self.pingsix.published(revision).await;
    }

    async fn restart(&mut self) {
        self.pingsix = PingSix::start(self.binary, self.etcd.address, SCOPE).await;
        self.starts += 1;
    }
}

/// Whether a response equals the model's.
fn agrees(outcome: &Outcome<'_>, request: &Request, reply: &Reply) -> bool {
    let body = |text: &str| request.method == "HEAD" || reply.body == text.as_bytes();
    match outcome {
        Outcome::NotFound => {
            reply.status == 404 && reply.body.is_empty() && reply.header("x-route").is_none()
        }
        Outcome::Static { status, headers, body: text, .. } => {
            let has = |(name, value): &(String, String)| reply.header(name) == Some(value);
            reply.status == *status && headers.iter().all(has) && body(text)
        }
        Outcome::Preflight { allowed, .. } => reply.status == if *allowed { 204 } else { 403 },
        Outcome::Redirect { status, location, .. } => {
            reply.status == *status && reply.header("location") == Some(location)
        }
        Outcome::Forward { route, candidates } => {
            let served_by = |upstream: &UpstreamRef| match upstream {
                UpstreamRef::Named(id) => reply.header(BACKEND) == Some(id),
                UpstreamRef::Inline(_) => false,
            };
            reply.status == 200
                && reply.header(ROUTE_SEEN) == Some(&route.id)
                && candidates.iter().any(|candidate| served_by(&candidate.upstream))
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_and_the_model_agree_on_open_tables() {
    const TEST: &str = "open tables";
    /// The number of publications of a table; PingSIX draws another order each time.
    const PUBLICATIONS_PER_TABLE: usize = 3;
    let Some(binary) = binary(TEST) else { return };
    let mut harness = Harness::start(&binary).await;
    let (mut compared, mut tables, mut refused, mut ambiguous, mut varied) = (0, 0, 0, 0, 0);
    while compared < cases() {
        let mut rng = SeededRng::new(seed(), tables);
        let config = harness.with_upstreams(tables::open(&mut rng));
        let requests = requests::draw(&mut rng, 40);
        let worlds = Worlds::of(&config, &requests);
        tables += 1;
        if tables.is_multiple_of(40) {
            harness.restart().await;
        }
        let mut seen = Vec::new();
        for _ in 0..PUBLICATIONS_PER_TABLE {
            match harness.publish(&config).await {
                Verdict::Accepted => {
                    assert!(
                        worlds.some_order_is_accepted(),
                        "table {tables} should be refused: {}",
                        config.to_static()
                    );
                    let replies = ask_all(harness.pingsix.address, &requests).await;
                    seen.push(worlds.explain(&requests, &replies, &config));
                    compared += replies.len();
                }
                Verdict::Refused(kind, error) => {
                    assert_eq!(kind, "candidate_invalid", "{error}");
                    assert!(
                        worlds.some_order_is_refused(),
                        "table {tables} refused: {error}\n{}",
                        config.to_static()
                    );
                    refused += 1;
                    harness.clear().await;
                }
                Verdict::Silent => panic!("nothing heard of table {tables}: {}", harness.pingsix.log()),
            }
        }
        ambiguous += usize::from(worlds.len() > 1);
        varied += usize::from(seen.windows(2).any(|pair| pair[0] != pair[1]));
    }
    assert!(varied * 4 > ambiguous, "PingSIX's order is hardly random: {varied} of {ambiguous}");
    print_message(&format!(
        "{TEST}: {compared} requests compared on {tables} tables in {} process starts, seed {}; \
         {ambiguous} tables depend on the order, {varied} of them answered in several ways; \
         {refused} publications refused, as the model says",
        harness.starts,
        seed(),
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_closed_tables_the_same_in_every_order() {
    const TEST: &str = "closed tables";
    const ORDERS: usize = 20;
    let Some(binary) = binary(TEST) else { return };
    let mut harness = Harness::start(&binary).await;
    // Every order answers the same, so does a second process that draws its own.
    let mut tls = PingSix::start_with(Listener::Tls, &binary, harness.etcd.address, SCOPE).await;
    let (mut compared, mut over_tls, mut tables) = (0, 0, 0);
    while compared < cases() {
        let mut rng = SeededRng::new(seed(), 1_000_000 + tables);
        let config = harness.with_upstreams(closed::table(&mut rng));
        let mut requests = requests::draw(&mut rng, 120);
        for request in &mut requests {
            request.tls = rng.percent(20);
            over_tls += usize::from(request.tls);
        }
        let worlds = Worlds::drawn(&config, &requests, &mut rng, ORDERS);
        assert_eq!(
            (worlds.len(), worlds.some_order_is_refused()),
            (1, false),
            "not closed: {}",
            config.to_static()
        );
        tables += 1;
        if tables.is_multiple_of(20) {
            harness.restart().await;
            tls = PingSix::start_with(Listener::Tls, &binary, harness.etcd.address, SCOPE).await;
            harness.starts += 1;
        }
        assert_eq!(harness.publish(&config).await, Verdict::Accepted);
        tls.published(harness.revision).await;
        let addresses = Addresses { plaintext: harness.pingsix.address, tls: Some(tls.address) };
        let replies = ask_all(addresses, &requests).await;
        worlds.explain(&requests, &replies, &config);
        compared += replies.len();
    }
    print_message(&format!(
        "{TEST}: {compared} requests compared, {over_tls} of them over TLS, on {tables} tables in {} process starts, \
         seed {}",
        harness.starts + 1,
        seed(),
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_draws_its_order_anew_at_every_publication_and_start() {
    const TEST: &str = "random order";
    const DRAWS: usize = 30;
    let Some(binary) = binary(TEST) else { return };
    let mut harness = Harness::start(&binary).await;
    let config = harness.with_upstreams(tables::swallowing());
    let requests = [Request::get("any.t", "/a/x"), Request::get("any.t", "/q")];
    let worlds = Worlds::of(&config, &requests);
    assert_eq!(worlds.len(), 2, "/a/x and /q depend on the order together");
    let mut seen = [Vec::new(), Vec::new()];
    for draw in 0..2 * DRAWS {
        // Every other time a publication, every other time a start.
        let kind = draw % 2;
        if kind == 0 {
            assert_eq!(harness.publish(&config).await, Verdict::Accepted);
        } else {
            harness.restart().await;
        }
        let replies = ask_all(harness.pingsix.address, &requests).await;
        seen[kind].push(worlds.explain(&requests, &replies, &config));
    }
    for seen in &seen {
        assert!(seen.contains(&0) && seen.contains(&1), "{seen:?}");
    }
    let share = |seen: &[usize]| seen.iter().filter(|&&world| world == 0).count();
    print_message(&format!(
        "{TEST}: of {DRAWS} publications {} and of {DRAWS} starts {} went one way, the others the other",
        share(&seen[0]),
        share(&seen[1]),
    ));
}
