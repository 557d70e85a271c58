//! The diff of two states of the store as one response.
//!
//! A watch that lags receives the current state: the last change of each key, and nothing of a key that was created
//! and deleted meanwhile. The exception is a deletion in the last commit when there is no other event.
//!
//! Changes keep the order of their revisions. The last event has the revision of the last commit, as clients of etcd
//! expect, so a client that reports its revision is known to have that commit.
//!
//! The store indexes the last version of each key by its change. A diff therefore costs its own events, however many
//! changes led there and however old the watch is.
//!
//! Each state is closed under reference. A diff that exceeds a message is therefore cut only between two commits; the
//! history keeps the states between.
//!
//! Watches of the same keys and the same changes share the encoded bytes.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;

use super::store::{Compacted, KeyRange, LastVersion, Store};
use crate::proto::etcdserverpb::WatchResponse;
use crate::proto::mvccpb::Event;
use crate::proto::mvccpb::event::EventType;

/// The changes in a range, encoded.
#[derive(Debug)]
pub(super) struct Batch {
    /// The encoded field `events` of a watch response; empty without events.
    pub(super) events: Bytes,
    /// The number of events.
    pub(super) event_count: usize,
    /// The number of changes that a later change of the same key replaced, among those in the history.
    pub(super) merged: usize,
    /// The revision up to which the batch is complete.
    pub(super) reached: i64,
    /// Whether later changes did not fit.
    pub(super) more: bool,
}

impl Batch {
    /// The batch for a watch of `range` that has seen everything below `next`. If the current state takes more than
    /// `limit` bytes, the batch ends at the latest revision that fits.
    ///
    /// # Errors
    /// [`Compacted`] when the history no longer has the changes.
    pub(super) fn of(store: &Store, range: &KeyRange, next: i64, limit: usize) -> Result<Self, Compacted> {
        let now = StoreDiff::between(store, range, next, store.header())?;
        if now.bytes() <= limit {
            return Ok(now.encode(store.header(), false));
        }
        let revisions = store.revisions(range, next);
        let until = |revision: &i64| StoreDiff::between(store, range, next, *revision);
        let fits = |revision: &i64| until(revision).is_ok_and(|diff| diff.bytes() <= limit);
        let fitting = revisions.partition_point(fits).saturating_sub(1);
        let Some(revision) = revisions.get(fitting) else { return Ok(now.encode(store.header(), false)) };
        let diff = until(revision)?;
        // One commit always fits. Several commits may exceed the limit when the history no longer separates them.
        if diff.bytes() > limit && store.unseen(range, next, 0).is_err() {
            return Err(Compacted(store.floor()));
        }
        Ok(diff.encode(*revision, fitting + 1 < revisions.len()))
    }
}

/// The diff from one state to a later one.
struct StoreDiff<'s> {
    /// The events in order of their revisions.
    last: Vec<LastVersion<'s>>,
    /// The number of changes.
    changes: usize,
}

impl<'s> StoreDiff<'s> {
    /// The diff from the state below `next` to the state at `until`.
    fn between(store: &'s Store, range: &KeyRange, next: i64, until: i64) -> Result<Self, Compacted> {
        let mut last = Vec::new();
        let mut changes = 0;
        for (before, after) in store.between(range, next, until)? {
            let since = after.since(next, range);
            changes += before.map_or(since.len(), |before| {
                usize::try_from(after.changes() - before.changes()).unwrap_or(usize::MAX)
            });
            let client_had = |key: &[u8]| before.is_none_or(|before| before.record(key).is_some());
            last.extend(since.into_iter().map(|last| match last {
                LastVersion::Live(_) => (last, true),
                // The deletion of a key that the client never had is harmless.
                LastVersion::Deletion(deletion) => (last, client_had(&deletion.key)),
            }));
        }
        // A commit belongs to one scope, so revisions alone order the changes of several scopes.
        last.sort_by_key(|(last, _)| last.revision());
        let last_commit = last.last().map(|(last_commit, _)| *last_commit);
        last.retain(|(_, is_sent)| *is_sent);
        let mut last: Vec<_> = last.into_iter().map(|(last, _)| last).collect();
        let reached = last.last().map(LastVersion::revision);
        last.extend(last_commit.filter(|last_commit| reached != Some(last_commit.revision())));
        Ok(Self { last, changes })
    }

    /// Upper bound of the size in a watch response.
    fn bytes(&self) -> usize {
        let bytes = |last: &LastVersion<'_>| match last {
            LastVersion::Live(record) => record.event_bytes(),
            LastVersion::Deletion(deletion) => deletion.event_bytes(),
        };
        self.last.iter().map(bytes).sum()
    }

    fn encode(&self, reached: i64, more: bool) -> Batch {
        let event = |last: &LastVersion<'_>| {
            let (kind, kv) = match last {
                LastVersion::Live(record) => (EventType::Put, record.to_proto()),
                LastVersion::Deletion(deletion) => (EventType::Delete, deletion.to_proto()),
            };
            Event { r#type: kind.into(), kv: Some(kv), prev_kv: None }
        };
        let events = self.last.iter().map(event).collect();
        let event_count = self.last.len();
        let events = WatchResponse { events, ..WatchResponse::default() }.encode_to_vec().into();
        Batch { events, event_count, merged: self.changes.saturating_sub(event_count), reached, more }
    }
}

/// Cache of recent batches, for watches with the same changes.
#[derive(Debug, Default)]
pub(super) struct BatchCache {
    recent: Mutex<VecDeque<CachedBatch>>,
}

/// A batch that its first user encodes.
#[derive(Clone, Debug)]
struct CachedBatch {
    range: KeyRange,
    /// The revisions of the first and the last change.
    span: (i64, i64),
    batch: Arc<OnceLock<Result<Arc<Batch>, Compacted>>>,
}

impl BatchCache {
    /// Limit of cached batches. Watches with the same changes ask within moments of one another.
    const MAX_ENTRIES: usize = 16;

    /// Byte limit of cached batches besides the newest: one message.
    const MAX_BYTES: usize = super::LIST_LIMIT;

    /// The batch for a watch of `range` that has seen everything below `next`, if there are changes, and whether this
    /// call encoded it.
    pub(super) fn get(
        &self,
        store: &Store,
        range: &KeyRange,
        next: i64,
        limit: usize,
    ) -> Result<Option<(Arc<Batch>, bool)>, Compacted> {
        let span = (store.first_change(range, next), store.changed(range));
        if span.1 < next {
            return Ok(None);
        }
        let slot = {
            let mut recent = self.recent.lock();
            let known = recent.iter().rev().find(|shared| shared.span == span && shared.range == *range);
            if let Some(shared) = known {
                Arc::clone(&shared.batch)
            } else {
                let batch = Arc::<OnceLock<_>>::default();
                recent.push_back(CachedBatch { range: range.clone(), span, batch: Arc::clone(&batch) });
                Self::forget(&mut recent);
                batch
            }
        };
        let mut made = false;
        let batch = slot.get_or_init(|| {
            made = true;
            Batch::of(store, range, next, limit).map(Arc::new)
        });
        Ok(Some((Arc::clone(batch.as_ref().map_err(|compacted| *compacted)?), made)))
    }

    fn forget(recent: &mut VecDeque<CachedBatch>) {
        let made = |shared: &CachedBatch| shared.batch.get().and_then(|made| made.as_ref().ok()).cloned();
        let bytes = |shared: &CachedBatch| made(shared).map_or(0, |batch| batch.events.len());
        let mut all: usize = recent.iter().map(bytes).sum();
        while recent.len() > Self::MAX_ENTRIES || (all > Self::MAX_BYTES && recent.len() > 1) {
            all -= recent.pop_front().as_ref().map_or(0, bytes);
        }
    }
}

#[cfg(test)]
mod tests;
