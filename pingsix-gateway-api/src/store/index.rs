//! One secondary map.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::ObjectName;

use super::edge::Target;

/// Which objects refer to a target. Many to many, with exact removal: a target nobody refers to takes no room.
#[derive(Clone, Debug)]
pub(super) struct Index<T> {
    referrers: BTreeMap<T, Referrers>,
    len: usize,
}

/// Most targets have a single referrer, for which a set would be many times as large as what it holds.
#[derive(Clone, Debug)]
enum Referrers {
    One(Arc<ObjectName>),
    /// Two, at least at some time.
    Many(Box<Many>),
}

/// In a box of its own, so that a single referrer takes no room for it.
#[derive(Clone, Debug)]
struct Many {
    names: BTreeSet<Arc<ObjectName>>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { referrers: BTreeMap::new(), len: 0 }
    }
}

impl Referrers {
    fn insert(&mut self, referrer: &Arc<ObjectName>) -> bool {
        match self {
            Self::One(one) if one == referrer => false,
            Self::One(one) => {
                let names = BTreeSet::from([one.clone(), referrer.clone()]);
                *self = Self::Many(Box::new(Many { names }));
                true
            }
            Self::Many(many) => many.names.insert(referrer.clone()),
        }
    }

    /// Removes a referrer; returns whether it was there, and whether none is left.
    fn remove(&mut self, referrer: &ObjectName) -> (bool, bool) {
        match self {
            Self::One(one) => (**one == *referrer, **one == *referrer),
            Self::Many(many) => (many.names.remove(referrer), many.names.is_empty()),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &ObjectName> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(many) => (None, Some(&many.names)),
        };
        one.into_iter().chain(many.into_iter().flatten()).map(AsRef::as_ref)
    }
}

impl<T: Target> Index<T> {
    /// Adds a reference; returns whether it is new.
    pub(super) fn insert(&mut self, target: T, referrer: &Arc<ObjectName>) -> bool {
        let is_new = match self.referrers.get_mut(&target) {
            Some(referrers) => referrers.insert(referrer),
            None => self.referrers.insert(target, Referrers::One(referrer.clone())).is_none(),
        };
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes a reference; returns whether it was there.
    pub(super) fn remove(&mut self, target: &T, referrer: &ObjectName) -> bool {
        let Some(referrers) = self.referrers.get_mut(target) else { return false };
        let (was_there, is_empty) = referrers.remove(referrer);
        if is_empty {
            self.referrers.remove(target);
        }
        self.len -= usize::from(was_there);
        was_there
    }

    /// Who refers to a target, by name.
    pub(super) fn referrers(&self, target: &T) -> impl Iterator<Item = &ObjectName> {
        self.referrers.get(target).into_iter().flat_map(Referrers::iter)
    }

    /// Everything that is referred to, in order.
    pub(super) fn targets(&self) -> BTreeSet<&T> {
        self.referrers.keys().collect()
    }

    /// Takes no more room than it needs, after many references came in order.
    pub(super) fn shrink(&mut self) {
        for referrers in self.referrers.values_mut() {
            if let Referrers::Many(many) = referrers {
                many.names = std::mem::take(&mut many.names).into_iter().collect();
            }
        }
        self.referrers = std::mem::take(&mut self.referrers).into_iter().collect();
    }

    /// How many references there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }
}
