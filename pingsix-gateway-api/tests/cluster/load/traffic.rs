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

use super::lines::{Line, Reply};
use super::subjects::{Door, Sort, Subject};

/// The address of each protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doors {
    pub(crate) plain: SocketAddr,
    pub(crate) secure: SocketAddr,
}

/// Connections by door, and whether they speak HTTP/2.
const CONNECTIONS: [(Door, bool, u32); 4] =
    [(Door::Plain, false, 8), (Door::Plain, true, 4), (Door::Secure, false, 2), (Door::Secure, true, 2)];

/// The total number of requests per second.
const RATE: u32 = 1_000;

/// Limit of the faults in a report.
const TOLD: usize = 20;

/// The outcomes of all requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Valid responses by protocol and kind of subject.
    pub(crate) right: BTreeMap<(&'static str, Sort), usize>,
    pub(crate) wrong: Vec<String>,
    pub(crate) failed: Vec<String>,
    /// Requests that were sent again, because a kept connection had been closed without a byte.
    pub(crate) again: usize,
    /// The slowest requests.
    pub(crate) longest: Duration,
}

impl Tally {
    pub(crate) fn total(&self) -> usize {
        self.right.values().sum::<usize>() + self.wrong.len() + self.failed.len()
    }

    /// The number of right answers by protocol.
    pub(crate) fn by_protocol(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for ((protocol, _), count) in &self.right {
            *counts.entry(*protocol).or_insert(0) += count;
        }
        counts
    }

    /// The first faults, for a failing test.
    pub(crate) fn faults(&self) -> String {
        let some = |what: &str, all: &[String]| {
            let told = all.iter().take(TOLD).cloned().collect::<Vec<_>>().join("\n  ");
            format!("{} {what}\n  {told}\n", all.len())
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
    pub(crate) fn start(subjects: &Arc<Vec<Subject>>, doors: Doors, dice: &mut StdRng) -> Self {
        let tally = Arc::new(Mutex::new(Tally::default()));
        let stop = CancellationToken::new();
        let mut clients = JoinSet::new();
        let all: u32 = CONNECTIONS.iter().map(|(_, _, count)| count).sum();
        let pace = Duration::from_secs(1) * all / RATE;
        for (door, http2, count) in CONNECTIONS {
            for _ in 0..count {
                let client = Client {
                    subjects: subjects.clone(),
                    tally: tally.clone(),
                    line: line(doors, door, http2),
                    door,
                    protocol: protocol(door, http2),
                    dice: StdRng::seed_from_u64(dice.random()),
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

fn line(doors: Doors, door: Door, http2: bool) -> Line {
    match door {
        Door::Plain => Line::new(doors.plain, false, http2),
        Door::Secure => Line::new(doors.secure, true, http2),
    }
}

fn protocol(door: Door, http2: bool) -> &'static str {
    match (door, http2) {
        (Door::Plain, false) => "HTTP/1.1",
        (Door::Plain, true) => "h2c",
        (Door::Secure, false) => "HTTP/1.1 over TLS",
        (Door::Secure, true) => "h2",
    }
}

struct Client {
    subjects: Arc<Vec<Subject>>,
    tally: Arc<Mutex<Tally>>,
    line: Line,
    door: Door,
    protocol: &'static str,
    dice: StdRng,
}

impl Client {
    async fn run(mut self, pace: Duration, stop: CancellationToken) {
        let mine: Vec<usize> =
            (0..self.subjects.len()).filter(|index| self.subjects[*index].door == self.door).collect();
        let is_stable = |index: &usize| self.subjects[*index].sort == Sort::Stable;
        let stable: Vec<usize> = mine.iter().copied().filter(is_stable).collect();
        let mut ticks = interval(pace);
        // On a machine that cannot keep up, fewer requests are sent.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            // A quarter of the requests goes to constant subjects, half to changing ones, if there are any.
            let mut index = mine[self.dice.random_range(0..mine.len())];
            match self.dice.random_range(0..4) {
                0 => index = stable[self.dice.random_range(0..stable.len())],
                1 | 2 => {
                    let from = self.dice.random_range(0..mine.len());
                    let changing = mine.iter().cycle().skip(from).take(mine.len());
                    let changing = changing.copied().find(|index| !self.subjects[*index].book.is_settled());
                    index = changing.unwrap_or(index);
                }
                _ => {}
            }
            let probe = self.dice.random_range(0..self.subjects[index].probes.len());
            self.ask(index, probe).await;
        }
        self.tally.lock().again += self.line.again;
    }

    async fn ask(&mut self, subject: usize, probe: usize) {
        let subject = &self.subjects[subject];
        if subject.sort == Sort::Certificate {
            // A connection goes on with the certificate that it has shown.
            self.line.close();
        }
        let started = std::time::Instant::now();
        let sent = subject.book.send();
        let reply = self.line.ask(&subject.probes[probe]).await;
        let judged = reply.map(|reply| subject.book.judge(sent, probe, &answer(subject, &reply)));
        let who = || format!("{} {:?} over {}", subject.name, subject.probes[probe], self.protocol);
        let mut tally = self.tally.lock();
        tally.longest = tally.longest.max(started.elapsed());
        match judged {
            Ok(Ok(())) => *tally.right.entry((self.protocol, subject.sort)).or_insert(0) += 1,
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

/// Sends every request once over each protocol, and returns the faults.
pub(crate) async fn ask_everything(subjects: &[Subject], doors: Doors) -> Vec<String> {
    let mut wrong = Vec::new();
    for (door, http2, _) in CONNECTIONS {
        let mut line = line(doors, door, http2);
        for subject in subjects.iter().filter(|subject| subject.door == door) {
            for (index, probe) in subject.probes.iter().enumerate() {
                if subject.sort == Sort::Certificate {
                    line.close();
                }
                let sent = subject.book.send();
                let said = match line.ask(probe).await {
                    Ok(reply) => subject.book.judge(sent, index, &answer(subject, &reply)),
                    Err(failure) => {
                        wrong.push(format!("{} {probe:?}: {failure}", subject.name));
                        continue;
                    }
                };
                if let Err(fault) = said {
                    wrong.push(format!("{} {probe:?}: {fault}", subject.name));
                }
            }
        }
    }
    wrong
}
