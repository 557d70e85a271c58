//! Several commits as one response.
//!
//! A watch that lags is not told what was, but what is: of each key the last change, of a key that came and went
//! meanwhile nothing, unless its going is all there is to tell of the last commit.
//!
//! Changes keep the order of their revisions, so the last event has the highest, as clients of etcd expect: that of the
//! last commit, whatever became of its keys, so that a client which reports the revision it has reached is known to
//! have the commit.
//!
//! What is told is the difference between two states of the store, each closed under reference. So it is never cut
//! inside a commit when it does not fit one message, only between two.
//!
//! Watches of the same keys that are told the same changes share the encoded bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;

use super::store::{Change, Commit, EVENT_OVERHEAD, KeyRange};
use crate::proto::etcdserverpb::WatchResponse;

/// The changes of some commits in a range, encoded.
#[derive(Debug)]
pub(super) struct Batch {
    /// The field `events` of a watch response, and nothing else; empty when nothing is to be told.
    pub(super) events: Bytes,
    /// How many events there are.
    pub(super) told: usize,
    /// How many changes are not told, because a later one of the same key made them void.
    pub(super) merged: usize,
    /// How many of the commits are told; the others did not fit.
    pub(super) commits: usize,
}

impl Batch {
    /// Tells as many of `commits` as fit into `limit` bytes, but at least one.
    pub(super) fn of(commits: &[Arc<Commit>], range: &KeyRange, limit: usize) -> Self {
        let commits = &commits[..fitting(commits, range, limit)];
        let mut merge = Merge::default();
        for commit in commits {
            merge.add(commit, range);
        }
        let seen = merge.seen;
        let events: Vec<_> = merge.last().map(|change| change.to_proto(false)).collect();
        let told = events.len();
        let events = WatchResponse { events, ..WatchResponse::default() }.encode_to_vec().into();
        Self { events, told, merged: seen - told, commits: commits.len() }
    }
}

/// How many of `commits`, from the first on, become a batch of at most `limit` bytes. A longer part may fit where a
/// shorter one does not, for a later change may be smaller than the one it makes void.
fn fitting(commits: &[Arc<Commit>], range: &KeyRange, limit: usize) -> usize {
    let all: usize = commits.iter().map(|commit| commit.bytes).sum();
    if all <= limit {
        return commits.len();
    }
    let mut merge = Merge::default();
    let mut fits = 1;
    for (count, commit) in (1..).zip(commits) {
        merge.add(commit, range);
        if merge.bytes() <= limit {
            fits = count;
        }
    }
    fits.min(commits.len())
}

/// The last change of each key.
#[derive(Default)]
struct Merge<'a> {
    keys: BTreeMap<&'a [u8], Merged<'a>>,
    /// The changes that were added.
    seen: usize,
    /// No less than the bytes of what is to be told of the keys.
    bytes: usize,
    /// Of the last commit, the place of its first change and its last change.
    closing: Option<(usize, &'a Change)>,
}

struct Merged<'a> {
    /// Whether the client knows the key from before.
    known: bool,
    last: &'a Change,
    /// The place of the last change among all that were added.
    place: usize,
}

impl Merged<'_> {
    /// Whether the client has to be told.
    fn matters(&self) -> bool {
        self.known || matches!(self.last, Change::Put { .. })
    }

    fn bytes(&self) -> usize {
        if self.matters() { self.last.event_bytes() } else { 0 }
    }
}

impl<'a> Merge<'a> {
    fn add(&mut self, commit: &'a Commit, range: &KeyRange) {
        let first = self.seen;
        for change in commit.changes.iter().filter(|change| range.contains(change.key())) {
            let place = self.seen;
            self.seen += 1;
            let merged = self.keys.entry(change.key()).or_insert_with(|| Merged {
                known: change.before().is_some(),
                last: change,
                place,
            });
            if merged.place != place {
                self.bytes -= merged.bytes();
                (merged.last, merged.place) = (change, place);
            }
            self.bytes += merged.bytes();
            self.closing = Some((first, change));
        }
    }

    /// No less than the bytes of what is to be told.
    fn bytes(&self) -> usize {
        self.bytes + self.closing.map_or(0, |(_, closing)| closing.key().len() + EVENT_OVERHEAD)
    }

    /// What is to be told, in the order in which it happened.
    fn last(self) -> impl Iterator<Item = &'a Change> {
        let mut changes: Vec<_> = self.keys.into_values().filter(Merged::matters).collect();
        changes.sort_unstable_by_key(|merged| merged.place);
        // Nothing of the last commit is left when all its changes were deletions of keys that the client never knew.
        let reached = changes.last().map_or(0, |merged| merged.place + 1);
        let closing = self.closing.filter(|(first, _)| reached <= *first).map(|(_, closing)| closing);
        changes.into_iter().map(|merged| merged.last).chain(closing)
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
    /// The revisions of the first and the last commit.
    span: (i64, i64),
    batch: Arc<OnceLock<Arc<Batch>>>,
}

impl Batches {
    /// Watches that are told the same come within moments of one another, so a few batches are enough.
    const MOST: usize = 16;

    /// What is kept is no more than one message, beside the newest.
    const MOST_BYTES: usize = super::LIST_LIMIT;

    /// The batch of these commits in `range`; `made` says whether nobody had made it.
    pub(super) fn get(
        &self,
        commits: &[Arc<Commit>],
        range: &KeyRange,
        limit: usize,
    ) -> Option<(Arc<Batch>, bool)> {
        let span = (commits.first()?.revision, commits.last()?.revision);
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
            Arc::new(Batch::of(commits, range, limit))
        });
        Some((Arc::clone(batch), made))
    }

    fn forget(recent: &mut VecDeque<Shared>) {
        let bytes = |shared: &Shared| shared.batch.get().map_or(0, |batch| batch.events.len());
        let mut all: usize = recent.iter().map(bytes).sum();
        while recent.len() > Self::MOST || (all > Self::MOST_BYTES && recent.len() > 1) {
            all -= recent.pop_front().as_ref().map_or(0, bytes);
        }
    }
}

#[cfg(test)]
mod tests;
