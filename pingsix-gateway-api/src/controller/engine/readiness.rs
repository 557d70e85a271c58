//! The owners that readiness waits for.
//!
//! A replica is ready after one publication of every owner of the initial lists to the targets that
//! [open](crate::controller::router::SinkRouter::opens). Then another replica may end. Readiness does not wait for shared
//! targets, which may be silent or refuse for ever, nor for owners without an answer of the API server.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{DataPlaneKey, ObjectKey};

/// A data plane, and the index of one of its targets.
type TargetKey = (DataPlaneKey, usize);

/// The owners with publications that readiness waits for.
#[derive(Debug, Default)]
pub(super) struct ReadinessTracker(BTreeMap<ObjectKey, PendingOwner>);

#[derive(Debug, Default)]
struct PendingOwner {
    /// The translation is known.
    is_known: bool,
    /// A publication waits for encryption keys.
    is_withheld: bool,
    /// The targets of publications that have not ended.
    awaited: BTreeSet<TargetKey>,
    /// The targets with a publication, and the targets that will never accept one.
    settled: BTreeSet<TargetKey>,
}

impl ReadinessTracker {
    /// Waits for these owners.
    pub(super) fn expect(&mut self, owners: BTreeSet<ObjectKey>) {
        self.0 = owners.into_iter().map(|owner| (owner, PendingOwner::default())).collect();
    }

    /// Whether readiness waits for no owner.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The owners that readiness still waits for.
    pub(super) fn owners(&self) -> impl Iterator<Item = &ObjectKey> {
        self.0.keys()
    }

    /// Whether a publication is pending.
    pub(super) fn is_publishing(&self) -> bool {
        self.0.values().any(|outstanding| !outstanding.awaited.is_empty())
    }

    /// Whether the translations of all owners are known.
    pub(super) fn is_all_known(&self) -> bool {
        self.0.values().all(|outstanding| outstanding.is_known)
    }

    /// The translation of an owner is known, and may be withheld. [`awaits`](Self::awaits) names its publications from
    /// now on.
    pub(super) fn reconsidered(&mut self, owner: &ObjectKey, is_withheld: bool) {
        if let Some(outstanding) = self.0.get_mut(owner) {
            outstanding.is_known = true;
            outstanding.is_withheld = is_withheld;
            outstanding.awaited.clear();
        }
    }

    /// A publication of a data plane to these targets has begun.
    pub(super) fn awaits(&mut self, owner: &ObjectKey, data_plane: &DataPlaneKey, targets: Vec<usize>) {
        let Some(PendingOwner { awaited, settled, .. }) = self.0.get_mut(owner) else { return };
        let targets_of_plane = targets.into_iter().map(|target| (data_plane.clone(), target));
        // The target may hold an older edition: a target that changes all the time would never hold the newest one.
        awaited.extend(targets_of_plane.filter(|target| !settled.contains(target)));
    }

    /// These targets have a publication of a data plane, or will never accept one.
    pub(super) fn settled(&mut self, owner: &ObjectKey, data_plane: &DataPlaneKey, targets: BTreeSet<usize>) {
        let Some(outstanding) = self.0.get_mut(owner) else { return };
        for target in targets.into_iter().map(|target| (data_plane.clone(), target)) {
            outstanding.awaited.remove(&target);
            outstanding.settled.insert(target);
        }
    }

    /// Stops waiting for an owner without pending publications.
    pub(super) fn update_owner(&mut self, owner: &ObjectKey) {
        let is_there = |it: &PendingOwner| it.is_known && !it.is_withheld && it.awaited.is_empty();
        if self.0.get(owner).is_some_and(is_there) {
            self.0.remove(owner);
        }
    }
}
