//! Intervals between the responses to a watch.

use std::time::Duration;

use tokio::time::Instant;

use super::store::ScopeSize;

/// The shortest interval between two responses to one watch; changes within the interval become one response.
///
/// PingSIX reads its whole configuration again for every response, so the interval grows with the watched documents:
/// their number and their bytes times the cost of each, between two bounds. A watch without a response within the interval receives a
/// change at once. So does one whose reader has [confirmed](super::EmbeddedEtcd::confirm) the last response, as long as its
/// responses are not ahead of the pace by more than the burst. Time without changes reduces the lead. The
/// [CPU limit](super::EmbeddedEtcd::limit_cpu) of a scope makes its intervals longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    per_document: Duration,
    per_mebibyte: Duration,
    shortest: Duration,
    longest: Duration,
    burst: Duration,
}

impl Pace {
    /// No interval: changes become one response only while the previous response is unwritten.
    pub const NONE: Self = Self {
        per_document: Duration::ZERO,
        per_mebibyte: Duration::ZERO,
        shortest: Duration::ZERO,
        longest: Duration::ZERO,
        burst: Duration::from_secs(2),
    };

    /// An interval of `per_document` for each watched document.
    pub const fn per_document(per_document: Duration) -> Self {
        Self { per_document, longest: Duration::MAX, ..Self::NONE }
    }

    /// The same pace with an interval that grows by `per_mebibyte` for each mebibyte of the watched documents.
    #[must_use]
    pub const fn per_mebibyte(self, per_mebibyte: Duration) -> Self {
        Self { per_mebibyte, ..self }
    }

    /// The same pace with an interval between `shortest` and `longest`.
    #[must_use]
    pub const fn between(self, shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, ..self }
    }

    /// The same pace with this burst. With zero, confirmations have no effect. An interval that is longer than the burst
    /// becomes shorter by the burst at most.
    #[must_use]
    pub const fn burst(self, burst: Duration) -> Self {
        Self { burst, ..self }
    }

    /// The interval of a watch of documents of this size whose reader may spend `share` percent of one core on responses.
    pub(super) fn of(&self, size: ScopeSize, share: u8) -> Duration {
        let documents = u32::try_from(size.documents).unwrap_or(u32::MAX);
        // Whole KiB, so that a single small document costs nothing.
        let kibibytes = u32::try_from(size.bytes / 1024).unwrap_or(u32::MAX);
        let of_bytes = (self.per_mebibyte / 1024).saturating_mul(kibibytes);
        let interval = self.per_document.saturating_mul(documents).saturating_add(of_bytes);
        let interval =
            if share < 100 { interval.saturating_mul(100) / u32::from(share.max(1)) } else { interval };
        interval.max(self.shortest).min(self.longest)
    }

    /// The rest after a response with everything up to the revision `sent`. `before` is the previous rest of the watch, and
    /// `interval` is the interval at its present size.
    pub(super) fn rest(
        &self,
        before: Option<Rest>,
        now: Instant,
        sent: i64,
        interval: Duration,
    ) -> Option<Rest> {
        let at_pace = before.map_or(now, |rest| rest.at_pace.max(now)).checked_add(interval)?;
        let earliest = at_pace.checked_sub(self.burst).unwrap_or(now);
        Some(Rest { sent, until: now + interval, earliest, at_pace })
    }
}

/// A rest of a watch after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// The revision of the response.
    sent: i64,
    /// The end without a confirmation.
    until: Instant,
    /// The end after a confirmation.
    earliest: Instant,
    /// The end if the responses that are ahead of the pace had been an interval apart.
    at_pace: Instant,
}

impl Rest {
    /// The end of the rest, after the confirmation of a revision.
    pub(super) fn end(&self, confirmed: i64) -> Instant {
        if self.sent > confirmed { self.until } else { self.earliest }
    }
}

impl Default for Pace {
    /// 22 µs for each document and 4 ms for each mebibyte, which is about the longest time in which one core of PingSIX reads
    /// them, so that changes without a pause do not fall behind; between 2 ms and 2 s, with a burst of 2 s.
    fn default() -> Self {
        Self::per_document(Duration::from_micros(22))
            .per_mebibyte(Duration::from_millis(4))
            .between(Duration::from_millis(2), Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_with_the_documents_and_their_bytes_between_its_bounds() {
        let size = |documents, bytes| ScopeSize { documents, bytes };
        let pace = Pace::default();
        assert_eq!(pace.of(size(0, 0), 100), Duration::from_millis(2));
        assert_eq!(pace.of(size(5_000, 0), 100), Duration::from_millis(110));
        assert_eq!(pace.of(size(5_000, 10 << 20), 100).as_millis(), 149);
        assert_eq!(pace.of(size(5_000, 10 << 20), 50).as_millis(), 299);
        assert_eq!(pace.of(size(20_000, 0), 10), Duration::from_secs(2), "the longest interval");
        assert_eq!(pace.of(size(usize::MAX, usize::MAX), 100), Duration::from_secs(2));
        assert_eq!(Pace::per_document(Duration::MAX).of(size(2, 1), 100), Duration::MAX);
        assert_eq!(Pace::NONE.of(size(5_000, 10 << 20), 100), Duration::ZERO);
    }

    #[test]
    fn confirmed_responses_are_ahead_of_the_pace_by_the_burst_at_most() {
        const INTERVAL: Duration = Duration::from_millis(100);
        /// The time until a confirmation.
        const APPLIED: Duration = Duration::from_millis(40);
        let pace = Pace::default().burst(Duration::from_millis(500));
        let start = Instant::now();
        let send = |before, now| pace.rest(before, now, 1, INTERVAL).unwrap();
        // The times of responses, each of which is confirmed.
        let (mut rest, mut now, mut responses) = (send(None, start), start, vec![start]);
        for _ in 0..20 {
            now = rest.end(1).max(now + APPLIED);
            rest = send(Some(rest), now);
            responses.push(now);
        }
        for (count, sent) in responses.iter().enumerate() {
            let at_pace = start + INTERVAL * u32::try_from(count).unwrap();
            assert!(at_pace.saturating_duration_since(*sent) <= pace.burst, "response {count}");
        }
        let gaps: Vec<Duration> = responses.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!((gaps[0], gaps[19]), (APPLIED, INTERVAL));
        // Without a confirmation, a watch that is ahead waits for an interval. After a rest, it has its burst again.
        assert_eq!(rest.end(0), now + INTERVAL);
        let later = now + Duration::from_secs(1);
        assert!(send(Some(rest), later).end(1) <= later);
    }
}
