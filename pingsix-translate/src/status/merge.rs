//! Merging the verdicts of several Gateways on one route.

use super::RouteVerdict;

impl RouteVerdict {
    /// Adds the entries of another Gateway for the same route, in spec order. Each parentRef names one Gateway, so no entry
    /// is in both.
    pub fn merge(&mut self, other: &Self) {
        let mut parents = [&*self.parents, &*other.parents].concat();
        parents.sort_by_key(|parent| parent.parent_ref.index);
        parents.dedup_by_key(|parent| parent.parent_ref.index);
        self.parents = parents.into();
    }
}
