//! Equal values that are held once.

use std::collections::BTreeSet;
use std::sync::Arc;

/// A reference-counted value.
pub(crate) trait Counted: Ord + Clone {
    /// Whether there are other references.
    fn is_shared(&self) -> bool;
}

impl<T: Ord + ?Sized> Counted for Arc<T> {
    fn is_shared(&self) -> bool {
        Self::strong_count(self) > 1
    }
}

/// An interner: of equal values, all get the first one. Values without other references are dropped.
#[derive(Debug)]
pub(crate) struct Interner<V> {
    known: BTreeSet<V>,
    /// The number of values at which those without other references are dropped.
    limit: usize,
}

/// The number of values that may be kept without other references.
const MIN_LIMIT: usize = 64;

impl<V> Default for Interner<V> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), limit: MIN_LIMIT }
    }
}

impl<V: Counted> Interner<V> {
    /// The interned value that is equal to this one.
    pub(crate) fn share(&mut self, value: impl Into<V>) -> V {
        let value = value.into();
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        if self.known.len() >= self.limit {
            self.known.retain(Counted::is_shared);
            // The limit doubles, so the cost for each added value is constant.
            self.limit = 2 * self.known.len() + MIN_LIMIT;
        }
        self.known.insert(value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_the_same() {
        let mut interner = Interner::<Arc<[i32]>>::default();
        let one = interner.share(vec![1, 2]);
        assert!(Arc::ptr_eq(&one, &interner.share(vec![1, 2])));
        assert!(!Arc::ptr_eq(&one, &interner.share(vec![2])));
    }

    #[test]
    fn a_value_without_other_references_is_dropped() {
        let mut interner = Interner::<Arc<[i32]>>::default();
        let held = interner.share(vec![0]);
        for number in 0..10_000 {
            interner.share(vec![number]);
            assert!(interner.known.len() <= 2 + MIN_LIMIT);
        }
        assert!(Arc::ptr_eq(&held, &interner.share(vec![0])));
    }
}
