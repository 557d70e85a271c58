//! Verdicts of several Gateways on one route, put together.

use super::RouteVerdict;

impl RouteVerdict {
    /// Adds the entries another Gateway's translation made for the same route. Each parentRef names one
    /// Gateway, so no entry is in both; the order is that of the spec.
    pub fn merge(&mut self, other: &Self) {
        let mut parents = [&*self.parents, &*other.parents].concat();
        parents.sort_by_key(|parent| parent.parent_ref.index);
        parents.dedup_by_key(|parent| parent.parent_ref.index);
        self.parents = parents.into();
    }
}
