//! Where a server has its revisions from: the store, or the shared time while that is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{BLOCK, Block, Clock, Reservations, ReserveError, SHARED_BLOCK, SharedTime, clock_revision};
use crate::embedded::stats::Counter;
use crate::revision::Revision;

/// Lists are fenced no more often than this. A client that lists all the time must not write to the store all the time,
/// nor have reservations run ahead of the shared time.
const PAUSE: Duration = Duration::from_millis(50);

/// Gives revisions to one server.
pub(in crate::embedded) struct Supply {
    reservations: Arc<dyn Reservations>,
    clock: Arc<dyn Clock>,
    /// Whether the store was away when it was asked last.
    away: AtomicBool,
    /// How many fences were begun.
    begun: AtomicU64,
    fence: AsyncMutex<Fence>,
    pub(in crate::embedded) reserved: Counter,
    pub(in crate::embedded) failed: Counter,
    pub(in crate::embedded) unreserved: Counter,
}

#[derive(Default)]
struct Fence {
    /// The number of the last one that came about.
    done: u64,
    /// When that was begun.
    at: Option<Instant>,
}

impl Supply {
    pub(in crate::embedded) fn new(reservations: Arc<dyn Reservations>, clock: Arc<dyn Clock>) -> Self {
        Self {
            reservations,
            clock,
            away: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            fence: AsyncMutex::default(),
            reserved: Counter::default(),
            failed: Counter::default(),
            unreserved: Counter::default(),
        }
    }

    /// The time that is shared with other servers, if there may be any.
    pub(in crate::embedded) fn shared(&self) -> Option<&SharedTime> {
        self.reservations.shared()
    }

    /// Whether the shared store was away when it was asked last.
    pub(in crate::embedded) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Revisions above all that this server has handed out (which is below `at_least`), and, if there may be other
    /// servers, above all that those have handed out before this was called.
    pub(in crate::embedded) async fn take(&self, at_least: Revision) -> Result<Block, ReserveError> {
        let Some(time) = self.shared() else {
            return self.count(self.reservations.reserve(at_least, BLOCK).await);
        };
        let (began, came) = (Instant::now(), time.now());
        let (lateness, patience) = (time.lateness(), time.patience());
        let reserve =
            self.reservations.reserve(came.map_or(at_least, |came| came.max(at_least)), SHARED_BLOCK);
        let error = match timeout_at(began + patience, reserve).await {
            Ok(Ok(block)) => {
                time.raise(block.last);
                if self.away.swap(false, Ordering::Relaxed) {
                    tracing::info!("revisions are reserved again");
                }
                return self.count(Ok(block));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        self.failed.add(1);
        if !self.away.swap(true, Ordering::Relaxed) {
            let error = error.as_ref().map_or_else(|| "no answer in time".to_owned(), chain);
            tracing::warn!(
                error,
                "revisions cannot be reserved; until they can, the time that servers share decides"
            );
        }
        // One that has heard of nothing yet has nothing but its clock.
        let came = came.unwrap_or_else(|| clock_revision(&*self.clock));
        sleep_until(began + patience).await;
        // By chance, for numbers that two servers take at the same time are to be different ones.
        let ahead = lateness.mul_f64(1.0 + 0.5 * fastrand::f64());
        let ahead = u32::try_from(ahead.as_micros()).unwrap_or(u32::MAX);
        let first = came.checked_add(ahead).ok_or(ReserveError::Exhausted)?;
        let block = Block::above(None, first.max(at_least), SHARED_BLOCK)?;
        time.go_on_from(came);
        self.unreserved.add(1);
        Ok(block)
    }

    fn count(&self, taken: Result<Block, ReserveError>) -> Result<Block, ReserveError> {
        if taken.is_ok() { &self.reserved } else { &self.failed }.add(1);
        taken
    }

    /// Does `fence`, which is to take revisions, unless somebody else has begun and done so after this was called. Those
    /// who wait meanwhile need one more between them.
    pub(in crate::embedded) async fn fenced(
        &self,
        fence: impl Future<Output = Result<(), ReserveError>>,
    ) -> Result<(), ReserveError> {
        let begun_before = self.begun.load(Ordering::SeqCst);
        let mut last = self.fence.lock().await;
        if last.done > begun_before {
            return Ok(());
        }
        if let Some(at) = last.at {
            sleep_until(at + PAUSE).await;
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        last.at = Some(Instant::now());
        fence.await?;
        last.done = number;
        Ok(())
    }
}

/// An error with its causes.
fn chain(error: &ReserveError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
