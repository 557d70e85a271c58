//! The current keys and their bounded history.
//!
//! A store is a value: a copy shares everything with it, costs two reference counts, and does not change with later
//! publications. A reader takes a copy and reads it without a lock, so a publication never waits for readers.
//!
//! Every scope has a history of its own ([`Log`]): its states from a revision on. A watch continues from any of them.
//! A range is answered as of now.
//!
//! Above the limits of the history, the scope with the most history forgets first.

mod key_range;
mod log;
mod position;
mod record;
mod state;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

pub(super) use key_range::KeyRange;
use log::Log;
pub(super) use position::{Compacted, HeldStates, Position};
pub(super) use record::{EVENT_OVERHEAD, Record};
pub(super) use state::KeyChange;

use super::revisions::Block;
use crate::chunks::Chunks;
use crate::desired::Scope;
use crate::plan::Step;
use crate::revision::Revision;

/// Limit of remembered blocks of revisions. A server with a shared store takes one for each list, and the client that
/// listed returns with a revision of it within moments.
const MAX_BLOCKS: usize = 4_096;

/// Limits of the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryBounds {
    /// Limit of the commits of a scope.
    pub(super) commits: usize,
    /// Byte limit of all scopes. The newest publication is kept whole regardless.
    pub(super) bytes: usize,
}

/// The size of a scope as a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeSize {
    /// The number of documents.
    pub documents: usize,
    /// The bytes of the response to a list of the whole scope, without its header (about 30 bytes).
    pub bytes: usize,
}

/// Reason why a range or a watch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreError {
    /// The first complete publication is pending.
    NotComplete,
    /// No known scope has a key in the range.
    UnknownScope,
}

/// The records of a range.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    parts: Vec<(Chunks<Arc<Record>>, Range<usize>)>,
    /// The number of scopes that the range overlaps.
    pub(super) scopes: usize,
}

impl Selection {
    /// The number of records.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|(_, ranks)| ranks.len()).sum()
    }

    /// The records in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.parts.iter().flat_map(|(records, ranks)| records.between(ranks.clone()))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Store {
    complete: bool,
    /// The highest issued revision, as a header or as an event.
    header: i64,
    /// The highest reserved revision.
    limit: i64,
    /// The blocks of issued revisions, oldest first; consecutive blocks are merged.
    blocks: Arc<VecDeque<(i64, i64)>>,
    /// The header at the opening of the gate. No client has seen earlier revisions.
    opened: i64,
    scopes: Chunks<Arc<Log>>,
    /// The bytes of the histories of all scopes.
    bytes: usize,
    bounds: HistoryBounds,
}

impl Store {
    pub(super) fn new(block: Block, bounds: HistoryBounds) -> Self {
        let first = block.first.get();
        Self {
            complete: false,
            header: first,
            limit: block.last.get(),
            blocks: Arc::new([(first, block.last.get())].into()),
            opened: first,
            scopes: Chunks::default(),
            bytes: 0,
            bounds,
        }
    }

    /// A store that issues no revision before [`extend`](Self::extend).
    pub(super) fn without_revisions(bounds: HistoryBounds) -> Self {
        let none = Block { first: Revision::MIN, last: Revision::MIN };
        Self { blocks: Arc::default(), ..Self::new(none, bounds) }
    }

    /// Opens the gate and drops the history, which no client has seen.
    pub(super) fn complete(&mut self) {
        if !self.complete {
            self.complete = true;
            self.opened = self.header;
            for log in self.scopes.clone().iter() {
                self.forget(log, log.commits_before(self.header));
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn header(&self) -> i64 {
        self.header
    }

    /// The revision below which every scope is compacted: the header at the opening of the gate.
    pub(super) fn compacted(&self) -> i64 {
        self.opened
    }

    /// The revision since which the history of every scope is complete.
    pub(super) fn floor(&self) -> i64 {
        self.scopes.iter().map(|log| log.floor).fold(self.opened, i64::max)
    }

    /// The next `count` revisions, if they are reserved. The call does not consume them.
    pub(super) fn next_revisions(&self, count: usize) -> Option<std::ops::RangeInclusive<i64>> {
        let last = self.header.checked_add(i64::try_from(count).ok()?)?;
        (last <= self.limit).then_some(self.header + 1..=last)
    }

    /// Adds reserved revisions. A block that does not follow the current one moves the header into it.
    pub(super) fn extend(&mut self, block: Block) {
        let (first, last) = (block.first.get(), block.last.get());
        if last > self.limit {
            let blocks = Arc::make_mut(&mut self.blocks);
            match blocks.back_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last,
                before => {
                    // The rest of the previous block is never issued.
                    if let Some((_, end)) = before {
                        *end = self.header;
                    }
                    self.header = self.header.max(first);
                    blocks.push_back((first, last));
                }
            }
            if blocks.len() > MAX_BLOCKS {
                blocks.pop_front();
            }
            self.limit = last;
        }
    }

    /// Whether only this server can have issued `revision`. A revision of another server says nothing about earlier
    /// events of this one.
    pub(super) fn has_issued(&self, revision: i64) -> bool {
        let later = self.blocks.partition_point(|(_, last)| *last < revision);
        revision <= self.header && self.blocks.get(later).is_some_and(|(first, _)| *first <= revision)
    }

    /// Raises the header to `revision`, if that is reserved.
    pub(super) fn raise(&mut self, revision: i64) {
        if revision <= self.limit {
            self.header = self.header.max(revision);
        }
    }

    /// Adds a scope without documents.
    pub(super) fn add_scope(&mut self, scope: &Scope) {
        if self.log(scope).is_none() {
            self.replace(Log::new(scope.clone()));
        }
    }

    fn log(&self, scope: &Scope) -> Option<&Log> {
        self.scopes.get(scope.key_prefix().as_bytes()).map(|log| &**log)
    }

    fn replace(&mut self, log: Log) {
        let log = Arc::new(log);
        self.scopes = self.scopes.with_changes([(log.scope.key_prefix().as_bytes(), Some(Arc::clone(&log)))]);
    }

    /// The scopes that `range` overlaps, at the cost of a logarithm and one step for each: their keys are disjoint
    /// intervals.
    fn overlapping(&self, range: &KeyRange) -> impl Iterator<Item = &Arc<Log>> {
        let start = self.scopes.partition_point(|log| range.is_after(&log.scope));
        let end = self.scopes.partition_point(|log| range.reaches(&log.scope));
        self.scopes.between(if range.is_empty() { 0..0 } else { start..end.max(start) })
    }

    /// The scopes that `range` overlaps.
    pub(super) fn scopes_of(&self, range: &KeyRange) -> impl Iterator<Item = &Scope> {
        self.overlapping(range).map(|log| &log.scope)
    }

    /// The scopes in the order of their keys.
    pub(super) fn scopes(&self) -> impl Iterator<Item = (&Scope, ScopeSize)> {
        self.scopes.iter().map(|log| (&log.scope, log.current.size()))
    }

    pub(super) fn size_of(&self, scope: &Scope) -> Option<ScopeSize> {
        self.log(scope).map(|log| log.current.size())
    }

    /// The number of commits of the scope with the most, and the bytes of all histories.
    pub(super) fn history_size(&self) -> (usize, usize) {
        (self.scopes.iter().map(|log| log.commits()).max().unwrap_or_default(), self.bytes)
    }

    /// Applies the commits of one publication of `scope`: the steps of each revision. The revisions follow the header.
    pub(super) fn commit(&mut self, scope: &Scope, commits: &[(i64, &[Step])]) {
        let (Some((newest, _)), Some((last, _))) = (commits.first(), commits.last()) else { return };
        self.header = *last;
        let mut log = self.log(scope).cloned().unwrap_or_else(|| Log::new(scope.clone()));
        self.bytes -= log.bytes;
        for (revision, steps) in commits {
            log.commit(*revision, steps);
        }
        let older = log.commits_before(*newest);
        log.forget(log.commits().saturating_sub(self.bounds.commits).min(older));
        self.bytes += log.bytes;
        self.replace(log);
        self.enforce_limit(scope, *newest);
    }

    /// Drops history of the largest scopes until the bytes are within the limit, except commits of `scope` from
    /// `newest` on.
    fn enforce_limit(&mut self, scope: &Scope, newest: i64) {
        while let Some(excess) = self.bytes.checked_sub(self.bounds.bytes).filter(|excess| *excess > 0) {
            let may_forget = |log: &Log| {
                if log.scope == *scope { log.commits_before(newest) } else { log.commits() }
            };
            let others = self.scopes.iter().filter(|log| may_forget(log) > 0);
            let Some(largest) = others.max_by_key(|log| log.bytes).cloned() else { break };
            // At most half of its history, because another scope may then be the largest.
            let bytes = excess.min(largest.bytes / 2 + 1);
            self.forget(&largest, largest.commits_to_free(bytes, may_forget(&largest)));
        }
    }

    /// Drops the first `count` commits of a scope.
    fn forget(&mut self, log: &Log, count: usize) {
        let mut log = log.clone();
        self.bytes -= log.bytes;
        log.forget(count);
        self.bytes += log.bytes;
        self.replace(log);
    }

    /// Checks that the gate is open and `range` overlaps a known scope.
    pub(super) fn admit(&self, range: &KeyRange) -> Result<(), StoreError> {
        if !self.complete {
            Err(StoreError::NotComplete)
        } else if self.overlapping(range).next().is_some() {
            Ok(())
        } else {
            Err(StoreError::UnknownScope)
        }
    }

    /// The records of `range`.
    pub(super) fn select(&self, range: &KeyRange) -> Selection {
        let mut selection = Selection::default();
        for log in self.overlapping(range) {
            let records = log.current.records();
            selection.scopes += 1;
            let ranks = range.of(records);
            if !ranks.is_empty() {
                selection.parts.push((records.clone(), ranks));
            }
        }
        selection
    }

    /// The revision of the last change in `range`.
    pub(super) fn changed(&self, range: &KeyRange) -> i64 {
        self.overlapping(range).map(|log| log.current.revision()).max().unwrap_or_default()
    }

    /// The size of the scopes that `range` overlaps.
    pub(super) fn size_of_range(&self, range: &KeyRange) -> ScopeSize {
        self.overlapping(range).map(|log| log.current.size()).fold(ScopeSize::default(), |sum, size| {
            ScopeSize { documents: sum.documents + size.documents, bytes: sum.bytes + size.bytes }
        })
    }
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
