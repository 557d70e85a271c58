//! A simulation of several servers with a shared store, and clients that move between them, under faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt as _;
use proptest::prelude::*;
use tokio::time::{Instant, advance};

use super::*;
use crate::document::{Document, Key, OrderHint, Owner};
use crate::embedded::EmbeddedEtcd;
use crate::embedded::revisions::{Block, Reserving, SharedTime, clock_revision};
use crate::embedded::store::testing::everything;

const SERVERS: usize = 3;

/// The assumed latency of announcements between servers.
const LATENCY: Duration = Duration::from_millis(300);

/// An actual latency above the assumed one.
const LATE: Duration = Duration::from_millis(1_200);

/// The latency of a write to the store.
const WRITE: Duration = Duration::from_millis(20);

/// A clock with an error.
#[derive(Debug)]
struct Skewed {
    epoch: Instant,
    /// The error in seconds.
    error: Mutex<i64>,
}

impl Clock for Skewed {
    fn now(&self) -> SystemTime {
        let true_time = SystemTime::UNIX_EPOCH + Duration::from_hours(490_000) + self.epoch.elapsed();
        let error = *self.error.lock();
        let by = Duration::from_secs(error.unsigned_abs());
        if error < 0 { true_time - by } else { true_time + by }
    }
}

type Ceiling = Arc<Mutex<Option<Revision>>>;

/// The link of a server to the store.
#[derive(Debug)]
struct Way {
    ceiling: Ceiling,
    time: SharedTime,
    clock: Arc<Skewed>,
    is_cut: AtomicBool,
}

impl Reservations for Way {
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_> {
        Box::pin(async move {
            tokio::time::sleep(WRITE).await;
            if self.is_cut.load(Ordering::Relaxed) {
                return Err(ReserveError::Store("there is no way".into()));
            }
            let mut ceiling = self.ceiling.lock();
            // The first reservation begins with the time of day.
            let now = if ceiling.is_none() { clock_revision(&*self.clock) } else { at_least };
            let block = Block::above(*ceiling, at_least.max(now), count)?;
            *ceiling = Some(block.last);
            Ok(block)
        })
    }

    fn shared(&self) -> Option<&SharedTime> {
        Some(&self.time)
    }
}

struct Server {
    etcd: EmbeddedEtcd,
    way: Arc<Way>,
    clock: Arc<Skewed>,
    step: usize,
}

fn scope() -> Scope {
    Scope::new("/p/web").unwrap()
}

/// The documents in their n-th state: each step changes or deletes one of four.
fn state(step: usize) -> BTreeMap<String, usize> {
    let mut documents = BTreeMap::new();
    for step in 0..=step {
        let key = format!("routes/{}", step % 4);
        if step % 7 == 6 {
            documents.remove(&key)
        } else {
            documents.insert(key, step)
        };
    }
    documents
}

impl Server {
    async fn start(ceiling: &Ceiling, epoch: Instant, error: i64, step: usize) -> Self {
        let clock = Arc::new(Skewed { epoch, error: Mutex::new(error) });
        let (ceiling, clock_of_way) = (Arc::clone(ceiling), Arc::clone(&clock));
        let is_cut = AtomicBool::new(false);
        let way = Arc::new(Way { ceiling, time: SharedTime::default(), clock: clock_of_way, is_cut });
        let builder = EmbeddedEtcd::builder().reservations(Arc::clone(&way) as Arc<dyn Reservations>);
        let etcd = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>).start().await.unwrap();
        let server = Self { etcd, way, clock, step };
        // Other scopes are served already at the first publication of this one.
        server.etcd.open();
        server.publish().await;
        server
    }

    fn replica(&self) -> &Replica {
        &self.etcd.replica
    }

    fn is_cut(&self) -> bool {
        self.way.is_cut.load(Ordering::Relaxed)
    }

    async fn publish(&self) -> i64 {
        let documents = state(self.step).into_iter().map(|(key, value)| Document {
            key: Key::new(key).unwrap(),
            value: Bytes::from(value.to_string()),
            order: OrderHint(0),
            owner: Owner::new("test"),
        });
        let desired = Desired::new(scope(), DocumentSet::new(documents).unwrap());
        self.replica().publish(&desired).await.unwrap().revision.get()
    }
}

/// An announcement from one server to the others, and its arrival.
struct News {
    reading: Revision,
    at: Instant,
}

struct World {
    epoch: Instant,
    ceiling: Ceiling,
    servers: Vec<Server>,
    news: Vec<News>,
    /// The latency of announcements.
    latency: Duration,
}

impl World {
    async fn new(errors: [i64; SERVERS], latency: Duration) -> Self {
        let (epoch, ceiling) = (Instant::now(), Ceiling::default());
        let mut servers = Vec::new();
        for error in errors {
            servers.push(Server::start(&ceiling, epoch, error, 0).await);
        }
        let world = Self { epoch, ceiling, servers, news: Vec::new(), latency };
        world.meet();
        world
    }

    /// Servers that reach the store learn of each other at once, as for a new server.
    fn meet(&self) {
        let connected = || self.servers.iter().filter(|server| !server.is_cut());
        let latest = connected().filter_map(|server| server.way.time.now()).max();
        for server in connected() {
            if let Some(latest) = latest {
                server.way.time.raise(latest);
            }
        }
    }

    /// Advances the time while servers announce their readings.
    async fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(100) {
            advance(Duration::from_millis(100)).await;
            let now = Instant::now();
            let (due, coming): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.news).into_iter().partition(|news| news.at <= now);
            self.news = coming;
            for server in self.servers.iter().filter(|server| !server.is_cut()) {
                for news in &due {
                    server.way.time.hear(news.reading);
                }
                let said = [server.way.time.now(), *self.ceiling.lock()];
                let said = said.into_iter().flatten();
                self.news.extend(
                    said.map(|reading| News { reading, at: now + self.latency - Duration::from_millis(100) }),
                );
            }
        }
    }
}

/// A client that behaves as PingSIX: it ignores revisions below the highest it has seen.
#[derive(Default)]
struct Client {
    seen: i64,
    mirror: BTreeMap<String, usize>,
    /// The watched server and the start revision.
    watch: Option<(usize, i64)>,
}

impl Client {
    async fn list(&mut self, servers: &[Server], at: usize) -> Result<i64, TestCaseError> {
        let replica = servers[at].replica();
        replica.fence().await.unwrap();
        let (records, header) =
            replica.read(|store| (store.select(&everything(), None).unwrap(), store.header()));
        prop_assert!(header > self.seen, "{} after {}", header, self.seen);
        self.seen = header;
        self.mirror = records.iter().map(|record| read(&record.key, &record.value)).collect();
        self.watch = None;
        Ok(header)
    }

    fn watch(&mut self, servers: &[Server], at: usize) {
        if self.seen > 0 {
            let start = self.seen + 1;
            self.watch = servers[at].replica().has_listed_before(start).then_some((at, start));
        }
    }

    /// Applies the pending events of its watch; the client then has the server's state.
    fn read(&mut self, servers: &[Server]) -> Result<(), TestCaseError> {
        let Some((at, next)) = self.watch else { return Ok(()) };
        let (unseen, header) = servers[at]
            .replica()
            .read(|store| (store.unseen(&everything(), next, usize::MAX), store.header()));
        let Ok(unseen) = unseen else {
            self.watch = None;
            return Ok(());
        };
        for commit in &unseen.commits {
            prop_assert!(commit.revision > self.seen, "it would not take that in");
            self.seen = commit.revision;
            for change in &commit.changes {
                match change {
                    crate::embedded::store::Change::Put { record, .. } => {
                        self.mirror.extend([read(&record.key, &record.value)]);
                    }
                    crate::embedded::store::Change::Delete { gone, .. } => {
                        self.mirror.remove(&read(&gone.key, b"0").0);
                    }
                }
            }
        }
        self.watch = Some((at, header.max(unseen.reached) + 1));
        prop_assert_eq!(&self.mirror, &state(servers[at].step));
        Ok(())
    }
}

fn read(key: &[u8], value: &[u8]) -> (String, usize) {
    let key = std::str::from_utf8(key).unwrap().strip_prefix("/p/web/").unwrap();
    (key.to_owned(), std::str::from_utf8(value).unwrap().parse().unwrap())
}

#[derive(Clone, Debug)]
enum Happening {
    /// Time passes, in milliseconds.
    Pass(u64),
    /// A server receives the next state.
    Advance(usize),
    /// A client lists.
    List(usize, usize),
    /// A client watches from its list on.
    Watch(usize, usize),
    /// A client reads the pending events.
    Read(usize),
    /// A server loses or regains its link to the store.
    Cut(usize, bool),
    /// The store loses or regains all links.
    CutAll(bool),
    /// The clock of a server is set, in seconds.
    SetClock(usize, i64),
    /// A new server with another clock replaces a server.
    Replace(usize, i64),
}

/// Up to ten minutes in either direction.
fn error() -> impl Strategy<Value = i64> {
    -300i64..=300
}

fn happening() -> impl Strategy<Value = Happening> {
    let server = || 0..SERVERS;
    let client = || 0usize..2;
    prop_oneof![
        3 => prop_oneof![0u64..300, 0u64..5_000, Just(600_000)].prop_map(Happening::Pass),
        4 => server().prop_map(Happening::Advance),
        6 => (client(), server()).prop_map(|(client, server)| Happening::List(client, server)),
        5 => (client(), server()).prop_map(|(client, server)| Happening::Watch(client, server)),
        3 => client().prop_map(Happening::Read),
        3 => (server(), any::<bool>()).prop_map(|(server, is_cut)| Happening::Cut(server, is_cut)),
        1 => any::<bool>().prop_map(Happening::CutAll),
        1 => (server(), error()).prop_map(|(server, error)| Happening::SetClock(server, error)),
        1 => (server(), error()).prop_map(|(server, error)| Happening::Replace(server, error)),
    ]
}

async fn live(
    errors: [i64; SERVERS],
    latency: Duration,
    happenings: Vec<Happening>,
) -> Result<(), TestCaseError> {
    let mut world = World::new(errors, latency).await;
    if latency > LATENCY {
        // The first late announcements are noticed on arrival.
        world.pass(5_000).await;
        for server in &world.servers {
            prop_assert!(
                server.way.time.lateness() + Duration::from_millis(100) >= latency,
                "{:?}",
                server.way.time.lateness()
            );
        }
    }
    let mut clients = [Client::default(), Client::default()];
    for happening in happenings {
        match happening {
            Happening::Pass(milliseconds) => world.pass(milliseconds).await,
            Happening::Advance(at) => {
                world.servers[at].step += 1;
                world.servers[at].publish().await;
            }
            Happening::List(client, at) => {
                clients[client].list(&world.servers, at).await?;
            }
            Happening::Watch(client, at) => clients[client].watch(&world.servers, at),
            Happening::Read(client) => clients[client].read(&world.servers)?,
            Happening::Cut(at, is_cut) => world.servers[at].way.is_cut.store(is_cut, Ordering::Relaxed),
            Happening::CutAll(is_cut) => {
                for server in &world.servers {
                    server.way.is_cut.store(is_cut, Ordering::Relaxed);
                }
            }
            Happening::SetClock(at, error) => *world.servers[at].clock.error.lock() = error,
            Happening::Replace(at, error) => {
                // A starting server reaches the API server and meets another server there.
                let others = (0..SERVERS).filter(|other| *other != at);
                if others.into_iter().any(|other| !world.servers[other].is_cut()) {
                    for client in &mut clients {
                        client.watch = client.watch.filter(|(watched, _)| *watched != at);
                    }
                    let step = world.servers[at].step;
                    world.servers[at] = Server::start(&world.ceiling, world.epoch, error, step).await;
                    world.meet();
                }
            }
        }
    }
    // The last state of all servers reaches every client on every server.
    let last = world.servers.iter().map(|server| server.step).max().unwrap_or_default() + 1;
    for server in &mut world.servers {
        server.step = last;
        server.publish().await;
    }
    for client in &mut clients {
        client.read(&world.servers)?;
        for at in 0..SERVERS {
            let listed = client.list(&world.servers, at).await?;
            client.watch(&world.servers, at);
            prop_assert!(client.watch.is_some(), "one that stays where it listed may watch");
            client.read(&world.servers)?;
            prop_assert_eq!(&client.mirror, &state(last));
            prop_assert!(world.servers[at].etcd.revision().get() >= listed);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_publication_waits_for_no_reader_and_changes_nothing_that_one_sees() {
    let server = Server::start(&Ceiling::default(), Instant::now(), 0, 0).await;
    let header = server.etcd.revision().get();
    let next = Desired::empty(scope());
    server.replica().read(|store| {
        // The reading thread publishes in the middle of its read.
        let published =
            server.replica().publish(&next).now_or_never().expect("nothing is waited for").unwrap();
        assert!(published.revision.get() > header);
        assert_eq!((store.header(), store.select(&everything(), None).unwrap().len()), (header, 1));
    });
    assert_eq!(server.replica().read(|store| store.select(&everything(), None).unwrap().len()), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_client_goes_deaf_whatever_happens_to_servers_clocks_and_the_store(
        errors in [error(), error(), error()],
        happenings in prop::collection::vec(happening(), 5..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(errors, LATENCY, happenings))?;
    }

    #[test]
    fn nor_does_one_when_news_between_servers_are_later_than_was_assumed(
        errors in [error(), error(), error()],
        happenings in prop::collection::vec(happening(), 5..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(errors, LATE, happenings))?;
    }
}
