//! Encoded values that clients with the same request share.
//!
//! After a restart of the server, all clients list the same range at once, and after a change, all watches of a range
//! receive the same response. The first client encodes it, and the others share the bytes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

/// A cache of recent values.
pub(super) struct SharedCache<K, V> {
    max_bytes: usize,
    recent: Mutex<VecDeque<Entry<K, V>>>,
}

/// A value with its size in bytes, which its first user makes.
struct Entry<K, V> {
    key: K,
    made: Arc<OnceLock<(V, usize)>>,
}

impl<K, V> fmt::Debug for SharedCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCache").field("entries", &self.recent.lock().len()).finish_non_exhaustive()
    }
}

impl<K: PartialEq, V: Clone> SharedCache<K, V> {
    /// Limit of cached values. Clients with the same request send it within moments of one another.
    const MAX_ENTRIES: usize = 16;

    /// A cache that keeps at most so many bytes besides the newest value.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, recent: Mutex::default() }
    }

    /// The value of `key`, and whether this call made it. `make` returns the value and its size in bytes.
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> (V, usize)) -> (V, bool) {
        let entry = self.entry(key);
        let mut is_new = false;
        let (value, _) = entry.get_or_init(|| {
            is_new = true;
            make()
        });
        (value.clone(), is_new)
    }

    fn entry(&self, key: K) -> Arc<OnceLock<(V, usize)>> {
        let mut recent = self.recent.lock();
        if let Some(known) = recent.iter().rev().find(|entry| entry.key == key) {
            return Arc::clone(&known.made);
        }
        let made = Arc::<OnceLock<_>>::default();
        recent.push_back(Entry { key, made: Arc::clone(&made) });
        let bytes = |entry: &Entry<K, V>| entry.made.get().map_or(0, |(_, bytes)| *bytes);
        let mut all: usize = recent.iter().map(bytes).sum();
        while recent.len() > Self::MAX_ENTRIES || (all > self.max_bytes && recent.len() > 1) {
            all -= recent.pop_front().as_ref().map_or(0, bytes);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_kept_within_the_limits() {
        let cache = SharedCache::<u32, u32>::new(10);
        assert_eq!(cache.get(1, || (10, 4)), (10, true));
        assert_eq!(cache.get(1, || panic!("it is there")), (10, false));
        assert_eq!(cache.get(2, || (20, 20)), (20, true));
        // The bytes exceed the limit, so only the newest is kept.
        assert_eq!(cache.get(3, || (30, 1)), (30, true));
        assert_eq!(cache.recent.lock().len(), 1);
        assert_eq!(cache.get(1, || (11, 1)), (11, true));
        for key in 0..100 {
            cache.get(key, || (key, 0));
            assert!(cache.recent.lock().len() <= SharedCache::<u32, u32>::MAX_ENTRIES);
        }
    }
}
