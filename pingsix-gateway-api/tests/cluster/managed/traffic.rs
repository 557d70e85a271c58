//! Clients that ask all the time, and note every answer that is not the one that it should be.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::load::connections::Connection;
use crate::load::subjects::Probe;
use crate::test_env::eventually;

/// The pause of each client between two requests, on an idle machine.
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);

/// The least number of answers that shows service.
const MIN_REQUESTS: usize = 200;

/// The number of errors in a report.
const MAX_REPORTED_ERRORS: usize = 10;

/// The answer of the backend.
pub(super) const EXPECTED_RESPONSE: &str = "200 backend";

/// The protocol of a client.
#[derive(Clone, Copy, Debug)]
struct RequestMode {
    http2: bool,
    /// On a new connection each time.
    fresh: bool,
}

const REQUEST_MODES: [RequestMode; 4] = [
    RequestMode { http2: false, fresh: false },
    RequestMode { http2: false, fresh: true },
    RequestMode { http2: true, fresh: false },
    RequestMode { http2: true, fresh: true },
];

/// The outcomes of all requests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    valid: usize,
    errors: Vec<String>,
    /// Requests that had to be sent again, because a kept connection was closed before it was read from.
    retried: usize,
    slowest: Duration,
}

/// The target of a request: a host on a port, with TLS on 443.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) host: String,
}

impl Target {
    pub(super) fn new(address: IpAddr, port: u16, host: &str) -> Self {
        Self { address: SocketAddr::new(address, port), host: host.to_owned() }
    }

    fn connection(&self, http2: bool) -> Connection {
        Connection::new(self.address, self.address.port() == 443, http2)
    }

    fn probe(&self) -> Probe {
        Probe::new(&self.host, "/")
    }

    /// Asks once, on a new connection.
    pub(super) async fn ask(&self) -> Result<String, String> {
        self.connection(false).ask(&self.probe()).await.map(|reply| reply.answer())
    }
}

/// Clients that run.
pub(super) struct Traffic {
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
    clients: JoinSet<()>,
}

impl Traffic {
    /// Begins to ask each target in every manner.
    pub(super) fn start(targets: &[Target]) -> Self {
        let tally = Arc::new(Mutex::new(Tally::default()));
        let stop = CancellationToken::new();
        let mut clients = JoinSet::new();
        for target in targets {
            for mode in REQUEST_MODES {
                clients.spawn(ask(target.clone(), mode, tally.clone(), stop.clone()));
            }
        }
        Self { tally, stop, clients }
    }

    /// Stops asking. Every answer has been right, and no connection was closed that was to be kept.
    pub(super) async fn was_not_disturbed(self, whose: &str) {
        let retried = self.was_served(whose).await;
        assert_eq!(retried, 0, "connections of {whose} were closed");
    }

    /// Stops asking, when that was done often enough. Every answer has been right; how many requests had to be sent again,
    /// because a kept connection was closed.
    pub(super) async fn was_served(mut self, whose: &str) -> usize {
        let tally = self.tally.clone();
        let enough = || {
            let tally = tally.lock();
            tally.valid >= MIN_REQUESTS || !tally.errors.is_empty()
        };
        eventually(&format!("{MIN_REQUESTS} answers of {whose}"), enough).await;
        self.stop.cancel();
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        let tally = std::mem::take(&mut *self.tally.lock());
        eprintln!(
            "{whose}: {} right answers, {} others, {} asked again, the longest took {:.1?}",
            tally.valid,
            tally.errors.len(),
            tally.retried,
            tally.slowest
        );
        let shown = &tally.errors[..tally.errors.len().min(MAX_REPORTED_ERRORS)];
        assert!(tally.errors.is_empty(), "{} faults of {whose}: {shown:#?}", tally.errors.len());
        tally.retried
    }
}

async fn ask(target: Target, mode: RequestMode, tally: Arc<Mutex<Tally>>, stop: CancellationToken) {
    let (mut connection, probe) = (target.connection(mode.http2), target.probe());
    let begun = Instant::now();
    let mut ticks = interval(REQUEST_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if mode.fresh {
            connection.close();
        }
        let asked = Instant::now();
        let answer = connection.ask(&probe).await.map(|reply| reply.answer());
        let mut tally = tally.lock();
        tally.slowest = tally.slowest.max(asked.elapsed());
        match answer {
            Ok(answer) if answer == EXPECTED_RESPONSE => tally.valid += 1,
            other => tally.errors.push(format!(
                "{} at {}, {mode:?}, {:.1?} after the start: {other:?}",
                target.host,
                target.address,
                asked.duration_since(begun)
            )),
        }
    }
    tally.lock().retried += connection.retried;
}
