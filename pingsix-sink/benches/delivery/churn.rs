//! A hundred changes a second, most of them of a few routes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::arms::Arms;
use crate::routes::PREFIX;
use crate::wire::watch_under;

/// For how long.
const TIME: Duration = Duration::from_secs(4);

/// A second has a hundred of these.
const TICK: Duration = Duration::from_millis(10);

/// How many routes have four changes of five.
const FEW: usize = 20;

/// What a client of the embedded server was told.
#[derive(Default)]
struct Told {
    responses: u32,
    events: usize,
    /// Keys that one response had twice.
    twice: usize,
}

fn number(change: usize, size: usize) -> usize {
    if change.is_multiple_of(5) { change * 7 % size } else { change % FEW }
}

/// B5: how many responses a second come of it, where `one` is what a publication takes; and how far behind PingSIX is
/// when it ends.
pub(crate) async fn churn(arms: &mut Arms, one: Duration) {
    let size = arms.size();
    let mut spy = arms.embedded.served.watch().await;
    spy.create(watch_under(&format!("{PREFIX}/"), 0)).await;
    let over = CancellationToken::new();
    let spying = tokio::spawn({
        let over = over.clone();
        async move {
            let mut told = Told::default();
            while let Some(response) = over.run_until_cancelled(spy.next()).await {
                told.responses += 1;
                told.events += response.events.len();
                let keys: BTreeSet<_> =
                    response.events.iter().map(|event| event.kv.as_ref().unwrap().key.clone()).collect();
                told.twice += response.events.len() - keys.len();
            }
            told
        }
    });
    let (ours, changes) = behind(async |change| arms.embedded.change(number(change, size)).await).await;
    let end = arms.embedded.pingsix.published(ours).await;
    over.cancel();
    let told = spying.await.unwrap();
    let behind_embedded = end - changes.ended;
    let rate = f64::from(told.responses) / changes.took.as_secs_f64();
    println!(
        "| B5 | {size} | {} changes in {:.1?}: responses a second x publish time | {rate:.1}/s x {one:.1?}, {} events, {} keys twice in a response | {:.2} | <= 1, 0 twice |",
        changes.made,
        changes.took,
        told.events,
        told.twice,
        rate * one.as_secs_f64(),
    );
    let (theirs, changes) = behind(async |change| arms.etcd.change(number(change, size)).await).await;
    let behind_etcd = arms.etcd.pingsix.published(theirs).await - changes.ended;
    println!(
        "| B4 | {size} | behind when such changes end: embedded, in publish times; put into etcd | {behind_embedded:.1?}; {behind_etcd:.1?} | {:.1} | <= 3 |",
        behind_embedded.as_secs_f64() / one.as_secs_f64(),
    );
}

struct Changes {
    made: usize,
    took: Duration,
    ended: Instant,
}

/// Changes something in each tick; the last revision.
async fn behind(mut change: impl AsyncFnMut(usize) -> i64) -> (i64, Changes) {
    let started = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut made, mut last) = (0, 0);
    while started.elapsed() < TIME {
        ticks.tick().await;
        last = change(made).await;
        made += 1;
    }
    (last, Changes { made, took: started.elapsed(), ended: Instant::now() })
}
