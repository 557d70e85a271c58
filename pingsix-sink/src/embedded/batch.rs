//! The difference between two states of the store as one response.
//!
//! A watch that lags is not told what was, but what is: of each key the last change, of a key that came and went
//! meanwhile nothing, unless its going is all there is to tell of the last commit.
//!
//! Changes keep the order of their revisions, so the last event has the highest, as clients of etcd expect: that of the
//! last commit, whatever became of its keys, so that a client which reports the revision it has reached is known to
//! have the commit.
//!
//! The store knows the last version of each key by the change that made it, so a difference costs what it tells, however
//! many changes led there and however long ago the watch was told something.
//!
//! What is told is the difference between two states of the store, each closed under reference. So it is never cut
//! inside a commit when it does not fit one message, only between two; the states between are those that the past keeps.
//!
//! Watches of the same keys that are told the same changes share the encoded bytes.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;

use super::store::{Compacted, KeyRange, Last, Store};
use crate::proto::etcdserverpb::WatchResponse;
use crate::proto::mvccpb::Event;
use crate::proto::mvccpb::event::EventType;

/// What has changed in a range, encoded.
#[derive(Debug)]
pub(super) struct Batch {
    /// The field `events` of a watch response, and nothing else; empty when nothing is to be told.
    pub(super) events: Bytes,
    /// How many events there are.
    pub(super) told: usize,
    /// How many changes are not told, because a later one of the same key made them void. Those that are not kept any
    /// more do not count.
    pub(super) merged: usize,
    /// The revision up to which this is all.
    pub(super) reached: i64,
    /// Whether there are later changes, which did not fit.
    pub(super) more: bool,
}

impl Batch {
    /// Tells a watch of `range` that has seen everything below `next` what is now. When that takes more than `limit` bytes,
    /// tells what was at the latest revision for which it does not.
    ///
    /// # Errors
    /// [`Compacted`] when what is to be told is no longer known.
    pub(super) fn of(store: &Store, range: &KeyRange, next: i64, limit: usize) -> Result<Self, Compacted> {
        let now = Difference::between(store, range, next, store.header())?;
        if now.bytes() <= limit {
            return Ok(now.encode(store.header(), false));
        }
        let revisions = store.revisions(range, next);
        let until = |revision: &i64| Difference::between(store, range, next, *revision);
        let fits = |revision: &i64| until(revision).is_ok_and(|difference| difference.bytes() <= limit);
        let fitting = revisions.partition_point(fits).saturating_sub(1);
        let Some(revision) = revisions.get(fitting) else { return Ok(now.encode(store.header(), false)) };
        let difference = until(revision)?;
        // One commit always fits. Several that are not kept one by one may not.
        if difference.bytes() > limit && store.unseen(range, next, 0).is_err() {
            return Err(Compacted(store.floor()));
        }
        Ok(difference.encode(*revision, fitting + 1 < revisions.len()))
    }
}

/// What leads from one state to a later one.
struct Difference<'s> {
    /// In the order in which it happened.
    last: Vec<Last<'s>>,
    /// How many changes there were.
    changes: usize,
}

impl<'s> Difference<'s> {
    /// From what a watch has seen that has seen everything below `next`, to what was at `until`.
    fn between(store: &'s Store, range: &KeyRange, next: i64, until: i64) -> Result<Self, Compacted> {
        let mut last = Vec::new();
        let mut changes = 0;
        for (before, then) in store.between(range, next, until)? {
            let since = then.since(next, range);
            changes += before.map_or(since.len(), |before| {
                usize::try_from(then.changes() - before.changes()).unwrap_or(usize::MAX)
            });
            let had = |key: &[u8]| before.is_none_or(|before| before.record(key).is_some());
            last.extend(since.into_iter().map(|last| match last {
                Last::Live(_) => (last, true),
                // A deletion of a key that the client never had does no harm.
                Last::Gone(gone) => (last, had(&gone.key)),
            }));
        }
        // A commit belongs to one scope, so the changes of several scopes are in order by their revisions alone.
        last.sort_by_key(|(last, _)| last.revision());
        let closing = last.last().map(|(closing, _)| *closing);
        last.retain(|(_, is_told)| *is_told);
        let mut last: Vec<_> = last.into_iter().map(|(last, _)| last).collect();
        let reached = last.last().map(Last::revision);
        last.extend(closing.filter(|closing| reached != Some(closing.revision())));
        Ok(Self { last, changes })
    }

    /// No less than the bytes that it takes in a watch response.
    fn bytes(&self) -> usize {
        let bytes = |last: &Last<'_>| match last {
            Last::Live(record) => record.event_bytes(),
            Last::Gone(gone) => gone.event_bytes(),
        };
        self.last.iter().map(bytes).sum()
    }

    fn encode(&self, reached: i64, more: bool) -> Batch {
        let event = |last: &Last<'_>| {
            let (kind, kv) = match last {
                Last::Live(record) => (EventType::Put, record.to_proto()),
                Last::Gone(gone) => (EventType::Delete, gone.to_proto()),
            };
            Event { r#type: kind.into(), kv: Some(kv), prev_kv: None }
        };
        let events = self.last.iter().map(event).collect();
        let told = self.last.len();
        let events = WatchResponse { events, ..WatchResponse::default() }.encode_to_vec().into();
        Batch { events, told, merged: self.changes.saturating_sub(told), reached, more }
    }
}

/// The batches made last, for the watches that are told the same.
#[derive(Debug, Default)]
pub(super) struct Batches {
    recent: Mutex<VecDeque<Shared>>,
}

/// A batch that is made once, by whoever comes first.
#[derive(Clone, Debug)]
struct Shared {
    range: KeyRange,
    /// The revisions of the first and the last change.
    span: (i64, i64),
    batch: Arc<OnceLock<Result<Arc<Batch>, Compacted>>>,
}

impl Batches {
    /// Watches that are told the same come within moments of one another, so a few batches are enough.
    const MOST: usize = 16;

    /// What is kept is no more than one message, beside the newest.
    const MOST_BYTES: usize = super::LIST_LIMIT;

    /// What a watch of `range` is told that has seen everything below `next`, if there is anything; and whether nobody had
    /// made it.
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
                recent.push_back(Shared { range: range.clone(), span, batch: Arc::clone(&batch) });
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

    fn forget(recent: &mut VecDeque<Shared>) {
        let made = |shared: &Shared| shared.batch.get().and_then(|made| made.as_ref().ok()).cloned();
        let bytes = |shared: &Shared| made(shared).map_or(0, |batch| batch.events.len());
        let mut all: usize = recent.iter().map(bytes).sum();
        while recent.len() > Self::MOST || (all > Self::MOST_BYTES && recent.len() > 1) {
            all -= recent.pop_front().as_ref().map_or(0, bytes);
        }
    }
}

#[cfg(test)]
mod tests;
