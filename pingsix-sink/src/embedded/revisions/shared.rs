//! The time that servers have in common.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::revision::Revision;

/// How far the readings of two servers may be apart, unless a time is [made](SharedTime::with_news_within) for another
/// distance: how late news of others may be.
pub const LATENESS: Duration = Duration::from_millis(400);

/// The most that is made allowance for, so that lists are answered within the five seconds that PingSIX has for them.
pub const LONGEST_LATENESS: Duration = Duration::from_millis(1_600);

/// For how long news that were late are a reason to reckon with more of them.
const MEMORY: Duration = Duration::from_hours(1);

/// A reading of the time that all servers of the same scopes share: a revision that grows by one in a microsecond.
///
/// Whoever makes a store that is shared has the reading [raised](Self::raise) to what others reserve, and lets it
/// [hear](Self::hear) their readings, which they have to tell each other now and then. The sooner it hears, the
/// closer readings are together. The time of day has a part in it where nobody else is there, and only
/// [there](Self::go_on_from): a server that raised the reading to a clock ahead of the others' would have to be heard by all
/// of them. See [`revisions`](super).
///
/// **What is assumed of news** is a number, the [lateness](Self::lateness): readings are less than that apart. It is 400 ms
/// to begin with. News that come later than that are noticed when they come: from then on allowance is made for as much,
/// up to [`LONGEST_LATENESS`] and for an hour after the last. Allowance costs time, and only while the store is away: a
/// list is then answered [two and a half times as late](Self::patience), after one second at first and after four at most.
#[derive(Debug)]
pub struct SharedTime {
    least: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    reading: Option<ClockSample>,
    late: Option<Late>,
}

/// News that were later than was assumed.
#[derive(Clone, Copy, Debug)]
struct Late {
    by: Duration,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct ClockSample {
    revision: Revision,
    at: Instant,
}

impl ClockSample {
    fn now(self) -> Revision {
        let elapsed = u64::try_from(self.at.elapsed().as_micros()).unwrap_or(u64::MAX);
        let now = self.revision.get().saturating_add_unsigned(elapsed);
        Revision::new(now).unwrap_or(self.revision)
    }
}

impl Default for SharedTime {
    fn default() -> Self {
        Self::with_news_within(LATENESS)
    }
}

impl SharedTime {
    /// A time of which others hear within this long, for a store that knows how long its news take; not more than
    /// [`LONGEST_LATENESS`].
    pub fn with_news_within(lateness: Duration) -> Self {
        Self { least: lateness.min(LONGEST_LATENESS), state: Mutex::default() }
    }

    /// The reading, now; `None` before it was raised to anything.
    pub fn now(&self) -> Option<Revision> {
        self.state.lock().reading.map(ClockSample::now)
    }

    /// A server has reserved this.
    pub fn raise(&self, seen: Revision) {
        let mut state = self.state.lock();
        let ahead = state.reading.map(|reading| seen.get().saturating_sub(reading.now().get()));
        if ahead.is_none_or(|ahead| ahead > 0) {
            state.reading = Some(ClockSample { revision: seen, at: Instant::now() });
        }
        if let Some(ahead) = ahead.and_then(|ahead| u64::try_from(ahead).ok()) {
            self.judge(&mut state, Duration::from_micros(ahead));
        }
    }

    /// A server has read this when it told us, which takes a while.
    pub fn hear(&self, told: Revision) {
        if let Some(behind) = self.now().and_then(|now| u64::try_from(now.get() - told.get()).ok()) {
            self.judge(&mut self.state.lock(), Duration::from_micros(behind));
        }
        self.raise(told);
    }

    /// Nobody else is there, and this is as good as any other reading.
    pub fn go_on_from(&self, now: Revision) {
        let mut state = self.state.lock();
        if state.reading.is_none_or(|reading| reading.now() < now) {
            state.reading = Some(ClockSample { revision: now, at: Instant::now() });
        }
    }

    /// By less than this, as is assumed, readings of servers are apart.
    pub fn lateness(&self) -> Duration {
        let late = self.state.lock().late.filter(|late| late.at.elapsed() < MEMORY);
        late.map_or(self.least, |late| late.by)
    }

    /// How long the store may take. What it has not given by then is given without it, when this is over.
    pub fn patience(&self) -> Duration {
        // A revision that is not reserved lies above the reading of who asked for it by the lateness and up to half of it,
        // and all others have to have passed it by then.
        self.lateness().mul_f64(2.5)
    }

    /// Takes note of how far apart two readings were.
    fn judge(&self, state: &mut State, apart: Duration) {
        let apart = apart.min(LONGEST_LATENESS);
        let known = state.late.filter(|late| late.at.elapsed() < MEMORY);
        if apart <= self.least || known.is_some_and(|known| known.by > apart) {
            return;
        }
        if known.is_none() {
            tracing::warn!(late = ?apart, assumed = ?self.least, "news of other servers come late; without the store, lists are answered later for a while");
        }
        state.late = Some(Late { by: apart, at: Instant::now() });
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
        time.go_on_from(revision(2_999));
        time.raise(revision(2_999));
        assert_eq!(time.now(), Some(revision(3_000)));
        time.raise(revision(i64::MAX));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(time.now(), Some(revision(i64::MAX)));
    }

    #[tokio::test(start_paused = true)]
    async fn news_that_come_late_are_reckoned_with_for_a_while() {
        let revision = |millis: i64| Revision::new(1 + millis * 1_000).unwrap();
        let time = SharedTime::default();
        assert_eq!((time.lateness(), time.patience()), (LATENESS, Duration::from_secs(1)));
        // The first are no sooner or later than others.
        time.hear(revision(100_000));
        tokio::time::advance(Duration::from_millis(300)).await;
        time.hear(revision(100_000));
        time.raise(revision(100_700));
        assert_eq!(time.lateness(), LATENESS);
        // They are late whether the others are ahead of us or behind; what is as it should be changes nothing.
        time.raise(revision(101_200));
        assert_eq!(time.lateness(), Duration::from_millis(500));
        tokio::time::advance(Duration::from_millis(900)).await;
        time.hear(revision(101_200));
        time.hear(revision(102_100));
        assert_eq!(
            (time.lateness(), time.patience()),
            (Duration::from_millis(900), Duration::from_millis(2_250))
        );
        // However late, PingSIX waits for no longer than it does.
        time.hear(revision(900_000));
        assert_eq!((time.lateness(), time.patience()), (LONGEST_LATENESS, Duration::from_secs(4)));
        tokio::time::advance(MEMORY).await;
        assert_eq!(time.lateness(), LATENESS);
        // A clock is no news.
        time.go_on_from(revision(90_000_000));
        assert_eq!((time.lateness(), time.now()), (LATENESS, Some(revision(90_000_000))));
        let slow = SharedTime::with_news_within(Duration::from_hours(1));
        assert_eq!(slow.lateness(), LONGEST_LATENESS);
    }
}
