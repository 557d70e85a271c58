//! One secondary map.

use std::collections::{BTreeSet, HashMap};

use pingsix_translate::ObjectName;

use super::edge::Target;

/// Which objects refer to a target. Many to many, with exact removal: a target nobody refers to takes no room.
#[derive(Clone, Debug)]
pub(super) struct Index<T> {
    referrers: HashMap<T, BTreeSet<ObjectName>>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { referrers: HashMap::new() }
    }
}

impl<T: Target> Index<T> {
    /// Adds a reference; returns whether it is new.
    pub(super) fn insert(&mut self, target: T, referrer: ObjectName) -> bool {
        self.referrers.entry(target).or_default().insert(referrer)
    }

    /// Removes a reference; returns whether it was there.
    pub(super) fn remove(&mut self, target: &T, referrer: &ObjectName) -> bool {
        let Some(referrers) = self.referrers.get_mut(target) else { return false };
        let removed = referrers.remove(referrer);
        if referrers.is_empty() {
            self.referrers.remove(target);
        }
        removed
    }

    /// Who refers to a target, by name.
    pub(super) fn referrers(&self, target: &T) -> impl Iterator<Item = &ObjectName> {
        self.referrers.get(target).into_iter().flatten()
    }

    /// Everything that is referred to, in order.
    pub(super) fn targets(&self) -> BTreeSet<&T> {
        self.referrers.keys().collect()
    }

    /// How many references there are.
    pub(super) fn len(&self) -> usize {
        self.referrers.values().map(BTreeSet::len).sum()
    }
}
