//! The open watches by their keys, and the streams to wake for a change.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

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
    /// Watches of [prefix](KeyRange::as_prefix) ranges by their prefix, as of a client that mirrors a scope.
    by_prefix: BTreeMap<Box<str>, BTreeSet<u64>>,
    /// All other watches.
    others: BTreeSet<u64>,
}

#[derive(Debug)]
struct OpenWatch {
    range: KeyRange,
    stream: Arc<StreamSignals>,
}

/// The signals to a stream of watches.
#[derive(Debug, Default)]
pub(super) struct StreamSignals {
    /// Notified of a change for one of the watches.
    pub(super) changed: Notify,
    /// Notified of a confirmation.
    pub(super) confirmed: Notify,
    /// The highest confirmed revision.
    revision: AtomicI64,
}

impl StreamSignals {
    /// The highest revision that the readers of one of the watches have confirmed; 0 before the first confirmation.
    pub(super) fn confirmed_revision(&self) -> i64 {
        self.revision.load(Ordering::Relaxed)
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Inner { open: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

impl Open {
    /// The watches of keys of `scope`. Watches of other scopes cost nothing.
    fn overlapping(&self, scope: &Scope) -> impl Iterator<Item = &OpenWatch> {
        let path = scope.as_str();
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end)).chain([path]);
        let above = above.filter_map(|prefix| self.by_prefix.get(prefix));
        let first = scope.key_prefix();
        let below = self.by_prefix.range::<str, _>((Bound::Included(first), Bound::Unbounded));
        let below = below.take_while(move |(prefix, _)| prefix.starts_with(first));
        let prefixed = above.chain(below.map(|(_, ids)| ids)).flatten();
        let watch = |id: &u64| self.watches.get(id);
        let others = self.others.iter().filter_map(watch).filter(|watch| watch.range.overlaps(scope));
        prefixed.filter_map(watch).chain(others)
    }

    fn leave(&mut self, id: u64) {
        let Some(OpenWatch { range, .. }) = self.watches.remove(&id) else { return };
        match range.as_prefix() {
            Some(prefix) => {
                if let Some(alike) = self.by_prefix.get_mut(prefix) {
                    alike.remove(&id);
                    if alike.is_empty() {
                        self.by_prefix.remove(prefix);
                    }
                }
            }
            None => {
                self.others.remove(&id);
            }
        }
    }
}

impl Readers {
    /// Registers a watch and its stream until the guard is dropped.
    pub(super) fn enter(&self, range: KeyRange, stream: Arc<StreamSignals>) -> WatchGuard {
        let mut open = self.0.open.lock();
        open.last += 1;
        let id = open.last;
        match range.as_prefix() {
            Some(prefix) => open.by_prefix.entry(prefix.into()).or_default().insert(id),
            None => open.others.insert(id),
        };
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
            watch.stream.changed.notify_one();
        }
    }

    /// Tells the streams that watch keys of `scope` that their clients have applied everything up to a revision.
    pub(super) fn confirm(&self, scope: &Scope, revision: i64) {
        let open = self.0.open.lock();
        for watch in open.overlapping(scope) {
            if watch.stream.revision.fetch_max(revision, Ordering::Relaxed) < revision {
                watch.stream.confirmed.notify_one();
            }
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
        self.readers.0.open.lock().leave(self.id);
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
        let [one, other] = [(); 2].map(|()| Arc::<StreamSignals>::default());
        let _one = readers.enter(KeyRange::new("/a/x/", "/a/x0"), Arc::clone(&one));
        let _other = readers.enter(KeyRange::new("/a/y/", "/a/y0"), Arc::clone(&other));
        readers.wake(&scope("/a/x"));
        let is_woken = |stream: &StreamSignals| {
            let mut woken = std::pin::pin!(stream.changed.notified());
            woken.as_mut().enable()
        };
        assert_eq!((is_woken(&one), is_woken(&other)), (true, false));
    }

    #[test]
    fn the_watches_of_a_scope_are_those_whose_ranges_meet_it() {
        const PATHS: [&str; 6] = ["/a", "/a/b", "/a/b-2", "/a/b/c", "/a/bc", "/d"];
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let readers = Readers::default();
            let mut open: Vec<WatchGuard> = Vec::new();
            for _ in 0..rng.usize(0..12) {
                let path = PATHS[rng.usize(0..PATHS.len())];
                let range = match rng.usize(0..5) {
                    0 => KeyRange::new(format!("{path}/routes/1"), ""),
                    1 => KeyRange::new(path, "\0"),
                    2 => KeyRange::new(format!("{path}/routes/"), format!("{path}/routes0")),
                    3 => KeyRange::new("/", "0"),
                    _ => KeyRange::new(format!("{path}/"), format!("{path}0")),
                };
                open.push(readers.enter(range, Arc::default()));
                if rng.u8(..5) == 0 {
                    drop(open.swap_remove(rng.usize(0..open.len())));
                }
            }
            for scope in PATHS.map(scope) {
                let of = readers
                    .0
                    .open
                    .lock()
                    .watches
                    .values()
                    .filter(|watch| watch.range.overlaps(&scope))
                    .count();
                assert_eq!(readers.of(&scope), of, "{scope}");
            }
            drop(open);
            let left = readers.0.open.lock();
            assert!(left.watches.is_empty() && left.by_prefix.is_empty() && left.others.is_empty());
        }
    }
}
