//! Back-off between retries.

use std::time::Duration;

/// Exponential backoff with a limit. Each delay is random between half and all of its ceiling, so that programs that
/// failed together do not retry together.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    limit: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, next: first }
    }

    /// The next delay.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.limit);
        delay
    }

    /// Waits for the next delay. A future that is dropped and created again waits for a longer one.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    /// Starts over after a success.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_the_limit_and_start_over() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(5));
        for longest in [1, 2, 4, 5, 5].map(seconds) {
            let start = Instant::now();
            backoff.pause().await;
            let pause = start.elapsed();
            // Timers have a resolution of a millisecond.
            assert!(
                longest / 2 <= pause && pause <= longest + Duration::from_millis(1),
                "{pause:?} of {longest:?}"
            );
        }
        backoff.reset();
        let start = Instant::now();
        backoff.pause().await;
        assert!(start.elapsed() <= seconds(1) + Duration::from_millis(1));
    }
}
