//! Counters of the server.

use parking_lot::Mutex;

/// A snapshot of the counters of a server.
///
/// Gauges: `connections`, `streams`, `watches`, `answer_bytes_unread`, `store_away`, `history_commits`,
/// `history_bytes`, `revision`, `compacted`. All others only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Open connections.
    pub connections: u64,
    /// Connections closed on arrival at the limit, because their client had the most.
    pub connections_refused: u64,
    /// Connections closed in favour of a client with fewer connections, watch streams or watches.
    pub connections_displaced: u64,
    /// Watches and watch streams refused at the limit, because their client had the most.
    pub watches_refused: u64,
    /// Open watch streams.
    pub streams: u64,
    /// Open watches; a stream has several.
    pub watches: u64,
    /// Answered range requests.
    pub lists: u64,
    /// Bytes of those responses.
    pub list_bytes: u64,
    /// Distinct bytes of responses to lists, transactions and watches that some client has not read.
    pub answer_bytes_unread: u64,
    /// Connections closed to keep those bytes within [their limit](super::Builder::unread_limit): those of the
    /// clients that had left a response unread for the longest time.
    pub connections_evicted: u64,
    /// Encodings of lists; clients with the same list share one.
    pub lists_encoded: u64,
    /// Range and watch requests refused because the first publication was not complete, or the prefix is unknown.
    pub refused: u64,
    /// Requests refused for missing authentication or for another client's keys.
    pub denied: u64,
    /// Watch responses with events.
    pub watch_responses: u64,
    /// Events in those responses.
    pub watch_events: u64,
    /// Bytes of those responses.
    pub watch_bytes: u64,
    /// Changes that were not sent because a later change of the same key replaced them.
    pub changes_merged: u64,
    /// Encodings of events; watches with the same changes share one.
    pub batches: u64,
    /// Watches cancelled because their next changes are compacted.
    pub watches_compacted: u64,
    /// Watches cancelled because their client has listed on another server of the same scopes, or on this one before
    /// a restart.
    pub watches_from_elsewhere: u64,
    /// Watch streams and large responses that a client left unread for too long; its connection was closed.
    pub streams_stalled: u64,
    /// Connections closed because the client's certificate had expired, its CA was removed, or it names another owner
    /// of a prefix.
    pub connections_lapsed: u64,
    /// TLS handshakes that failed, timed out, or were aborted at the limit.
    pub handshakes_failed: u64,
    /// Changes of the TLS files that took effect.
    pub tls_rotations: u64,
    /// Changes of the TLS files that could not be used.
    pub tls_rotations_refused: u64,
    /// Publications with changes.
    pub publications: u64,
    /// Reserved blocks of revisions.
    pub reservations: u64,
    /// Reservations that failed or timed out.
    pub reservations_failed: u64,
    /// Blocks of revisions that the shared time supplied while the shared store was unreachable.
    pub revisions_unreserved: u64,
    /// Whether the last request to the shared store failed.
    pub store_away: bool,
    /// The highest issued revision.
    pub revision: i64,
    /// The oldest revision since which the history of every scope is complete. A scope with a longer history can be
    /// watched from earlier on.
    pub compacted: i64,
    /// Commits in the history of the scope with the most.
    pub history_commits: u64,
    /// Bytes of the histories of all scopes, besides the current state.
    pub history_bytes: u64,
}

/// The counters of a running server. [`Replica::stats`](super::replica::Replica::stats) adds the gauges.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Stats>);

impl Counters {
    pub(super) fn update(&self, update: impl FnOnce(&mut Stats)) {
        update(&mut self.0.lock());
    }

    pub(super) fn get(&self) -> Stats {
        *self.0.lock()
    }
}
