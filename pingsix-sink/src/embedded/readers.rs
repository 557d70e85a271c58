//! The open watches by their keys, and the streams to wake for a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::store::{KeyRange, Store};
use crate::desired::Scope;

/// The registry of open watches.
#[derive(Clone, Debug)]
pub(super) struct Readers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: Mutex<Open>,
    /// Counts the openings and ends of watches.
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
    /// Wakes the stream of the watch.
    stream: Arc<Notify>,
}

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Inner { open: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

impl Open {
    /// The watches of keys of `scope`.
    fn overlapping(&self, scope: &Scope) -> impl Iterator<Item = &OpenWatch> {
        self.watches.values().filter(|watch| watch.range.overlaps(scope))
    }
}

impl Readers {
    /// Registers a watch and its stream until the guard is dropped.
    pub(super) fn enter(&self, range: KeyRange, stream: Arc<Notify>) -> WatchGuard {
        let mut open = self.0.open.lock();
        open.last += 1;
        let id = open.last;
        open.watches.insert(id, OpenWatch { range, stream });
        drop(open);
        self.0.changes.send_modify(|changes| *changes += 1);
        WatchGuard { readers: self.clone(), id }
    }

    /// Wakes the streams that watch keys of `scope` and no others. With one stream for each of many scopes, a change
    /// of all scopes would otherwise wake a quadratic number of streams.
    pub(super) fn wake(&self, scope: &Scope) {
        let open = self.0.open.lock();
        for watch in open.overlapping(scope) {
            watch.stream.notify_one();
        }
    }

    /// The number of watches of keys of `scope`.
    pub(super) fn of(&self, scope: &Scope) -> usize {
        self.0.open.lock().overlapping(scope).count()
    }

    /// The number of watches of keys of each scope with any. The cost is a logarithm for each watch.
    pub(super) fn by_scope(&self, store: &Store) -> BTreeMap<Scope, usize> {
        let mut readers = BTreeMap::new();
        for watch in self.0.open.lock().watches.values() {
            for scope in store.scopes_of(&watch.range) {
                *readers.entry(scope.clone()).or_default() += 1;
            }
        }
        readers
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// Registration of an open watch.
#[derive(Debug)]
pub(super) struct WatchGuard {
    readers: Readers,
    id: u64,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.readers.0.open.lock().watches.remove(&self.id);
        self.readers.0.changes.send_modify(|changes| *changes += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(path: &str) -> Scope {
        Scope::new(path).unwrap()
    }

    #[test]
    fn a_publication_wakes_the_streams_that_watch_its_scope() {
        let readers = Readers::default();
        let [one, other] = [(); 2].map(|()| Arc::new(Notify::new()));
        let _one = readers.enter(KeyRange::new("/a/x/", "/a/x0"), Arc::clone(&one));
        let _other = readers.enter(KeyRange::new("/a/y/", "/a/y0"), Arc::clone(&other));
        readers.wake(&scope("/a/x"));
        let is_woken = |stream: &Notify| {
            let mut woken = std::pin::pin!(stream.notified());
            woken.as_mut().enable()
        };
        assert_eq!((is_woken(&one), is_woken(&other)), (true, false));
    }
}
