//! The fence between programs with leader election.
//!
//! Leaders number their terms, each higher than those before. The highest term that has written is under
//! `<scope>/.pingsix_sink_fence`, which PingSIX does not read. A program takes the fence before any other write of
//! its term, in a transaction that also writes the guard. Every transaction compares the guard. So a late transaction
//! of an earlier term fails, and its program then reads a higher term than its own and stops writing
//! ([`EtcdError::Fenced`](super::EtcdError::Fenced)).

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// The key, inside a scope, with the highest term that has written.
pub(super) const FENCE: &str = ".pingsix_sink_fence";

/// The term of this program; zero is none.
#[derive(Debug, Default)]
pub(super) struct Term(AtomicU64);

impl Term {
    /// Raises the term; terms never decrease.
    pub(super) fn raise(&self, term: u64) {
        self.0.fetch_max(term, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|term| *term > 0)
    }
}

/// The term of a value; a value that is no number is lower than every term.
pub(super) fn term_of(value: &[u8]) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

pub(super) fn value(term: u64) -> Bytes {
    Bytes::from(term.to_string())
}
