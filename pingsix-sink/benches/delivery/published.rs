//! Time until PingSIX has published one change, and a hundred at once.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::ratio::{Ratios, median_time};
use crate::rounds;
use crate::servers::Servers;

/// Single changes per round.
const CHANGES_PER_ROUND: usize = 8;

/// Changes in a burst.
const CHANGES_PER_BURST: usize = 100;

/// A pause longer than the rest of a watch, so that each change is a response of its own.
async fn pause(size: usize) {
    sleep(Duration::from_millis(20) + Duration::from_micros(30) * u32::try_from(size).unwrap()).await;
}

/// B3: from the change to its publication. Returns the time through the embedded server.
pub(crate) async fn one_change(servers: &mut Servers) -> Duration {
    let size = servers.size();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds() {
        let (mut through_ours, mut through_theirs) = (Vec::new(), Vec::new());
        for change in 0..CHANGES_PER_ROUND {
            let number = (round * CHANGES_PER_ROUND + change) * 7;
            pause(size).await;
            let started = Instant::now();
            let revision = servers.embedded.change(number).await;
            through_ours.push(servers.embedded.pingsix.published(revision).await - started);
            pause(size).await;
            let started = Instant::now();
            let revision = servers.etcd.change(number).await;
            through_theirs.push(servers.etcd.pingsix.published(revision).await - started);
        }
        ours.push(median_time(&through_ours));
        theirs.push(median_time(&through_theirs));
    }
    println!(
        "| B3 | {size} | one change until published, embedded / put into etcd | {:.1?} / {:.1?} | {} | <= 1.10 |",
        median_time(&ours),
        median_time(&theirs),
        Ratios::of(&ours, &theirs)
    );
    median_time(&ours)
}

/// B4: a hundred changes until the last is published. In etcd they are a hundred puts with a response each. In the
/// embedded server they are one publication, as a controller coalesces them, and also a hundred publications, which
/// become at least two responses because the first does not wait.
pub(crate) async fn burst(servers: &mut Servers) {
    let size = servers.size();
    let (mut together, mut one_by_one, mut singly) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds() {
        pause(size).await;
        let started = Instant::now();
        let last = servers.embedded.change_all(0..CHANGES_PER_BURST).await;
        together.push(servers.embedded.pingsix.published(last).await - started);
        pause(size).await;
        let started = Instant::now();
        let mut last = 0;
        for number in 0..CHANGES_PER_BURST {
            last = servers.embedded.change(number).await;
        }
        one_by_one.push(servers.embedded.pingsix.published(last).await - started);
        pause(size).await;
        let started = Instant::now();
        for number in 0..CHANGES_PER_BURST {
            last = servers.etcd.change(number).await;
        }
        singly.push(servers.etcd.pingsix.published(last).await - started);
    }
    let bar = match size {
        ..5_000 => 15,
        5_000..10_000 => 25,
        _ => 30,
    };
    println!(
        "| B4 | {size} | {CHANGES_PER_BURST} changes until published, put into etcd / one publication of the embedded server | {:.2?} / {:.3?} | {} | >= {bar} |",
        median_time(&singly),
        median_time(&together),
        Ratios::of(&singly, &together)
    );
    println!(
        "| B4 | {size} | the same, published one by one | {:.2?} / {:.3?} | {} | |",
        median_time(&singly),
        median_time(&one_by_one),
        Ratios::of(&singly, &one_by_one)
    );
}
