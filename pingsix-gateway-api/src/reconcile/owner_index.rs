//! The owners with a verdict on each object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::status::{GatewayVerdict, ListenerSetVerdict, Verdicts};
use pingsix_translate::{Change, ObjectKey};

/// The owners with a verdict on each object. A route or a policy may have several owners. A Gateway, a ListenerSet or an
/// Ingress has one, or two while the object moves.
#[derive(Debug, Default)]
pub(super) struct OwnerIndex {
    owners: BTreeMap<Arc<ObjectKey>, Owners>,
}

/// The owners with a verdict on an object. Most objects have one owner.
#[derive(Debug)]
enum Owners {
    One(Arc<ObjectKey>),
    /// Two, at least at some time; never none.
    #[allow(
        clippy::box_collection,
        reason = "the set is three times as large as the box, and mostly not there"
    )]
    Several(Box<BTreeSet<Arc<ObjectKey>>>),
}

impl Owners {
    fn add(&mut self, owner: &Arc<ObjectKey>) {
        match self {
            Self::One(one) if one == owner => {}
            Self::One(one) => *self = Self::Several(Box::new([one.clone(), owner.clone()].into())),
            Self::Several(owners) => {
                owners.insert(owner.clone());
            }
        }
    }

    /// Takes an owner out. Returns whether it was the last.
    fn remove(&mut self, owner: &Arc<ObjectKey>) -> bool {
        match self {
            Self::One(one) => one == owner,
            Self::Several(owners) => {
                owners.remove(owner);
                owners.is_empty()
            }
        }
    }

    /// In order.
    fn iter(&self) -> impl Iterator<Item = &Arc<ObjectKey>> {
        let (one, several) = match self {
            Self::One(one) => (Some(one), None),
            Self::Several(owners) => (None, Some(owners)),
        };
        one.into_iter().chain(several.into_iter().flat_map(|owners| &**owners))
    }
}

impl OwnerIndex {
    /// Takes in that the verdicts of an owner are others. Returns the objects about which something changed.
    pub(super) fn replace(
        &mut self,
        owner: &Arc<ObjectKey>,
        before: Option<&Verdicts>,
        after: Option<&Verdicts>,
    ) -> BTreeSet<Arc<ObjectKey>> {
        let none = Verdicts::default();
        let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
        let mut changed = BTreeSet::new();
        for key in own(before) {
            if own_verdict(after, key).is_none() {
                self.apply(owner, &Change::Removed(key, &()), &mut changed);
            }
        }
        for key in own(after) {
            if own_verdict(before, key) != own_verdict(after, key) {
                self.apply(owner, &Change::Added(key, &()), &mut changed);
            }
        }
        for change in after.ingresses.changes(&before.ingresses) {
            self.apply(owner, &change, &mut changed);
        }
        for change in after.routes.changes(&before.routes) {
            self.apply(owner, &change, &mut changed);
        }
        for (key, verdict) in &before.policies {
            if !after.policies.contains_key(key) {
                self.apply(owner, &Change::Removed(key, verdict), &mut changed);
            }
        }
        for (key, verdict) in &after.policies {
            if before.policies.get(key) != Some(verdict) {
                self.apply(owner, &Change::Added(key, verdict), &mut changed);
            }
        }
        if changed.len() > self.owners.len() / 2 {
            // They came in order, which leaves the nodes of a tree half empty; built anew, they are full.
            self.owners = std::mem::take(&mut self.owners).into_iter().collect();
        }
        changed
    }

    /// Applies the change of a verdict of an owner, unless it is equal.
    fn apply<V: PartialEq>(
        &mut self,
        owner: &Arc<ObjectKey>,
        change: &Change<'_, Arc<ObjectKey>, V>,
        changed: &mut BTreeSet<Arc<ObjectKey>>,
    ) {
        match change {
            Change::Replaced(_, one, other) if one == other => return,
            Change::Replaced(..) => {}
            Change::Added(key, _) => self.add(key, owner),
            Change::Removed(key, _) => self.remove(key, owner),
        }
        let (Change::Added(key, _) | Change::Replaced(key, ..) | Change::Removed(key, _)) = change;
        changed.insert(Arc::clone(key));
    }

    /// The owners with a verdict on an object, in order.
    pub(super) fn of(&self, object: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.owners.get(object).into_iter().flat_map(Owners::iter).map(AsRef::as_ref)
    }

    fn add(&mut self, object: &Arc<ObjectKey>, owner: &Arc<ObjectKey>) {
        match self.owners.get_mut(object) {
            Some(owners) => owners.add(owner),
            None => {
                self.owners.insert(object.clone(), Owners::One(owner.clone()));
            }
        }
    }

    fn remove(&mut self, object: &Arc<ObjectKey>, owner: &Arc<ObjectKey>) {
        let Some(owners) = self.owners.get_mut(object) else { return };
        if owners.remove(owner) {
            self.owners.remove(object);
        }
    }
}

/// The Gateway and its ListenerSets. Delivery is not part of these verdicts.
fn own(verdicts: &Verdicts) -> impl Iterator<Item = &Arc<ObjectKey>> {
    verdicts.gateway.iter().map(|gateway| &gateway.key).chain(verdicts.listener_sets.keys())
}

/// The verdict on one of those.
#[derive(PartialEq)]
enum OwnVerdict<'v> {
    Gateway(&'v GatewayVerdict),
    ListenerSet(&'v ListenerSetVerdict),
}

fn own_verdict<'v>(verdicts: &'v Verdicts, key: &ObjectKey) -> Option<OwnVerdict<'v>> {
    let gateway = verdicts.gateway.as_ref().filter(|gateway| *gateway.key == *key);
    let set = || verdicts.listener_sets.get(key).map(OwnVerdict::ListenerSet);
    gateway.map(OwnVerdict::Gateway).or_else(set)
}
