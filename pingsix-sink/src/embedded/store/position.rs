//! How far a watch has come.

use std::collections::BTreeMap;

use super::state::{Seen, State};
use super::{KeyRange, Log, Store};
use crate::desired::Scope;

/// A state that a watch needs is compacted; this is the compaction revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Compacted(pub(in crate::embedded) i64);

/// The states of all scopes in the range of a watch that its client has.
pub(in crate::embedded) type HeldStates = BTreeMap<Scope, State>;

/// The documents that the client of a watch has, for each scope in its range.
#[derive(Debug)]
pub(in crate::embedded) struct Position<'s> {
    /// Each scope with the documents that the client has.
    scopes: Vec<(Seen, &'s Log)>,
    /// The revision since which the history of all scopes is complete.
    floor: i64,
}

impl<'s> Position<'s> {
    /// The revisions of the last change that the client has, and of the last change.
    pub(in crate::embedded) fn span(&self) -> (i64, i64) {
        let seen = self.scopes.iter().map(|(seen, _)| seen.revision());
        let last = self.scopes.iter().map(|(_, log)| log.current.revision());
        (seen.max().unwrap_or_default(), last.max().unwrap_or_default())
    }

    /// Whether there are changes that the client does not have.
    pub(in crate::embedded) fn is_behind(&self) -> bool {
        self.scopes.iter().any(|(seen, log)| seen.revision() < log.current.revision())
    }

    /// For each scope that changed until `until`: the documents that the client has, and the later state.
    ///
    /// # Errors
    /// [`Compacted`] when a state at `until` is compacted.
    pub(in crate::embedded) fn until(
        &self,
        until: i64,
    ) -> impl Iterator<Item = Result<(&Seen, &'s State), Compacted>> {
        let is_changed =
            move |(seen, log): &&(Seen, &Log)| seen.revision() < log.current.revision().min(until);
        let changed = self.scopes.iter().filter(is_changed);
        changed.map(move |(seen, log)| log.at(until).map(|after| (seen, after)).ok_or(Compacted(self.floor)))
    }

    /// The revisions from `next` on at which every scope is known and one differs from before.
    pub(in crate::embedded) fn revisions(&self, next: i64) -> Vec<i64> {
        let known = next.max(self.floor - 1);
        let commits = self.scopes.iter().flat_map(|(_, log)| log.since(known));
        let mut revisions: Vec<i64> = commits.chain((known > next).then_some(known)).collect();
        revisions.sort_unstable();
        revisions.dedup();
        revisions
    }

    /// The compaction revision, if the history lacks states from `next` on.
    pub(in crate::embedded) fn compacted(&self, next: i64) -> Option<Compacted> {
        (next < self.floor).then_some(Compacted(self.floor))
    }
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

    /// The position of a watch of `range` that has seen everything below `next`. Without the states that its client
    /// has, the history supplies them.
    ///
    /// # Errors
    /// [`Compacted`] when the history has lost a state before a deletion.
    pub(in crate::embedded) fn position(
        &self,
        range: &KeyRange,
        next: i64,
        held: Option<&HeldStates>,
    ) -> Result<Position<'_>, Compacted> {
        let floor = self.floor_of(range);
        if next < self.opened {
            return Err(Compacted(floor));
        }
        let scopes = self.overlapping(range).map(|log| {
            let state = match held {
                // A scope that the client does not have appeared later.
                Some(held) => Some(held.get(&log.scope).cloned().unwrap_or_default()),
                None => log.at(next - 1).cloned(),
            };
            let seen = match state {
                Some(state) => Seen::State(state),
                None if log.current.deletion_since(next).is_none() => Seen::Below(next),
                None => return Err(Compacted(floor)),
            };
            Ok((seen, &**log))
        });
        Ok(Position { scopes: scopes.collect::<Result<_, _>>()?, floor })
    }

    /// The current states of the scopes in `range`.
    pub(in crate::embedded) fn states(&self, range: &KeyRange) -> HeldStates {
        self.overlapping(range).map(|log| (log.scope.clone(), log.current.clone())).collect()
    }
}
