//! Clients that ask all the time, and note every answer that is not the one that it should be.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::lab::eventually;
use crate::load::lines::Line;
use crate::load::subjects::Probe;

/// The pause of each client between two requests, on an idle machine.
const PACE: Duration = Duration::from_millis(20);

/// The least number of answers that shows service.
const ENOUGH: usize = 200;

/// The number of faults in a report.
const TOLD: usize = 10;

/// The answer of the backend.
pub(super) const RIGHT: &str = "200 backend";

/// The protocol of a client.
#[derive(Clone, Copy, Debug)]
struct Manner {
    http2: bool,
    /// On a new connection each time.
    fresh: bool,
}

const MANNERS: [Manner; 4] = [
    Manner { http2: false, fresh: false },
    Manner { http2: false, fresh: true },
    Manner { http2: true, fresh: false },
    Manner { http2: true, fresh: true },
];

/// The outcomes of all requests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    right: usize,
    faults: Vec<String>,
    /// Requests that had to be sent again, because a kept connection was closed before it was read from.
    again: usize,
    longest: Duration,
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

    fn line(&self, http2: bool) -> Line {
        Line::new(self.address, self.address.port() == 443, http2)
    }

    fn probe(&self) -> Probe {
        Probe::new(&self.host, "/")
    }

    /// Asks once, on a new connection.
    pub(super) async fn ask(&self) -> Result<String, String> {
        self.line(false).ask(&self.probe()).await.map(|reply| reply.answer())
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
            for manner in MANNERS {
                clients.spawn(ask(target.clone(), manner, tally.clone(), stop.clone()));
            }
        }
        Self { tally, stop, clients }
    }

    /// Stops asking. Every answer has been right, and no connection was closed that was to be kept.
    pub(super) async fn was_not_disturbed(self, whose: &str) {
        let again = self.was_served(whose).await;
        assert_eq!(again, 0, "connections of {whose} were closed");
    }

    /// Stops asking, when that was done often enough. Every answer has been right; how many requests had to be sent again,
    /// because a kept connection was closed.
    pub(super) async fn was_served(mut self, whose: &str) -> usize {
        let tally = self.tally.clone();
        let enough = || {
            let tally = tally.lock();
            tally.right >= ENOUGH || !tally.faults.is_empty()
        };
        eventually(&format!("{ENOUGH} answers of {whose}"), enough).await;
        self.stop.cancel();
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        let tally = std::mem::take(&mut *self.tally.lock());
        eprintln!(
            "{whose}: {} right answers, {} others, {} asked again, the longest took {:.1?}",
            tally.right,
            tally.faults.len(),
            tally.again,
            tally.longest
        );
        let told = &tally.faults[..tally.faults.len().min(TOLD)];
        assert!(tally.faults.is_empty(), "{} faults of {whose}: {told:#?}", tally.faults.len());
        tally.again
    }
}

async fn ask(target: Target, manner: Manner, tally: Arc<Mutex<Tally>>, stop: CancellationToken) {
    let (mut line, probe) = (target.line(manner.http2), target.probe());
    let begun = Instant::now();
    let mut ticks = interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if manner.fresh {
            line.close();
        }
        let asked = Instant::now();
        let answer = line.ask(&probe).await.map(|reply| reply.answer());
        let mut tally = tally.lock();
        tally.longest = tally.longest.max(asked.elapsed());
        match answer {
            Ok(answer) if answer == RIGHT => tally.right += 1,
            other => tally.faults.push(format!(
                "{} at {}, {manner:?}, {:.1?} after the start: {other:?}",
                target.host,
                target.address,
                asked.duration_since(begun)
            )),
        }
    }
    tally.lock().again += line.again;
}
