//! The delays after failures.

use std::time::Duration;

use pingsix_sink::backoff::{doubled, jittered};
use tokio::time::Instant;

/// The bounds of delays after failures. Delays double with each failure and have jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffBounds {
    /// The longest delay after the first failure, and the shortest interval between two opened watches.
    pub min: Duration,
    /// The longest delay.
    pub max: Duration,
    /// The time without a failure after which the next failure counts as the first.
    pub reset_after: Duration,
}

impl Default for BackoffBounds {
    /// The values of Kubernetes' own controllers.
    fn default() -> Self {
        Self {
            min: Duration::from_millis(800),
            max: Duration::from_secs(30),
            reset_after: Duration::from_mins(2),
        }
    }
}

/// The delays after consecutive failures.
#[derive(Debug)]
pub(super) struct Backoff {
    bounds: BackoffBounds,
    failures: u32,
    /// The end of the last delay.
    resumed: Option<Instant>,
}

impl Backoff {
    pub(super) const fn new(bounds: BackoffBounds) -> Self {
        Self { bounds, failures: 0, resumed: None }
    }

    /// The delay after this failure. It begins after the delay that the API server asks for, up to the bound.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>) -> Duration {
        let now = Instant::now();
        let healthy = self.resumed.map_or(Duration::ZERO, |resumed| now.saturating_duration_since(resumed));
        if healthy >= self.bounds.reset_after {
            self.failures = 0;
        }
        let asked = retry_after.unwrap_or_default().min(self.bounds.max);
        self.failures = self.failures.saturating_add(1);
        let wait = asked + jittered(doubled(self.bounds.min, self.failures, self.bounds.max));
        self.resumed = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_bound_and_never_pass_it() {
        let mut backoff = Backoff::new(BackoffBounds::default());
        for ceiling in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0] {
            let wait = backoff.failed(None);
            let ceiling = Duration::from_secs_f64(ceiling);
            assert!(wait >= ceiling / 2 && wait <= ceiling, "{wait:?} of {ceiling:?}");
            tokio::time::advance(wait + SECOND).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_are_spread() {
        let waits: std::collections::BTreeSet<Duration> =
            (0..50).map(|_| Backoff::new(BackoffBounds::default()).failed(None)).collect();
        assert!(waits.len() > 40, "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_is_left_alone_for_as_long_as_it_asks_within_bounds() {
        let mut backoff = Backoff::new(BackoffBounds::default());
        let wait = backoff.failed(Some(SECOND * 7));
        assert!(wait >= SECOND * 7 && wait < SECOND * 8, "{wait:?}");
        // A number that makes no sense does not blind us for an hour.
        let wait = backoff.failed(Some(SECOND * 3600));
        assert!(wait >= SECOND * 30 && wait < SECOND * 32, "{wait:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_stretch_without_failures_starts_anew() {
        let mut backoff = Backoff::new(BackoffBounds::default());
        for _ in 0..10 {
            let wait = backoff.failed(None);
            tokio::time::advance(wait).await;
        }
        tokio::time::advance(SECOND * 119).await;
        let wait = backoff.failed(None);
        assert!(wait >= SECOND * 15, "{wait:?}");
        tokio::time::advance(wait + SECOND * 120).await;
        let wait = backoff.failed(None);
        assert!(wait <= Duration::from_millis(800), "{wait:?}");
    }
}
