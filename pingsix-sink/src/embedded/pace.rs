//! Intervals between the responses to a watch.

use std::time::Duration;

use super::store::ScopeSize;

/// The shortest interval between two responses to one watch; changes within the interval become one response.
///
/// PingSIX reads its whole configuration again for every response, so the interval grows with the watched documents:
/// their number and their bytes times the cost of each, between two bounds. A watch without a response within the interval receives a
/// change at once, and so does one whose reader has [confirmed](super::EmbeddedEtcd::confirm) the last response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    per_document: Duration,
    per_mebibyte: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Pace {
    /// No interval: changes become one response only while the previous response is unwritten.
    pub const NONE: Self = Self {
        per_document: Duration::ZERO,
        per_mebibyte: Duration::ZERO,
        shortest: Duration::ZERO,
        longest: Duration::ZERO,
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

    /// The interval of a watch of documents of this size.
    pub(super) fn of(&self, size: ScopeSize) -> Duration {
        let documents = u32::try_from(size.documents).unwrap_or(u32::MAX);
        // Whole KiB, so that a single small document costs nothing.
        let kibibytes = u32::try_from(size.bytes / 1024).unwrap_or(u32::MAX);
        let of_bytes = (self.per_mebibyte / 1024).saturating_mul(kibibytes);
        let interval = self.per_document.saturating_mul(documents).saturating_add(of_bytes);
        interval.max(self.shortest).min(self.longest)
    }
}

impl Default for Pace {
    /// 22 µs for each document and 4 ms for each mebibyte, which is the time of one core of PingSIX to read them; between
    /// 2 ms and 2 s.
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
        assert_eq!(pace.of(size(0, 0)), Duration::from_millis(2));
        assert_eq!(pace.of(size(5_000, 0)), Duration::from_millis(110));
        assert_eq!(pace.of(size(5_000, 10 << 20)).as_millis(), 149);
        assert_eq!(pace.of(size(usize::MAX, usize::MAX)), Duration::from_secs(2));
        assert_eq!(Pace::per_document(Duration::MAX).of(size(2, 1)), Duration::MAX);
        assert_eq!(Pace::NONE.of(size(5_000, 10 << 20)), Duration::ZERO);
    }
}
