//! One scope: its state and its bounded history.

use std::sync::Arc;

use super::state::State;
use crate::chunks::{Chunks, Sorted};
use crate::desired::Scope;
use crate::plan::Step;

/// A scope. Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) scope: Scope,
    pub(super) current: State,
    /// The states of the history, oldest first. The last one is the current state.
    history: Chunks<Arc<HistoryEntry>>,
    /// The state before the first of them.
    base: State,
    /// The history has the state of every revision from the one before this on.
    pub(super) floor: i64,
    /// The bytes of the history.
    pub(super) bytes: usize,
}

/// A state of the history.
#[derive(Debug)]
struct HistoryEntry {
    state: State,
    /// The bytes that the state before this one keeps alone.
    bytes: usize,
}

impl Sorted for Arc<HistoryEntry> {
    type SortKey = i64;

    fn sort_key(&self) -> &i64 {
        &self.state.revision
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
            bytes: 0,
        }
    }

    pub(super) const fn commits(&self) -> usize {
        self.history.len()
    }

    pub(super) fn commit(&mut self, revision: i64, steps: &[Step]) {
        let (state, bytes) = self.current.with(&self.scope, steps, revision);
        self.bytes += bytes;
        self.current = state.clone();
        let entry = Arc::new(HistoryEntry { state, bytes });
        self.history = self.history.with_changes([(revision, Some(entry))]);
    }

    /// The number of commits below `revision`.
    pub(super) fn commits_before(&self, revision: i64) -> usize {
        self.history.partition_point(|entry| entry.state.revision < revision)
    }

    /// The number of the first `most` commits that frees so many bytes.
    pub(super) fn commits_to_free(&self, bytes: usize, most: usize) -> usize {
        let mut sum = 0;
        let fewer = self.history.between(0..most).take_while(|entry| {
            let is_short = sum < bytes;
            sum += entry.bytes;
            is_short
        });
        fewer.count()
    }

    /// Drops the first `count` commits.
    pub(super) fn forget(&mut self, count: usize) {
        let Some(last) = count.checked_sub(1).and_then(|last| self.history.at(last)) else { return };
        self.floor = last.state.revision + 1;
        self.base = last.state.clone();
        self.bytes -= self.history.between(0..count).map(|entry| entry.bytes).sum::<usize>();
        self.history = self.history.without_first(count);
    }

    /// The revisions of the history from `revision` on.
    pub(super) fn since(&self, revision: i64) -> impl Iterator<Item = i64> {
        let first = self.commits_before(revision);
        self.history.between(first..self.history.len()).map(|entry| entry.state.revision)
    }

    /// The state as of `revision`, if it is known.
    pub(super) fn at(&self, revision: i64) -> Option<&State> {
        if revision >= self.current.revision() {
            return Some(&self.current);
        }
        match self.commits_before(revision + 1).checked_sub(1) {
            Some(last) => self.history.at(last).map(|entry| &entry.state),
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
