//! Which of several programs that take turns may write a scope.
//!
//! Programs of which one leads at a time number their terms, each higher than those before. The highest term that has written
//! is under `<scope>/.pingsix_sink_fence`, which PingSIX does not read. A program takes the fence, in a transaction that also
//! writes the guard, before anything else of its term; every transaction compares the guard. So a transaction of an earlier
//! term that arrives later fails, and its program then reads a higher term than its own and writes nothing more
//! ([`EtcdError::Fenced`](super::EtcdError::Fenced)).

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// The key, inside a scope, with the highest term that has written.
pub(super) const FENCE: &str = ".pingsix_sink_fence";

/// The term of this program; none as long as it is zero.
#[derive(Debug, Default)]
pub(super) struct Term(AtomicU64);

impl Term {
    /// A term never gets lower.
    pub(super) fn raise(&self, term: u64) {
        self.0.fetch_max(term, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|term| *term > 0)
    }
}

/// The fence of a scope; not there, as long as `modified` is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) term: u64,
    pub(super) modified: i64,
}

impl Fence {
    /// Reads a value; what is no number is lower than every term.
    pub(super) fn read(value: &[u8], modified: i64) -> Self {
        let term = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        Self { term: term.unwrap_or_default(), modified }
    }
}

pub(super) fn value(term: u64) -> Bytes {
    Bytes::from(term.to_string())
}
