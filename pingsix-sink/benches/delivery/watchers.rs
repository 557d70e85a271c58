//! What watches cost.

use std::time::Duration;

use futures::future::join_all;

use crate::process;
use crate::ratio::{Ratios, middle};
use crate::rounds;
use crate::routes::PREFIX;
use crate::server::Server;
use crate::wire::{Watcher, watch_under};

/// How many there are, in the arm that has many.
const MANY: usize = 100;

/// How many changes make a round.
const CHANGES: usize = 50;

/// A server with clients that watch.
struct Watched {
    server: Server,
    watchers: Vec<Watcher>,
}

impl Watched {
    async fn start(size: usize, watches: usize) -> Self {
        let mut watched = Self { server: Server::start(size), watchers: Vec::new() };
        watched.add(watches).await;
        watched
    }

    async fn add(&mut self, watches: usize) {
        for _ in 0..watches {
            let mut watcher = Watcher::open(self.server.channel().await).await.unwrap();
            watcher.create(watch_under(&format!("{PREFIX}/"), 0)).await;
            self.watchers.push(watcher);
        }
    }

    /// The time that some changes take, each told to all before the next.
    async fn round(&mut self) -> Duration {
        let before = process::time(self.server.pid());
        for number in 0..CHANGES {
            self.server.change(number);
            join_all(self.watchers.iter_mut().map(Watcher::next)).await;
        }
        process::time(self.server.pid()).saturating_sub(before)
    }
}

/// B16: processor time and memory with many, beside those with one.
pub(crate) async fn cost(size: usize) {
    let mut one = Watched::start(size, 1).await;
    let mut many = Watched::start(size, 1).await;
    // What the first changes need, is there afterwards.
    one.round().await;
    many.round().await;
    let alone = many.server.memory();
    many.add(MANY - 1).await;
    many.round().await;
    let each = many.server.memory().saturating_sub(alone) / (MANY as u64 - 1);
    let (mut of_one, mut of_many) = (Vec::new(), Vec::new());
    for _ in 0..rounds() {
        of_one.push(one.round().await);
        of_many.push(many.round().await);
    }
    let changes = u32::try_from(CHANGES).unwrap();
    println!(
        "| B16 | {size} | processor time of a change, {MANY} watches / one; RSS of a watch | {:.0?} / {:.0?}; {} KiB | {} | <= 3; <= 64 KiB |",
        middle(&of_many) / changes,
        middle(&of_one) / changes,
        each / 1024,
        Ratios::of(&of_many, &of_one)
    );
}
