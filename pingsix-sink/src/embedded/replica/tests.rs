//! A simulation of several servers with a shared store, and clients that move between them, under failures.

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
const LATE_LATENCY: Duration = Duration::from_millis(1_200);

/// The latency of a write to the store.
const WRITE_DURATION: Duration = Duration::from_millis(20);

/// A clock with an error.
#[derive(Debug)]
struct SkewedClock {
    epoch: Instant,
    /// The error in seconds.
    clock_error: Mutex<i64>,
}

impl Clock for SkewedClock {
    fn now(&self) -> SystemTime {
        let true_time = SystemTime::UNIX_EPOCH + Duration::from_hours(490_000) + self.epoch.elapsed();
        let clock_error = *self.clock_error.lock();
        let by = Duration::from_secs(clock_error.unsigned_abs());
        if clock_error < 0 { true_time - by } else { true_time + by }
    }
}

type Ceiling = Arc<Mutex<Option<Revision>>>;

/// The link of a server to the store.
#[derive(Debug)]
struct StoreLink {
    ceiling: Ceiling,
    time: SharedTime,
    clock: Arc<SkewedClock>,
    is_disconnected: AtomicBool,
}

impl Reservations for StoreLink {
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_> {
        Box::pin(async move {
            tokio::time::sleep(WRITE_DURATION).await;
            if self.is_disconnected.load(Ordering::Relaxed) {
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
    link: Arc<StoreLink>,
    clock: Arc<SkewedClock>,
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
    async fn start(ceiling: &Ceiling, epoch: Instant, clock_error: i64, step: usize) -> Self {
        let clock = Arc::new(SkewedClock { epoch, clock_error: Mutex::new(clock_error) });
        let (ceiling, server_clock) = (Arc::clone(ceiling), Arc::clone(&clock));
        let is_disconnected = AtomicBool::new(false);
        let link = Arc::new(StoreLink {
            ceiling,
            time: SharedTime::default(),
            clock: server_clock,
            is_disconnected,
        });
        let builder = EmbeddedEtcd::builder().reservations(Arc::clone(&link) as Arc<dyn Reservations>);
        let etcd = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>).start().await.unwrap();
        let server = Self { etcd, link, clock, step };
        // Other scopes are served already at the first publication of this one.
        server.etcd.open();
        server.publish().await;
        server
    }

    fn replica(&self) -> &Replica {
        &self.etcd.replica
    }

    fn is_disconnected(&self) -> bool {
        self.link.is_disconnected.load(Ordering::Relaxed)
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
struct Announcement {
    reading: Revision,
    at: Instant,
}

struct Simulation {
    epoch: Instant,
    ceiling: Ceiling,
    servers: Vec<Server>,
    announcements: Vec<Announcement>,
    /// The latency of announcements.
    latency: Duration,
}

impl Simulation {
    async fn new(errors: [i64; SERVERS], latency: Duration) -> Self {
        let (epoch, ceiling) = (Instant::now(), Ceiling::default());
        let mut servers = Vec::new();
        for clock_error in errors {
            servers.push(Server::start(&ceiling, epoch, clock_error, 0).await);
        }
        let simulation = Self { epoch, ceiling, servers, announcements: Vec::new(), latency };
        simulation.introduce_servers();
        simulation
    }

    /// Servers that reach the store learn of each other at once, as for a new server.
    fn introduce_servers(&self) {
        let connected = || self.servers.iter().filter(|server| !server.is_disconnected());
        let latest = connected().filter_map(|server| server.link.time.now()).max();
        for server in connected() {
            if let Some(latest) = latest {
                server.link.time.raise(latest);
            }
        }
    }

    /// Advances the time while servers announce their readings.
    async fn advance(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(100) {
            advance(Duration::from_millis(100)).await;
            let now = Instant::now();
            let (due, coming): (Vec<_>, Vec<_>) = std::mem::take(&mut self.announcements)
                .into_iter()
                .partition(|announcements| announcements.at <= now);
            self.announcements = coming;
            for server in self.servers.iter().filter(|server| !server.is_disconnected()) {
                for announcements in &due {
                    server.link.time.observe(announcements.reading);
                }
                let said = [server.link.time.now(), *self.ceiling.lock()];
                let said = said.into_iter().flatten();
                self.announcements.extend(said.map(|reading| Announcement {
                    reading,
                    at: now + self.latency - Duration::from_millis(100),
                }));
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
        let (records, header) = replica.read(|store| (store.select(&everything()), store.header()));
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
        let (store, header) = servers[at].replica().read(|store| (store.clone(), store.header()));
        let Ok(position) = store.position(&everything(), next, None) else {
            self.watch = None;
            return Ok(());
        };
        for states in position.until(header) {
            let (before, after) = states.unwrap();
            prop_assert!(after.revision() > self.seen, "it would not take that in");
            self.seen = after.revision();
            for change in after.since(before, &everything()) {
                match change.after {
                    Some(record) => self.mirror.extend([read(&record.key, &record.value)]),
                    None => drop(self.mirror.remove(&read(change.key, b"0").0)),
                }
            }
        }
        self.watch = Some((at, header + 1));
        prop_assert_eq!(&self.mirror, &state(servers[at].step));
        Ok(())
    }
}

fn read(key: &[u8], value: &[u8]) -> (String, usize) {
    let key = std::str::from_utf8(key).unwrap().strip_prefix("/p/web/").unwrap();
    (key.to_owned(), std::str::from_utf8(value).unwrap().parse().unwrap())
}

#[derive(Clone, Debug)]
enum Action {
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
    Disconnect(usize, bool),
    /// The store loses or regains all links.
    DisconnectAll(bool),
    /// The clock of a server is set, in seconds.
    SetClock(usize, i64),
    /// A new server with another clock replaces a server.
    Replace(usize, i64),
}

/// Up to ten minutes in either direction.
fn clock_error() -> impl Strategy<Value = i64> {
    -300i64..=300
}

fn action() -> impl Strategy<Value = Action> {
    let server = || 0..SERVERS;
    let client = || 0usize..2;
    prop_oneof![
        3 => prop_oneof![0u64..300, 0u64..5_000, Just(600_000)].prop_map(Action::Pass),
        4 => server().prop_map(Action::Advance),
        6 => (client(), server()).prop_map(|(client, server)| Action::List(client, server)),
        5 => (client(), server()).prop_map(|(client, server)| Action::Watch(client, server)),
        3 => client().prop_map(Action::Read),
        3 => (server(), any::<bool>()).prop_map(|(server, is_disconnected)| Action::Disconnect(server, is_disconnected)),
        1 => any::<bool>().prop_map(Action::DisconnectAll),
        1 => (server(), clock_error()).prop_map(|(server, clock_error)| Action::SetClock(server, clock_error)),
        1 => (server(), clock_error()).prop_map(|(server, clock_error)| Action::Replace(server, clock_error)),
    ]
}

async fn simulate(
    errors: [i64; SERVERS],
    latency: Duration,
    actions: Vec<Action>,
) -> Result<(), TestCaseError> {
    let mut simulation = Simulation::new(errors, latency).await;
    if latency > LATENCY {
        // The first late announcements are noticed on arrival.
        simulation.advance(5_000).await;
        for server in &simulation.servers {
            prop_assert!(
                server.link.time.tolerance() + Duration::from_millis(100) >= latency,
                "{:?}",
                server.link.time.tolerance()
            );
        }
    }
    let mut clients = [Client::default(), Client::default()];
    for action in actions {
        match action {
            Action::Pass(milliseconds) => simulation.advance(milliseconds).await,
            Action::Advance(at) => {
                simulation.servers[at].step += 1;
                simulation.servers[at].publish().await;
            }
            Action::List(client, at) => {
                clients[client].list(&simulation.servers, at).await?;
            }
            Action::Watch(client, at) => clients[client].watch(&simulation.servers, at),
            Action::Read(client) => clients[client].read(&simulation.servers)?,
            Action::Disconnect(at, is_disconnected) => {
                simulation.servers[at].link.is_disconnected.store(is_disconnected, Ordering::Relaxed);
            }
            Action::DisconnectAll(is_disconnected) => {
                for server in &simulation.servers {
                    server.link.is_disconnected.store(is_disconnected, Ordering::Relaxed);
                }
            }
            Action::SetClock(at, clock_error) => {
                *simulation.servers[at].clock.clock_error.lock() = clock_error;
            }
            Action::Replace(at, clock_error) => {
                // A starting server reaches the API server and meets another server there.
                let others = (0..SERVERS).filter(|other| *other != at);
                if others.into_iter().any(|other| !simulation.servers[other].is_disconnected()) {
                    for client in &mut clients {
                        client.watch = client.watch.filter(|(watched, _)| *watched != at);
                    }
                    let step = simulation.servers[at].step;
                    simulation.servers[at] =
                        Server::start(&simulation.ceiling, simulation.epoch, clock_error, step).await;
                    simulation.introduce_servers();
                }
            }
        }
    }
    // The last state of all servers reaches every client on every server.
    let last = simulation.servers.iter().map(|server| server.step).max().unwrap_or_default() + 1;
    for server in &mut simulation.servers {
        server.step = last;
        server.publish().await;
    }
    for client in &mut clients {
        client.read(&simulation.servers)?;
        for at in 0..SERVERS {
            let listed = client.list(&simulation.servers, at).await?;
            client.watch(&simulation.servers, at);
            prop_assert!(client.watch.is_some(), "one that stays where it listed may watch");
            client.read(&simulation.servers)?;
            prop_assert_eq!(&client.mirror, &state(last));
            prop_assert!(simulation.servers[at].etcd.revision().get() >= listed);
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
        assert_eq!((store.header(), store.select(&everything()).len()), (header, 1));
    });
    assert_eq!(server.replica().read(|store| store.select(&everything()).len()), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_client_misses_changes_under_faults_of_servers_clocks_and_the_store(
        errors in [clock_error(), clock_error(), clock_error()],
        actions in prop::collection::vec(action(), 5..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(simulate(errors, LATENCY, actions))?;
    }

    #[test]
    fn no_client_misses_changes_when_announcements_are_later_than_assumed(
        errors in [clock_error(), clock_error(), clock_error()],
        actions in prop::collection::vec(action(), 5..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(simulate(errors, LATE_LATENCY, actions))?;
    }
}
