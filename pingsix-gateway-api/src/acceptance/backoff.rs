//! The delays between retries of a quarantine.

use std::time::Duration;

use pingsix_sink::backoff::doubled;
use tokio::time::Instant;

/// A growing delay between retries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    tries: u32,
    due: Option<Instant>,
}

impl Backoff {
    const FIRST_DELAY: Duration = Duration::from_mins(5);
    const MAX_DELAY: Duration = Duration::from_hours(1);

    /// Whether the delay is over. It begins with the first call.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let pause = doubled(Self::FIRST_DELAY, self.tries.saturating_add(1), Self::MAX_DELAY);
        now >= *self.due.get_or_insert_with(|| now + pause)
    }

    /// Counts a failed try.
    pub(super) const fn failed(&mut self) {
        self.tries = self.tries.saturating_add(1);
        self.due = None;
    }

    /// Postpones an unfinished try.
    pub(super) const fn postpone(&mut self) {
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_doubles_with_every_try_until_it_is_an_hour() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        for minutes in [5, 10, 20, 40, 60, 60] {
            assert!(!backoff.is_due(now));
            now += Duration::from_secs(60 * minutes - 1);
            assert!(!backoff.is_due(now));
            now += Duration::from_secs(1);
            assert!(backoff.is_due(now));
            backoff.failed();
        }
        assert!(!backoff.is_due(now));
        backoff.postpone();
        assert!(!backoff.is_due(now + Duration::from_mins(59)), "from then on, and as long as before");
        assert!(backoff.is_due(now + Duration::from_hours(2)));
    }
}
