//! The system under load: a real API server, the controller's program, the real PingSIX, and clients that check every
//! response during changes.
//!
//! `LOAD_CHANGES` is the number of changes (`just load` makes 10,000), `LOAD_KILLS` the number of kills of the
//! controller, and `LOAD_SEED` repeats the random choices of a run.

mod adversary;
mod annotations;
mod backends;
mod changes;
mod checker;
pub(crate) mod connections;
mod environment;
#[path = "../contract/expectations.rs"]
mod expectations;
mod fixtures;
mod migration;
mod namespace;
mod objects;
mod policies;
mod security;
pub(crate) mod subjects;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pingsix_translate::{Layout, Options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::test_env::WAIT_TIMEOUT;
use crate::test_env::expected_state::{Dump, ExpectedState};
use crate::test_env::pingsix::print_message;
use environment::Environment;
use fixtures::Fixtures;
use subjects::Subject;
use traffic::{Tally, Traffic, send_every_request};

/// The default number of changes.
const DEFAULT_CHANGES: usize = 300;

/// The approximate duration of a change, from which the lifetime of a killed controller derives.
const CHANGE_DURATION: Duration = Duration::from_millis(15);

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_answer_is_as_before_a_change_or_as_after_it() {
    let changes = number("LOAD_CHANGES").unwrap_or(DEFAULT_CHANGES);
    Box::pin(run("under_load_every_answer_is_as_before_a_change_or_as_after_it", changes, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_kills_of_the_controller_have_no_effect() {
    let changes = number("LOAD_CHANGES").unwrap_or(DEFAULT_CHANGES);
    let kills = number("LOAD_KILLS").unwrap_or(if changes > DEFAULT_CHANGES { 10 } else { 3 });
    Box::pin(run("under_load_kills_of_the_controller_have_no_effect", changes, kills)).await;
}

async fn run(test: &str, changes: usize, kills: usize) {
    if !namespace::is_inside(test).await {
        return;
    }
    let Some(environment) = Environment::start(test, Fixtures::new).await else { return };
    let seed = number("LOAD_SEED").unwrap_or_else(|| rand::rng().random());
    print_message(&format!("{test}: LOAD_SEED={seed}"));
    let mut rng = StdRng::seed_from_u64(seed);
    assert_eq!(
        send_every_request(&environment.subjects, environment.addresses()).await,
        Vec::<String>::new(),
        "before any change"
    );

    let started = Instant::now();
    let traffic = Traffic::start(&environment.subjects, environment.addresses(), &mut rng);
    let mut fates = StdRng::seed_from_u64(rng.random());
    let client = environment.cluster.admin();
    let over = CancellationToken::new();
    let mut now = vec![0; environment.subjects.len()];
    let change = async {
        let mut counts =
            changes::make_changes(&client, &environment.subjects, &mut now, changes, &mut rng).await;
        // A killed process must have work in progress.
        over.cancel();
        counts.retain(|_, count| *count > 0);
        counts
    };
    let (counts, (), refusals) = tokio::join!(
        change,
        kill(&environment, kills, changes, &over, &mut fates),
        refusals(&environment, kills > 0, &over)
    );
    let open = changes::wait_until_observed(&environment.subjects).await;
    let took = started.elapsed();
    let tally = traffic.stop().await;
    print_message(&summary(test, kills, took, &counts, &tally));
    print_message(&latencies(test, &environment.subjects));
    let logs = || format!("{test}, LOAD_SEED={seed}\n{}", environment::end_of(&environment.controller.log()));
    assert!(tally.wrong.is_empty() && tally.failed.is_empty(), "{}{}", tally.errors(), logs());
    assert_eq!(open, Vec::<String>::new(), "{}", logs());
    assert_eq!(refusals, Vec::<String>::new(), "{}", logs());
    assert!(counts.len() == 10, "everything was changed: {counts:?}");

    environment.is_published().await;
    assert_eq!(
        send_every_request(&environment.subjects, environment.addresses()).await,
        Vec::<String>::new(),
        "afterwards"
    );
    is_up_to_date(&environment).await;
    environment.stop().await;
}

/// Kills and restarts the controller at random moments during changes.
async fn kill(
    environment: &Environment,
    kills: usize,
    changes: usize,
    over: &CancellationToken,
    rng: &mut StdRng,
) {
    for _ in 0..kills {
        let slowest = CHANGE_DURATION * u32::try_from(changes / kills).unwrap();
        let life = slowest.mul_f64(rng.random_range(0.02..1.0));
        // After the last change, the remaining effects come at once.
        over.run_until_cancelled(sleep(life)).await;
        assert!(environment.controller.pid().await.is_some(), "it had ended before");
        environment.controller.kill().await.unwrap();
        environment.controller.start().await.unwrap();
    }
}

/// The refusals of PingSIX. A missing feed counts as an error unless the test allows it.
async fn refusals(environment: &Environment, may_be_alone: bool, over: &CancellationToken) -> Vec<String> {
    let mut refusals = Vec::new();
    while over.run_until_cancelled(sleep(Duration::from_millis(50))).await.is_some() {
        if let Some(refusal) = environment.refusal(may_be_alone).await
            && refusals.last() != Some(&refusal)
        {
            refusals.push(refusal);
        }
    }
    refusals
}

/// Waits until the feed has exactly the documents of the cluster's objects.
async fn is_up_to_date(environment: &Environment) {
    let options =
        Options { layout: Layout::PerPort, responder: Some(environment.responder), ..Options::default() };
    let dump = Dump::of(&environment.cluster.admin()).await;
    for (scope, expected_documents) in ExpectedState::of(&dump, &options, &[]).expected_documents() {
        let started = Instant::now();
        loop {
            let differ = differences(environment, scope.as_str(), &expected_documents).await;
            if differ.is_empty() {
                break;
            }
            assert!(started.elapsed() < WAIT_TIMEOUT, "{} is not up to date: {differ:?}", scope.as_str());
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Keys of a data plane that are missing, superfluous or different.
async fn differences(
    environment: &Environment,
    scope: &str,
    expected_documents: &BTreeMap<String, Vec<u8>>,
) -> Vec<String> {
    let Ok((_, held)) = environment.feed(scope).await else { return vec![format!("{scope} is not open")] };
    let held: BTreeMap<String, Vec<u8>> = held.into_iter().collect();
    let keys: BTreeSet<&String> = held.keys().chain(expected_documents.keys()).collect();
    keys.into_iter().filter(|key| held.get(*key) != expected_documents.get(*key)).cloned().collect()
}

/// The time from a change to its observation.
fn latencies(test: &str, subjects: &[Subject]) -> String {
    let mut latencies: Vec<Duration> =
        subjects.iter().flat_map(|subject| subject.states.latencies()).collect();
    latencies.sort();
    let of = |percent: usize| {
        latencies
            .get((latencies.len() * percent / 100).min(latencies.len().max(1) - 1))
            .copied()
            .unwrap_or_default()
    };
    format!(
        "{test}: changes were seen after {:.1?} (p50), {:.1?} (p99), {:.1?} (at most)",
        of(50),
        of(99),
        of(100)
    )
}

fn summary(test: &str, kills: usize, took: Duration, counts: &changes::Counts, tally: &Tally) -> String {
    let each_second = |count: usize| f64::from(u32::try_from(count).unwrap()) / took.as_secs_f64();
    let changes: usize = counts.values().sum();
    format!(
        "{test}: {changes} changes ({:.0}/s) {counts:?}, the controller killed {kills} times; {} answers ({:.0}/s) {:?}, \
         {} wrong, {} failed, {} asked again on a new connection, the longest took {:.1?}",
        each_second(changes),
        tally.total(),
        each_second(tally.total()),
        tally.by_protocol(),
        tally.wrong.len(),
        tally.failed.len(),
        tally.retried,
        tally.slowest,
    )
}
