//! A sorted map whose copies share memory.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// Entries of a chunk before it is split in two.
const MAX_CHUNK_ENTRIES: usize = 64;

/// Chunks of a branch before it is split in two.
const MAX_BRANCH_CHUNKS: usize = 32;

type Entry<K, V> = Arc<(K, V)>;
type Chunk<K, V> = Arc<Vec<Entry<K, V>>>;
type Branch<K, V> = Arc<Vec<Chunk<K, V>>>;

/// A sorted map for results that differ little over time.
///
/// A copy costs one pointer per thousand entries. A change of a copy costs some hundred pointers, and shares all
/// other entries with the original. [`changes`](Self::changes) finds the difference of two copies without reading the
/// shared parts. Equal maps may have different chunks, which affects only these costs.
///
/// Each copied pointer is a reference count elsewhere in memory: with ten thousand entries, these counts dominate the
/// cost of a change, far above the lookup.
pub struct SharedMap<K, V> {
    /// Each sorted and not empty, and so are their chunks; all are in order.
    branches: Vec<Branch<K, V>>,
    len: usize,
}

/// The difference of an entry between two maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'m, K, V> {
    /// The key is new.
    Added(&'m K, &'m V),
    /// The value is not the same one; it may be equal.
    Replaced(&'m K, &'m V, &'m V),
    /// The key is removed.
    Removed(&'m K, &'m V),
}

impl<'m, K, V> Change<'m, K, V> {
    /// The key.
    pub const fn key(&self) -> &'m K {
        match self {
            Self::Added(key, _) | Self::Replaced(key, ..) | Self::Removed(key, _) => key,
        }
    }
}

impl<K, V> SharedMap<K, V> {
    /// No entries.
    pub const fn new() -> Self {
        Self { branches: Vec::new(), len: 0 }
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries().map(|entry| (&entry.0, &entry.1))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry<K, V>> {
        self.branches.iter().flat_map(|chunks| chunks.iter()).flat_map(|chunk| chunk.iter())
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The position of a key, present or not.
    fn position<Q: Ord + ?Sized>(&self, key: &Q) -> Position
    where
        K: Borrow<Q>,
    {
        let is_before = |chunk: &Chunk<K, V>| chunk.first().is_some_and(|first| first.0.borrow() <= key);
        let branch = self.branches.partition_point(|chunks| chunks.first().is_some_and(is_before));
        let branch = branch.saturating_sub(1);
        let Some(chunks) = self.branches.get(branch) else {
            return Position { branch, chunk: 0, found: Err(0) };
        };
        let chunk = chunks.partition_point(is_before).saturating_sub(1);
        let found = chunks
            .get(chunk)
            .map_or(Err(0), |entries| entries.binary_search_by(|entry| entry.0.borrow().cmp(key)));
        Position { branch, chunk, found }
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let Position { branch, chunk, found } = self.position(key);
        self.branches.get(branch)?.get(chunk)?.get(found.ok()?).map(|entry| &entry.1)
    }

    /// Whether there is such a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.position(key).found.is_ok()
    }

    /// The entries from a key on.
    pub fn from_key<'m>(&'m self, key: &K) -> impl Iterator<Item = (&'m K, &'m V)> + use<'m, K, V> {
        let Position { branch, chunk, found: Ok(at) | Err(at) } = self.position(key);
        let first = self.branches.get(branch).into_iter().flat_map(move |chunks| chunks.iter().skip(chunk));
        let rest = self.branches.iter().skip(branch + 1).flat_map(|chunks| chunks.iter());
        let entries = first.chain(rest).flat_map(|chunk| chunk.iter());
        entries.skip(at).map(|entry| (&entry.0, &entry.1))
    }

    /// Puts a value under a key. Returns whether there was one.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        let Position { branch, chunk, found } = self.position(&key);
        let entry = Arc::new((key, value));
        let Some(chunks) = self.branches.get_mut(branch) else {
            self.branches.push(Arc::new(vec![Arc::new(vec![entry])]));
            self.len = 1;
            return false;
        };
        let chunks = unshared(chunks, MAX_BRANCH_CHUNKS);
        let entries = unshared(&mut chunks[chunk], MAX_CHUNK_ENTRIES);
        match found {
            Ok(at) => {
                entries[at] = entry;
                true
            }
            Err(at) => {
                entries.insert(at, entry);
                self.len += 1;
                if entries.len() > MAX_CHUNK_ENTRIES {
                    let rest = entries.split_off(MAX_CHUNK_ENTRIES / 2);
                    chunks.insert(chunk + 1, Arc::new(rest));
                }
                if chunks.len() > MAX_BRANCH_CHUNKS {
                    let rest = chunks.split_off(MAX_BRANCH_CHUNKS / 2);
                    self.branches.insert(branch + 1, Arc::new(rest));
                }
                false
            }
        }
    }

    /// The value of a key, to be changed: a copy of its own if it was shared.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q> + Clone,
        V: Clone,
    {
        let Position { branch, chunk, found } = self.position(key);
        let at = found.ok()?;
        let chunks = unshared(self.branches.get_mut(branch)?, MAX_BRANCH_CHUNKS);
        let entry = unshared(chunks.get_mut(chunk)?, MAX_CHUNK_ENTRIES).get_mut(at)?;
        Some(&mut Arc::make_mut(entry).1)
    }

    /// Takes an entry out. Returns whether there was one.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let Position { branch, chunk, found: Ok(at) } = self.position(key) else { return false };
        let chunks = unshared(&mut self.branches[branch], MAX_BRANCH_CHUNKS);
        let entries = unshared(&mut chunks[chunk], MAX_CHUNK_ENTRIES);
        entries.remove(at);
        if entries.is_empty() {
            chunks.remove(chunk);
        }
        if chunks.is_empty() {
            self.branches.remove(branch);
        }
        self.len -= 1;
        true
    }

    /// The changes from an earlier copy, in key order. Shared parts are not read.
    pub fn changes<'m>(&'m self, before: &'m Self) -> Vec<Change<'m, K, V>> {
        let mut changes = Vec::new();
        let (mut new, mut old) = (Cursor::new(self), Cursor::new(before));
        loop {
            if let (Some(one), Some(other)) = (new.whole_branch(), old.whole_branch())
                && Arc::ptr_eq(one, other)
            {
                new.skip_branch();
                old.skip_branch();
                continue;
            }
            if let (Some(one), Some(other)) = (new.whole_chunk(), old.whole_chunk())
                && Arc::ptr_eq(one, other)
            {
                new.skip_chunk();
                old.skip_chunk();
                continue;
            }
            match (new.entry(), old.entry()) {
                (None, None) => return changes,
                // The key is not read either, because it is elsewhere in memory.
                (Some(one), Some(other)) if Arc::ptr_eq(one, other) => {
                    new.step();
                    old.step();
                }
                (Some(added), None) => {
                    changes.push(Change::Added(&added.0, &added.1));
                    new.step();
                }
                (None, Some(removed)) => {
                    changes.push(Change::Removed(&removed.0, &removed.1));
                    old.step();
                }
                (Some(one), Some(other)) => match one.0.cmp(&other.0) {
                    std::cmp::Ordering::Less => {
                        changes.push(Change::Added(&one.0, &one.1));
                        new.step();
                    }
                    std::cmp::Ordering::Greater => {
                        changes.push(Change::Removed(&other.0, &other.1));
                        old.step();
                    }
                    std::cmp::Ordering::Equal => {
                        changes.push(Change::Replaced(&one.0, &other.1, &one.1));
                        new.step();
                        old.step();
                    }
                },
            }
        }
    }
}

/// An unshared node, with room for one more than its width.
fn unshared<T>(node: &mut Arc<Vec<Arc<T>>>, width: usize) -> &mut Vec<Arc<T>> {
    if Arc::get_mut(node).is_none() {
        let mut held = Vec::with_capacity(width + 1);
        held.extend(node.iter().cloned());
        *node = Arc::new(held);
    }
    Arc::make_mut(node)
}

/// The position of a key, present or not: the branch, its chunk, and the index in that.
struct Position {
    branch: usize,
    chunk: usize,
    found: Result<usize, usize>,
}

/// A place in a map, moving on.
struct Cursor<'m, K, V> {
    branches: &'m [Branch<K, V>],
    chunk: usize,
    at: usize,
}

impl<'m, K, V> Cursor<'m, K, V> {
    fn new(map: &'m SharedMap<K, V>) -> Self {
        Self { branches: &map.branches, chunk: 0, at: 0 }
    }

    /// The present branch, if nothing of it is behind.
    fn whole_branch(&self) -> Option<&'m Branch<K, V>> {
        self.branches.first().filter(|_| self.chunk == 0 && self.at == 0)
    }

    /// The present chunk, if nothing of it is behind.
    fn whole_chunk(&self) -> Option<&'m Chunk<K, V>> {
        self.present().filter(|_| self.at == 0)
    }

    fn present(&self) -> Option<&'m Chunk<K, V>> {
        self.branches.first()?.get(self.chunk)
    }

    fn skip_branch(&mut self) {
        self.branches = self.branches.get(1..).unwrap_or_default();
        (self.chunk, self.at) = (0, 0);
    }

    fn skip_chunk(&mut self) {
        (self.chunk, self.at) = (self.chunk + 1, 0);
        if self.branches.first().is_some_and(|chunks| chunks.len() == self.chunk) {
            self.skip_branch();
        }
    }

    fn entry(&self) -> Option<&'m Entry<K, V>> {
        self.present()?.get(self.at)
    }

    fn step(&mut self) {
        self.at += 1;
        if self.present().is_some_and(|chunk| chunk.len() == self.at) {
            self.skip_chunk();
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    /// Of two entries with one key, the last one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<Entry<K, V>> = entries.into_iter().map(Arc::new).collect();
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.reverse();
            entries.dedup_by(|later, kept| later.0 == kept.0);
            entries.reverse();
        }
        let len = entries.len();
        let chunks: Vec<_> =
            entries.chunks(MAX_CHUNK_ENTRIES * 3 / 4).map(|chunk| Arc::new(chunk.to_vec())).collect();
        let branches =
            chunks.chunks(MAX_BRANCH_CHUNKS * 3 / 4).map(|chunks| Arc::new(chunks.to_vec())).collect();
        Self { branches, len }
    }
}

impl<K: Ord, V> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        if self.is_empty() {
            *self = entries.into_iter().collect();
            return;
        }
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self { branches: self.branches.clone(), len: self.len }
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Entry<K, V>, &Entry<K, V>)| Arc::ptr_eq(one, other) || one == other;
        self.len == other.len && self.entries().zip(other.entries()).all(same)
    }
}

impl<K: Eq, V: Eq> Eq for SharedMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for SharedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("whoever indexes knows that the key is there")
    }
}

impl<'m, K, V> IntoIterator for &'m SharedMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = Box<dyn DoubleEndedIterator<Item = Self::Item> + 'm>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    /// The changes between two maps by a full comparison.
    fn expected(
        after: &BTreeMap<u32, u32>,
        before: &BTreeMap<u32, u32>,
    ) -> Vec<(u32, Option<u32>, Option<u32>)> {
        let mut keys: Vec<u32> = after.keys().chain(before.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let values = |key: &u32| (before.get(key).copied(), after.get(key).copied());
        let changes = keys.iter().map(|key| (*key, values(key).0, values(key).1));
        changes.filter(|(_, before, after)| before != after).collect()
    }

    #[test]
    fn it_is_a_map_and_knows_what_changed_between_copies() {
        let mut rng = SmallRng::seed_from_u64(5);
        for round in 0..40 {
            // Now and then it has several branches.
            let keys = if round % 8 == 0 { 10_000 } else { 1_000 };
            let mut model: BTreeMap<u32, u32> =
                (0..rng.random_range(0..keys * 3 / 5)).map(|_| (rng.random_range(0..keys), 0)).collect();
            let mut map: SharedMap<u32, u32> = model.iter().map(|(key, value)| (*key, *value)).collect();
            for step in 0..30 {
                let (model_before, before) = (model.clone(), map.clone());
                for _ in 0..rng.random_range(0..if round % 2 == 0 { 4 } else { 200 }) {
                    let key = rng.random_range(0..keys);
                    if rng.random() {
                        assert_eq!(map.insert(key, step + 1), model.insert(key, step + 1).is_some());
                    } else {
                        assert_eq!(map.remove(&key), model.remove(&key).is_some());
                    }
                }
                assert_eq!(map.len(), model.len());
                assert!(map.iter().eq(model.iter()) && map.iter().rev().eq(model.iter().rev()));
                assert!(before.iter().eq(model_before.iter()), "the earlier copy is as it was");
                let from = rng.random_range(0..keys);
                assert!(map.from_key(&from).eq(model.range(from..)));
                assert_eq!(map.get(&from), model.get(&from));
                assert_eq!(map.contains_key(&from), model.contains_key(&from));
                let rebuilt: SharedMap<u32, u32> = model.iter().map(|(key, value)| (*key, *value)).collect();
                assert_eq!(map, rebuilt);
                let changes = map.changes(&before).into_iter().filter_map(|change| match change {
                    Change::Added(key, value) => Some((*key, None, Some(*value))),
                    Change::Replaced(key, old, new) => (old != new).then_some((*key, Some(*old), Some(*new))),
                    Change::Removed(key, value) => Some((*key, Some(*value), None)),
                });
                assert_eq!(changes.collect::<Vec<_>>(), expected(&model, &model_before));
            }
        }
    }

    #[test]
    fn the_last_of_several_entries_with_one_key_stays() {
        let map: SharedMap<u32, char> = [(2, 'a'), (1, 'b'), (2, 'c'), (1, 'd')].into_iter().collect();
        assert!(map.iter().eq([(&1, &'d'), (&2, &'c')]));
        assert!(SharedMap::<u32, u32>::new().changes(&SharedMap::new()).is_empty());
    }

    /// The pairs that two nodes of the same length do not share.
    fn unshared_pairs<'m, T>(one: &'m [Arc<T>], other: &'m [Arc<T>]) -> impl Iterator<Item = (&'m T, &'m T)> {
        assert_eq!(one.len(), other.len());
        let pairs = one.iter().zip(other).filter(|(one, other)| !Arc::ptr_eq(one, other));
        pairs.map(|(one, other)| (&**one, &**other))
    }

    #[test]
    fn a_change_leaves_the_other_entries_shared() {
        let before: SharedMap<u32, u32> = (0..10_000).map(|key| (key, key)).collect();
        let mut after = before.clone();
        after.insert(5_000, 0);
        let branches: Vec<_> = unshared_pairs(&after.branches, &before.branches).collect();
        let chunks: Vec<_> = branches.iter().flat_map(|(one, other)| unshared_pairs(one, other)).collect();
        let entries = chunks.iter().flat_map(|(one, other)| unshared_pairs(one, other));
        assert_eq!((branches.len(), chunks.len(), entries.count()), (1, 1, 1));
        // The cost of a copy and a change.
        assert!(after.branches.len() + branches[0].0.len() + chunks[0].0.len() < 100);
    }
}
