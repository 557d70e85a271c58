//! A sorted map whose copies share what they have in common.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// Entries of a chunk before it is split in two.
const CHUNK: usize = 128;

type Entry<K, V> = Arc<(K, V)>;
type Chunk<K, V> = Arc<Vec<Entry<K, V>>>;

/// A sorted map for results that differ little from one time to the next.
///
/// A copy costs one pointer per hundred entries; a change of a copy leaves all other entries shared with the original;
/// and [`changes`](Self::changes) finds the difference of two copies without looking at what they share. Equal maps
/// may be cut into chunks differently, which nothing but the cost of these shows.
pub struct SharedMap<K, V> {
    /// Each sorted and not empty; the chunks are in order.
    chunks: Vec<Chunk<K, V>>,
    len: usize,
}

/// How an entry of one map differs from that of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'m, K, V> {
    /// There was no such key.
    Added(&'m K, &'m V),
    /// The value is not the same one; it may be equal.
    Replaced(&'m K, &'m V, &'m V),
    /// There is no such key any more.
    Removed(&'m K, &'m V),
}

impl<K, V> SharedMap<K, V> {
    /// No entries.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
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
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The chunk where a key is or belongs, and the place in it.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, Result<usize, usize>)
    where
        K: Borrow<Q>,
    {
        let after =
            self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| first.0.borrow() <= key));
        let chunk = after.saturating_sub(1);
        let found = self
            .chunks
            .get(chunk)
            .map_or(Err(0), |entries| entries.binary_search_by(|entry| entry.0.borrow().cmp(key)));
        (chunk, found)
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (chunk, found) = self.place(key);
        self.chunks.get(chunk)?.get(found.ok()?).map(|entry| &entry.1)
    }

    /// Whether there is such a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).1.is_ok()
    }

    /// The entries from a key on.
    pub fn from_key<'m>(&'m self, key: &K) -> impl Iterator<Item = (&'m K, &'m V)> + use<'m, K, V> {
        let (chunk, found) = self.place(key);
        let (Ok(at) | Err(at)) = found;
        let rest = self.chunks.iter().skip(chunk).flat_map(|chunk| chunk.iter());
        rest.skip(at).map(|entry| (&entry.0, &entry.1))
    }

    /// Puts a value under a key. Returns whether there was one.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        let (chunk, found) = self.place(&key);
        let entry = Arc::new((key, value));
        let Some(entries) = self.chunks.get_mut(chunk) else {
            self.chunks.push(Arc::new(vec![entry]));
            self.len = 1;
            return false;
        };
        let entries = unshared(entries);
        match found {
            Ok(at) => {
                entries[at] = entry;
                true
            }
            Err(at) => {
                entries.insert(at, entry);
                self.len += 1;
                if entries.len() > CHUNK {
                    let rest = entries.split_off(CHUNK / 2);
                    self.chunks.insert(chunk + 1, Arc::new(rest));
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
        let (chunk, found) = self.place(key);
        let entry = unshared(self.chunks.get_mut(chunk)?).get_mut(found.ok()?)?;
        Some(&mut Arc::make_mut(entry).1)
    }

    /// Takes an entry out. Returns whether there was one.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let (chunk, Ok(at)) = self.place(key) else { return false };
        let Some(entries) = self.chunks.get_mut(chunk) else { return false };
        let entries = unshared(entries);
        entries.remove(at);
        if entries.is_empty() {
            self.chunks.remove(chunk);
        }
        self.len -= 1;
        true
    }

    /// What is different from an earlier copy, in the order of keys. What the two share is not looked at.
    pub fn changes<'m>(&'m self, before: &'m Self) -> Vec<Change<'m, K, V>> {
        let mut changes = Vec::new();
        let (mut new, mut old) = (Cursor::new(self), Cursor::new(before));
        loop {
            if let (Some(one), Some(other)) = (new.whole_chunk(), old.whole_chunk())
                && Arc::ptr_eq(one, other)
            {
                new.skip_chunk();
                old.skip_chunk();
                continue;
            }
            match (new.entry(), old.entry()) {
                (None, None) => return changes,
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
                        if !Arc::ptr_eq(one, other) {
                            changes.push(Change::Replaced(&one.0, &other.1, &one.1));
                        }
                        new.step();
                        old.step();
                    }
                },
            }
        }
    }
}

/// The entries of a chunk, of which there is no other copy any more.
fn unshared<K, V>(chunk: &mut Chunk<K, V>) -> &mut Vec<Entry<K, V>> {
    if Arc::get_mut(chunk).is_none() {
        let mut entries = Vec::with_capacity(CHUNK + 1);
        entries.extend(chunk.iter().cloned());
        *chunk = Arc::new(entries);
    }
    Arc::make_mut(chunk)
}

/// A place in a map, moving on.
struct Cursor<'m, K, V> {
    chunks: &'m [Chunk<K, V>],
    at: usize,
}

impl<'m, K, V> Cursor<'m, K, V> {
    fn new(map: &'m SharedMap<K, V>) -> Self {
        Self { chunks: &map.chunks, at: 0 }
    }

    /// The present chunk, if nothing of it is behind.
    fn whole_chunk(&self) -> Option<&'m Chunk<K, V>> {
        self.chunks.first().filter(|_| self.at == 0)
    }

    fn skip_chunk(&mut self) {
        self.chunks = self.chunks.get(1..).unwrap_or_default();
        self.at = 0;
    }

    fn entry(&self) -> Option<&'m Entry<K, V>> {
        self.chunks.first()?.get(self.at)
    }

    fn step(&mut self) {
        self.at += 1;
        if self.chunks.first().is_some_and(|chunk| chunk.len() == self.at) {
            self.skip_chunk();
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    /// Of two entries with one key the last one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<Entry<K, V>> = entries.into_iter().map(Arc::new).collect();
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.reverse();
            entries.dedup_by(|later, kept| later.0 == kept.0);
            entries.reverse();
        }
        let len = entries.len();
        let chunks = entries.chunks(CHUNK * 3 / 4).map(|chunk| Arc::new(chunk.to_vec())).collect();
        Self { chunks, len }
    }
}

impl<K: Ord, V> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
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

    /// What turned one map into the other, by looking at everything.
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
            let mut model: BTreeMap<u32, u32> =
                (0..rng.random_range(0..600)).map(|_| (rng.random_range(0..1000), 0)).collect();
            let mut map: SharedMap<u32, u32> = model.iter().map(|(key, value)| (*key, *value)).collect();
            for step in 0..30 {
                let (model_before, before) = (model.clone(), map.clone());
                for _ in 0..rng.random_range(0..if round % 2 == 0 { 4 } else { 200 }) {
                    let key = rng.random_range(0..1000);
                    if rng.random() {
                        assert_eq!(map.insert(key, step + 1), model.insert(key, step + 1).is_some());
                    } else {
                        assert_eq!(map.remove(&key), model.remove(&key).is_some());
                    }
                }
                assert_eq!(map.len(), model.len());
                assert!(map.iter().eq(model.iter()) && map.iter().rev().eq(model.iter().rev()));
                assert!(before.iter().eq(model_before.iter()), "the earlier copy is as it was");
                let from = rng.random_range(0..1000);
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

    #[test]
    fn a_change_leaves_the_other_entries_shared() {
        let before: SharedMap<u32, u32> = (0..10_000).map(|key| (key, key)).collect();
        let mut after = before.clone();
        after.insert(5_000, 0);
        let shared =
            after.chunks.iter().filter(|one| before.chunks.iter().any(|other| Arc::ptr_eq(one, other)));
        assert_eq!(shared.count(), before.chunks.len() - 1);
    }
}
