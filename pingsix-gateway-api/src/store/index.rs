//! One secondary map.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pingsix_translate::ObjectName;

use super::edge::Target;

/// No name comes before the empty one.
static FIRST: LazyLock<ObjectName> = LazyLock::new(|| ObjectName::new("", ""));

/// Which objects refer to a target. Many to many, with exact removal: a target nobody refers to takes no room.
///
/// One sorted set of pairs, since most targets have a single referrer, for which a set of its own would be many times as
/// large as what it holds.
#[derive(Clone, Debug)]
pub(super) struct Index<T> {
    references: BTreeSet<(T, ObjectName)>,
}

impl<T: Ord> Default for Index<T> {
    fn default() -> Self {
        Self { references: BTreeSet::new() }
    }
}

impl<T: Target> Index<T> {
    /// Adds a reference; returns whether it is new.
    pub(super) fn insert(&mut self, target: T, referrer: ObjectName) -> bool {
        self.references.insert((target, referrer))
    }

    /// Removes a reference; returns whether it was there.
    pub(super) fn remove(&mut self, target: &T, referrer: &ObjectName) -> bool {
        self.references.remove(&(target.clone(), referrer.clone()))
    }

    /// Who refers to a target, by name.
    pub(super) fn referrers(&self, target: &T) -> impl Iterator<Item = &ObjectName> {
        let references = self.references.range((target.clone(), FIRST.clone())..);
        references.take_while(move |(referred, _)| referred == target).map(|(_, referrer)| referrer)
    }

    /// Everything that is referred to, in order.
    pub(super) fn targets(&self) -> BTreeSet<&T> {
        self.references.iter().map(|(target, _)| target).collect()
    }

    /// How many references there are.
    pub(super) fn len(&self) -> usize {
        self.references.len()
    }
}
