//! A victim beside hostile tenants within the API server's validation, with the controller's program and the real
//! PingSIX.
//!
//! There are four phases: the victim alone, the victim while the tenants' objects belong to nobody, the victim beside
//! the tenants, and the same while the controller is killed and restarted. `ADVERSARY_SECONDS` is the duration of the
//! last three phases together (`just adversary` takes ten minutes), and `ADVERSARY_SEED` repeats the random choices of a
//! run. Every run prints the slowdown of the victim's changes from the second phase to the third: the API server, which
//! shares the processors, is as busy in both. Long runs check it, because single moments of a busy machine do not count
//! there.

mod tenant;
mod victim;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use pingsix_translate::Kind;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::backends::Backends;
use super::changes::{self, Variants};
use super::environment::{self, Environment};
use super::objects::{service, slice};
use super::subjects::Subject;
use super::traffic::{Traffic, send_every_request};
use super::{is_up_to_date, namespace, number, refusals};
use crate::test_env::pingsix::print_message;
use crate::test_env::{WAIT_TIMEOUT, eventually_async};
use tenant::{ActionCounts, Tenant};

const TENANTS: [&str; 2] = ["hostile", "hostile-2"];

/// The default time of the tenants' presence.
const DEFAULT_SECONDS: u64 = 20;

/// The least duration of a long run, in seconds.
const LONG_RUN_SECONDS: u64 = 300;

/// The tolerated factor of the victim's latency beside tenants, by the 95th percentile.
const MAX_SLOWDOWN: f64 = 3.0;

/// The limit of the Deployment in KiB (`deploy/base/deployment.yaml`).
const MEMORY_LIMIT_KIB: u64 = 1024 * 1024;

/// The least number of kills of the controller.
const MIN_KILLS: u64 = 2;

/// The approximate lifetime of the controller between kills.
const LIFETIME: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_tenants_take_no_request_of_a_victim_and_delay_no_change_of_it() {
    const TEST: &str = "adversary::hostile_tenants_take_no_request_of_a_victim_and_delay_no_change_of_it";
    if !namespace::is_inside(TEST).await {
        return;
    }
    Box::pin(run(TEST)).await;
}

async fn run(test: &str) {
    let mut hostile = Vec::new();
    let fixtures = |backends: &Backends| {
        hostile = TENANTS.iter().map(|tenant| slice(tenant, "web", backends, &[("web", "c")])).collect();
        victim::fixtures(backends)
    };
    let Some(environment) = Environment::start(test, fixtures).await else { return };
    let seconds = number("ADVERSARY_SECONDS").unwrap_or(DEFAULT_SECONDS);
    let seed = number("ADVERSARY_SEED").unwrap_or_else(|| rand::rng().random());
    print_message(&format!("{test}: ADVERSARY_SEED={seed}"));
    let mut rng = StdRng::seed_from_u64(seed);
    prepare(&environment, hostile).await;
    assert_eq!(
        send_every_request(&environment.subjects, environment.addresses()).await,
        Vec::<String>::new(),
        "before anything"
    );

    let traffic = Traffic::start(&environment.subjects, environment.addresses(), &mut rng);
    let mut now = vec![0; environment.subjects.len()];
    let part = Duration::from_secs(seconds / 3);
    let alone =
        change(&environment, &mut now, part.clamp(Duration::from_secs(5), Duration::from_mins(1)), &mut rng)
            .await;

    let (over, elsewhere) = start_tenants(&environment, false, &mut rng);
    let apart = change(&environment, &mut now, part, &mut rng).await;
    over.cancel();
    actions(elsewhere).await;

    let (over, tenants) = start_tenants(&environment, true, &mut rng);
    let (watched, fates) = (CancellationToken::new(), StdRng::seed_from_u64(rng.random()));
    let work = async {
        let beside = change(&environment, &mut now, part, &mut rng).await;
        let (killed, (opened, peak)) =
            tokio::join!(change(&environment, &mut now, part, &mut rng), kill(&environment, part, fates));
        over.cancel();
        watched.cancel();
        (beside, killed, opened, peak)
    };
    let ((beside, killed, opened, peak), refusals) =
        tokio::join!(work, refusals(&environment, true, &watched));
    let actions = actions(tenants).await;
    let open = changes::wait_until_observed(&environment.subjects).await;
    let peak = peak.max(memory(&environment).await);
    let tally = traffic.stop().await;
    let slower = beside.p95.as_secs_f64() / apart.p95.as_secs_f64();
    print_message(&format!(
        "{test}: {} answers, {} wrong, {} failed; changes of the victim alone {alone:?}, beside objects of nobody {apart:?}, \
         beside tenants {beside:?} ({slower:.1} times), while the controller was killed {killed:?}; the feed opened after {opened:.1?}; \
         the controller took {} MiB at most; {actions:?}",
        tally.total(),
        tally.wrong.len(),
        tally.failed.len(),
        peak / 1024,
    ));
    let logs =
        || format!("{test}, ADVERSARY_SEED={seed}\n{}", environment::end_of(&environment.controller.log()));
    assert!(tally.wrong.is_empty() && tally.failed.is_empty(), "{}{}", tally.errors(), logs());
    assert_eq!(open, Vec::<String>::new(), "{}", logs());
    assert_eq!(refusals, Vec::<String>::new(), "{}", logs());
    assert!(peak < MEMORY_LIMIT_KIB, "the controller took {peak} KiB: {}", logs());
    assert!(actions.len() > 10, "hardly anything hostile was done: {actions:?}");
    if seconds >= LONG_RUN_SECONDS {
        assert!(slower <= MAX_SLOWDOWN, "changes of the victim took {slower:.1} times as long: {}", logs());
    }

    environment.is_published().await;
    assert_eq!(
        send_every_request(&environment.subjects, environment.addresses()).await,
        Vec::<String>::new(),
        "afterwards"
    );
    is_up_to_date(&environment).await;
    environment.stop().await;
}

/// Starts the tenants. The token ends them.
fn start_tenants(
    environment: &Environment,
    is_served: bool,
    rng: &mut StdRng,
) -> (CancellationToken, JoinSet<ActionCounts>) {
    let (over, mut tenants) = (CancellationToken::new(), JoinSet::new());
    for namespace in TENANTS {
        let (client, rng) = (environment.cluster.admin(), StdRng::seed_from_u64(rng.random()));
        tenants.spawn(Tenant { client, namespace, is_served, rng }.run(over.clone()));
    }
    (over, tenants)
}

/// The harmless objects of tenants: namespaces, a Service each, and a class for Ingresses.
async fn prepare(environment: &Environment, slices: Vec<serde_json::Value>) {
    let client = environment.cluster.admin();
    for (tenant, slice) in TENANTS.into_iter().zip(slices) {
        environment.cluster.namespace(tenant).await.unwrap();
        changes::create(&client, Kind::Service, &service(tenant, "web", "web")).await;
        changes::create(&client, Kind::EndpointSlice, &slice).await;
    }
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "pingsix"},
        "spec": {"controller": "pingsix.io/gateway-controller"}});
    environment.cluster.apply(&class.to_string()).await.unwrap();
}

/// The times from changes to their observation by a client.
#[derive(Debug)]
struct Latencies {
    #[expect(dead_code, reason = "it is read by whoever reads what a run says")]
    changes: usize,
    #[expect(dead_code, reason = "likewise")]
    p50: Duration,
    p95: Duration,
}

impl Latencies {
    /// The subjects with more than this many of these.
    fn since(subjects: &[Subject], before: &[usize]) -> Self {
        let new = subjects
            .iter()
            .zip(before)
            .flat_map(|(subject, before)| subject.states.latencies().split_off(*before));
        let mut latencies: Vec<Duration> = new.collect();
        latencies.sort();
        let of = |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or_default();
        Self { changes: latencies.len(), p50: of(50), p95: of(95) }
    }
}

/// Changes the victim's objects for a while.
async fn change(
    environment: &Environment,
    now: &mut Variants,
    period: Duration,
    rng: &mut StdRng,
) -> Latencies {
    let before: Vec<usize> =
        environment.subjects.iter().map(|subject| subject.states.latencies().len()).collect();
    let (started, client) = (Instant::now(), environment.cluster.admin());
    while started.elapsed() < period {
        changes::make_changes(&client, &environment.subjects, now, 10, rng).await;
    }
    changes::wait_until_observed(&environment.subjects).await;
    Latencies::since(&environment.subjects, &before)
}

/// Kills and restarts the controller for a while. Returns the times until the feed was open, and the peak memory of a
/// process in KiB.
async fn kill(environment: &Environment, period: Duration, mut rng: StdRng) -> (Vec<Duration>, u64) {
    let (started, mut opened, mut peak) = (Instant::now(), Vec::new(), 0);
    let life = LIFETIME.min(period / u32::try_from(MIN_KILLS).unwrap());
    while started.elapsed() < period {
        sleep(life.mul_f64(rng.random_range(0.1..1.0))).await;
        peak = peak.max(memory(environment).await);
        environment.controller.kill().await.unwrap();
        environment.controller.start().await.unwrap();
        let since = Instant::now();
        eventually_async("a feed that is open", async || environment.is_open().await).await;
        opened.push(since.elapsed());
        assert!(since.elapsed() < WAIT_TIMEOUT);
    }
    (opened, peak)
}

/// The controller's peak memory in KiB.
async fn memory(environment: &Environment) -> u64 {
    let pid = environment.controller.pid().await.expect("the controller has ended by itself");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")).unwrap().trim().parse().unwrap()
}

async fn actions(mut tenants: JoinSet<ActionCounts>) -> ActionCounts {
    let mut all: ActionCounts = BTreeMap::new();
    while let Some(actions) = tenants.join_next().await {
        for (deed, count) in actions.unwrap() {
            *all.entry(deed).or_default() += count;
        }
    }
    all
}
