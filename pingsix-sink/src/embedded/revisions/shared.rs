//! The time that servers have in common.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::revision::Revision;

/// How long the store may take. What it has not given by then is given without it, when this is over.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A reading of the time that all servers of the same scopes share: a revision that grows by one in a microsecond.
///
/// Whoever makes a store that is shared [raises](Self::raise) the reading to what it hears of others: to the revisions
/// that they reserve, and to their readings, which they have to tell each other now and then. The sooner it hears, the
/// closer readings are together. The time of day has a part in it where nobody else is there, and only there: a server
/// that raised the reading to a clock ahead of the others' would have to be heard by all of them. See
/// [`revisions`](super).
#[derive(Debug, Default)]
pub struct SharedTime(Mutex<Option<Reading>>);

#[derive(Clone, Copy, Debug)]
struct Reading {
    revision: Revision,
    at: Instant,
}

impl Reading {
    fn now(self) -> Revision {
        let elapsed = u64::try_from(self.at.elapsed().as_micros()).unwrap_or(u64::MAX);
        let now = self.revision.get().saturating_add_unsigned(elapsed);
        Revision::new(now).unwrap_or(self.revision)
    }
}

impl SharedTime {
    /// The reading, now; `None` before it was raised to anything.
    pub fn now(&self) -> Option<Revision> {
        self.0.lock().map(Reading::now)
    }

    /// A server has handed out, or reserved, or read this.
    pub fn raise(&self, seen: Revision) {
        let mut reading = self.0.lock();
        if reading.is_none_or(|reading| reading.now() < seen) {
            *reading = Some(Reading { revision: seen, at: Instant::now() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_by_microseconds_and_never_back() {
        let revision = |number| Revision::new(number).unwrap();
        let time = SharedTime::default();
        assert_eq!(time.now(), None);
        time.raise(revision(1_000));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(time.now(), Some(revision(3_000)));
        time.raise(revision(2_999));
        assert_eq!(time.now(), Some(revision(3_000)));
        time.raise(revision(i64::MAX));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(time.now(), Some(revision(i64::MAX)));
    }
}
