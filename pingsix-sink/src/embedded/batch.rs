//! The difference between two states of the store as one response.
//!
//! A watch receives the difference between the state that its client has and the current one: the last version of each
//! changed key, and nothing of a key that was created and deleted meanwhile. The exception is a deletion in the last
//! commit when there is no other event of it.
//!
//! Puts have the revisions of their commits. Deletions have the revision of the state that the client has afterwards,
//! because states keep nothing of deleted keys. Events are in the order of their revisions. The last event has the
//! revision of the last commit, as clients of etcd expect, so a client that reports its revision is known to have that
//! commit.
//!
//! States share equal parts, so a difference costs about its own events, however many changes led there.
//!
//! Each state is closed under reference. A difference that exceeds a message is therefore cut only between two commits;
//! the history keeps the states between.
//!
//! Watches of the same keys and the same changes share the encoded bytes.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use super::shared_cache::SharedCache;
use super::store::{Compacted, HeldStates, KeyChange, KeyRange, Position, Store};
use crate::proto::etcdserverpb::WatchResponse;
use crate::proto::mvccpb::Event;

/// The changes in a range, encoded.
#[derive(Debug)]
pub(super) struct Batch {
    /// The encoded field `events` of a watch response; empty without events.
    pub(super) events: Bytes,
    /// The number of events.
    pub(super) event_count: usize,
    /// The number of changes that later changes replaced.
    pub(super) merged: usize,
    /// The revision up to which the batch is complete.
    pub(super) reached: i64,
    /// Whether later changes did not fit.
    pub(super) more: bool,
}

/// The request of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) range: KeyRange,
    /// Whether events have the versions that their client had.
    pub(super) with_previous: bool,
}

/// Cache of batches, by the request and the revisions of the last change that the clients have and of the last change.
pub(super) type BatchCache = SharedCache<(Wanted, (i64, i64)), Result<Arc<Batch>, Compacted>>;

/// Byte limit of the cached batches: one message.
pub(super) const BATCH_CACHE_BYTES: usize = super::LIST_LIMIT;

impl Batch {
    /// The batch for a watch that has seen everything below `next`, if there are changes, and whether this call
    /// encoded it. The client has the states `held`, or those of the history.
    ///
    /// # Errors
    /// [`Compacted`] when the history no longer has a state that the watch needs.
    pub(super) fn shared(
        cache: &BatchCache,
        store: &Store,
        wanted: &Wanted,
        (next, held): (i64, Option<&HeldStates>),
        limit: usize,
    ) -> Result<Option<(Arc<Self>, bool)>, Compacted> {
        let position = store.position(&wanted.range, next, held)?;
        if !position.is_behind() {
            return Ok(None);
        }
        let (batch, made) = cache.get((wanted.clone(), position.span()), || {
            let batch = Self::of(store, &position, wanted, next, limit).map(Arc::new);
            let bytes = batch.as_ref().map_or(0, |batch| batch.events.len());
            (batch, bytes)
        });
        Ok(Some((batch?, made)))
    }

    /// The batch for a watch that has seen everything below `next`. If the current state takes more than `limit`
    /// bytes, without previous versions, the batch ends at the latest revision that fits.
    ///
    /// # Errors
    /// [`Compacted`] when the history no longer has a state that fits.
    fn of(
        store: &Store,
        position: &Position<'_>,
        wanted: &Wanted,
        next: i64,
        limit: usize,
    ) -> Result<Self, Compacted> {
        let now = StateDiff::until(position, &wanted.range, store.header())?;
        if now.bytes() <= limit {
            return Ok(now.encode(wanted, store.header(), false));
        }
        let revisions = position.revisions(next);
        let until = |revision: &i64| StateDiff::until(position, &wanted.range, *revision);
        let fits = |revision: &i64| until(revision).is_ok_and(|diff| diff.bytes() <= limit);
        let fitting = revisions.partition_point(fits).saturating_sub(1);
        let Some(revision) = revisions.get(fitting) else {
            return Ok(now.encode(wanted, store.header(), false));
        };
        let diff = until(revision)?;
        // One commit always fits. Several commits may exceed the limit when the history no longer separates them.
        if diff.bytes() > limit
            && let Some(compacted) = position.compacted(next)
        {
            return Err(compacted);
        }
        Ok(diff.encode(wanted, *revision, fitting + 1 < revisions.len()))
    }
}

/// The difference between the state that a client has and a later one.
struct StateDiff<'p> {
    /// The events in order of their revisions.
    events: Vec<KeyChange<'p>>,
    /// The number of changes.
    changes: u64,
}

impl<'p> StateDiff<'p> {
    fn until(position: &'p Position<'_>, range: &KeyRange, until: i64) -> Result<Self, Compacted> {
        let (mut events, mut changes, mut last_deletion) = (Vec::new(), 0, None);
        let mut last = 0;
        for states in position.until(until) {
            let (seen, after) = states?;
            events.extend(after.since(seen, range));
            changes += after.changes_since(seen);
            if after.revision() > last {
                (last, last_deletion) = (after.revision(), after.deletion_since(after.revision()));
            }
        }
        KeyChange::sort(&mut events);
        // The deletion of a key that the client never had is harmless.
        let reached = events.last().map_or(0, |change| change.revision);
        let is_missing = |deletion: &KeyChange<'_>| reached < last && range.contains(deletion.key);
        events.extend(last_deletion.filter(is_missing));
        Ok(Self { events, changes })
    }

    /// Upper bound of the size in a watch response, without previous versions.
    fn bytes(&self) -> usize {
        self.events.iter().map(KeyChange::event_bytes).sum()
    }

    fn encode(&self, wanted: &Wanted, reached: i64, more: bool) -> Batch {
        let event = |change: &KeyChange<'_>| {
            let previous = change.before.filter(|_| wanted.with_previous);
            Event { prev_kv: previous.map(|record| record.to_proto()), ..change.to_event() }
        };
        let events = self.events.iter().map(event).collect();
        let event_count = self.events.len();
        let events = WatchResponse { events, ..WatchResponse::default() }.encode_to_vec().into();
        let merged = usize::try_from(self.changes).unwrap_or(usize::MAX).saturating_sub(event_count);
        Batch { events, event_count, merged, reached, more }
    }
}

#[cfg(test)]
mod tests;
