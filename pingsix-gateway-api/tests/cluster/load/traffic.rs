//! Clients that send requests continuously and check every response.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Reply};
use super::subjects::{Listener, Sort, Subject};

/// The address of each protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) plain: SocketAddr,
    pub(crate) behind_tls: SocketAddr,
}

/// Connections by door, and whether they speak HTTP/2.
const CONNECTIONS: [(Listener, bool, u32); 4] = [
    (Listener::Plain, false, 8),
    (Listener::Plain, true, 4),
    (Listener::Secure, false, 2),
    (Listener::Secure, true, 2),
];

/// The total number of requests per second.
const REQUESTS_PER_SECOND: u32 = 1_000;

/// Limit of the errors in a report.
const MAX_REPORTED_ERRORS: usize = 20;

/// The outcomes of all requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Valid responses by protocol and kind of subject.
    pub(crate) valid: BTreeMap<(&'static str, Sort), usize>,
    pub(crate) wrong: Vec<String>,
    pub(crate) failed: Vec<String>,
    /// Requests that were sent again, because a kept connection had been closed without a byte.
    pub(crate) retried: usize,
    /// The slowest requests.
    pub(crate) slowest: Duration,
}

impl Tally {
    pub(crate) fn total(&self) -> usize {
        self.valid.values().sum::<usize>() + self.wrong.len() + self.failed.len()
    }

    /// The number of right answers by protocol.
    pub(crate) fn by_protocol(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for ((protocol, _), count) in &self.valid {
            *counts.entry(*protocol).or_insert(0) += count;
        }
        counts
    }

    /// The first errors, for a failing test.
    pub(crate) fn errors(&self) -> String {
        let some = |what: &str, all: &[String]| {
            let shown = all.iter().take(MAX_REPORTED_ERRORS).cloned().collect::<Vec<_>>().join("\n  ");
            format!("{} {what}\n  {shown}\n", all.len())
        };
        some("wrong answers", &self.wrong) + &some("requests without an answer", &self.failed)
    }
}

/// Running clients.
pub(crate) struct Traffic {
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
    clients: JoinSet<()>,
}

impl Traffic {
    pub(crate) fn start(subjects: &Arc<Vec<Subject>>, addresses: Addresses, rng: &mut StdRng) -> Self {
        let tally = Arc::new(Mutex::new(Tally::default()));
        let stop = CancellationToken::new();
        let mut clients = JoinSet::new();
        let all: u32 = CONNECTIONS.iter().map(|(_, _, count)| count).sum();
        let pace = Duration::from_secs(1) * all / REQUESTS_PER_SECOND;
        for (listener, http2, count) in CONNECTIONS {
            for _ in 0..count {
                let client = Client {
                    subjects: subjects.clone(),
                    tally: tally.clone(),
                    connection: connection(addresses, listener, http2),
                    listener,
                    protocol: protocol(listener, http2),
                    rng: StdRng::seed_from_u64(rng.random()),
                };
                clients.spawn(client.run(pace, stop.clone()));
            }
        }
        Self { tally, stop, clients }
    }

    /// Stops the clients after their last responses.
    pub(crate) async fn stop(mut self) -> Tally {
        self.stop.cancel();
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        std::mem::take(&mut self.tally.lock())
    }
}

fn connection(addresses: Addresses, listener: Listener, http2: bool) -> Connection {
    match listener {
        Listener::Plain => Connection::new(addresses.plain, false, http2),
        Listener::Secure => Connection::new(addresses.behind_tls, true, http2),
    }
}

fn protocol(listener: Listener, http2: bool) -> &'static str {
    match (listener, http2) {
        (Listener::Plain, false) => "HTTP/1.1",
        (Listener::Plain, true) => "h2c",
        (Listener::Secure, false) => "HTTP/1.1 over TLS",
        (Listener::Secure, true) => "h2",
    }
}

struct Client {
    subjects: Arc<Vec<Subject>>,
    tally: Arc<Mutex<Tally>>,
    connection: Connection,
    listener: Listener,
    protocol: &'static str,
    rng: StdRng,
}

impl Client {
    async fn run(mut self, pace: Duration, stop: CancellationToken) {
        let mine: Vec<usize> = (0..self.subjects.len())
            .filter(|index| self.subjects[*index].listener == self.listener)
            .collect();
        let is_stable = |index: &usize| self.subjects[*index].sort == Sort::Stable;
        let stable: Vec<usize> = mine.iter().copied().filter(is_stable).collect();
        let mut ticks = interval(pace);
        // On a machine that cannot keep up, fewer requests are sent.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            // A quarter of the requests goes to constant subjects, half to changing ones, if there are any.
            let mut index = mine[self.rng.random_range(0..mine.len())];
            match self.rng.random_range(0..4) {
                0 => index = stable[self.rng.random_range(0..stable.len())],
                1 | 2 => {
                    let from = self.rng.random_range(0..mine.len());
                    let changing = mine.iter().cycle().skip(from).take(mine.len());
                    let changing = changing.copied().find(|index| !self.subjects[*index].states.is_settled());
                    index = changing.unwrap_or(index);
                }
                _ => {}
            }
            let probe = self.rng.random_range(0..self.subjects[index].probes.len());
            self.ask(index, probe).await;
        }
        self.tally.lock().retried += self.connection.retried;
    }

    async fn ask(&mut self, subject: usize, probe: usize) {
        let subject = &self.subjects[subject];
        if subject.sort == Sort::Certificate {
            // A connection goes on with the certificate that it has shown.
            self.connection.close();
        }
        let started = std::time::Instant::now();
        let sent = subject.states.send();
        let reply = self.connection.ask(&subject.probes[probe]).await;
        let judged = reply.map(|reply| subject.states.check(sent, probe, &answer(subject, &reply)));
        let who = || format!("{} {:?} over {}", subject.name, subject.probes[probe], self.protocol);
        let mut tally = self.tally.lock();
        tally.slowest = tally.slowest.max(started.elapsed());
        match judged {
            Ok(Ok(())) => *tally.valid.entry((self.protocol, subject.sort)).or_insert(0) += 1,
            Ok(Err(wrong)) => tally.wrong.push(format!("{}: {wrong}", who())),
            Err(failure) => tally.failed.push(format!("{}: {failure}", who())),
        }
    }
}

fn answer(subject: &Subject, reply: &Reply) -> String {
    let mut answer = reply.answer();
    if !subject.certificates.is_empty() {
        let shown = reply.certificate.as_ref();
        let shown = subject.certificates.iter().position(|certificate| Some(certificate) == shown);
        answer += &shown.map_or_else(|| " shown another".to_owned(), |number| format!(" shown {number}"));
    }
    answer
}

/// Sends every request once over each protocol, and returns the errors.
pub(crate) async fn send_every_request(subjects: &[Subject], addresses: Addresses) -> Vec<String> {
    let mut wrong = Vec::new();
    for (listener, http2, _) in CONNECTIONS {
        let mut connection = connection(addresses, listener, http2);
        for subject in subjects.iter().filter(|subject| subject.listener == listener) {
            for (index, probe) in subject.probes.iter().enumerate() {
                if subject.sort == Sort::Certificate {
                    connection.close();
                }
                let sent = subject.states.send();
                let result = match connection.ask(probe).await {
                    Ok(reply) => subject.states.check(sent, index, &answer(subject, &reply)),
                    Err(failure) => {
                        wrong.push(format!("{} {probe:?}: {failure}", subject.name));
                        continue;
                    }
                };
                if let Err(error) = result {
                    wrong.push(format!("{} {probe:?}: {error}", subject.name));
                }
            }
        }
    }
    wrong
}
