//! What the server counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a server, as they were when they were read.
///
/// Gauges: `connections`, `streams`, `watches`, `answer_bytes_unread`, `store_away`, `history_commits`, `history_bytes`, `revision`, `compacted`.
/// All others only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections that are open.
    pub connections: u64,
    /// Connections closed at once because there were too many, and their client had most of them.
    pub connections_refused: u64,
    /// Connections closed in favour of a client with fewer connections, watch streams or watches.
    pub connections_displaced: u64,
    /// Watches and watch streams refused because there were too many, and their client had most of them.
    pub watches_refused: u64,
    /// Watch streams that are open.
    pub streams: u64,
    /// Watches that are open; a stream carries several.
    pub watches: u64,
    /// Range requests answered.
    pub lists: u64,
    /// Bytes of those answers.
    pub list_bytes: u64,
    /// Distinct bytes of answers to lists and transactions, and of responses of watches, that were made and not yet written
    /// to all of their clients.
    pub answer_bytes_unread: u64,
    /// Connections closed to keep those bytes within [their bound](super::Builder::unread_limit): those of the clients that
    /// had left something unread for the longest time.
    pub connections_evicted: u64,
    /// How often a list was encoded; clients that list the same share it.
    pub lists_encoded: u64,
    /// Range and watch requests refused because the first publication was not complete, or the prefix is unknown.
    pub refused: u64,
    /// Requests refused to clients that did not prove who they are, or wanted what is not theirs.
    pub denied: u64,
    /// Watch responses that carried events.
    pub watch_responses: u64,
    /// Events in those responses.
    pub watch_events: u64,
    /// Bytes of those responses.
    pub watch_bytes: u64,
    /// Changes that a watch was not told, because a later change of the same key made them void.
    pub changes_merged: u64,
    /// How often the events of a response were encoded; watches that are told the same share them.
    pub batches: u64,
    /// Watches cancelled because the changes they still wanted are no longer kept.
    pub watches_compacted: u64,
    /// Watches cancelled because their client has listed on another server of the same scopes, or on this one before a
    /// restart.
    pub watches_from_elsewhere: u64,
    /// Watch streams and large answers that a client left unread for too long; its connection was closed.
    pub streams_stalled: u64,
    /// Connections closed because the certificate of their client had expired, its authority is none any more, or a prefix
    /// has another owner than it names.
    pub connections_lapsed: u64,
    /// TLS handshakes that failed, took too long, or were ended because there were too many.
    pub handshakes_failed: u64,
    /// Changes of the TLS files that new connections got.
    pub tls_rotations: u64,
    /// Changes of the TLS files that could not be used.
    pub tls_rotations_refused: u64,
    /// Publications that changed something.
    pub publications: u64,
    /// Blocks of revisions that were reserved.
    pub reservations: u64,
    /// Reservations that failed, or took too long.
    pub reservations_failed: u64,
    /// Blocks of revisions that were taken by the shared time, for the shared store was away.
    pub revisions_unreserved: u64,
    /// Whether the shared store was away when it was asked last.
    pub store_away: bool,
    /// The highest revision handed out.
    pub revision: i64,
    /// The oldest revision from which on every change of every scope is kept. A scope that keeps more can be read and watched
    /// from earlier on.
    pub compacted: i64,
    /// Commits that are kept of the scope of which most are.
    pub history_commits: u64,
    /// Bytes that the commits of all scopes keep in memory, beside what is there now.
    pub history_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections_refused: Counter,
    pub(super) watches_refused: Counter,
    pub(super) lists: Counter,
    pub(super) list_bytes: Counter,
    pub(super) lists_encoded: Counter,
    pub(super) refused: Counter,
    pub(super) denied: Counter,
    pub(super) watch_responses: Counter,
    pub(super) watch_events: Counter,
    pub(super) watch_bytes: Counter,
    pub(super) changes_merged: Counter,
    pub(super) batches: Counter,
    pub(super) watches_compacted: Counter,
    pub(super) watches_from_elsewhere: Counter,
    pub(super) streams_stalled: Counter,
    pub(super) connections_lapsed: Counter,
    pub(super) handshakes_failed: Counter,
    pub(super) tls_rotations: Counter,
    pub(super) tls_rotations_refused: Counter,
    pub(super) publications: Counter,
}

/// A number that grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many of something there are; each holds a [`Present`] while it exists.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauge(std::sync::Arc<AtomicU64>);

impl Gauge {
    /// Enters unless that makes more than `limit`.
    pub(super) fn enter_below(&self, limit: usize) -> Option<Present> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let present = Present(self.clone());
        (before < limit as u64).then_some(present)
    }
}

/// Counted in a [`Gauge`] until dropped.
#[derive(Debug)]
pub(super) struct Present(Gauge);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
