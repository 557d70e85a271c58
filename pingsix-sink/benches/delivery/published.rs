//! How long it takes until PingSIX has published: one change, and a hundred at once.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::arms::Arms;
use crate::ratio::{Ratios, middle};
use crate::rounds;

/// How many single changes make a round.
const CHANGES: usize = 8;

/// How many changes come at once.
const BURST: usize = 100;

/// Longer than the embedded server lets a watch rest, so that each change is one by itself.
async fn rest(size: usize) {
    sleep(Duration::from_millis(20) + Duration::from_micros(30) * u32::try_from(size).unwrap()).await;
}

/// B3: from the change to its publication. Returns what that takes through the embedded server.
pub(crate) async fn one_change(arms: &mut Arms) -> Duration {
    let size = arms.size();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds() {
        let (mut through_ours, mut through_theirs) = (Vec::new(), Vec::new());
        for change in 0..CHANGES {
            let number = (round * CHANGES + change) * 7;
            rest(size).await;
            let started = Instant::now();
            let revision = arms.embedded.change(number).await;
            through_ours.push(arms.embedded.pingsix.published(revision).await - started);
            rest(size).await;
            let started = Instant::now();
            let revision = arms.etcd.change(number).await;
            through_theirs.push(arms.etcd.pingsix.published(revision).await - started);
        }
        ours.push(middle(&through_ours));
        theirs.push(middle(&through_theirs));
    }
    println!(
        "| B3 | {size} | one change until published, embedded / put into etcd | {:.1?} / {:.1?} | {} | <= 1.10 |",
        middle(&ours),
        middle(&theirs),
        Ratios::of(&ours, &theirs)
    );
    middle(&ours)
}

/// B4: a hundred changes, until the last is published. Into etcd they go one by one, a response each; to the embedded server
/// in one publication, as a controller gives it what came together, and one by one as well, where the first does not wait
/// for the others, so that there are two publications at least.
pub(crate) async fn burst(arms: &mut Arms) {
    let size = arms.size();
    let (mut together, mut one_by_one, mut singly) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds() {
        rest(size).await;
        let started = Instant::now();
        let last = arms.embedded.change_all(0..BURST).await;
        together.push(arms.embedded.pingsix.published(last).await - started);
        rest(size).await;
        let started = Instant::now();
        let mut last = 0;
        for number in 0..BURST {
            last = arms.embedded.change(number).await;
        }
        one_by_one.push(arms.embedded.pingsix.published(last).await - started);
        rest(size).await;
        let started = Instant::now();
        for number in 0..BURST {
            last = arms.etcd.change(number).await;
        }
        singly.push(arms.etcd.pingsix.published(last).await - started);
    }
    let bar = match size {
        ..5_000 => 15,
        5_000..10_000 => 25,
        _ => 30,
    };
    println!(
        "| B4 | {size} | {BURST} changes until published, put into etcd / one publication of the embedded server | {:.2?} / {:.3?} | {} | >= {bar} |",
        middle(&singly),
        middle(&together),
        Ratios::of(&singly, &together)
    );
    println!(
        "| B4 | {size} | the same, published one by one | {:.2?} / {:.3?} | {} | |",
        middle(&singly),
        middle(&one_by_one),
        Ratios::of(&singly, &one_by_one)
    );
}
