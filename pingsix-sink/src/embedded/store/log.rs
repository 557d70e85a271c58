//! One scope: its state and its bounded history.

use std::sync::Arc;

use super::record::Commit;
use super::state::State;
use crate::chunks::{Chunks, Sorted};
use crate::desired::Scope;

/// A scope. Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) scope: Scope,
    pub(super) current: State,
    /// The commits of the history, oldest first.
    history: Chunks<Arc<HistoryEntry>>,
    /// The state before the first of them.
    base: State,
    /// The history has every change of this revision or a later one.
    pub(super) floor: i64,
    /// Every deletion of this revision or a later one is known.
    pub(super) deletions_floor: i64,
    /// The revision of the last change.
    pub(super) changed: i64,
    /// The bytes of the history.
    pub(super) bytes: usize,
}

/// A commit of the history with the state after it.
#[derive(Debug)]
pub(super) struct HistoryEntry {
    pub(super) commit: Arc<Commit>,
    after: State,
    /// The bytes of the entry.
    bytes: usize,
}

impl Sorted for Arc<HistoryEntry> {
    type SortKey = i64;

    fn sort_key(&self) -> &i64 {
        &self.commit.revision
    }
}

impl Log {
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            scope,
            current: State::default(),
            history: Chunks::default(),
            base: State::default(),
            floor: 0,
            deletions_floor: 0,
            changed: 0,
            bytes: 0,
        }
    }

    pub(super) const fn commits(&self) -> usize {
        self.history.len()
    }

    pub(super) fn commit(&mut self, commit: Commit) {
        let after = self.current.with(&commit.changes);
        let bytes = commit.kept_bytes() + after.bytes_of_changes(commit.changes.len());
        self.changed = commit.revision;
        self.bytes += bytes;
        self.current = after.clone();
        let revision = commit.revision;
        let history = Arc::new(HistoryEntry { commit: Arc::new(commit), after, bytes });
        self.history = self.history.with_changes([(revision, Some(history))]);
    }

    /// The number of commits below `revision`.
    pub(super) fn commits_before(&self, revision: i64) -> usize {
        self.history.partition_point(|history| history.commit.revision < revision)
    }

    /// The number of the first `most` commits that frees so many bytes.
    pub(super) fn commits_to_free(&self, bytes: usize, most: usize) -> usize {
        let mut sum = 0;
        let fewer = self.history.between(0..most).take_while(|history| {
            let is_short = sum < bytes;
            sum += history.bytes;
            is_short
        });
        fewer.count()
    }

    /// Drops the first `count` commits.
    pub(super) fn forget(&mut self, count: usize) {
        let Some(last) = count.checked_sub(1).and_then(|last| self.history.at(last)) else { return };
        self.floor = last.commit.revision + 1;
        self.base = last.after.clone();
        self.bytes -= self.history.between(0..count).map(|history| history.bytes).sum::<usize>();
        self.history = self.history.without_first(count);
    }

    /// Drops the deletions that are older than both the history and `needed`.
    pub(super) fn forget_deletions(&mut self, needed: i64) {
        if let Some(last) = self.current.forget_deletions(self.floor.min(needed)) {
            self.deletions_floor = last + 1;
        }
    }

    /// The commits from `revision` on.
    pub(super) fn since(&self, revision: i64) -> impl Iterator<Item = &Arc<Commit>> {
        let first = self.commits_before(revision);
        self.history.between(first..self.history.len()).map(|history| &history.commit)
    }

    /// The state as of `revision`, if it is known.
    pub(super) fn at(&self, revision: i64) -> Option<&State> {
        if revision >= self.changed {
            return Some(&self.current);
        }
        match self.commits_before(revision + 1).checked_sub(1) {
            Some(last) => self.history.at(last).map(|history| &history.after),
            None => Some(&self.base).filter(|_| revision + 1 >= self.floor),
        }
    }
}

impl Sorted for Arc<Log> {
    type SortKey = [u8];

    fn sort_key(&self) -> &[u8] {
        self.scope.key_prefix().as_bytes()
    }
}
