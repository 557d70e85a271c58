//! Limits of unfinished handshakes.
//!
//! - *Memory*: the number of unfinished handshakes is limited, and further ones wait in the order of their arrival. The
//!   oldest gives way to a waiting one after [`MIN_HANDSHAKE_TIME`]. So clients that stall cannot keep others out, and
//!   a burst of honest clients waits and is served.
//! - *Processors*: a step of a handshake, which can be a signature, waits for its turn, and there is one turn for each
//!   processor. So other connections wait for a few signatures at most, however many handshakes there are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The time that a handshake has before it may have to give way.
const MIN_HANDSHAKE_TIME: Duration = Duration::from_secs(1);

/// All unfinished handshakes.
#[derive(Debug)]
pub(in super::super) struct Admission {
    /// Held by the first who waits for a place.
    first: tokio::sync::Mutex<()>,
    places: Arc<Semaphore>,
    running: Mutex<Running>,
    turns: Semaphore,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    /// In the order of their beginnings.
    handshakes: BTreeMap<u64, (Instant, CancellationToken)>,
}

impl Admission {
    /// At most `most` unfinished handshakes, and steps of `processors` of them at a time.
    pub(in super::super) fn new(most: usize, processors: usize) -> Arc<Self> {
        Arc::new(Self {
            first: tokio::sync::Mutex::default(),
            places: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))),
            running: Mutex::default(),
            turns: Semaphore::new(processors.max(1)),
        })
    }

    /// Waits for the place of a handshake.
    pub(super) async fn enter(self: &Arc<Self>) -> Admitted {
        let first = self.first.lock().await;
        let place = Arc::clone(&self.places).acquire_owned();
        tokio::pin!(place);
        let mut has_evicted = false;
        let place = loop {
            let due = self.running.lock().oldest().unwrap_or_else(Instant::now) + MIN_HANDSHAKE_TIME;
            tokio::select! {
                biased;
                place = &mut place => break place.expect("the semaphore is never closed"),
                () = sleep_until(due), if !has_evicted => has_evicted = self.evict(),
            }
        };
        drop(first);
        let evicted = CancellationToken::new();
        let mut running = self.running.lock();
        let ticket = running.next;
        running.next += 1;
        running.handshakes.insert(ticket, (Instant::now(), evicted.clone()));
        Admitted { admission: Arc::clone(self), ticket, evicted, _place: place }
    }

    /// Ends the oldest handshake if it has had its time.
    fn evict(&self) -> bool {
        let mut running = self.running.lock();
        if running.oldest().is_none_or(|began| began.elapsed() < MIN_HANDSHAKE_TIME) {
            return false;
        }
        let Some((_, (_, oldest))) = running.handshakes.pop_first() else { return false };
        drop(running);
        oldest.cancel();
        true
    }

    /// Waits for the turn of a step.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.turns.acquire().await.expect("the semaphore is never closed")
    }
}

impl Running {
    fn oldest(&self) -> Option<Instant> {
        self.handshakes.first_key_value().map(|(_, (began, _))| *began)
    }
}

/// The place of one handshake; free again when dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Arc<Admission>,
    ticket: u64,
    evicted: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Admitted {
    /// Returns when the handshake has to give way.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.running.lock().handshakes.remove(&self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    const SHORT_WAIT: Duration = Duration::from_millis(100);

    #[test]
    fn a_waiting_connection_has_the_next_free_place() {
        run(async {
            let admission = Admission::new(2, 1);
            let (one, two) = (admission.enter().await, admission.enter().await);
            assert!(timeout(SHORT_WAIT, admission.enter()).await.is_err());
            drop(one);
            let three = admission.enter().await;
            assert!(timeout(SHORT_WAIT, admission.enter()).await.is_err());
            assert!(!two.evicted.is_cancelled() && !three.evicted.is_cancelled());
        });
    }

    #[test]
    fn only_the_oldest_gives_way_and_only_after_a_time() {
        run(async {
            let admission = Admission::new(2, 1);
            let begin = Instant::now();
            let one = admission.enter().await;
            tokio::time::sleep(SHORT_WAIT).await;
            let two = admission.enter().await;
            let ends = async {
                one.evicted().await;
                assert!(begin.elapsed() >= MIN_HANDSHAKE_TIME);
                drop(one);
            };
            let (_three, ()) = tokio::join!(admission.enter(), ends);
            tokio::time::sleep(SHORT_WAIT * 2).await;
            assert!(!two.evicted.is_cancelled(), "nobody waits");
            assert_eq!(admission.running.lock().handshakes.len(), 2);
        });
    }

    #[test]
    fn each_who_waits_has_a_place_in_turn() {
        run(async {
            let admission = Admission::new(2, 1);
            let begin = Instant::now();
            let stalled = |admission: Arc<Admission>| async move {
                let admitted = admission.enter().await;
                admitted.evicted().await;
            };
            for _ in 0..6 {
                tokio::spawn(stalled(Arc::clone(&admission)));
            }
            tokio::task::yield_now().await;
            let _last = admission.enter().await;
            // Three rounds of two.
            assert!(
                (MIN_HANDSHAKE_TIME * 3..MIN_HANDSHAKE_TIME * 5).contains(&begin.elapsed()),
                "{:?}",
                begin.elapsed()
            );
        });
    }

    #[test]
    fn a_step_waits_for_its_turn() {
        run(async {
            let admission = Admission::new(8, 2);
            let (one, _two) = (admission.turn().await, admission.turn().await);
            assert!(timeout(SHORT_WAIT, admission.turn()).await.is_err());
            drop(one);
            drop(admission.turn().await);
        });
    }

    #[test]
    fn an_abandoned_wait_leaves_nothing() {
        run(async {
            let admission = Admission::new(1, 1);
            let one = admission.enter().await;
            assert!(timeout(SHORT_WAIT, admission.enter()).await.is_err());
            drop(one);
            drop(timeout(SHORT_WAIT, admission.enter()).await.unwrap());
            assert_eq!(admission.running.lock().handshakes.len(), 0);
            assert_eq!(admission.places.available_permits(), 1);
        });
    }
}
