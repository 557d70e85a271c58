//! Source of a server's revisions: the store, or the shared time while the store is unreachable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    BLOCK_LEN, Block, Clock, Reservations, ReserveError, SHARED_BLOCK_LEN, SharedTime, clock_revision,
};
use crate::embedded::stats::Counters;
use crate::revision::Revision;

/// Minimum interval of fences. A client that lists in a loop must neither write to the store in a loop nor make
/// reservations outrun the shared time.
const FENCE_INTERVAL: Duration = Duration::from_millis(50);

/// Allocates revisions of one server.
pub(in crate::embedded) struct RevisionAllocator {
    reservations: Arc<dyn Reservations>,
    clock: Arc<dyn Clock>,
    /// Whether the last request to the store failed.
    unreachable: AtomicBool,
    /// The number of fences begun.
    begun: AtomicU64,
    fence: AsyncMutex<Fence>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Fence {
    /// The number of the last completed fence.
    done: u64,
    /// The time at which that fence began.
    at: Option<Instant>,
}

impl RevisionAllocator {
    pub(in crate::embedded) fn new(
        reservations: Arc<dyn Reservations>,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            reservations,
            clock,
            unreachable: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            fence: AsyncMutex::default(),
            counters,
        }
    }

    /// The time shared with other servers, if the store is shared.
    pub(in crate::embedded) fn shared(&self) -> Option<&SharedTime> {
        self.reservations.shared()
    }

    /// Whether the last request to the shared store failed.
    pub(in crate::embedded) fn is_unreachable(&self) -> bool {
        self.unreachable.load(Ordering::Relaxed)
    }

    /// Revisions above all that this server has issued (which are below `at_least`). With a shared store, they are
    /// also above all that other servers issued before the call.
    pub(in crate::embedded) async fn take(&self, at_least: Revision) -> Result<Block, ReserveError> {
        let Some(time) = self.shared() else {
            return self.count(self.reservations.reserve(at_least, BLOCK_LEN).await);
        };
        let (began, arrived) = (Instant::now(), time.now());
        let (tolerance, timeout) = (time.tolerance(), time.timeout());
        let reserve = self
            .reservations
            .reserve(arrived.map_or(at_least, |arrived| arrived.max(at_least)), SHARED_BLOCK_LEN);
        let error = match timeout_at(began + timeout, reserve).await {
            Ok(Ok(block)) => {
                time.raise(block.last);
                if self.unreachable.swap(false, Ordering::Relaxed) {
                    tracing::info!("revisions are reserved again");
                }
                return self.count(Ok(block));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        self.counters.update(|stats| stats.reservations_failed += 1);
        if !self.unreachable.swap(true, Ordering::Relaxed) {
            let error = error.as_ref().map_or_else(|| "no answer in time".to_owned(), error_chain);
            tracing::warn!(error, "revisions cannot be reserved; using the time that servers share");
        }
        // A server without announcements has only its clock.
        let arrived = arrived.unwrap_or_else(|| clock_revision(&*self.clock));
        sleep_until(began + timeout).await;
        // A random part, so that two servers at the same time get different numbers.
        let ahead = tolerance.mul_f64(1.0 + 0.5 * fastrand::f64());
        let ahead = u32::try_from(ahead.as_micros()).unwrap_or(u32::MAX);
        let first = arrived.checked_add(ahead).ok_or(ReserveError::Exhausted)?;
        let block = Block::above(None, first.max(at_least), SHARED_BLOCK_LEN)?;
        time.continue_from(arrived);
        self.counters.update(|stats| stats.revisions_unreserved += 1);
        Ok(block)
    }

    fn count(&self, taken: Result<Block, ReserveError>) -> Result<Block, ReserveError> {
        self.counters.update(|stats| match taken {
            Ok(_) => stats.reservations += 1,
            Err(_) => stats.reservations_failed += 1,
        });
        taken
    }

    /// Runs `fence`, which takes revisions, unless another caller has begun and completed one after this call began.
    /// Callers that wait meanwhile share one more.
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
            sleep_until(at + FENCE_INTERVAL).await;
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        last.at = Some(Instant::now());
        fence.await?;
        last.done = number;
        Ok(())
    }
}

/// The messages of an error and its causes.
fn error_chain(error: &ReserveError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
