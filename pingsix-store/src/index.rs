//! A secondary map.

use std::collections::{BTreeMap, BTreeSet};

use crate::edge::Target;

/// The referrers of each target. The relation is many-to-many, and targets without referrers take no memory.
#[derive(Clone, Debug)]
pub(crate) struct Index<N, T> {
    referrers: BTreeMap<T, Referrers<N, T>>,
    len: usize,
}

/// The referrers of a target. Most targets have one referrer, which needs no set.
#[derive(Clone, Debug)]
enum Referrers<N, T> {
    One(N),
    /// Two referrers at least, now or earlier.
    Many(Box<Many<N, T>>),
}

/// Several referrers. The box keeps a single referrer small.
#[derive(Clone, Debug)]
struct Many<N, T> {
    names: BTreeSet<N>,
    /// The targets that the referrers concern, with counts. Thousands of routes may share a Service and few Gateways.
    concerned: BTreeMap<T, usize>,
}

impl<N, T> Default for Index<N, T> {
    fn default() -> Self {
        Self { referrers: BTreeMap::new(), len: 0 }
    }
}

impl<N: Target, T: Target> Many<N, T> {
    fn count(&mut self, concerned: &BTreeSet<T>) {
        for target in concerned {
            *self.concerned.entry(target.clone()).or_default() += 1;
        }
    }

    fn discount(&mut self, concerned: &BTreeSet<T>) {
        for target in concerned {
            if let Some(count) = self.concerned.get_mut(target) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.concerned.remove(target);
                }
            }
        }
    }
}

impl<N: Target, T: Target> Referrers<N, T> {
    fn insert(
        &mut self,
        referrer: &N,
        concerned: &BTreeSet<T>,
        concerned_by: impl FnOnce(&N) -> BTreeSet<T>,
    ) -> bool {
        match self {
            Self::One(one) if one == referrer => false,
            Self::One(one) => {
                let names = BTreeSet::from([one.clone(), referrer.clone()]);
                let mut many = Many { names, concerned: BTreeMap::new() };
                many.count(&concerned_by(one));
                many.count(concerned);
                *self = Self::Many(Box::new(many));
                true
            }
            Self::Many(many) => {
                let is_new = many.names.insert(referrer.clone());
                if is_new {
                    many.count(concerned);
                }
                is_new
            }
        }
    }

    /// Removes a referrer; returns whether it was present, and whether the set is empty now.
    fn remove(&mut self, referrer: &N, concerned: &BTreeSet<T>) -> (bool, bool) {
        match self {
            Self::One(one) => (one == referrer, one == referrer),
            Self::Many(many) => {
                let was_there = many.names.remove(referrer);
                if was_there {
                    many.discount(concerned);
                }
                (was_there, many.names.is_empty())
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &N> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(many) => (None, Some(&many.names)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl<N: Target, T: Target> Index<N, T> {
    /// Adds a reference by an object with these concerned targets; `concerned_by` has the targets of other referrers.
    /// Returns whether the reference is new.
    pub(crate) fn insert(
        &mut self,
        target: T,
        referrer: &N,
        concerned: &BTreeSet<T>,
        concerned_by: impl FnOnce(&N) -> BTreeSet<T>,
    ) -> bool {
        let is_new = match self.referrers.get_mut(&target) {
            None => self.referrers.insert(target, Referrers::One(referrer.clone())).is_none(),
            Some(referrers) => referrers.insert(referrer, concerned, concerned_by),
        };
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes a reference by an object with these concerned targets; returns whether it was present.
    pub(crate) fn remove(&mut self, target: &T, referrer: &N, concerned: &BTreeSet<T>) -> bool {
        let Some(referrers) = self.referrers.get_mut(target) else { return false };
        let (was_there, is_empty) = referrers.remove(referrer, concerned);
        if is_empty {
            self.referrers.remove(target);
        }
        self.len -= usize::from(was_there);
        was_there
    }

    /// Updates the counts after a referrer of a target has changed its concerned targets.
    pub(crate) fn recount(&mut self, target: &T, before: &BTreeSet<T>, after: &BTreeSet<T>) {
        if let Some(Referrers::Many(many)) = self.referrers.get_mut(target) {
            many.discount(before);
            many.count(after);
        }
    }

    /// The referrers of a target, by name.
    pub(crate) fn referrers(&self, target: &T) -> impl Iterator<Item = &N> {
        self.referrers.get(target).into_iter().flat_map(Referrers::iter)
    }

    /// The targets that the referrers of a target concern; `concerned_by` has those of a single referrer.
    pub(crate) fn concerned(&self, target: &T, concerned_by: impl FnOnce(&N) -> BTreeSet<T>) -> BTreeSet<T> {
        match self.referrers.get(target) {
            None => BTreeSet::new(),
            Some(Referrers::One(one)) => concerned_by(one),
            Some(Referrers::Many(many)) => many.concerned.keys().cloned().collect(),
        }
    }

    /// All targets of references, in order.
    pub(crate) fn targets(&self) -> BTreeSet<&T> {
        self.referrers.keys().collect()
    }

    /// Frees spare capacity, after a list was inserted.
    pub(crate) fn shrink(&mut self) {
        for referrers in self.referrers.values_mut() {
            if let Referrers::Many(many) = referrers {
                many.names = std::mem::take(&mut many.names).into_iter().collect();
            }
        }
        self.referrers = std::mem::take(&mut self.referrers).into_iter().collect();
    }

    /// The number of references.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}
