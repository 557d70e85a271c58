//! The state of a scope at one revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{Change, Deletion, Record, Version};
use super::{KeyRange, ScopeSize};
use crate::chunks::{Chunks, Sorted};

/// The last version of every key of a scope at one revision. Consecutive states and clones share memory.
#[derive(Clone, Debug, Default)]
pub(in crate::embedded) struct State {
    live: Versions<Record>,
    /// Deleted keys, as far back as deletions are known.
    deletions: Versions<Deletion>,
    size: ScopeSize,
    /// The number of changes since the scope appeared.
    changes: u64,
}

/// Versions of different keys.
#[derive(Debug)]
struct Versions<T> {
    by_key: Chunks<ByKey<T>>,
    /// Sorted by change: the changes since a revision are at the end.
    by_change: Chunks<ByChange<T>>,
}

/// A version sorted by key.
#[derive(Debug)]
pub(in crate::embedded) struct ByKey<T>(pub(in crate::embedded) Arc<T>);

/// A version sorted by change.
#[derive(Debug)]
struct ByChange<T>(Arc<T>);

/// The last version of a key.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) enum LastVersion<'s> {
    Live(&'s Arc<Record>),
    Deletion(&'s Arc<Deletion>),
}

impl LastVersion<'_> {
    pub(in crate::embedded) fn key(&self) -> &[u8] {
        match self {
            Self::Live(record) => &record.key,
            Self::Deletion(deletion) => &deletion.key,
        }
    }

    pub(in crate::embedded) fn revision(&self) -> i64 {
        match self {
            Self::Live(record) => record.mod_revision,
            Self::Deletion(deletion) => deletion.revision,
        }
    }

    pub(in crate::embedded) fn ordinal(&self) -> u64 {
        match self {
            Self::Live(record) => record.ordinal,
            Self::Deletion(deletion) => deletion.ordinal,
        }
    }
}

impl State {
    pub(in crate::embedded) const fn size(&self) -> ScopeSize {
        self.size
    }

    pub(in crate::embedded) const fn changes(&self) -> u64 {
        self.changes
    }

    pub(in crate::embedded) const fn records(&self) -> &Chunks<ByKey<Record>> {
        &self.live.by_key
    }

    pub(in crate::embedded) fn record(&self, key: &[u8]) -> Option<&Arc<Record>> {
        self.live.by_key.get(key).map(|ByKey(record)| record)
    }

    /// The last versions of keys of `range` since `revision`, in the order of their changes.
    pub(in crate::embedded) fn since<'s>(&'s self, revision: i64, range: &KeyRange) -> Vec<LastVersion<'s>> {
        let live = self.live.since(revision).map(LastVersion::Live);
        let mut all: Vec<_> = live.chain(self.deletions.since(revision).map(LastVersion::Deletion)).collect();
        all.retain(|last| range.contains(last.key()));
        all.sort_unstable_by_key(LastVersion::ordinal);
        all
    }

    /// The state after `changes`.
    pub(super) fn with(&self, changes: &[Change]) -> Self {
        let (mut live, mut deletions) = (Edits::default(), Edits::default());
        let mut size = self.size;
        for change in changes {
            if let Some(before) = change.before() {
                live.remove(before);
                size.documents -= 1;
                size.bytes -= before.listed_bytes();
            } else if let Some(ByKey(before)) = self.deletions.by_key.get(change.key()) {
                deletions.remove(before);
            }
            match change {
                Change::Put { record, .. } => {
                    live.insert(record);
                    size.documents += 1;
                    size.bytes += record.listed_bytes();
                }
                Change::Delete { deletion: deleted, .. } => deletions.insert(deleted),
            }
        }
        let (live, deletions) = (self.live.with(live), self.deletions.with(deletions));
        Self { live, deletions, size, changes: self.changes + changes.len() as u64 }
    }

    /// Drops the deletions below `revision` and returns the revision of the last of these.
    pub(super) fn forget_deletions(&mut self, revision: i64) -> Option<i64> {
        let old = self.deletions.by_change.partition_point(|ByChange(deletion)| deletion.revision < revision);
        let last = self.deletions.by_change.at(old.checked_sub(1)?)?.0.revision;
        let mut edits = Edits::default();
        let forgotten: Vec<_> =
            self.deletions.by_change.between(0..old).map(|ByChange(deletion)| Arc::clone(deletion)).collect();
        for deletion in &forgotten {
            edits.remove(deletion);
        }
        self.deletions = self.deletions.with(edits);
        Some(last)
    }

    /// Estimate of the bytes that a state owns which is so many changes away from the next one.
    pub(super) fn bytes_of_changes(&self, changes: usize) -> usize {
        self.live.by_key.bytes_of_changes(changes)
            + self.live.by_change.bytes_of_changes(2 * changes)
            + self.deletions.by_key.bytes_of_changes(changes)
            + self.deletions.by_change.bytes_of_changes(changes)
    }
}

impl<T: Version> Versions<T> {
    fn since(&self, revision: i64) -> impl Iterator<Item = &Arc<T>> {
        let first = self.by_change.partition_point(|ByChange(version)| version.revision() < revision);
        self.by_change.between(first..self.by_change.len()).map(|ByChange(version)| version)
    }

    fn with(&self, edits: Edits<'_, T>) -> Self {
        let by_key = edits.by_key.into_iter().map(|(key, version)| (key, version.map(ByKey)));
        let by_change =
            edits.by_change.into_iter().map(|(ordinal, version)| (ordinal, version.map(ByChange)));
        Self { by_key: self.by_key.with_changes(by_key), by_change: self.by_change.with_changes(by_change) }
    }
}

/// Inserted and removed versions.
struct Edits<'a, T> {
    by_key: BTreeMap<&'a [u8], Option<Arc<T>>>,
    by_change: BTreeMap<u64, Option<Arc<T>>>,
}

impl<'a, T: Version> Edits<'a, T> {
    fn insert(&mut self, version: &'a Arc<T>) {
        self.by_key.insert(version.key(), Some(Arc::clone(version)));
        self.by_change.insert(*version.ordinal(), Some(Arc::clone(version)));
    }

    fn remove(&mut self, version: &'a Arc<T>) {
        self.by_key.insert(version.key(), None);
        self.by_change.insert(*version.ordinal(), None);
    }
}

impl<T> Default for Edits<'_, T> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), by_change: BTreeMap::new() }
    }
}

impl<T> Clone for Versions<T> {
    fn clone(&self) -> Self {
        Self { by_key: self.by_key.clone(), by_change: self.by_change.clone() }
    }
}

impl<T> Default for Versions<T> {
    fn default() -> Self {
        Self { by_key: Chunks::default(), by_change: Chunks::default() }
    }
}

impl<T> Clone for ByKey<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for ByChange<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Version> Sorted for ByKey<T> {
    type SortKey = [u8];

    fn sort_key(&self) -> &[u8] {
        self.0.key()
    }
}

impl<T: Version> Sorted for ByChange<T> {
    type SortKey = u64;

    fn sort_key(&self) -> &u64 {
        self.0.ordinal()
    }
}
