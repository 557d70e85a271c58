//! What the feed waits for before it answers anybody.
//!
//! Who reads from the feed itself must not be told less than there is, so whatever is [published there](crate::controller::Feed::opens)
//! has to be there once, of every owner that was there when everything was known. A target that is read without the feed
//! keeps nobody waiting: one that is silent, or refuses for ever, would close the feed to all data planes after a restart.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{DataPlaneKey, ObjectKey};

/// A data plane at one of its targets.
type Place = (DataPlaneKey, usize);

/// Owners of which not everything is where the feed is read from.
#[derive(Debug, Default)]
pub(super) struct Opening(BTreeMap<ObjectKey, Outstanding>);

#[derive(Debug, Default)]
struct Outstanding {
    /// Where something is still to come; `None` before it is known what there is.
    awaited: Option<BTreeSet<Place>>,
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

    /// It is known what there is of an owner: nothing but what is [awaited](Self::awaits) from now on.
    pub(super) fn reconsidered(&mut self, owner: &ObjectKey) {
        if let Some(outstanding) = self.0.get_mut(owner) {
            outstanding.awaited = Some(BTreeSet::new());
        }
    }

    /// A data plane of an owner is being published to these targets.
    pub(super) fn awaits(&mut self, owner: &ObjectKey, data_plane: &DataPlaneKey, targets: Vec<usize>) {
        let Some(Outstanding { awaited: Some(awaited), settled }) = self.0.get_mut(owner) else { return };
        let places = targets.into_iter().map(|target| (data_plane.clone(), target));
        // It has it already, if an older edition; what changes all the time would never be there otherwise.
        awaited.extend(places.filter(|place| !settled.contains(place)));
    }

    /// These targets have a publication of a data plane of an owner, or will never take it.
    pub(super) fn settled(&mut self, owner: &ObjectKey, data_plane: &DataPlaneKey, targets: BTreeSet<usize>) {
        let Some(outstanding) = self.0.get_mut(owner) else { return };
        for place in targets.into_iter().map(|target| (data_plane.clone(), target)) {
            if let Some(awaited) = &mut outstanding.awaited {
                awaited.remove(&place);
            }
            outstanding.settled.insert(place);
        }
    }

    /// Waits for an owner no longer, if nothing of it is still to come.
    pub(super) fn look_at(&mut self, owner: &ObjectKey) {
        if self.0.get(owner).is_some_and(|it| it.awaited.as_ref().is_some_and(BTreeSet::is_empty)) {
            self.0.remove(owner);
        }
    }
}
