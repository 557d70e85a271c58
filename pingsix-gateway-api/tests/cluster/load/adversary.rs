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
use super::changes::{self, Now};
use super::objects::{service, slice};
use super::scene::{self, Scene};
use super::subjects::Subject;
use super::traffic::{Traffic, ask_everything};
use super::{is_up_to_date, namespace, number, refusals};
use crate::lab::pingsix::say;
use crate::lab::{PATIENCE, eventually_found};
use tenant::{Deeds, Tenant};

const TENANTS: [&str; 2] = ["hostile", "hostile-2"];

/// The default time of the tenants' presence, in seconds.
const SECONDS: u64 = 20;

/// The least duration of a long run, in seconds.
const LONG: u64 = 300;

/// The tolerated factor of the victim's latency beside tenants, by the 95th percentile.
const SLOWER: f64 = 3.0;

/// The limit of the Deployment in KiB (`deploy/base/deployment.yaml`).
const MEMORY: u64 = 1024 * 1024;

/// The least number of kills of the controller.
const KILLS: u64 = 2;

/// The approximate lifetime of the controller between kills.
const LIFE: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_tenants_take_no_request_of_a_victim_and_hold_up_no_change_of_it() {
    const TEST: &str = "adversary::hostile_tenants_take_no_request_of_a_victim_and_hold_up_no_change_of_it";
    if !namespace::is_inside(TEST).await {
        return;
    }
    Box::pin(run(TEST)).await;
}

async fn run(test: &str) {
    let mut hostile = Vec::new();
    let cast = |backends: &Backends| {
        hostile = TENANTS.iter().map(|tenant| slice(tenant, "web", backends, &[("web", "c")])).collect();
        victim::cast(backends)
    };
    let Some(scene) = Scene::start(test, cast).await else { return };
    let seconds = number("ADVERSARY_SECONDS").unwrap_or(SECONDS);
    let seed = number("ADVERSARY_SEED").unwrap_or_else(|| rand::rng().random());
    say(&format!("{test}: ADVERSARY_SEED={seed}"));
    let mut dice = StdRng::seed_from_u64(seed);
    prepare(&scene, hostile).await;
    assert_eq!(ask_everything(&scene.subjects, scene.doors()).await, Vec::<String>::new(), "before anything");

    let traffic = Traffic::start(&scene.subjects, scene.doors(), &mut dice);
    let mut now = vec![0; scene.subjects.len()];
    let part = Duration::from_secs(seconds / 3);
    let alone =
        change(&scene, &mut now, part.clamp(Duration::from_secs(5), Duration::from_mins(1)), &mut dice).await;

    let (over, elsewhere) = start_tenants(&scene, false, &mut dice);
    let apart = change(&scene, &mut now, part, &mut dice).await;
    over.cancel();
    deeds(elsewhere).await;

    let (over, tenants) = start_tenants(&scene, true, &mut dice);
    let (watched, fates) = (CancellationToken::new(), StdRng::seed_from_u64(dice.random()));
    let work = async {
        let beside = change(&scene, &mut now, part, &mut dice).await;
        let (killed, (opened, peak)) =
            tokio::join!(change(&scene, &mut now, part, &mut dice), kill(&scene, part, fates));
        over.cancel();
        watched.cancel();
        (beside, killed, opened, peak)
    };
    let ((beside, killed, opened, peak), refusals) = tokio::join!(work, refusals(&scene, true, &watched));
    let deeds = deeds(tenants).await;
    let open = changes::settle(&scene.subjects).await;
    let peak = peak.max(memory(&scene).await);
    let tally = traffic.stop().await;
    let slower = beside.p95.as_secs_f64() / apart.p95.as_secs_f64();
    say(&format!(
        "{test}: {} answers, {} wrong, {} failed; changes of the victim alone {alone:?}, beside objects of nobody {apart:?}, \
         beside tenants {beside:?} ({slower:.1} times), while the controller was killed {killed:?}; the feed opened after {opened:.1?}; \
         the controller took {} MiB at most; {deeds:?}",
        tally.total(),
        tally.wrong.len(),
        tally.failed.len(),
        peak / 1024,
    ));
    let logs = || format!("{test}, ADVERSARY_SEED={seed}\n{}", scene::end_of(&scene.controller.log()));
    assert!(tally.wrong.is_empty() && tally.failed.is_empty(), "{}{}", tally.faults(), logs());
    assert_eq!(open, Vec::<String>::new(), "{}", logs());
    assert_eq!(refusals, Vec::<String>::new(), "{}", logs());
    assert!(peak < MEMORY, "the controller took {peak} KiB: {}", logs());
    assert!(deeds.len() > 10, "hardly anything hostile was done: {deeds:?}");
    if seconds >= LONG {
        assert!(slower <= SLOWER, "changes of the victim took {slower:.1} times as long: {}", logs());
    }

    scene.is_published().await;
    assert_eq!(ask_everything(&scene.subjects, scene.doors()).await, Vec::<String>::new(), "afterwards");
    is_up_to_date(&scene).await;
    scene.stop().await;
}

/// Starts the tenants. The token ends them.
fn start_tenants(scene: &Scene, is_served: bool, dice: &mut StdRng) -> (CancellationToken, JoinSet<Deeds>) {
    let (over, mut tenants) = (CancellationToken::new(), JoinSet::new());
    for namespace in TENANTS {
        let (client, dice) = (scene.cluster.admin(), StdRng::seed_from_u64(dice.random()));
        tenants.spawn(Tenant { client, namespace, is_served, dice }.run(over.clone()));
    }
    (over, tenants)
}

/// The harmless objects of tenants: namespaces, a Service each, and a class for Ingresses.
async fn prepare(scene: &Scene, slices: Vec<serde_json::Value>) {
    let client = scene.cluster.admin();
    for (tenant, slice) in TENANTS.into_iter().zip(slices) {
        scene.cluster.namespace(tenant).await.unwrap();
        changes::create(&client, Kind::Service, &service(tenant, "web", "web")).await;
        changes::create(&client, Kind::EndpointSlice, &slice).await;
    }
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "pingsix"},
        "spec": {"controller": "pingsix.io/gateway-controller"}});
    scene.cluster.apply(&class.to_string()).await.unwrap();
}

/// The times from changes to their observation by a client.
#[derive(Debug)]
struct Lags {
    #[expect(dead_code, reason = "it is read by whoever reads what a run says")]
    changes: usize,
    #[expect(dead_code, reason = "likewise")]
    p50: Duration,
    p95: Duration,
}

impl Lags {
    /// The subjects with more than this many of these.
    fn since(subjects: &[Subject], before: &[usize]) -> Self {
        let new =
            subjects.iter().zip(before).flat_map(|(subject, before)| subject.book.lags().split_off(*before));
        let mut lags: Vec<Duration> = new.collect();
        lags.sort();
        let of = |percent: usize| lags.get(lags.len() * percent / 100).copied().unwrap_or_default();
        Self { changes: lags.len(), p50: of(50), p95: of(95) }
    }
}

/// Changes the victim's objects for a while.
async fn change(scene: &Scene, now: &mut Now, period: Duration, dice: &mut StdRng) -> Lags {
    let before: Vec<usize> = scene.subjects.iter().map(|subject| subject.book.lags().len()).collect();
    let (started, client) = (Instant::now(), scene.cluster.admin());
    while started.elapsed() < period {
        changes::make(&client, &scene.subjects, now, 10, dice).await;
    }
    changes::settle(&scene.subjects).await;
    Lags::since(&scene.subjects, &before)
}

/// Kills and restarts the controller for a while. Returns the times until the feed was open, and the peak memory of a
/// process in KiB.
async fn kill(scene: &Scene, period: Duration, mut dice: StdRng) -> (Vec<Duration>, u64) {
    let (started, mut opened, mut peak) = (Instant::now(), Vec::new(), 0);
    let life = LIFE.min(period / u32::try_from(KILLS).unwrap());
    while started.elapsed() < period {
        sleep(life.mul_f64(dice.random_range(0.1..1.0))).await;
        peak = peak.max(memory(scene).await);
        scene.controller.kill().await.unwrap();
        scene.controller.start().await.unwrap();
        let since = Instant::now();
        eventually_found("a feed that is open", async || scene.is_open().await).await;
        opened.push(since.elapsed());
        assert!(since.elapsed() < PATIENCE);
    }
    (opened, peak)
}

/// The controller's peak memory in KiB.
async fn memory(scene: &Scene) -> u64 {
    let pid = scene.controller.pid().await.expect("the controller has ended by itself");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")).unwrap().trim().parse().unwrap()
}

async fn deeds(mut tenants: JoinSet<Deeds>) -> Deeds {
    let mut all: Deeds = BTreeMap::new();
    while let Some(deeds) = tenants.join_next().await {
        for (deed, count) in deeds.unwrap() {
            *all.entry(deed).or_default() += count;
        }
    }
    all
}
