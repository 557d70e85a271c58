//! Changes that a watch has not seen.

use std::sync::Arc;

use super::record::Commit;
use super::state::State;
use super::{KeyRange, Store};

/// The next change for the watch is compacted; this is the compaction revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Compacted(pub(in crate::embedded) i64);

/// Changes that a watch has not seen.
#[derive(Debug)]
pub(in crate::embedded) struct Unseen {
    /// Commits of the scopes in its range, oldest first.
    pub(in crate::embedded) commits: Vec<Arc<Commit>>,
    /// The revision up to which the commits are complete.
    pub(in crate::embedded) reached: i64,
    /// Whether there are later commits.
    pub(in crate::embedded) more: bool,
}

impl Store {
    /// The revision since which the history of `range` is complete.
    fn floor_of(&self, range: &KeyRange) -> i64 {
        self.overlapping(range).map(|log| log.floor).fold(self.opened, i64::max)
    }

    /// Whether there are changes for a watch of `range` that has seen everything below `next`.
    pub(in crate::embedded) fn has_changes(&self, range: &KeyRange, next: i64) -> Result<bool, Compacted> {
        if next < self.opened {
            Err(Compacted(self.floor_of(range)))
        } else {
            Ok(self.changed(range) >= next)
        }
    }

    /// The changes for a watch of `range` that has seen everything below `next`; at most `most` commits.
    pub(in crate::embedded) fn unseen(
        &self,
        range: &KeyRange,
        next: i64,
        most: usize,
    ) -> Result<Unseen, Compacted> {
        let floor = self.floor_of(range);
        if next < floor {
            return Err(Compacted(floor));
        }
        let enough = most.saturating_add(1);
        let overlapping = self.overlapping(range).filter(|log| log.changed >= next);
        let mut commits: Vec<_> = overlapping.flat_map(|log| log.since(next).take(enough).cloned()).collect();
        commits.sort_unstable_by_key(|commit| commit.revision);
        let more = commits.len() > most;
        commits.truncate(most);
        let reached = match commits.last() {
            Some(last) if more => last.revision,
            Some(_) | None => self.header,
        };
        Ok(Unseen { commits, reached, more })
    }

    /// For each scope in `range`: its state as of `next - 1` if that is known, and its state as of `until`.
    ///
    /// # Errors
    /// [`Compacted`] when a deletion between the two, or `until`, may be compacted.
    pub(in crate::embedded) fn between(
        &self,
        range: &KeyRange,
        next: i64,
        until: i64,
    ) -> Result<Vec<(Option<&State>, &State)>, Compacted> {
        let compacted = || {
            let floors = self
                .overlapping(range)
                .map(|log| log.deletions_floor.max(if until < log.changed { log.floor } else { 0 }));
            Compacted(floors.fold(self.opened, i64::max))
        };
        if next < self.opened {
            return Err(compacted());
        }
        let changed = self.overlapping(range).filter(|log| log.changed >= next);
        let states = changed.map(|log| {
            let after = log.at(until).filter(|_| next >= log.deletions_floor);
            after.map(|after| (log.at(next - 1), after)).ok_or_else(compacted)
        });
        states.collect()
    }

    /// The revisions from `next` on at which the whole of `range` is known and differs from before.
    pub(in crate::embedded) fn revisions(&self, range: &KeyRange, next: i64) -> Vec<i64> {
        let known = self.overlapping(range).map(|log| log.floor - 1).fold(next, i64::max);
        let commits = self.overlapping(range).flat_map(|log| log.since(known)).map(|commit| commit.revision);
        let mut revisions: Vec<i64> = commits.chain((known > next).then_some(known)).collect();
        revisions.sort_unstable();
        revisions.dedup();
        revisions
    }

    /// The revision of the first change in `range` from `next` on, or `next` if that is unknown.
    pub(in crate::embedded) fn first_change(&self, range: &KeyRange, next: i64) -> i64 {
        let overlapping = self.overlapping(range).filter(|log| log.changed >= next);
        let first = overlapping.map(|log| match log.since(next).next() {
            Some(commit) if next >= log.floor => commit.revision,
            Some(_) | None => next,
        });
        first.min().unwrap_or(next)
    }
}
