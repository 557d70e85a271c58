//! A hundred changes a second, most of them of a few routes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::routes::PREFIX;
use crate::servers::Servers;
use crate::wire::watch_under;

/// Duration of the churn.
const DURATION: Duration = Duration::from_secs(4);

/// Interval of changes: a hundred per second.
const CHANGE_INTERVAL: Duration = Duration::from_millis(10);

/// Number of routes with four of five changes.
const HOT_ROUTES: usize = 20;

/// Events that a client of the embedded server received.
#[derive(Default)]
struct ReceivedEvents {
    responses: u32,
    events: usize,
    /// Keys that occurred twice in one response.
    twice: usize,
}

fn number(change: usize, size: usize) -> usize {
    if change.is_multiple_of(5) { change * 7 % size } else { change % HOT_ROUTES }
}

/// B5: responses per second, where `one` is the duration of a publication, and the delay of PingSIX at the end.
pub(crate) async fn churn(servers: &mut Servers, one: Duration) {
    let size = servers.size();
    let mut spy = servers.embedded.served.watch().await;
    spy.create(watch_under(&format!("{PREFIX}/"), 0)).await;
    let over = CancellationToken::new();
    let spying = tokio::spawn({
        let over = over.clone();
        async move {
            let mut received = ReceivedEvents::default();
            while let Some(response) = over.run_until_cancelled(spy.next()).await {
                received.responses += 1;
                received.events += response.events.len();
                let keys: BTreeSet<_> =
                    response.events.iter().map(|event| event.kv.as_ref().unwrap().key.clone()).collect();
                received.twice += response.events.len() - keys.len();
            }
            received
        }
    });
    let (ours, changes) = delay_of(async |change| servers.embedded.change(number(change, size)).await).await;
    let end = servers.embedded.pingsix.published(ours).await;
    over.cancel();
    let received = spying.await.unwrap();
    let behind_embedded = end - changes.ended;
    let rate = f64::from(received.responses) / changes.took.as_secs_f64();
    println!(
        "| B5 | {size} | {} changes in {:.1?}: responses a second x publish time | {rate:.1}/s x {one:.1?}, {} events, {} keys twice in a response | {:.2} | <= 1, 0 twice |",
        changes.made,
        changes.took,
        received.events,
        received.twice,
        rate * one.as_secs_f64(),
    );
    let (theirs, changes) = delay_of(async |change| servers.etcd.change(number(change, size)).await).await;
    let behind_etcd = servers.etcd.pingsix.published(theirs).await - changes.ended;
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

/// Makes one change in each tick; returns the last revision.
async fn delay_of(mut change: impl AsyncFnMut(usize) -> i64) -> (i64, Changes) {
    let started = Instant::now();
    let mut ticks = interval(CHANGE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut made, mut last) = (0, 0);
    while started.elapsed() < DURATION {
        ticks.tick().await;
        last = change(made).await;
        made += 1;
    }
    (last, Changes { made, took: started.elapsed(), ended: Instant::now() })
}
