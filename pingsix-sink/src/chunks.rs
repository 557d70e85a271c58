//! A sorted sequence in chunks that copies share.
//!
//! A copy costs one reference count. A copy with changes shares every chunk without a change, so it costs the changes
//! and one pointer for each [`CHUNK_LEN`] values. Ranks are known, so the size of a range costs a logarithm. The decision
//! record 12 says why this is not the `SharedMap` of translation.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Target length of a chunk. A chunk of twice this length is split; a chunk of a quarter joins the next one.
pub(crate) const CHUNK_LEN: usize = 128;

/// A value of a sorted sequence.
pub(crate) trait Sorted {
    type SortKey: Ord + ?Sized;

    /// The sort key; unique in a sequence.
    fn sort_key(&self) -> &Self::SortKey;
}

/// Values sorted by [`Sorted::sort_key`].
pub(crate) struct Chunks<T> {
    /// No chunk is empty.
    chunks: Arc<[Chunk<T>]>,
    len: usize,
}

struct Chunk<T> {
    /// The rank of the first value.
    start: usize,
    values: Arc<[T]>,
}

impl<T> Chunks<T> {
    fn from_chunks(chunks: Vec<Arc<[T]>>) -> Self {
        let mut len = 0;
        let chunks = chunks.into_iter().map(|values| {
            let start = len;
            len += values.len();
            Chunk { start, values }
        });
        let chunks = chunks.collect();
        Self { chunks, len }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values in order.
    pub(crate) fn iter(&self) -> ChunkIter<'_, T> {
        self.between(0..self.len)
    }

    /// The values with these ranks; ranks beyond the end are ignored.
    pub(crate) fn between(&self, ranks: Range<usize>) -> ChunkIter<'_, T> {
        let first = self.chunk_of(ranks.start);
        let mut chunks = self.chunks.get(first..).unwrap_or_default().iter();
        let values = chunks
            .next()
            .map_or(&[][..], |chunk| chunk.values.get(ranks.start - chunk.start..).unwrap_or_default());
        ChunkIter { chunks, chunk: values.iter(), left: ranks.end.min(self.len).saturating_sub(ranks.start) }
    }

    /// The value with this rank.
    pub(crate) fn at(&self, rank: usize) -> Option<&T> {
        let chunk = self.chunks.get(self.chunk_of(rank))?;
        chunk.values.get(rank - chunk.start)
    }

    /// The index of the chunk that contains this rank, or of the last chunk.
    fn chunk_of(&self, rank: usize) -> usize {
        self.chunks.partition_point(|chunk| chunk.start <= rank).saturating_sub(1)
    }

    /// The number of leading values for which `is_before` is true, as in [`slice::partition_point`].
    pub(crate) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let beyond = self.chunks.partition_point(|chunk| is_before(&chunk.values[0]));
        let Some(chunk) = beyond.checked_sub(1).map(|last| &self.chunks[last]) else { return 0 };
        chunk.start + chunk.values.partition_point(is_before)
    }

    /// Estimate of the bytes that a copy with this many changes owns, without the referents of its values.
    pub(crate) fn bytes_of_changes(&self, changes: usize) -> usize {
        let chunks = self.chunks.len();
        let values = changes.min(chunks) * self.len.checked_div(chunks).unwrap_or_default();
        chunks * size_of::<Chunk<T>>() + values * size_of::<T>()
    }

    /// The values of chunks that the other sequence does not share, in order.
    fn without(&self, other: &Self) -> impl Iterator<Item = &T> {
        let shared: BTreeSet<*const T> = other.chunks.iter().map(|chunk| chunk.values.as_ptr()).collect();
        let own = self.chunks.iter().filter(move |chunk| !shared.contains(&chunk.values.as_ptr()));
        own.flat_map(|chunk| chunk.values.iter())
    }
}

impl<T: Clone> Chunks<T> {
    /// A copy without the first `count` values.
    pub(crate) fn without_first(&self, count: usize) -> Self {
        let first = self.chunk_of(count);
        let Some(push_chunks) = self.chunks.get(first) else { return self.clone() };
        let kept: Arc<[T]> = push_chunks.values.get(count - push_chunks.start..).unwrap_or_default().into();
        let whole = self.chunks[first + 1..].iter().map(|chunk| Arc::clone(&chunk.values));
        Self::from_chunks(Some(kept).filter(|kept| !kept.is_empty()).into_iter().chain(whole).collect())
    }
}

impl<T: Sorted> Chunks<T> {
    /// The value with this sort key.
    pub(crate) fn get(&self, sort_key: &T::SortKey) -> Option<&T> {
        let rank = self.partition_point(|value| value.sort_key() < sort_key);
        self.at(rank).filter(|value| value.sort_key() == sort_key)
    }

    /// The former and the present value of each sort key, in order, without those of the chunks that both sequences
    /// share. So the two may be equal.
    pub(crate) fn pairs<'s>(
        &'s self,
        before: &'s Self,
    ) -> impl Iterator<Item = (Option<&'s T>, Option<&'s T>)> {
        let (mut old, mut new) = (before.without(self).peekable(), self.without(before).peekable());
        std::iter::from_fn(move || {
            let order = match (old.peek(), new.peek()) {
                (Some(old), Some(new)) => old.sort_key().cmp(new.sort_key()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            Some((old.next_if(|_| order.is_le()), new.next_if(|_| order.is_ge())))
        })
    }
}

impl<T: Sorted + Clone> Chunks<T> {
    /// A sequence of sorted values.
    pub(crate) fn sorted(values: Vec<T>) -> Self {
        let mut chunks = Vec::new();
        push_chunks(values, &mut chunks);
        Self::from_chunks(chunks)
    }

    /// A copy with `changes`, which are in order: each replaces, adds or, as `None`, removes a value.
    pub(crate) fn with_changes<B: Borrow<T::SortKey>>(
        &self,
        changes: impl IntoIterator<Item = (B, Option<T>)>,
    ) -> Self {
        let mut changes = changes.into_iter().peekable();
        if changes.peek().is_none() {
            return self.clone();
        }
        let mut chunks = Vec::with_capacity(self.chunks.len() + 1);
        // Values of a chunk that became too short; they join the next chunk.
        let mut remainder: Vec<T> = Vec::new();
        for (index, Chunk { values, .. }) in self.chunks.iter().enumerate() {
            let next = self.chunks.get(index + 1).map(|next| next.values[0].sort_key());
            let is_in_chunk = |sort_key: &T::SortKey| next.is_none_or(|next| sort_key < next);
            if remainder.is_empty()
                && !changes.peek().is_some_and(|(sort_key, _)| is_in_chunk(sort_key.borrow()))
            {
                chunks.push(Arc::clone(values));
                continue;
            }
            let mut kept = &values[..];
            remainder.reserve(kept.len() + 1);
            while let Some((sort_key, value)) =
                changes.next_if(|(sort_key, _)| is_in_chunk(sort_key.borrow()))
            {
                let (before, after) =
                    kept.split_at(kept.partition_point(|other| other.sort_key() < sort_key.borrow()));
                remainder.extend_from_slice(before);
                let is_replaced = after.first().is_some_and(|value| value.sort_key() == sort_key.borrow());
                kept = if is_replaced { &after[1..] } else { after };
                remainder.extend(value);
            }
            remainder.extend_from_slice(kept);
            if remainder.len() >= CHUNK_LEN / 4 {
                push_chunks(std::mem::take(&mut remainder), &mut chunks);
            }
        }
        // The sequence was empty.
        remainder.extend(changes.filter_map(|(_, value)| value));
        push_chunks(remainder, &mut chunks);
        Self::from_chunks(chunks)
    }
}

/// Adds values, in order, as chunks.
fn push_chunks<T>(values: Vec<T>, chunks: &mut Vec<Arc<[T]>>) {
    if values.len() < 2 * CHUNK_LEN {
        if !values.is_empty() {
            chunks.push(values.into());
        }
        return;
    }
    let mut values = values.into_iter();
    while values.len() > 0 {
        chunks.push(values.by_ref().take(CHUNK_LEN).collect());
    }
}

impl<T> Clone for Chunks<T> {
    fn clone(&self) -> Self {
        Self { chunks: Arc::clone(&self.chunks), len: self.len }
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Arc::default(), len: 0 }
    }
}

impl<T: fmt::Debug> fmt::Debug for Chunks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over a part of a sequence in order.
#[derive(Debug)]
pub(crate) struct ChunkIter<'a, T> {
    chunks: std::slice::Iter<'a, Chunk<T>>,
    chunk: std::slice::Iter<'a, T>,
    left: usize,
}

impl<T> Clone for ChunkIter<'_, T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), chunk: self.chunk.clone(), left: self.left }
    }
}

impl<'a, T> Iterator for ChunkIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(value) = self.chunk.next() {
                return Some(value);
            }
            self.chunk = self.chunks.next()?.values.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for ChunkIter<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for Chunk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Sorted for u64 {
        type SortKey = Self;

        fn sort_key(&self) -> &Self {
            self
        }
    }

    fn change() -> impl Strategy<Value = BTreeMap<u64, bool>> {
        prop_oneof![
            prop::collection::btree_map(0u64..2_000, any::<bool>(), 0..8),
            prop::collection::btree_map(0u64..2_000, Just(true), 0..600),
            prop::collection::btree_map(0u64..2_000, Just(false), 0..1_500),
        ]
    }

    proptest! {
        #[test]
        fn chunks_are_a_sorted_set(
            changes in prop::collection::vec((change(), 0usize..40), 1..12), start in 0usize..700, end in 0usize..700,
        ) {
            let mut expected = BTreeSet::new();
            let mut chunks = Chunks::<u64>::default();
            for (change, dropped) in changes {
                let before: Vec<u64> = chunks.iter().copied().collect();
                let after = chunks.with_changes(change.iter().map(|(value, is_there)| (*value, is_there.then_some(*value))));
                prop_assert!(chunks.iter().eq(&before), "a copy changes nothing else");
                let changes = change.iter().filter_map(|(value, is_there)| {
                    let was_there = before.binary_search(value).is_ok();
                    (was_there != *is_there).then_some((was_there.then_some(value), is_there.then_some(value)))
                });
                prop_assert!(after.pairs(&chunks).filter(|(old, new)| old != new).eq(changes));
                let removed = change.iter().filter(|(_, is_there)| !**is_there);
                for (value, _) in removed { expected.remove(value); }
                expected.extend(change.iter().filter(|(_, is_there)| **is_there).map(|(value, _)| *value));
                prop_assert!(after.iter().eq(&expected));
                chunks = after.without_first(dropped);
                for _ in 0..dropped { expected.pop_first(); }
                prop_assert!(chunks.iter().eq(&expected));
                prop_assert_eq!((chunks.len(), chunks.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert!(chunks.chunks.iter().all(|chunk| (1..2 * CHUNK_LEN).contains(&chunk.values.len())));
            }
            let sorted: Vec<u64> = expected.iter().copied().collect();
            let within = sorted.get(start..end.min(sorted.len())).unwrap_or_default();
            prop_assert!(chunks.between(start..end).eq(within));
            prop_assert_eq!(chunks.between(start..end).len(), within.len());
            prop_assert_eq!(chunks.at(start), sorted.get(start));
            let limit = start as u64 * 3;
            prop_assert_eq!(chunks.partition_point(|value| *value < limit), expected.range(..limit).count());
            prop_assert_eq!(chunks.get(&limit), expected.get(&limit));
            let other = Chunks::sorted(sorted);
            prop_assert!(other.iter().eq(chunks.iter()));
            let both = other.pairs(&chunks).map(|(old, new)| old.zip(new));
            prop_assert!(both.eq(chunks.iter().map(|value| Some((value, value)))), "nothing is shared");
        }
    }
}
