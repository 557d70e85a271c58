//! The time that servers share.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::revision::Revision;

/// The default bound of the difference between two servers' readings, which is the latency of announcements; see
/// [`SharedTime::with_announcement_latency`].
pub const TOLERANCE: Duration = Duration::from_millis(400);

/// The largest tolerated latency. Lists are then still answered within PingSIX's timeout of five seconds.
pub const MAX_TOLERANCE: Duration = Duration::from_millis(1_600);

/// The time for which late announcements raise the tolerated latency.
const TOLERANCE_LIFETIME: Duration = Duration::from_hours(1);

/// A reading of the time that all servers of the same scopes share: a revision that grows by one in a microsecond.
///
/// The implementation of a shared store [raises](Self::raise) the reading to reservations of other servers and
/// [observes](Self::observe) their announced readings. Servers announce their readings from time to time; the sooner,
/// the closer readings are together. The time of day counts only when no other server is there, by
/// [`continue_from`](Self::continue_from): a server that raises the reading to a fast clock would have to be observed
/// by all others. See [`revisions`](super).
///
/// **The assumption** is a number, the [tolerance](Self::tolerance): readings differ by less. Its initial value is
/// 400 ms. Announcements that arrive later raise the tolerance to their own latency, up to [`MAX_TOLERANCE`], until
/// an hour after the last. The tolerance costs time only while the store is unreachable: a list is then answered
/// after [two and a half times the tolerance](Self::timeout), one second at first and four at most.
#[derive(Debug)]
pub struct SharedTime {
    min_tolerance: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    reading: Option<ClockSample>,
    late: Option<LateAnnouncement>,
}

/// A latency above the assumption.
#[derive(Clone, Copy, Debug)]
struct LateAnnouncement {
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
        Self::with_announcement_latency(TOLERANCE)
    }
}

impl SharedTime {
    /// A time whose announcements arrive within `tolerance`, for a store with a known latency; at most
    /// [`MAX_TOLERANCE`].
    pub fn with_announcement_latency(tolerance: Duration) -> Self {
        Self { min_tolerance: tolerance.min(MAX_TOLERANCE), state: Mutex::default() }
    }

    /// The current reading; `None` before the first.
    pub fn now(&self) -> Option<Revision> {
        self.state.lock().reading.map(ClockSample::now)
    }

    /// Raises the reading to a reservation of a server.
    pub fn raise(&self, seen: Revision) {
        let mut state = self.state.lock();
        let ahead = state.reading.map(|reading| seen.get().saturating_sub(reading.now().get()));
        if ahead.is_none_or(|ahead| ahead > 0) {
            state.reading = Some(ClockSample { revision: seen, at: Instant::now() });
        }
        if let Some(ahead) = ahead.and_then(|ahead| u64::try_from(ahead).ok()) {
            self.record_difference(&mut state, Duration::from_micros(ahead));
        }
    }

    /// Raises the reading to one that another server announced some time ago.
    pub fn observe(&self, announced: Revision) {
        if let Some(behind) = self.now().and_then(|now| u64::try_from(now.get() - announced.get()).ok()) {
            self.record_difference(&mut self.state.lock(), Duration::from_micros(behind));
        }
        self.raise(announced);
    }

    /// Continues from `now`, because no other server is there.
    pub fn continue_from(&self, now: Revision) {
        let mut state = self.state.lock();
        if state.reading.is_none_or(|reading| reading.now() < now) {
            state.reading = Some(ClockSample { revision: now, at: Instant::now() });
        }
    }

    /// The assumed bound of the difference between readings of servers.
    pub fn tolerance(&self) -> Duration {
        let late = self.state.lock().late.filter(|late| late.at.elapsed() < TOLERANCE_LIFETIME);
        late.map_or(self.min_tolerance, |late| late.by)
    }

    /// The timeout of the store. A revision without a reservation is issued only after it.
    pub fn timeout(&self) -> Duration {
        // An unreserved revision lies above its requester's reading by one to one and a half times the tolerance. All
        // other readings must have passed it when it is issued.
        self.tolerance().mul_f64(2.5)
    }

    /// Records the difference between two readings.
    fn record_difference(&self, state: &mut State, apart: Duration) {
        let apart = apart.min(MAX_TOLERANCE);
        let known = state.late.filter(|late| late.at.elapsed() < TOLERANCE_LIFETIME);
        if apart <= self.min_tolerance || known.is_some_and(|known| known.by > apart) {
            return;
        }
        if known.is_none() {
            tracing::warn!(late = ?apart, assumed = ?self.min_tolerance, "announcements of other servers are late; lists without the store wait longer for a while");
        }
        state.late = Some(LateAnnouncement { by: apart, at: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reading_advances_by_microseconds_and_never_decreases() {
        let revision = |number| Revision::new(number).unwrap();
        let time = SharedTime::default();
        assert_eq!(time.now(), None);
        time.raise(revision(1_000));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(time.now(), Some(revision(3_000)));
        time.continue_from(revision(2_999));
        time.raise(revision(2_999));
        assert_eq!(time.now(), Some(revision(3_000)));
        time.raise(revision(i64::MAX));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(time.now(), Some(revision(i64::MAX)));
    }

    #[tokio::test(start_paused = true)]
    async fn late_announcements_raise_the_tolerance_for_a_while() {
        let revision = |millis: i64| Revision::new(1 + millis * 1_000).unwrap();
        let time = SharedTime::default();
        assert_eq!((time.tolerance(), time.timeout()), (TOLERANCE, Duration::from_secs(1)));
        // The first announcement is not late by definition.
        time.observe(revision(100_000));
        tokio::time::advance(Duration::from_millis(300)).await;
        time.observe(revision(100_000));
        time.raise(revision(100_700));
        assert_eq!(time.tolerance(), TOLERANCE);
        // Both directions are late: other servers ahead and other servers behind. An announcement in time changes
        // nothing.
        time.raise(revision(101_200));
        assert_eq!(time.tolerance(), Duration::from_millis(500));
        tokio::time::advance(Duration::from_millis(900)).await;
        time.observe(revision(101_200));
        time.observe(revision(102_100));
        assert_eq!(
            (time.tolerance(), time.timeout()),
            (Duration::from_millis(900), Duration::from_millis(2_250))
        );
        // The tolerance is bounded, because PingSIX's timeout is.
        time.observe(revision(900_000));
        assert_eq!((time.tolerance(), time.timeout()), (MAX_TOLERANCE, Duration::from_secs(4)));
        tokio::time::advance(TOLERANCE_LIFETIME).await;
        assert_eq!(time.tolerance(), TOLERANCE);
        // A clock is no announcement.
        time.continue_from(revision(90_000_000));
        assert_eq!((time.tolerance(), time.now()), (TOLERANCE, Some(revision(90_000_000))));
        let slow = SharedTime::with_announcement_latency(Duration::from_hours(1));
        assert_eq!(slow.tolerance(), MAX_TOLERANCE);
    }
}
