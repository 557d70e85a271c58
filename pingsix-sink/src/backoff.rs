//! Delays between retries, for sinks and the programs that use them.

use std::time::Duration;

/// The delay after a number of failures in a row: `first` after one, doubled with each further failure, `longest` at most.
pub fn doubled(first: Duration, failures: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(31)).min(longest)
}

/// A random delay between half of this one and all of it, so that programs that failed together do not retry together.
pub fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// The delays after consecutive failures: doubled up to a limit, with jitter.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    limit: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, failures: 0 }
    }

    /// The next delay.
    pub(crate) fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        jittered(doubled(self.first, self.failures, self.limit))
    }

    /// Waits for the next delay. A future that is dropped and created again waits for a longer one.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    /// Starts over after a success.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn delays_double_with_each_failure_up_to_the_longest() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(30));
        let delays =
            [0, 1, 2, 3, 9, 10, u32::MAX].map(|failures| doubled(first, failures, longest).as_millis());
        assert_eq!(delays, [100, 100, 200, 400, 25_600, 30_000, 30_000]);
    }

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
