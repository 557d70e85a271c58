//! Replicas over a server that fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pingsix_sink::embedded::revisions::SharedTime;
use pingsix_sink::{Desired, EmbeddedEtcd, MemorySink, Revision, Sink as _};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::controller::{Feed, SinkRouter};
use crate::fixture::api_server::{ApiServer, Fate};
use crate::leader::Leadership;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/home/leases/pingsix-io-gateway-controller";

fn path(what: &str) -> String {
    format!("{LEASES}-{what}")
}

fn lease(pod: &str) -> LeaseOptions {
    LeaseOptions::new("home", pingsix_translate::DEFAULT_CONTROLLER_NAME, pod)
}

fn revision(number: i64) -> Revision {
    Revision::new(number).unwrap()
}

fn ceiling(api: &ApiServer) -> i64 {
    let lease = api.get(&path("revisions")).unwrap();
    lease["metadata"]["annotations"]["pingsix.io/reserved-revision"].as_str().unwrap().parse().unwrap()
}

fn scope(name: &str) -> Scope {
    Scope::new(format!("/pingsix/infra/{name}")).unwrap()
}

/// A feed with so many readers of one scope.
#[derive(Default)]
struct Readers {
    target: MemorySink,
    count: AtomicUsize,
    changes: watch::Sender<u64>,
}

impl Readers {
    fn set(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl pingsix_sink::Sink for Readers {
    async fn publish(&self, desired: &Desired) -> Result<pingsix_sink::Published, pingsix_sink::SinkError> {
        self.target.publish(desired).await
    }
}

impl Feed for Readers {
    fn open(&self) {}

    fn readers(&self) -> std::collections::BTreeMap<Scope, usize> {
        [(scope("web"), self.count.load(Ordering::Relaxed))].into()
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        Some(self.readers().get(scope).copied().unwrap_or_default())
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }
}

/// A replica that runs.
struct Running {
    feed: Arc<Readers>,
    router: Arc<SinkRouter>,
    replicas: Replicas,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(api: &ApiServer, pod: &str, leadership: &Leadership) -> Self {
        let (feed, stop) = (Arc::<Readers>::default(), CancellationToken::new());
        let replicas = Replicas::new(api.client(), &lease(pod));
        let router = SinkRouter::from(Arc::clone(&feed)).with_leadership(leadership);
        let router = Arc::new(router.with_replicas(Some(replicas.clone())));
        let task = tokio::spawn(Arc::clone(&router).exchange_readers(stop.clone()));
        Self { feed, router, replicas, stop, task }
    }

    /// The number of readers, here and elsewhere.
    fn readers(&self) -> Option<usize> {
        self.router.readers_of(&scope("web"))
    }

    async fn comes_to(&self, readers: usize) -> Duration {
        let (start, mut changed) = (Instant::now(), self.replicas.changes());
        while self.readers() != Some(readers) {
            timeout(Duration::from_mins(1), changed.changed()).await.unwrap().unwrap();
        }
        start.elapsed()
    }
}

fn no_leader() -> Leadership {
    Leadership::of(watch::channel(None).1)
}

#[tokio::test(start_paused = true)]
async fn readers_of_other_replicas_count_until_their_replica_ends() {
    let api = ApiServer::default();
    let (one, two) = (Running::start(&api, "one", &no_leader()), Running::start(&api, "two", &no_leader()));
    sleep(Duration::from_secs(8)).await;
    assert_eq!(one.readers(), Some(0));
    two.feed.set(3);
    assert!(one.comes_to(3).await <= Duration::from_secs(1));
    one.feed.set(1);
    assert_eq!(one.readers(), Some(4));
    assert!(two.comes_to(4).await <= Duration::from_secs(1));
    let others = one.replicas.others();
    assert!(others.len() == 1 && others[0].identity.starts_with("two_") && others[0].readers == 3);

    two.stop.cancel();
    two.task.await.unwrap();
    assert!(one.comes_to(1).await < Duration::from_secs(1));
    assert_eq!(one.replicas.others(), []);
}

#[tokio::test(start_paused = true)]
async fn replicas_write_renewals_alone_while_nothing_changes() {
    let api = ApiServer::default();
    let one = Running::start(&api, "one", &no_leader());
    let _two = Running::start(&api, "two", &no_leader());
    one.feed.set(2);
    sleep(Duration::from_secs(30)).await;
    let before = api.writes(&path("replicas")).len();
    sleep(Duration::from_secs(1_000)).await;
    let writes = api.writes(&path("replicas")).len() - before;
    assert!((400..=450).contains(&writes), "{writes} of two in 1000 s");
    assert!(api.get(&path("revisions")).is_none(), "nobody has listed");
    // Many that come make few writes.
    let before = api.writes(&path("replicas")).len();
    for readers in 0..500 {
        one.feed.set(readers);
        sleep(Duration::from_millis(10)).await;
    }
    let writes = api.writes(&path("replicas")).len() - before;
    assert!(writes <= 14, "{writes} in 5 s");
}

#[tokio::test(start_paused = true)]
async fn a_report_is_heard_soon_and_that_of_an_ended_replica_does_not_count() {
    let api = ApiServer::default();
    let (one, two) = (Running::start(&api, "one", &no_leader()), Running::start(&api, "two", &no_leader()));
    sleep(Duration::from_secs(8)).await;
    let report = |content: &str| {
        let confirmed = Confirmed { content: content.to_owned(), by: ["x".to_owned()].into() };
        ReplicaReport { confirmed: [(scope("web"), confirmed)].into(), ..ReplicaReport::default() }
    };
    let hears =
        |replica: &Running, content: &str| replica.replicas.has_confirmed(&scope("web"), content, "x");
    let mut changes = one.replicas.changes();
    two.replicas.set_report(&report("a"));
    timeout(Duration::from_secs(3), async {
        while !hears(&one, "a") {
            changes.changed().await.unwrap();
        }
    })
    .await
    .unwrap();
    assert!(!hears(&one, "b") && !one.replicas.has_confirmed(&scope("web"), "a", "y"));
    assert!(!hears(&two, "a"), "that is what it says itself");
    // Frequent changes cause few writes.
    let before = api.writes(&path("replicas")).len();
    for content in 0..100 {
        two.replicas.set_report(&report(&content.to_string()));
        sleep(Duration::from_millis(50)).await;
    }
    let writes = api.writes(&path("replicas")).len() - before;
    assert!(writes <= 8, "{writes} in 5 s");
    sleep(Duration::from_secs(3)).await;
    assert!(hears(&one, "99"));

    two.task.abort();
    sleep(Duration::from_secs(17)).await;
    assert!(!hears(&one, "99"));
    // A new replica does not count the record of a crashed one.
    let three = Running::start(&api, "three", &no_leader());
    for _ in 0..40 {
        sleep(Duration::from_millis(100)).await;
        assert!(!hears(&three, "99") && three.replicas.quarantines().len() <= 1);
    }
    assert_eq!(three.replicas.quarantines().len(), 1, "the first is there");
}

#[tokio::test(start_paused = true)]
async fn a_crashed_replica_is_gone_in_seconds_and_the_leader_clears_up() {
    let api = ApiServer::default();
    let one = Running::start(&api, "one", &Leadership::always());
    let two = Running::start(&api, "two", &no_leader());
    two.feed.set(3);
    one.comes_to(3).await;
    two.task.abort();
    let took = one.comes_to(0).await;
    assert!(took > Duration::from_secs(8) && took <= Duration::from_secs(16), "{took:?}");
    let records =
        || api.get(&path("replicas")).unwrap()["metadata"]["annotations"].as_object().unwrap().len();
    assert_eq!(records(), 2);
    sleep(Duration::from_secs(65)).await;
    assert_eq!(records(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_the_api_server_takes_no_other_for_gone() {
    let api = ApiServer::default();
    let (one, two) =
        (Running::start(&api, "one", &Leadership::always()), Running::start(&api, "two", &no_leader()));
    two.feed.set(3);
    one.comes_to(3).await;
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);
    api.script(move |_| if away.load(Ordering::Relaxed) { Fate::Failed(503) } else { Fate::Served });
    api.break_watches_of("coordination.k8s.io/leases");
    sleep(Duration::from_mins(10)).await;
    assert_eq!(one.readers(), Some(3));
    is_away.store(false, Ordering::Relaxed);
    for _ in 0..300 {
        sleep(Duration::from_millis(100)).await;
        assert_eq!(one.readers(), Some(3));
    }
    two.feed.set(4);
    assert!(one.comes_to(4).await <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn revisions_are_reserved_above_each_other_whoever_is_faster() {
    let api = ApiServer::default();
    let stores: Vec<_> =
        (0..4).map(|pod| Replicas::new(api.client(), &lease(&pod.to_string())).reservations()).collect();
    api.script(|_| Fate::Slow {
        before: Duration::from_millis(fastrand::u64(..5)),
        after: Duration::from_millis(fastrand::u64(..5)),
    });
    let mut blocks = Vec::new();
    for _ in 0..10 {
        let reserve = stores.iter().map(|store| store.reserve(Revision::MIN, 7));
        let mut round = Vec::new();
        for block in futures::future::join_all(reserve).await {
            let block = block.unwrap();
            assert!(
                blocks
                    .last()
                    .is_none_or(|last: &pingsix_sink::embedded::revisions::Block| last.last < block.first)
            );
            round.push(block);
        }
        round.sort_by_key(|block| block.first);
        assert!(round.windows(2).all(|pair| pair[0].last < pair[1].first), "{round:?}");
        blocks.extend(round);
    }
    assert_eq!(ceiling(&api), blocks.last().unwrap().last.get());
    assert!(blocks[0].first.get() > 1_700_000_000_000_000, "the first one begins with the time of day");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_removed_or_spoilt_brings_no_revision_back() {
    let api = ApiServer::default();
    let replicas = Replicas::new(api.client(), &lease("one"));
    let store = replicas.reservations();
    let ahead = revision(1 << 52);
    let block = store.reserve(ahead, 10).await.unwrap();
    assert_eq!(block.first, ahead);
    // A reservation raises the shared time to its revisions.
    store.shared().unwrap().raise(block.last);
    api.delete(&path("revisions"));
    let next = store.reserve(Revision::MIN, 10).await.unwrap();
    assert!(next.first > block.last, "{next:?}");
    store.shared().unwrap().raise(next.last);
    let mut spoilt = api.get(&path("revisions")).unwrap();
    spoilt["metadata"]["annotations"] = json!({"pingsix.io/reserved-revision": "many"});
    api.put(&path("revisions"), spoilt);
    let at_least = store.shared().unwrap().now().unwrap();
    assert!(store.reserve(at_least, 10).await.unwrap().first > next.last);
    assert!(ceiling(&api) > next.last.get());
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_write_of_a_reservation_is_a_retryable_error() {
    let api = ApiServer::default();
    api.script(|_| Fate::Failed(403));
    let store = Replicas::new(api.client(), &lease("one")).reservations();
    let error = store.reserve(Revision::MIN, 10).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    // One that does not answer is not waited for for ever.
    api.script(|_| Fate::Unanswered);
    timeout(Duration::from_secs(4), store.reserve(Revision::MIN, 10)).await.unwrap().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_lone_replica_goes_by_its_clock_and_others_go_by_it() {
    let hour = jiff::SignedDuration::from_hours(1);
    let api = ApiServer::default();
    let with = |pod: &str, ahead: jiff::SignedDuration| {
        let clock = crate::clock::Clock::new(move || jiff::Timestamp::now() + ahead);
        let replicas = Replicas::new(api.client(), &LeaseOptions { clock, ..lease(pod) });
        let router = SinkRouter::from(Arc::<Readers>::default()).with_leadership(&no_leader());
        let router = Arc::new(router.with_replicas(Some(replicas.clone())));
        tokio::spawn(router.exchange_readers(CancellationToken::new()));
        replicas
    };
    let now = |replicas: &Replicas| replicas.reservations().shared().and_then(SharedTime::now);
    let one = with("one", hour);
    sleep(Duration::from_secs(12)).await;
    assert!(now(&one).unwrap().get() > (jiff::Timestamp::now() + hour / 2).as_microsecond());
    let two = with("two", -hour);
    sleep(Duration::from_secs(2)).await;
    let apart = |one: &Replicas, two: &Replicas| now(one).unwrap().get() - now(two).unwrap().get();
    assert!(apart(&one, &two).abs() < 100_000, "{}", apart(&one, &two));
    // A third one ahead of them has no say.
    let three = with("three", hour * 2);
    sleep(Duration::from_secs(30)).await;
    assert!(apart(&one, &two).abs() < 100_000 && apart(&two, &three).abs() < 100_000);
    assert!(now(&one).unwrap().get() < (jiff::Timestamp::now() + hour * 3 / 2).as_microsecond());
}

#[tokio::test]
async fn an_embedded_server_starts_without_the_api_server() {
    let api = ApiServer::default();
    api.script(|_| Fate::Failed(503));
    let store = Replicas::new(api.client(), &lease("one")).reservations();
    let etcd = EmbeddedEtcd::builder().reservations(store).start().await.unwrap();
    etcd.publish(&Desired::empty(scope("web"))).await.unwrap();
}
