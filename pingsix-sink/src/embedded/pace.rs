//! Intervals between the responses to a watch.

use std::time::Duration;

/// The shortest interval between two responses to one watch; changes within the interval become one response.
///
/// PingSIX reads its whole configuration again for every response, so the interval grows with the watched documents:
/// their number times the cost of one, between two bounds. A watch without a response within the interval receives a
/// change at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    per_document: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Pace {
    /// No interval: changes become one response only while the previous response is unwritten.
    pub const NONE: Self =
        Self { per_document: Duration::ZERO, shortest: Duration::ZERO, longest: Duration::ZERO };

    /// An interval of `per_document` for each watched document.
    pub const fn per_document(per_document: Duration) -> Self {
        Self { per_document, shortest: Duration::ZERO, longest: Duration::MAX }
    }

    /// The same pace with an interval between `shortest` and `longest`.
    #[must_use]
    pub const fn between(self, shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, ..self }
    }

    /// The interval of a watch of this many documents.
    pub(super) fn of(&self, documents: usize) -> Duration {
        let documents = u32::try_from(documents).unwrap_or(u32::MAX);
        self.per_document.saturating_mul(documents).max(self.shortest).min(self.longest)
    }
}

impl Default for Pace {
    /// 25 µs for each document, which is the time of one core of PingSIX to read it; between 2 ms and 2 s.
    fn default() -> Self {
        Self::per_document(Duration::from_micros(25))
            .between(Duration::from_millis(2), Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_with_the_documents_between_its_bounds() {
        let pace = Pace::default();
        assert_eq!(pace.of(0), Duration::from_millis(2));
        assert_eq!(pace.of(5_000), Duration::from_millis(125));
        assert_eq!(pace.of(usize::MAX), Duration::from_secs(2));
        assert_eq!(Pace::per_document(Duration::MAX).of(2), Duration::MAX);
        assert_eq!(Pace::NONE.of(5_000), Duration::ZERO);
    }
}
