//! Elections over a server that loses and delays, among candidates that stop and whose clocks are wrong.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

use super::*;
use crate::clock::{Clock, LeaseClock};
use crate::fixture::api_server::{ApiServer, Fate};

const NAMESPACE: &str = "pingsix-system";
const PATH: &str =
    "/apis/coordination.k8s.io/v1/namespaces/pingsix-system/leases/pingsix-io-gateway-controller";

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

struct Candidate {
    leadership: Leadership,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Candidate {
    /// Ends as a process does that is killed.
    fn crash(self) {
        self.task.abort();
    }

    async fn leads_within(&mut self, limit: Duration) {
        timeout(limit, self.leadership.gained()).await.unwrap();
    }
}

fn options(pod: &str, skew: SignedDuration) -> LeaseOptions {
    LeaseOptions {
        clock: Clock::new(move || Timestamp::now() + skew),
        lease_clock: LeaseClock::of_tokio(),
        ..LeaseOptions::new(NAMESPACE, pingsix_translate::DEFAULT_CONTROLLER_NAME, pod)
    }
}

fn candidate_with(api: &ApiServer, options: LeaseOptions, pauses: Vec<(Instant, Instant)>) -> Candidate {
    let (elector, leadership) = Elector::new(api.client(), options).unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(pausing(elector.run(stop.clone()), pauses));
    Candidate { leadership, stop, task }
}

fn candidate(api: &ApiServer, pod: &str) -> Candidate {
    candidate_with(api, options(pod, SignedDuration::ZERO), Vec::new())
}

/// Runs as a process does that is stopped and continued.
async fn pausing(process: impl Future<Output = ()>, pauses: Vec<(Instant, Instant)>) {
    let mut process = pin!(process);
    for (from, to) in pauses {
        tokio::select! {
            biased;
            () = sleep_until(from) => {}
            () = &mut process => return,
        }
        // The elector is not polled.
        sleep_until(to).await;
    }
    process.await;
}

fn lease(api: &ApiServer) -> Value {
    api.get(PATH).unwrap()["spec"].take()
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_creates_the_lease_and_keeps_it() {
    let api = ApiServer::default();
    let mut one = candidate(&api, "one");
    one.leads_within(ms(10)).await;
    let two = candidate(&api, "two");
    let start = Instant::now();
    while start.elapsed() < secs(600) {
        assert!(one.leadership.is_held() && !two.leadership.is_held());
        tokio::time::sleep(ms(500)).await;
    }
    let lease = lease(&api);
    assert!(lease["holderIdentity"].as_str().unwrap().starts_with("one_"));
    assert_eq!(lease["leaseDurationSeconds"], 12);
    assert_eq!(lease["leaseTransitions"], 0);
    assert!(lease["renewTime"].as_str() > lease["acquireTime"].as_str());
}

#[tokio::test(start_paused = true)]
async fn a_crashed_holder_is_followed_after_its_lease_whatever_the_clocks_say() {
    for (mine, theirs) in [(0, 0), (10, -10), (-10, 10)] {
        let api = ApiServer::default();
        let mut one = candidate_with(&api, options("one", SignedDuration::from_mins(mine)), Vec::new());
        one.leads_within(ms(10)).await;
        let mut two = candidate_with(&api, options("two", SignedDuration::from_mins(theirs)), Vec::new());
        tokio::time::sleep(secs(60)).await;
        let last = api.writes(PATH).last().unwrap().at;
        one.crash();
        two.leadership.gained().await;
        let waited = last.elapsed();
        assert!(waited >= secs(12) && waited <= secs(14) + ms(10), "{waited:?}");
        assert_eq!(lease(&api)["leaseTransitions"], 1);
    }
}

/// The worst case is a holder that crashes just after a renewal that others have just missed.
#[tokio::test(start_paused = true)]
async fn a_holder_crashed_at_the_worst_moment_is_followed_within_15_seconds() {
    const ANSWER_TIME: Duration = ms(200);
    fastrand::seed(7);
    let mut longest = Duration::ZERO;
    for trial in 0..100 {
        let api = ApiServer::default();
        api.script(|_| Fate::Slow { before: ANSWER_TIME / 2, after: ANSWER_TIME / 2 });
        let mut one = candidate(&api, "one");
        one.leads_within(secs(1)).await;
        let mut two = candidate(&api, "two");
        tokio::time::sleep(secs(10) + ms(trial * 27)).await;
        let renewals = api.writes(PATH).len();
        while api.writes(PATH).len() == renewals {
            tokio::time::sleep(ms(1)).await;
        }
        // The write is stored, and its answer is pending.
        tokio::time::sleep(ANSWER_TIME / 2).await;
        one.crash();
        let crashed = Instant::now();
        two.leadership.gained().await;
        longest = longest.max(crashed.elapsed());
        two.crash();
    }
    assert!(longest <= secs(15), "{longest:?}");
    // As bad as it can be: it was noticed a whole period later.
    assert!(longest >= secs(14), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn each_leader_has_a_higher_term_even_after_its_lease_was_deleted() {
    let api = ApiServer::default();
    let mut made = 0;
    api.storing(move |object| {
        if object["metadata"]["creationTimestamp"].is_null() {
            made += 60;
            object["metadata"]["creationTimestamp"] =
                Timestamp::from_second(1_800_000_000 + made).unwrap().to_string().into();
        }
    });
    let mut last = 0;
    for name in ["one", "two", "one", "three"] {
        let mut candidate = candidate(&api, name);
        assert_eq!(candidate.leadership.term(), None);
        candidate.leads_within(secs(30)).await;
        let term = candidate.leadership.term().unwrap();
        assert!(term > last, "{term} {last}");
        tokio::time::sleep(secs(60)).await;
        assert_eq!(candidate.leadership.term(), Some(term), "as long as it leads");
        assert!(candidate.leadership.confirm().await.unwrap());
        last = term;
        let leadership = candidate.leadership.clone();
        candidate.crash();
        tokio::time::sleep(secs(20)).await;
        if name == "two" {
            api.delete(PATH);
        } else {
            assert!(!leadership.confirm().await.unwrap(), "it has run out");
        }
    }
    assert_eq!(Leadership::always().term(), None);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_stopped_lets_go() {
    let api = ApiServer::default();
    let mut one = candidate(&api, "one");
    one.leads_within(ms(10)).await;
    let mut two = candidate(&api, "two");
    tokio::time::sleep(secs(30)).await;
    one.stop.cancel();
    let start = Instant::now();
    two.leadership.gained().await;
    assert!(start.elapsed() <= secs(2), "{:?}", start.elapsed());
    assert!(!one.leadership.is_held());
    one.task.await.unwrap();
    assert_eq!(lease(&api)["leaseTransitions"], 1);
    two.stop.cancel();
    two.task.await.unwrap();
    assert_eq!(lease(&api).get("holderIdentity"), None);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_stopped_while_it_renews_lets_go_all_the_same() {
    for at in 0..60 {
        let api = ApiServer::default();
        let mut one = candidate(&api, "one");
        one.leads_within(ms(10)).await;
        api.script(|_| Fate::Slow { before: ms(20), after: ms(20) });
        tokio::time::sleep(secs(10) + ms(at * 10)).await;
        // The client drops the request in flight, and the request arrives.
        one.stop.cancel();
        one.task.await.unwrap();
        tokio::time::sleep(secs(1)).await;
        assert_eq!(lease(&api).get("holderIdentity"), None, "stopped after {at}0 ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_stopped_lets_others_be() {
    let api = ApiServer::default();
    let mut one = candidate(&api, "one");
    one.leads_within(ms(10)).await;
    let two = candidate(&api, "two");
    tokio::time::sleep(secs(5)).await;
    two.stop.cancel();
    two.task.await.unwrap();
    assert!(lease(&api)["holderIdentity"].as_str().unwrap().starts_with("one_"));
    tokio::time::sleep(secs(60)).await;
    assert!(one.leadership.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_gives_up_before_others_take_over() {
    let api = ApiServer::default();
    let mut one = candidate(&api, "one");
    one.leads_within(ms(10)).await;
    tokio::time::sleep(secs(30)).await;
    let last = api.writes(PATH).last().unwrap().at;
    api.script(|_| Fate::Failed(503));
    one.leadership.lost().await;
    assert!(last.elapsed() <= secs(8), "{:?}", last.elapsed());
    assert!(last.elapsed() >= secs(6), "{:?}", last.elapsed());
    api.script(|_| Fate::Served);
    // The lease is free.
    one.leads_within(secs(3)).await;
    assert_eq!(lease(&api)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_does_not_keep_a_holder() {
    let api = ApiServer::default();
    let mut one = candidate(&api, "one");
    one.leads_within(ms(10)).await;
    api.script(|_| Fate::Unanswered);
    timeout(secs(9), one.leadership.lost()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_stopped_for_a_minute_does_not_lead_when_it_continues() {
    let api = ApiServer::default();
    let (from, to) = (Instant::now() + secs(30), Instant::now() + secs(90));
    let mut one = candidate_with(&api, options("one", SignedDuration::ZERO), vec![(from, to)]);
    one.leads_within(ms(10)).await;
    let mut two = candidate(&api, "two");
    sleep_until(from).await;
    two.leadership.gained().await;
    // Its elector has not run, and still it does not count as the leader.
    assert!(Instant::now() < to && !one.leadership.is_held());
    let start = Instant::now();
    while start.elapsed() < secs(120) {
        assert!(two.leadership.is_held() && !one.leadership.is_held());
        tokio::time::sleep(ms(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_stopped_process_is_not_done_when_it_continues() {
    let start = Instant::now();
    let (held, receiver) = watch::channel(Some(start + secs(8)));
    let leadership = Leadership::of(receiver);
    // As it leaves the process: whether or not the timers of that have run.
    let done = Arc::new(AtomicBool::new(false));
    let write = |after: Duration| {
        let (leadership, done) = (leadership.clone(), done.clone());
        async move {
            let write = async {
                sleep_until(start + after).await;
                done.store(true, Ordering::Relaxed);
            };
            leadership.while_held(write).await
        }
    };
    assert_eq!(write(secs(7)).await, Some(()));
    assert!(done.swap(false, Ordering::Relaxed));
    // The first poll comes after the write and after the leadership.
    sleep_until(start + secs(9)).await;
    assert_eq!(write(ms(7_500)).await, None);
    assert!(!done.load(Ordering::Relaxed));
    held.send_replace(Some(start + secs(20)));
    assert_eq!(timeout(secs(12), write(secs(30))).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stands_still_or_goes_back_renews_all_the_same() {
    let api = ApiServer::default();
    let stopped = Timestamp::UNIX_EPOCH;
    let options = LeaseOptions { clock: Clock::new(move || stopped), ..options("one", SignedDuration::ZERO) };
    let mut one = candidate_with(&api, options, Vec::new());
    one.leads_within(ms(10)).await;
    let two = candidate(&api, "two");
    tokio::time::sleep(secs(120)).await;
    assert!(one.leadership.is_held() && !two.leadership.is_held());
    assert_eq!(lease(&api)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn the_duration_in_the_lease_of_the_holder_counts() {
    let api = ApiServer::default();
    let held = json!({"metadata": {"name": "x", "labels": {"kept": "yes"}}, "spec": {
        "holderIdentity": "another", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z",
    }});
    api.put(PATH, held);
    let start = Instant::now();
    let mut one = candidate(&api, "one");
    one.leadership.gained().await;
    assert!(start.elapsed() >= secs(40) && start.elapsed() < secs(41), "{:?}", start.elapsed());
    assert_eq!(api.get(PATH).unwrap()["metadata"]["labels"]["kept"], "yes");
    assert_eq!(lease(&api)["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_may_not_use_the_lease_leads_as_soon_as_it_may() {
    let api = ApiServer::default();
    api.script(|_| Fate::Failed(403));
    let mut one = candidate(&api, "one");
    tokio::time::sleep(secs(30)).await;
    assert!(!one.leadership.is_held());
    assert!(api.seen(|_| true).len() >= 15, "it goes on trying");
    api.script(|_| Fate::Served);
    one.leads_within(secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn of_many_that_start_at_once_one_leads() {
    for seed in 0..20 {
        let api = ApiServer::default();
        let mut random = StdRng::seed_from_u64(seed);
        api.script(move |_| Fate::Slow {
            before: ms(random.random_range(0..50)),
            after: ms(random.random_range(0..50)),
        });
        let candidates: Vec<Candidate> =
            (0..8).map(|index| candidate(&api, &format!("pod-{index}"))).collect();
        tokio::time::sleep(secs(1)).await;
        let leaders = candidates.iter().filter(|candidate| candidate.leadership.is_held()).count();
        assert_eq!(leaders, 1, "seed {seed}");
        assert_eq!(lease(&api)["leaseTransitions"], 0);
    }
}

/// When a process does not run.
type Pauses = Vec<(Instant, Instant)>;

/// A clock that goes at a rate, and stands still meanwhile.
fn clock(rate: f64, still: Pauses) -> LeaseClock {
    let begin = Instant::now();
    LeaseClock::new(move || {
        let now = Instant::now();
        let stood: Duration =
            still.iter().map(|(from, to)| now.min(*to).saturating_duration_since(*from)).sum();
        begin + (now - begin).saturating_sub(stood).mul_f64(rate)
    })
}

/// Three candidates over an hour: answers are late or lost, processes and whole machines are stopped and continued, times of
/// day are off, and clocks go at rates that differ by up to a third. Returns who led, and how often somebody did, or when two
/// that were running took themselves for the leader.
async fn an_hour(seed: u64, counts_suspension: bool) -> Result<(usize, u32), String> {
    let mut random = StdRng::seed_from_u64(seed);
    let api = ApiServer::default();
    let mut fate = StdRng::seed_from_u64(seed ^ 0xfa7e);
    api.script(move |_| match fate.random_range(0..20) {
        0 => Fate::Unanswered,
        1 => Fate::Failed(503),
        2..6 => {
            Fate::Slow { before: ms(fate.random_range(0..12_000)), after: ms(fate.random_range(0..12_000)) }
        }
        _ => Fate::Slow { before: ms(fate.random_range(0..50)), after: ms(fate.random_range(0..50)) },
    });
    let candidates: Vec<(Candidate, Pauses)> = (0..3)
        .map(|index| {
            let skew = SignedDuration::from_secs(random.random_range(-600..600));
            let rate = random.random_range(0.86..1.14);
            let mut at = Instant::now();
            let mut pauses = Vec::new();
            for _ in 0..20 {
                let from = at + secs(random.random_range(5..120));
                at = from + ms(random.random_range(100..60_000));
                pauses.push((from, at));
            }
            let still = if counts_suspension { Vec::new() } else { pauses.clone() };
            let options = options(&format!("pod-{index}"), skew);
            let options = LeaseOptions { lease_clock: clock(rate, still), ..options };
            (candidate_with(&api, options, pauses.clone()), pauses)
        })
        .collect();
    let start = Instant::now();
    let mut led = BTreeSet::new();
    let mut held = 0_u32;
    let mut outcome = Ok(());
    while start.elapsed() < secs(3600) && outcome.is_ok() {
        let now = Instant::now();
        let runs = |pauses: &Pauses| !pauses.iter().any(|(from, to)| (*from..*to).contains(&now));
        let leads = |(candidate, pauses): &(Candidate, Pauses)| {
            // One whose clock goes on does not lead while it is stopped, either.
            candidate.leadership.is_held() && (counts_suspension || runs(pauses))
        };
        let leaders: Vec<usize> = (0..candidates.len()).filter(|index| leads(&candidates[*index])).collect();
        if leaders.len() > 1 {
            outcome = Err(format!("seed {seed}: {leaders:?} after {:?}", start.elapsed()));
        }
        held += u32::from(!leaders.is_empty());
        led.extend(leaders);
        tokio::time::sleep(ms(97)).await;
    }
    for (candidate, _) in candidates {
        candidate.crash();
    }
    outcome.map(|()| (led.len(), held))
}

#[tokio::test(start_paused = true)]
async fn on_any_schedule_there_are_never_two_leaders() {
    for seed in 0..12 {
        let (led, held) = an_hour(seed, true).await.unwrap();
        assert_eq!(led, 3, "each of them gets its turn in such an hour (seed {seed})");
        assert!(held > 10_000, "there is a leader for a good part of it (seed {seed}): {held}");
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_stand_still_while_the_machine_is_suspended_are_found_out() {
    for seed in 0..12 {
        if an_hour(seed, false).await.is_err() {
            return;
        }
    }
    panic!("schedules that show nothing of it show nothing");
}

/// To those who wait for the end of a leadership, timers that stood still make no difference.
#[tokio::test(start_paused = true)]
async fn a_leadership_ends_within_a_second_after_its_machine_continues() {
    // A machine that is suspended for a minute in no time of its own: the clock of leases alone goes on.
    let ahead = Arc::new(parking_lot::Mutex::new(Duration::ZERO));
    let shown = Arc::clone(&ahead);
    let clock = LeaseClock::new(move || Instant::now() + *shown.lock());
    let (_held, held) = watch::channel(Some(Instant::now() + secs(8)));
    let mut leadership = Leadership { held, clock, lease: None };
    let mut watched = leadership.clone();
    let lost = tokio::spawn(async move { watched.lost().await });
    tokio::time::sleep(secs(2)).await;
    assert!(leadership.is_held() && !lost.is_finished());
    *ahead.lock() = secs(60);
    assert!(!leadership.is_held());
    timeout(secs(1), lost).await.unwrap().unwrap();
    leadership.lost().await;
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_with_its_lease_when_the_candidate_is_gone() {
    let mut always = Leadership::always();
    assert!(always.is_held());
    always.gained().await;
    assert!(timeout(secs(3600), always.lost()).await.is_err());
    let (sender, receiver) = watch::channel(Some(Instant::now() + secs(5)));
    let mut leadership = Leadership::of(receiver);
    drop(sender);
    let start = Instant::now();
    leadership.lost().await;
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[test]
fn names_of_leases_are_labels_and_differ() {
    assert_eq!(lease_name("pingsix.io/gateway-controller"), "pingsix-io-gateway-controller");
    let long = format!("example.com/{}", "x".repeat(300));
    let names = [
        "pingsix.io/gateway-controller",
        "pingsix-io/gateway.controller",
        "pingsix.io/gateway/controller",
        "pingsix.io/Gateway-Controller",
        "example.com/a",
        "example.com/a-",
        "/",
        &long,
    ];
    let leases: BTreeSet<String> = names.into_iter().map(lease_name).collect();
    assert_eq!(leases.len(), names.len());
    for lease in leases {
        assert!(lease.len() <= 63 && lease.starts_with(|first: char| first.is_ascii_lowercase()), "{lease}");
        assert!(
            lease
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
        );
    }
}

#[test]
fn times_that_do_not_go_together_are_refused() {
    let good = LeaseOptions::new(NAMESPACE, "example.com/a", "pod");
    assert_eq!(good.validate(), Ok(()));
    assert_ne!(good.identity, LeaseOptions::new(NAMESPACE, "example.com/a", "pod").identity);
    let late = LeaseOptions { renew_deadline: secs(12), ..good.clone() };
    assert!(matches!(late.validate(), Err(LeaseOptionsError::RenewDeadline { .. })));
    let rare = LeaseOptions { retry: ms(6_700), ..good.clone() };
    assert!(matches!(rare.validate(), Err(LeaseOptionsError::Retry { .. })));
    let split = LeaseOptions { duration: ms(12_500), ..good.clone() };
    assert!(matches!(split.validate(), Err(LeaseOptionsError::Duration { .. })));
    let nobody = LeaseOptions { identity: String::new(), ..good };
    assert_eq!(nobody.validate(), Err(LeaseOptionsError::NoIdentity));
}
