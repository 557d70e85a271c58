//! Who reads what: the watches that are open, by the keys they want, and the streams to wake for a change of these.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::store::KeyRange;
use crate::desired::Scope;

/// The watches that are open.
#[derive(Clone, Debug)]
pub(super) struct Readers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: Mutex<Open>,
    /// How often a watch has opened or ended.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    watches: BTreeMap<u64, OpenWatch>,
}

#[derive(Debug)]
struct OpenWatch {
    range: KeyRange,
    /// Wakes the stream it belongs to.
    stream: Arc<Notify>,
}

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Inner { open: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

impl Readers {
    /// Counts a watch, and has its stream woken, until what is returned is dropped.
    pub(super) fn enter(&self, range: KeyRange, stream: Arc<Notify>) -> Reading {
        let mut open = self.0.open.lock();
        open.last += 1;
        let id = open.last;
        open.watches.insert(id, OpenWatch { range, stream });
        drop(open);
        self.0.changes.send_modify(|changes| *changes += 1);
        Reading { readers: self.clone(), id }
    }

    /// Wakes the streams of the watches that want keys of `scope`, and no others: with a stream for each of many scopes, a
    /// change of all scopes would wake the square of them.
    pub(super) fn wake(&self, scope: &Scope) {
        let open = self.0.open.lock();
        for watch in open.watches.values().filter(|watch| watch.range.meets(scope)) {
            watch.stream.notify_one();
        }
    }

    /// How many watches want keys of `scope`.
    pub(super) fn of(&self, scope: &Scope) -> usize {
        self.0.open.lock().watches.values().filter(|watch| watch.range.meets(scope)).count()
    }

    /// How many watches want keys of each of these scopes, where any does.
    pub(super) fn by_scope(&self, scopes: &[Scope]) -> BTreeMap<Scope, usize> {
        let mut ranges: Vec<(KeyRange, usize)> = Vec::new();
        {
            let open = self.0.open.lock();
            let mut all: Vec<&KeyRange> = open.watches.values().map(|watch| &watch.range).collect();
            all.sort_unstable();
            for alike in all.chunk_by(|one, other| one == other) {
                ranges.extend(alike.first().map(|range| ((*range).clone(), alike.len())));
            }
        }
        let readers = |scope: &Scope| {
            ranges.iter().filter(|(range, _)| range.meets(scope)).map(|(_, count)| count).sum()
        };
        let readers = scopes.iter().map(|scope| (scope.clone(), readers(scope)));
        readers.filter(|(_, readers)| *readers > 0).collect()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// A watch that is open.
#[derive(Debug)]
pub(super) struct Reading {
    readers: Readers,
    id: u64,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.readers.0.open.lock().watches.remove(&self.id);
        self.readers.0.changes.send_modify(|changes| *changes += 1);
    }
}
