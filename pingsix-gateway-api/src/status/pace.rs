//! The pace of writes to one object.

use std::time::Duration;

use tokio::time::Instant;

use crate::wait::doubled;

/// The pace of writes to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// The shortest time between the first write and the second.
    pub interval: Duration,
    /// The bound of the interval, which doubles with every consecutive write. The last change waits no longer than
    /// this. While a thousand routes attach to a Gateway, its status is written a few times.
    pub max_interval: Duration,
    /// The longest delay after a first failure.
    pub backoff: Duration,
    /// The longest delay after any failure.
    pub max_backoff: Duration,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            max_interval: Duration::from_millis(900),
            backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(30),
        }
    }
}

/// The time of the next write of one object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    interval: Duration,
    next: Option<Instant>,
    failures: u32,
}

impl Pace {
    /// The earliest time of the next write; `None` for at once.
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether the next write would start with the shortest interval.
    pub(crate) fn is_at_rest(&self, now: Instant) -> bool {
        self.failures == 0 && self.next.is_none_or(|next| next + self.interval < now)
    }

    pub(crate) fn wrote(&mut self, now: Instant, pacing: &Pacing) {
        // After a rest of one interval, the intervals start again.
        self.interval = if self.is_at_rest(now) || self.interval.is_zero() {
            pacing.interval
        } else {
            (self.interval * 2).min(pacing.max_interval)
        };
        self.failures = 0;
        self.next = Some(now + self.interval);
    }

    /// Records a failure; `asked` is the server's `Retry-After`.
    pub(crate) fn failed(&mut self, now: Instant, asked: Option<Duration>, pacing: &Pacing) {
        self.failures = self.failures.saturating_add(1);
        let doubled = doubled(pacing.backoff, self.failures, pacing.max_backoff);
        // Jitter between half of the delay and all of it separates retries of simultaneous failures.
        let wait = doubled.mul_f64(f64::midpoint(1.0, fastrand::f64()));
        self.next = Some(now + wait.max(asked.unwrap_or_default().min(pacing.max_backoff)));
    }

    /// Whether the last attempt failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Records that no write was necessary.
    pub(crate) const fn settled(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pace: &mut Pace, now: &mut Instant, writes: u32) -> Vec<u128> {
        let mut waits = Vec::new();
        for _ in 0..writes {
            pace.wrote(*now, &Pacing::default());
            let next = pace.next().unwrap();
            waits.push((next - *now).as_millis());
            *now = next;
        }
        waits
    }

    #[test]
    fn intervals_grow_with_successive_writes_and_start_anew_after_a_rest() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        assert_eq!(waits(&mut pace, &mut now, 6), [100, 200, 400, 800, 900, 900]);
        now += Duration::from_millis(901);
        assert_eq!(waits(&mut pace, &mut now, 2), [100, 200]);
    }

    #[test]
    fn waits_after_failures_double_up_to_a_bound_and_a_success_ends_them() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for ceiling in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            pace.failed(now, None, &Pacing::default());
            let wait = pace.next().unwrap() - now;
            let ceiling = Duration::from_millis(ceiling);
            assert!(wait >= ceiling / 2 && wait <= ceiling, "{wait:?} of {ceiling:?}");
        }
        pace.failed(now, Some(Duration::from_hours(1)), &Pacing::default());
        assert_eq!(pace.next().unwrap() - now, Duration::from_secs(30), "the server cannot stop us for ever");
        assert!(pace.has_failed());
        pace.wrote(now, &Pacing::default());
        assert!(!pace.has_failed());
    }

    #[test]
    fn retry_after_is_honoured() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.failed(now, Some(Duration::from_secs(7)), &Pacing::default());
        assert_eq!(pace.next().unwrap() - now, Duration::from_secs(7));
    }
}
