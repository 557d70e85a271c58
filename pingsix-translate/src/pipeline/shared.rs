//! Values that many routes share, each held once.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::lower::Attachments;
use crate::model::ParentRef;
use crate::normalise::{Match, Route};
use crate::policy::EvaluatedChain;
use crate::status::ParentVerdict;

/// The verdicts of parents, which are the same for most routes of a Gateway, and the matches of rules without
/// hostnames.
#[derive(Debug, Default)]
pub(super) struct Interners {
    parent_refs: Interner<[ParentRef]>,
    matches: Interner<[Match]>,
    pub(super) attachments: Interner<Attachments>,
    pub(super) chains: Interner<EvaluatedChain>,
    pub(super) parents: Interner<[ParentVerdict]>,
}

impl Interners {
    /// The route, to be kept.
    pub(super) fn route(&mut self, mut route: Route) -> Route {
        route.parent_refs = self.parent_refs.share(route.parent_refs);
        for rule in &mut route.rules {
            rule.matches = self.matches.share(std::mem::take(&mut rule.matches));
        }
        route
    }
}

/// An interner: equal values become the same [`Arc`].
#[derive(Debug)]
pub(super) struct Interner<T: ?Sized> {
    values: BTreeSet<Arc<T>>,
    /// The number of values at which values without another holder are dropped.
    most: usize,
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new(), most: Self::MIN_CAPACITY }
    }
}

impl<T: ?Sized> Interner<T> {
    /// The number of values that may be kept without another holder.
    const MIN_CAPACITY: usize = 64;
}

impl<T: Ord + ?Sized> Interner<T> {
    /// The interned value that is equal to this one.
    pub(super) fn share(&mut self, value: impl Borrow<T> + Into<Arc<T>>) -> Arc<T> {
        if let Some(known) = self.values.get(value.borrow()) {
            return known.clone();
        }
        if self.values.len() >= self.most {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.most = 2 * self.values.len() + Self::MIN_CAPACITY;
        }
        let value = value.into();
        self.values.insert(value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_the_same() {
        let mut equal = Interner::<[i32]>::default();
        let one = equal.share(vec![1, 2]);
        assert!(Arc::ptr_eq(&one, &equal.share(vec![1, 2])));
        assert!(!Arc::ptr_eq(&one, &equal.share(vec![2])));
    }

    #[test]
    fn an_interned_value_without_holders_is_dropped() {
        let mut equal = Interner::<[i32]>::default();
        let held = equal.share(vec![0]);
        for number in 0..10_000 {
            equal.share(vec![number]);
            assert!(equal.values.len() <= 2 + Interner::<[i32]>::MIN_CAPACITY);
        }
        assert!(Arc::ptr_eq(&held, &equal.share(vec![0])));
    }
}
