//! The keys as they are, and as they were for a bounded while.
//!
//! The store holds the current record of every key, and the [`Commit`]s since the compaction revision `C`: it can
//! replay every change at `C` or later to a watch, and answer a range as of any revision from `C` on by undoing what
//! came after. What is older is refused as etcd refuses it.
//!
//! Nothing here waits or does I/O; callers hold the lock around it for as long as it takes to clone pointers.

mod key_range;
mod record;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(super) use key_range::KeyRange;
pub(super) use record::{ByKey, Change, Commit, EVENT_OVERHEAD, Gone, Record};

use super::revisions::Block;
use crate::desired::Scope;
use crate::revision::Revision;

/// How many blocks of revisions are remembered. A server among others takes one for each list, and the client that
/// listed comes back with a revision of it within moments.
const MOST_BLOCKS: usize = 4_096;

/// How much of the past is kept. The newest publication is always kept whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistoryBounds {
    pub(super) commits: usize,
    pub(super) bytes: usize,
}

/// What a scope weighs when it is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeSize {
    /// How many documents it holds.
    pub documents: usize,
    /// The bytes of the response to a list of the whole scope, without its header (about 30 bytes).
    pub bytes: usize,
}

/// Why a range or a watch is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The first complete publication is still to come.
    NotComplete,
    /// No known scope has a key in the range.
    UnknownScope,
    /// The revision asked for is older than what is kept.
    Compacted,
    /// The revision asked for is still to come.
    Future,
}

/// The next change that a watch wants is no longer kept; the compaction revision says what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compacted(pub(super) i64);

/// What a watch has not seen.
#[derive(Debug)]
pub(super) struct Unseen {
    /// Commits of the scopes it has keys of, oldest first.
    pub(super) commits: Vec<Arc<Commit>>,
    /// The revision up to which these are all.
    pub(super) reached: i64,
    /// Whether there are later ones.
    pub(super) more: bool,
}

/// What is known of a scope.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    size: ScopeSize,
    /// The revision of its last change.
    changed: i64,
}

#[derive(Debug)]
pub(super) struct Store {
    complete: bool,
    /// The highest revision handed out, as a header or as an event.
    header: i64,
    /// The highest revision that may be handed out before more are reserved.
    limit: i64,
    /// The blocks that revisions were handed out from, oldest first; those that follow one another are one.
    blocks: VecDeque<(i64, i64)>,
    compacted: i64,
    keys: BTreeSet<ByKey>,
    scopes: BTreeMap<Scope, Held>,
    history: VecDeque<Arc<Commit>>,
    history_bytes: usize,
    bounds: HistoryBounds,
}

impl Store {
    pub(super) fn new(block: Block, bounds: HistoryBounds) -> Self {
        let first = block.first.get();
        Self {
            complete: false,
            header: first,
            limit: block.last.get(),
            blocks: [(first, block.last.get())].into(),
            compacted: first,
            keys: BTreeSet::new(),
            scopes: BTreeMap::new(),
            history: VecDeque::new(),
            history_bytes: 0,
            bounds,
        }
    }

    /// One that hands out nothing before [`extend`](Self::extend) gives it revisions.
    pub(super) fn without_revisions(bounds: HistoryBounds) -> Self {
        let none = Block { first: Revision::MIN, last: Revision::MIN };
        Self { blocks: VecDeque::new(), ..Self::new(none, bounds) }
    }

    /// Opens the gate. The past before it belongs to no client, so it is forgotten.
    pub(super) fn complete(&mut self) {
        if !self.complete {
            self.complete = true;
            while self.history.front().is_some_and(|commit| commit.revision < self.header) {
                self.forget_oldest();
            }
            self.compacted = self.header;
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn header(&self) -> i64 {
        self.header
    }

    pub(super) fn compacted(&self) -> i64 {
        self.compacted
    }

    /// The next `count` revisions, if they are reserved; nothing is used up by asking.
    pub(super) fn next_revisions(&self, count: usize) -> Option<std::ops::RangeInclusive<i64>> {
        let last = self.header.checked_add(i64::try_from(count).ok()?)?;
        (last <= self.limit).then_some(self.header + 1..=last)
    }

    /// Adds reserved revisions. A block that does not follow the present one moves the header into it.
    pub(super) fn extend(&mut self, block: Block) {
        let (first, last) = (block.first.get(), block.last.get());
        if last > self.limit {
            match self.blocks.back_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last,
                before => {
                    // The rest of it is never handed out.
                    if let Some((_, end)) = before {
                        *end = self.header;
                    }
                    self.header = self.header.max(first);
                    self.blocks.push_back((first, last));
                }
            }
            if self.blocks.len() > MOST_BLOCKS {
                self.blocks.pop_front();
            }
            self.limit = last;
        }
    }

    /// Whether `revision` can only have been handed out here. One that another server of the same scopes has handed out
    /// says nothing of what was told here before.
    pub(super) fn has_given(&self, revision: i64) -> bool {
        let later = self.blocks.partition_point(|(_, last)| *last < revision);
        revision <= self.header && self.blocks.get(later).is_some_and(|(first, _)| *first <= revision)
    }

    /// Raises the header to `revision`, if that is reserved.
    pub(super) fn raise(&mut self, revision: i64) -> bool {
        if revision <= self.limit {
            self.header = self.header.max(revision);
        }
        revision <= self.limit
    }

    /// Makes a scope known; it holds nothing until a commit says otherwise.
    pub(super) fn know(&mut self, scope: &Scope) {
        if !self.scopes.contains_key(scope) {
            self.scopes.insert(scope.clone(), Held::default());
        }
    }

    pub(super) fn scopes(&self) -> impl Iterator<Item = (&Scope, ScopeSize)> {
        self.scopes.iter().map(|(scope, held)| (scope, held.size))
    }

    pub(super) fn size_of(&self, scope: &Scope) -> Option<ScopeSize> {
        self.scopes.get(scope).map(|held| held.size)
    }

    pub(super) fn record(&self, key: &[u8]) -> Option<&Arc<Record>> {
        self.keys.get(key).map(|ByKey(record)| record)
    }

    pub(super) fn history_size(&self) -> (usize, usize) {
        (self.history.len(), self.history_bytes)
    }

    /// Applies the commits of one publication of `scope`; their revisions follow one another from the header on.
    pub(super) fn commit(&mut self, scope: &Scope, commits: Vec<Commit>) {
        let Some(oldest_to_keep) = commits.first().map(|commit| commit.revision) else { return };
        let mut size = self.size_of(scope).unwrap_or_default();
        let held = self.keys.len();
        for commit in commits {
            for change in &commit.changes {
                if let Some(before) = change.before() {
                    size.documents -= 1;
                    size.bytes -= before.listed_bytes();
                }
                match change {
                    Change::Put { record, .. } => {
                        size.documents += 1;
                        size.bytes += record.listed_bytes();
                        self.keys.replace(ByKey(Arc::clone(record)));
                    }
                    Change::Delete { gone, .. } => {
                        self.keys.remove(&*gone.key);
                    }
                }
            }
            self.header = commit.revision;
            self.history_bytes += commit.bytes;
            self.history.push_back(Arc::new(commit));
        }
        if self.keys.len() > 2 * held {
            // Keys that came in order have left the nodes of the tree half empty; built anew, they are full.
            self.keys = std::mem::take(&mut self.keys).into_iter().collect();
        }
        self.scopes.insert(scope.clone(), Held { size, changed: self.header });
        while (self.history.len() > self.bounds.commits || self.history_bytes > self.bounds.bytes)
            && self.history.front().is_some_and(|commit| commit.revision < oldest_to_keep)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(commit) = self.history.pop_front() {
            self.history_bytes -= commit.bytes;
            self.compacted = commit.revision + 1;
        }
    }

    /// Whether `range` may be answered at all: the gate is open and the range meets a known scope.
    pub(super) fn admit(&self, range: &KeyRange) -> Result<(), Refusal> {
        if !self.complete {
            Err(Refusal::NotComplete)
        } else if self.scopes.keys().any(|scope| range.meets(scope)) {
            Ok(())
        } else {
            Err(Refusal::UnknownScope)
        }
    }

    /// Whether `range` is a known scope as a whole: what a client mirrors.
    pub(super) fn is_scope(&self, range: &KeyRange) -> bool {
        let scope = range.as_prefix().and_then(|prefix| Scope::new(prefix).ok());
        scope.is_some_and(|scope| self.scopes.contains_key(&scope))
    }

    /// The records of `range` in the order of their keys, as of `revision`, or as they are now.
    pub(super) fn select(
        &self,
        range: &KeyRange,
        revision: Option<i64>,
    ) -> Result<Vec<Arc<Record>>, Refusal> {
        match revision {
            Some(revision) if revision > self.header => Err(Refusal::Future),
            Some(revision) if revision < self.compacted => Err(Refusal::Compacted),
            Some(revision) => Ok(self.select_as_of(range, revision)),
            None => Ok(range.of(&self.keys).map(|ByKey(record)| Arc::clone(record)).collect()),
        }
    }

    fn select_as_of(&self, range: &KeyRange, revision: i64) -> Vec<Arc<Record>> {
        let now = range.of(&self.keys).map(|ByKey(record)| (&*record.key, record));
        let mut then: BTreeMap<&[u8], &Arc<Record>> = now.collect();
        for commit in self.history.iter().rev().take_while(|commit| commit.revision > revision) {
            for change in commit.changes.iter().rev().filter(|change| range.contains(change.key())) {
                match change.before() {
                    Some(before) => then.insert(&before.key, before),
                    None => then.remove(change.key()),
                };
            }
        }
        then.into_values().cloned().collect()
    }

    /// What a watch of `range` that has seen everything below `next` has not seen; at most `most` commits at a time.
    pub(super) fn unseen(&self, range: &KeyRange, next: i64, most: usize) -> Result<Unseen, Compacted> {
        if next < self.compacted {
            return Err(Compacted(self.compacted));
        }
        let start = self.history.partition_point(|commit| commit.revision < next);
        let mut wanted = self.history.range(start..).filter(|commit| range.meets(&commit.scope));
        let commits: Vec<_> = wanted.by_ref().take(most).cloned().collect();
        let more = wanted.next().is_some();
        let reached = match commits.last() {
            Some(last) if more => last.revision,
            Some(_) | None => self.header,
        };
        Ok(Unseen { commits, reached, more })
    }

    /// The revision of the last change of anything that `range` may hold.
    pub(super) fn changed(&self, range: &KeyRange) -> i64 {
        let met = self.scopes.iter().filter(|(scope, _)| range.meets(scope));
        met.map(|(_, held)| held.changed).max().unwrap_or_default()
    }

    /// How many documents the scopes hold that lie in `range` as a whole; `None` when there is no such scope.
    pub(super) fn covered(&self, range: &KeyRange) -> Option<usize> {
        let mut covered = self.scopes().filter(|(scope, _)| range.covers(scope)).map(|(_, size)| size);
        covered.next().map(|first| first.documents + covered.map(|size| size.documents).sum::<usize>())
    }
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
