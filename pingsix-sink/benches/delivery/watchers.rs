//! Cost of watches.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::process;
use crate::ratio::{Ratios, median_time};
use crate::rounds;
use crate::routes::PREFIX;
use crate::server::{Pacing, Server};
use crate::wire::{Watcher, watch_under};

/// Number of watches in the larger arm.
const WATCHERS: usize = 100;

/// Changes per round.
const CHANGES_PER_ROUND: usize = 100;

/// Interval of changes: a hundred per second.
const CHANGE_INTERVAL: Duration = Duration::from_millis(10);

/// A server with watching clients.
struct WatchedServer {
    server: Server,
    /// The revision that each client has read.
    read: Vec<watch::Receiver<i64>>,
}

impl WatchedServer {
    async fn start(size: usize, pacing: Pacing, count: usize) -> Self {
        let mut watched = Self { server: Server::start(size, pacing), read: Vec::new() };
        watched.add(count).await;
        watched
    }

    async fn add(&mut self, count: usize) {
        for _ in 0..count {
            let mut watcher = Watcher::open(self.server.channel().await).await.unwrap();
            watcher.create(watch_under(&format!("{PREFIX}/"), 0)).await;
            let (reads, read) = watch::channel(0);
            tokio::spawn(async move {
                while let Ok(Some(response)) = watcher.try_next().await {
                    if reads.send(response.header.unwrap().revision).is_err() {
                        break;
                    }
                }
            });
            self.read.push(read);
        }
    }

    async fn all_have_read(&mut self, revision: i64) {
        for read in &mut self.read {
            read.wait_for(|read| *read >= revision).await.unwrap();
        }
    }

    /// The time of some changes when all clients read each before the next.
    async fn one_by_one(&mut self) -> Duration {
        let before = process::time(self.server.pid());
        for number in 0..CHANGES_PER_ROUND {
            let revision = self.server.change(number);
            self.all_have_read(revision).await;
        }
        process::time(self.server.pid()).saturating_sub(before)
    }

    /// The time of the same changes at a hundred per second.
    async fn churn(&mut self) -> Duration {
        let before = process::time(self.server.pid());
        let mut ticks = interval(CHANGE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut last = 0;
        for number in 0..CHANGES_PER_ROUND {
            ticks.tick().await;
            last = self.server.change(number);
        }
        self.all_have_read(last).await;
        process::time(self.server.pid()).saturating_sub(before)
    }
}

/// B16: processor time and memory with many watches, beside those with one.
pub(crate) async fn cost(size: usize) {
    for pacing in [Pacing::Default, Pacing::None] {
        let mut one = WatchedServer::start(size, pacing, 1).await;
        let mut many = WatchedServer::start(size, pacing, 1).await;
        // The first changes allocate buffers that stay.
        one.churn().await;
        many.churn().await;
        let alone = many.server.memory();
        many.add(WATCHERS - 1).await;
        many.churn().await;
        let each = many.server.memory().saturating_sub(alone) / (WATCHERS as u64 - 1);
        let (mut of_one, mut of_many) = (Vec::new(), Vec::new());
        for _ in 0..rounds() {
            match pacing {
                Pacing::Default => {
                    of_one.push(one.churn().await);
                    of_many.push(many.churn().await);
                }
                Pacing::None => {
                    of_one.push(one.one_by_one().await);
                    of_many.push(many.one_by_one().await);
                }
            }
        }
        let changes = u32::try_from(CHANGES_PER_ROUND).unwrap();
        let (what, bar) = match pacing {
            Pacing::Default => ("of a hundred a second, paced as by default", "<= 3; <= 64 KiB"),
            Pacing::None => ("that all read before the next, without a pace", ""),
        };
        println!(
            "| B16 | {size} | the server's processor time for a change {what}, {WATCHERS} watches / one; RSS of a watch | {:.0?} / {:.0?}; {} KiB | {} | {bar} |",
            median_time(&of_many) / changes,
            median_time(&of_one) / changes,
            each / 1024,
            Ratios::of(&of_many, &of_one)
        );
    }
}
