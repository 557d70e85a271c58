//! The pace of writes to one object.

use std::time::Duration;

use pingsix_sink::backoff::{doubled, jittered};
use tokio::time::Instant;

/// The number of writes before the ends of their intervals after which [`Pacing::quiet`] doubles.
const WRITES_PER_DOUBLING: u32 = 3;

/// The pace of writes to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pacing {
    /// The time between the first write and the second, while the status goes on changing.
    pub interval: Duration,
    /// The bound of the interval, which doubles with every consecutive write. While a thousand routes attach to a
    /// Gateway, its status is written a few times.
    pub max_interval: Duration,
    /// The time without a change after which a status counts as final and is written before its interval ends. This time
    /// doubles with every third early write, because then the changes come with longer pauses.
    pub quiet: Duration,
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
            quiet: Duration::from_millis(25),
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
    /// Consecutive writes before their intervals ended.
    early: u32,
}

impl Pace {
    /// The earliest time of the next write; `None` for at once.
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// The time of the next write of an object that changes now, unless it changes again.
    pub(crate) fn due(&self, now: Instant, pacing: &Pacing) -> Instant {
        let next = self.next.map_or(now, |next| next.max(now));
        if self.failures > 0 {
            return next;
        }
        next.min(now + doubled(pacing.quiet, self.early / WRITES_PER_DOUBLING + 1, pacing.max_interval))
    }

    /// Whether the next write would start with the shortest interval.
    pub(crate) fn is_at_rest(&self, now: Instant) -> bool {
        self.failures == 0 && self.next.is_none_or(|next| next + self.interval < now)
    }

    pub(crate) fn wrote(&mut self, now: Instant, pacing: &Pacing) {
        // After a rest of one interval, the intervals start again.
        if self.is_at_rest(now) || self.interval.is_zero() {
            (self.interval, self.early) = (pacing.interval, 0);
        } else {
            self.interval = (self.interval * 2).min(pacing.max_interval);
            self.early += u32::from(self.next.is_some_and(|next| now < next));
        }
        self.failures = 0;
        self.next = Some(now + self.interval);
    }

    /// Records a failure; `asked` is the server's `Retry-After`.
    pub(crate) fn failed(&mut self, now: Instant, asked: Option<Duration>, pacing: &Pacing) {
        self.failures = self.failures.saturating_add(1);
        let wait = jittered(doubled(pacing.backoff, self.failures, pacing.max_backoff));
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
    fn the_last_change_of_a_storm_waits_for_no_interval() {
        let (mut pace, pacing, start) = (Pace::default(), Pacing::default(), Instant::now());
        let (mut due, mut writes) = (None::<Instant>, Vec::new());
        let last = Duration::from_secs(8);
        for millisecond in 0..10_000 {
            let elapsed = Duration::from_millis(millisecond);
            let now = start + elapsed;
            // Changes come every 10 ms, with a pause twice a second.
            if elapsed <= last && millisecond % 10 == 0 && millisecond % 500 < 450 {
                due = Some(pace.due(now, &pacing));
            }
            if due.is_some_and(|due| due <= now) {
                due = None;
                pace.wrote(now, &pacing);
                writes.push(elapsed);
            }
        }
        assert!(writes.len() <= 20, "{writes:?}");
        // Six pauses of 60 ms ended in early writes, so a status is final after a longer one.
        let delay = writes.last().unwrap().checked_sub(last).unwrap();
        assert!(delay <= 4 * pacing.quiet, "{writes:?}");
    }

    #[test]
    fn early_writes_need_ever_longer_pauses_until_a_rest() {
        let (mut pace, pacing, start) = (Pace::default(), Pacing::default(), Instant::now());
        pace.wrote(start, &pacing);
        let mut now = start;
        let mut pauses = Vec::new();
        for _ in 0..24 {
            // Each change comes at once after a write.
            let due = pace.due(now, &pacing);
            pauses.push((due - now).as_millis());
            pace.wrote(due, &pacing);
            now = due;
        }
        let expected = [25, 50, 100, 200, 400, 800].into_iter().flat_map(|pause| [pause; 3]).chain([900; 6]);
        assert_eq!(pauses, expected.collect::<Vec<_>>());
        let rested = now + 3 * pacing.max_interval;
        pace.wrote(rested, &pacing);
        assert_eq!(pace.due(rested, &pacing), rested + pacing.quiet);
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
