//! Revisions never decrease: over restarts, with a clock that jumps, and between servers.

use crate::wire;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::wire::{Served, events, watch_under};
use parking_lot::Mutex;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::embedded::Builder;
use pingsix_sink::embedded::revisions::{Block, Clock, Reservations, ReserveError, Reserving, SharedTime};
use pingsix_sink::{EmbeddedEtcd, Revision, Sink};
use pingsix_test_programs::proto::etcdserverpb::WatchProgressRequest;
use pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion;
use proptest::prelude::*;

/// A clock that stands still until it is set.
#[derive(Debug)]
struct FakeClock(Mutex<SystemTime>);

impl FakeClock {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_hours(490_000))))
    }

    fn forward(&self, by: Duration) {
        *self.0.lock() += by;
    }

    fn back(&self, by: Duration) {
        *self.0.lock() -= by;
    }
}

impl Clock for FakeClock {
    fn now(&self) -> SystemTime {
        *self.0.lock()
    }
}

fn saved(path: &Path, clock: &Arc<FakeClock>) -> Builder {
    EmbeddedEtcd::builder().state_file(path).clock(Arc::clone(clock) as Arc<dyn Clock>)
}

async fn publish(etcd: &EmbeddedEtcd, value: usize) -> i64 {
    etcd.publish(&desired("/p/web", &[("routes/a", &value.to_string())])).await.unwrap().revision.get()
}

#[tokio::test]
async fn a_restart_right_after_thirty_thousand_events_does_not_go_back() {
    let directory = tempfile::tempdir().unwrap();
    let clock = FakeClock::new();
    let path = directory.path().join("revisions");
    let mut highest = 0;
    for (value, jump) in [(0, Duration::ZERO), (1, Duration::from_millis(1)), (2, Duration::from_micros(1))] {
        clock.forward(jump);
        let etcd = saved(&path, &clock).start().await.unwrap();
        assert!(etcd.revision().get() > highest, "above all of the run before");
        for value in value..30_000 + value {
            let revision = publish(&etcd, value).await;
            assert!(revision > highest);
            highest = revision;
        }
    }
}

#[tokio::test]
async fn a_clock_set_back_an_hour_over_two_restarts_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let clock = FakeClock::new();
    let path = directory.path().join("revisions");
    let mut highest = 0;
    for _ in 0..3 {
        let etcd = saved(&path, &clock).start().await.unwrap();
        assert!(etcd.revision().get() > highest);
        highest = publish(&etcd, 1).await;
        clock.back(Duration::from_hours(1));
    }
}

#[tokio::test]
async fn a_lost_state_file_is_covered_by_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let clock = FakeClock::new();
    let path = directory.path().join("revisions");
    let etcd = saved(&path, &clock).start().await.unwrap();
    let highest = publish(&etcd, 1).await;
    drop(etcd);
    std::fs::remove_file(&path).unwrap();
    clock.forward(Duration::from_millis(1));
    assert!(saved(&path, &clock).start().await.unwrap().revision().get() > highest);
    clock.forward(Duration::from_millis(1));
    let unsaved = EmbeddedEtcd::builder().clock(clock).start().await.unwrap();
    assert!(unsaved.revision().get() > highest);
}

#[tokio::test]
async fn a_damaged_or_taken_state_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("revisions");
    std::fs::write(&path, "pingsix-revisions-v1 12 nonsense\n").unwrap();
    let error = EmbeddedEtcd::builder().state_file(&path).start().await.unwrap_err();
    assert_eq!((error.category(), error.is_retryable()), ("revisions", false));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains(path.to_str().unwrap()) && cause.contains("damaged"), "{cause}");

    std::fs::remove_file(&path).unwrap();
    let _running = EmbeddedEtcd::builder().state_file(&path).start().await.unwrap();
    let error = EmbeddedEtcd::builder().state_file(&path).start().await.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("in use"));
}

/// Opens a watch at each of these starts, none of which the server has issued, and expects its cancellation.
async fn watch_invented_starts(served: &Served, starts: impl IntoIterator<Item = i64>) {
    let mut watcher = served.watch().await;
    for start in starts {
        let id = watcher.create(watch_under("/p/web/", start)).await.watch_id;
        let cancelled = watcher.next().await;
        assert_eq!((cancelled.watch_id, cancelled.canceled), (id, true), "{start}");
        assert_ne!(cancelled.compact_revision, 0, "{start}");
    }
}

/// Starts right above the header, a block ahead, an hour, a day, and at the end of the numbers.
fn invented_starts(header: i64) -> impl Iterator<Item = i64> {
    let ahead = [2, 1 << 12, 1 << 26, 3_600_000_000, 86_400_000_000, i64::MAX - header];
    ahead
        .into_iter()
        .flat_map(move |ahead| (0..20).map(move |less| header + ahead - less))
        .filter(move |start| *start > header + 1)
}

#[tokio::test]
async fn invented_start_revisions_move_nothing_and_reserve_nothing() {
    let store = Arc::<SharedStore>::default();
    let alone = Arc::new(StoreLink { store: Arc::default(), time: None });
    for link in [StoreLink::shared(&store), alone] {
        let served = Served::serve(server(Arc::clone(&link), &FakeClock::new()).await).await;
        let mut other = served.watch().await;
        other.create(watch_under("/p/web/", 0)).await;
        let (before, requests) = (served.etcd.stats(), link.store.requests.load(Ordering::Relaxed));
        watch_invented_starts(&served, invented_starts(before.revision)).await;
        let after = served.etcd.stats();
        assert_eq!((after.revision, after.reservations), (before.revision, before.reservations));
        assert_eq!(link.store.requests.load(Ordering::Relaxed), requests);
        assert!(after.watches_from_elsewhere > 100, "{after:?}");

        // The next list and the next publication continue from the server's header or the shared time.
        let listed = served.list("/p/web/").await.unwrap().header.unwrap().revision;
        let published = publish(&served.etcd, 2).await;
        assert!(
            (listed + 1..before.revision + 60_000_000).contains(&published),
            "{published} after {before:?}"
        );
        assert_eq!(events(&other.next().await), ["PUT /p/web/routes/a=2"]);
    }
}

#[tokio::test]
async fn a_negative_start_is_in_the_past() {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    publish(&served.etcd, 1).await;
    served.etcd.open();
    watch_invented_starts(&served, [i64::MIN, -1]).await;
}

/// A store that several servers share, with injected failures.
#[derive(Debug, Default)]
struct SharedStore {
    highest: Mutex<Option<Revision>>,
    is_down: AtomicBool,
    /// The number of requests, and their latency.
    requests: AtomicUsize,
    latency: Duration,
}

/// The link of one server to the store.
#[derive(Debug)]
struct StoreLink {
    store: Arc<SharedStore>,
    time: Option<SharedTime>,
}

impl StoreLink {
    /// The link of one server among several.
    fn shared(store: &Arc<SharedStore>) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(store), time: Some(SharedTime::default()) })
    }
}

impl Reservations for StoreLink {
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_> {
        Box::pin(async move {
            self.store.requests.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(self.store.latency).await;
            if self.store.is_down.load(Ordering::Relaxed) {
                return Err(ReserveError::Store("the store is down".into()));
            }
            let mut highest = self.store.highest.lock();
            // A small block, so that servers run out of numbers and skip those of the others.
            let block = Block::above(*highest, at_least, count.min(7))?;
            *highest = Some(block.last);
            Ok(block)
        })
    }

    fn shared(&self) -> Option<&SharedTime> {
        self.time.as_ref()
    }
}

async fn server(link: Arc<StoreLink>, clock: &Arc<FakeClock>) -> EmbeddedEtcd {
    let builder = EmbeddedEtcd::builder().reservations(link);
    let etcd = builder.clock(Arc::clone(clock) as Arc<dyn Clock>).start().await.unwrap();
    publish(&etcd, 0).await;
    etcd.open();
    etcd
}

#[tokio::test]
async fn a_client_that_moves_between_servers_never_gets_a_lower_header() {
    let store = Arc::<SharedStore>::default();
    let clocks = [FakeClock::new(), FakeClock::new(), FakeClock::new()];
    clocks[1].forward(Duration::from_mins(10));
    clocks[2].back(Duration::from_mins(10));
    let mut servers = Vec::new();
    for clock in &clocks {
        servers.push(Served::serve(server(StoreLink::shared(&store), clock).await).await);
    }
    let mut seen = 0;
    for round in 0..60_usize {
        let at = (round * 7 + round / 5) % 3;
        if round % 11 == 10 {
            clocks[at].back(Duration::from_hours(1));
            servers[at] = Served::serve(server(StoreLink::shared(&store), &clocks[at]).await).await;
        }
        if seen > 0 {
            // Another server issued this revision, perhaps above all of this server.
            watch_invented_starts(
                &servers[at],
                [seen + 1].into_iter().filter(|_| !servers[at].etcd.has_issued(Revision::new(seen).unwrap())),
            )
            .await;
        }
        let listed = servers[at].list("/p/web/").await.unwrap().header.unwrap().revision;
        assert!(listed > seen, "round {round}: {listed} after {seen}");
        let mut watcher = servers[at].watch().await;
        watcher.create(watch_under("/p/web/", listed + 1)).await;
        let mut last = listed;
        for (other, served) in servers.iter().enumerate() {
            for change in 0..(round % 4) {
                let revision = publish(&served.etcd, round * 100 + other * 10 + change).await;
                last = if other == at { revision } else { last };
            }
        }
        seen = listed;
        while seen < last {
            let response = watcher.next().await;
            assert!(!response.canceled, "{response:?}");
            let revision = response.events[0].kv.as_ref().unwrap().mod_revision;
            assert!(revision > seen);
            seen = revision;
        }
    }
}

#[tokio::test]
async fn without_the_shared_store_lists_are_answered_above_all_that_were() {
    let store = Arc::<SharedStore>::default();
    let links = [StoreLink::shared(&store), StoreLink::shared(&store)];
    let mut servers = Vec::new();
    // The clock of the second server is behind, and it has observed the first.
    let clocks = [FakeClock::new(), FakeClock::new()];
    clocks[1].back(Duration::from_mins(10));
    for (link, clock) in links.iter().zip(&clocks) {
        servers.push(Served::serve(server(Arc::clone(link), clock).await).await);
    }
    let time = |at: usize| links[at].time.as_ref().unwrap();
    time(1).raise(time(0).now().unwrap());
    let mut seen = 0;
    for (at, is_down) in [(0, false), (1, false), (0, true), (1, true), (0, true), (1, false), (0, false)] {
        store.is_down.store(is_down, Ordering::Relaxed);
        let listed = servers[at].list("/p/web/").await.unwrap().header.unwrap().revision;
        assert!(listed > seen, "{listed} after {seen}");
        assert_eq!(servers[at].etcd.stats().store_away, is_down);
        let mut watcher = servers[at].watch().await;
        watcher.create(watch_under("/p/web/", listed + 1)).await;
        seen = publish(&servers[at].etcd, usize::try_from(listed).unwrap()).await;
        let response = watcher.next().await;
        assert_eq!(response.events[0].kv.as_ref().unwrap().mod_revision, seen);
        assert!(seen > listed);
    }
    assert!(servers[0].etcd.stats().revisions_unreserved >= 2);
}

#[tokio::test]
async fn a_server_starts_while_the_shared_store_is_away() {
    let store = Arc::new(SharedStore { is_down: AtomicBool::new(true), ..SharedStore::default() });
    let etcd = EmbeddedEtcd::builder().reservations(StoreLink::shared(&store)).start().await.unwrap();
    assert_eq!(store.requests.load(Ordering::Relaxed), 0);
    let before = etcd.revision();
    assert!(publish(&etcd, 1).await > before.get());
    assert_eq!(etcd.stats().revisions_unreserved, 1);
}

#[tokio::test]
async fn a_hundred_lists_at_once_make_a_few_reservations() {
    let store = Arc::new(SharedStore { latency: Duration::from_millis(100), ..SharedStore::default() });
    let served = Served::serve(server(StoreLink::shared(&store), &FakeClock::new()).await).await;
    let before = store.requests.load(Ordering::Relaxed);
    let lists = (0..100).map(|_| served.list("/p/web/"));
    for listed in futures::future::join_all(lists).await {
        listed.unwrap();
    }
    let requests = store.requests.load(Ordering::Relaxed) - before;
    assert!((1..=4).contains(&requests), "{requests}");
    assert_eq!(served.etcd.stats().reservations, store.requests.load(Ordering::Relaxed) as u64);
}

#[tokio::test]
async fn a_publication_without_a_revision_fails_whole_and_can_be_repeated() {
    let store = Arc::<SharedStore>::default();
    let alone = Arc::new(StoreLink { store: Arc::clone(&store), time: None });
    let served = Served::serve(server(alone, &FakeClock::new()).await).await;
    store.is_down.store(true, Ordering::Relaxed);
    let mut refused = None;
    for value in 1..20 {
        let web = desired("/p/web", &[("routes/a", &value.to_string())]);
        match served.etcd.publish(&web).await {
            Ok(_) => {}
            Err(error) => {
                assert!(error.is_retryable());
                refused = Some((value, web));
                break;
            }
        }
    }
    let (value, web) = refused.expect("seven numbers are soon used up");
    let list = served.list("/p/web/").await.unwrap();
    assert_eq!(
        wire::pairs(&list),
        [format!("/p/web/routes/a={}", value - 1)],
        "the earlier documents are still served"
    );
    store.is_down.store(false, Ordering::Relaxed);
    let revision = served.etcd.publish(&web).await.unwrap().revision.get();
    assert!(revision > list.header.unwrap().revision);
}

/// Events of a server and its one client.
#[derive(Clone, Debug)]
enum Event {
    Publish,
    List,
    Restart { clock_moves_by_ms: i64 },
    ClientOfAnotherServer { ahead_by: i64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Publish),
        3 => Just(Event::List),
        2 => (-7_200_000i64..10_000).prop_map(|clock_moves_by_ms| Event::Restart { clock_moves_by_ms }),
        1 => (1i64..1 << 40).prop_map(|ahead_by| Event::ClientOfAnotherServer { ahead_by }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn headers_and_events_only_grow_whatever_happens(events in prop::collection::vec(event(), 1..16)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("revisions");
            let clock = FakeClock::new();
            let start = async || {
                let etcd = saved(&path, &clock).start().await.unwrap();
                publish(&etcd, 0).await;
                etcd.open();
                Served::serve(etcd).await
            };
            let mut served = start().await;
            let mut seen = 0;
            let mut value = 0;
            for event in events {
                match event {
                    Event::Publish => {
                        value += 1;
                        let revision = publish(&served.etcd, value).await;
                        prop_assert!(revision > seen, "an event is above every header");
                        seen = revision;
                    }
                    Event::List => {
                        let listed = served.list("/p/web/").await.unwrap().header.unwrap().revision;
                        prop_assert!(listed >= seen, "a header is not below anything seen");
                        seen = listed;
                    }
                    Event::Restart { clock_moves_by_ms } => {
                        let by = Duration::from_millis(clock_moves_by_ms.unsigned_abs());
                        if clock_moves_by_ms < 0 { clock.back(by) } else { clock.forward(by) }
                        drop(served.stop().await);
                        served = start().await;
                    }
                    Event::ClientOfAnotherServer { ahead_by } => {
                        let start = served.etcd.revision().get() + ahead_by;
                        let mut watcher = served.watch().await;
                        watcher.create(watch_under("/p/web/", start)).await;
                        watcher.settle_or_cancelled().await;
                    }
                }
                prop_assert!(served.etcd.revision().get() > 0);
            }
            Ok(())
        })?;
    }
}

/// Events of two servers with the same documents, and of a client that moves between them.
#[derive(Clone, Debug)]
enum Action {
    /// A server publishes the next state of the documents.
    Advance { server: usize },
    /// The client lists on a server.
    List { server: usize },
    /// The client watches on a server from its list on.
    Watch { server: usize },
    /// Another client lists, which takes revisions.
    Other { server: usize },
    /// The client reads the pending events of its watch.
    Read,
    /// A server is replaced by a new process with the current state.
    Restart { server: usize },
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        5 => (0usize..2).prop_map(|server| Action::Advance { server }),
        3 => (0usize..2).prop_map(|server| Action::List { server }),
        3 => (0usize..2).prop_map(|server| Action::Watch { server }),
        2 => (0usize..2).prop_map(|server| Action::Other { server }),
        3 => Just(Action::Read),
        1 => (0usize..2).prop_map(|server| Action::Restart { server }),
    ]
}

/// The documents in their n-th state: each step changes or deletes one of four.
fn state(step: usize) -> std::collections::BTreeMap<String, String> {
    let mut documents = std::collections::BTreeMap::new();
    for step in 0..=step {
        let key = format!("/p/web/routes/{}", step % 4);
        if step % 7 == 6 {
            documents.remove(&key)
        } else {
            documents.insert(key, step.to_string())
        };
    }
    documents
}

struct TestServer {
    served: Served,
    step: usize,
}

impl TestServer {
    async fn start(store: &Arc<SharedStore>, step: usize) -> Self {
        let builder = EmbeddedEtcd::builder().reservations(StoreLink::shared(store));
        let etcd = builder.start().await.unwrap();
        let member = Self { served: Served::serve(etcd).await, step };
        member.publish().await;
        member.served.etcd.open();
        member
    }

    async fn publish(&self) {
        let state = state(self.step);
        let documents: Vec<_> =
            state.iter().map(|(key, value)| (key.strip_prefix("/p/web/").unwrap(), value.as_str())).collect();
        self.served.etcd.publish(&desired("/p/web", &documents)).await.unwrap();
    }
}

/// A client that behaves as PingSIX: it lists, watches from there, and lists again when the watch is cancelled.
#[derive(Default)]
struct TestClient {
    seen: i64,
    mirror: std::collections::BTreeMap<String, String>,
    watch: Option<(usize, wire::Watcher)>,
}

impl TestClient {
    async fn list(&mut self, server: &TestServer) -> Result<(), TestCaseError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let listed = server.served.list("/p/web/").await.unwrap();
        let revision = listed.header.unwrap().revision;
        prop_assert!(revision > self.seen, "{} after {}", revision, self.seen);
        self.seen = revision;
        self.mirror = listed.kvs.iter().map(|kv| (text(&kv.key), text(&kv.value))).collect();
        self.watch = None;
        Ok(())
    }

    async fn watch(&mut self, servers: &[TestServer; 2], server: usize) {
        if self.seen > 0 {
            let mut watcher = servers[server].served.watch().await;
            watcher.create(watch_under("/p/web/", self.seen + 1)).await;
            self.watch = Some((server, watcher));
        }
    }

    /// Reads all pending events; the mirror then equals the server's state.
    async fn read(&mut self, servers: &[TestServer; 2]) -> Result<(), TestCaseError> {
        let Some((server, mut watcher)) = self.watch.take() else { return Ok(()) };
        // A replaced server has ended the stream.
        if !watcher.try_request(RequestUnion::ProgressRequest(WatchProgressRequest {})).await {
            return Ok(());
        }
        loop {
            let Ok(Some(response)) = watcher.try_next().await else { return Ok(()) };
            if response.canceled {
                prop_assert!(response.compact_revision > 0);
                return Ok(());
            }
            let revision = response.header.unwrap().revision;
            prop_assert!(revision >= self.seen || response.watch_id == -1);
            for event in response.events {
                let kv = event.kv.unwrap();
                prop_assert!(
                    kv.mod_revision > self.seen,
                    "PingSIX ignores a revision that is not above its last one"
                );
                let key = String::from_utf8_lossy(&kv.key).into_owned();
                if kv.create_revision == 0 {
                    self.mirror.remove(&key);
                } else {
                    self.mirror.insert(key, String::from_utf8_lossy(&kv.value).into_owned());
                }
            }
            self.seen = self.seen.max(revision);
            if response.watch_id == -1 {
                break;
            }
        }
        prop_assert_eq!(&self.mirror, &state(servers[server].step));
        self.watch = Some((server, watcher));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_client_that_lists_here_and_watches_there_misses_nothing(actions in prop::collection::vec(actions(), 4..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Arc::<SharedStore>::default();
            let mut servers = [TestServer::start(&store, 0).await, TestServer::start(&store, 0).await];
            let mut client = TestClient::default();
            for step in actions {
                match step {
                    Action::Advance { server } => {
                        servers[server].step += 1;
                        servers[server].publish().await;
                    }
                    Action::List { server } => client.list(&servers[server]).await?,
                    Action::Watch { server } => client.watch(&servers, server).await,
                    Action::Other { server } => {
                        servers[server].served.list("/p/web/").await.unwrap();
                    }
                    Action::Read => client.read(&servers).await?,
                    Action::Restart { server } => {
                        let step = servers[server].step;
                        servers[server] = TestServer::start(&store, step).await;
                    }
                }
            }
            // Finally both servers have the same state, and the client soon has it on either.
            let last = servers[0].step.max(servers[1].step) + 1;
            for server in &mut servers {
                server.step = last;
                server.publish().await;
            }
            for turn in 0.. {
                client.read(&servers).await?;
                if client.watch.is_some() {
                    break;
                }
                prop_assert!(turn < 4, "a client that stays where it is settles");
                client.list(&servers[turn % 2]).await?;
                client.watch(&servers, usize::from(turn == 0)).await;
            }
            prop_assert_eq!(&client.mirror, &state(last));
            Ok(())
        })?;
    }
}

/// A store whose first request after the start takes longer than later ones.
#[derive(Debug, Default)]
struct SlowStore {
    ceiling: Mutex<Option<Revision>>,
    requests: AtomicUsize,
}

impl Reservations for SlowStore {
    fn reserve(&self, at_least: Revision, _: u32) -> Reserving<'_> {
        Box::pin(async move {
            // The request at the start succeeds at once.
            match self.requests.fetch_add(1, Ordering::Relaxed) {
                0 => {}
                1 => tokio::time::sleep(Duration::from_secs(2)).await,
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
            let mut ceiling = self.ceiling.lock();
            let block = Block::above(*ceiling, at_least, 1)?;
            *ceiling = Some(block.last);
            Ok(block)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn publications_that_wait_for_revisions_commit_in_their_order() {
    let store = Arc::new(SlowStore::default());
    let etcd = EmbeddedEtcd::builder().reservations(store).start().await.unwrap();
    publish(&etcd, 0).await;
    let (first, second, third) = tokio::join!(publish(&etcd, 1), publish(&etcd, 2), publish(&etcd, 3));
    assert!(first < second && second < third, "{first} {second} {third}");
    let held = etcd.documents(&scope("/p/web")).unwrap();
    assert_eq!(held, desired("/p/web", &[("routes/a", "3")]).documents().clone());
}
