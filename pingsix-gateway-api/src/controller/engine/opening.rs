//! The owners that readiness waits for.
//!
//! A replica is ready when every owner that was there when everything was known has been published once to the targets that
//! [open](crate::controller::router::SinkRouter::opens): then another replica may end. Two things keep no replica from being
//! ready: a target that is read without the feed, which may be silent or refuse for ever, and an owner for which the API
//! server does not answer.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{DataPlaneKey, ObjectKey};

/// A data plane at one of its targets.
type Place = (DataPlaneKey, usize);

/// Owners of which not everything is where the feed is read from.
#[derive(Debug, Default)]
pub(super) struct Opening(BTreeMap<ObjectKey, Outstanding>);

#[derive(Debug, Default)]
struct Outstanding {
    /// There is something to say of it.
    is_known: bool,
    /// There is something to publish that cannot be handed out yet.
    is_withheld: bool,
    /// Where something is being published.
    awaited: BTreeSet<Place>,
    /// Where it has come, or never will.
    settled: BTreeSet<Place>,
}

impl Opening {
    /// Waits for these owners.
    pub(super) fn expect(&mut self, owners: BTreeSet<ObjectKey>) {
        self.0 = owners.into_iter().map(|owner| (owner, Outstanding::default())).collect();
    }

    /// Nobody is waited for.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The owners that readiness still waits for.
    pub(super) fn owners(&self) -> impl Iterator<Item = &ObjectKey> {
        self.0.keys()
    }

    /// Whether anything is being published.
    pub(super) fn is_publishing(&self) -> bool {
        self.0.values().any(|outstanding| !outstanding.awaited.is_empty())
    }

    /// Whether there is something to say of every owner.
    pub(super) fn is_all_known(&self) -> bool {
        self.0.values().all(|outstanding| outstanding.is_known)
    }

    /// It is known what there is of an owner, which may have to be withheld: nothing but what is
    /// [awaited](Self::awaits) from now on.
    pub(super) fn reconsidered(&mut self, owner: &ObjectKey, is_withheld: bool) {
        if let Some(outstanding) = self.0.get_mut(owner) {
            outstanding.is_known = true;
            outstanding.is_withheld = is_withheld;
            outstanding.awaited.clear();
        }
    }

    /// A data plane of an owner is being published to these targets.
    pub(super) fn awaits(&mut self, owner: &ObjectKey, data_plane: &DataPlaneKey, targets: Vec<usize>) {
        let Some(Outstanding { awaited, settled, .. }) = self.0.get_mut(owner) else { return };
        let places = targets.into_iter().map(|target| (data_plane.clone(), target));
        // It has it already, if an older edition; what changes all the time would never be there otherwise.
        awaited.extend(places.filter(|place| !settled.contains(place)));
    }

    /// These targets have a publication of a data plane of an owner, or will never take it.
    pub(super) fn settled(&mut self, owner: &ObjectKey, data_plane: &DataPlaneKey, targets: BTreeSet<usize>) {
        let Some(outstanding) = self.0.get_mut(owner) else { return };
        for place in targets.into_iter().map(|target| (data_plane.clone(), target)) {
            outstanding.awaited.remove(&place);
            outstanding.settled.insert(place);
        }
    }

    /// Waits for an owner no longer, if nothing of it is still to come.
    pub(super) fn look_at(&mut self, owner: &ObjectKey) {
        let is_there = |it: &Outstanding| it.is_known && !it.is_withheld && it.awaited.is_empty();
        if self.0.get(owner).is_some_and(is_there) {
            self.0.remove(owner);
        }
    }
}
