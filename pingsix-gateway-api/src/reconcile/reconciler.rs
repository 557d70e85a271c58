//! The world of objects, and the translations of its owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{
    AnyPolicy, Gateway, GatewayClass, IngressClass, OwnAddress, proxy_of_class, proxy_of_ingress_class,
};
use pingsix_translate::status::{
    GatewayClassVerdict, JudgedTargets, judge_gateway_class, judge_ingress_class, judge_targets,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Options, PINGSIX_GROUP};
use tokio::time::Instant;

use super::owner_entry::OwnerEntry;
use super::owner_index::OwnerIndex;
use crate::acceptance::Quarantines;
use crate::world::{Effects, Event, World};

/// Holds the world of objects and the last translation of each owner.
#[derive(Debug)]
pub struct Reconciler {
    pub(super) world: World,
    pub(super) options: Arc<Options>,
    classes: BTreeMap<ObjectKey, GatewayClassVerdict>,
    pub(super) owners: BTreeMap<ObjectKey, OwnerEntry>,
    pub(super) owner_index: OwnerIndex,
    /// Referenced objects whose existence is known.
    pub(super) answered: BTreeSet<ObjectKey>,
    /// Whether the references have changed since the last call.
    pub(super) references_changed: bool,
    /// The quarantines of other replicas.
    pub(super) quarantines: Quarantines,
    /// Whether a label selector may hide objects that exist.
    hides_objects: bool,
}

impl Reconciler {
    /// A reconciler without objects.
    pub fn new(options: Options) -> Self {
        Self {
            world: World::default(),
            options: Arc::new(options),
            classes: BTreeMap::new(),
            owners: BTreeMap::new(),
            owner_index: OwnerIndex::default(),
            answered: BTreeSet::new(),
            references_changed: false,
            quarantines: Quarantines::new(),
            hides_objects: false,
        }
    }

    /// Sets whether a label selector may hide objects that exist.
    #[must_use]
    pub(crate) const fn hiding_objects(mut self, hides_objects: bool) -> Self {
        self.hides_objects = hides_objects;
        self
    }

    /// The world of objects.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Options of the translation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Applies an event of a watch.
    pub fn apply(&mut self, event: Event) -> Effects {
        let kind = event.kind();
        let was_complete = self.world.is_complete(kind);
        let effects = self.world.apply(event);
        let mut effects = self.record(effects);
        if !was_complete && self.world.is_complete(kind) {
            // A list answers for every object of its kind at once.
            let awaits = |key: &ObjectKey| key.kind == kind && !self.answered.contains(key);
            let waiting =
                self.owners.iter().filter(|(_, owner_entry)| owner_entry.referenced.iter().any(awaits));
            effects.owners.extend(waiting.map(|(owner, _)| owner.clone()));
        }
        effects
    }

    /// Removes an object that is deleted or no longer referenced.
    pub fn remove(&mut self, key: &ObjectKey) -> Effects {
        let effects = self.world.remove(key);
        self.record(effects)
    }

    /// Records that the existence of a referenced object is known. Returns the owners that waited for it.
    pub fn answered(&mut self, key: ObjectKey) -> BTreeSet<ObjectKey> {
        let waiting = self.world.owners_of(&key);
        if self.answered.insert(key) { waiting } else { BTreeSet::new() }
    }

    /// Records that a referenced object is no longer watched.
    pub fn unwatched(&mut self, key: &ObjectKey) -> Effects {
        self.answered.remove(key);
        self.remove(key)
    }

    /// Records the changed objects for their owners, and judges the changed classes.
    fn record(&mut self, effects: Effects) -> Effects {
        for owner in &effects.owners {
            if let Some(entry) = self.owners.get_mut(owner) {
                let changed = &mut entry.changed;
                changed.objects.extend(effects.touched.iter().chain(&effects.removed).cloned());
                changed.sliced.extend(effects.sliced.iter().cloned());
            }
        }
        for class in &effects.classes {
            let verdict = self.world.get::<GatewayClass>(&class.name).and_then(|object| {
                let proxies = self.world.proxies([proxy_of_class(&object)]);
                judge_gateway_class(&object, &proxies, &self.options)
            });
            match verdict {
                Some(verdict) => self.classes.insert(class.clone(), verdict),
                None => self.classes.remove(class),
            };
        }
        effects
    }

    /// Applies the quarantines of other replicas. Returns the owners that they concern.
    pub(crate) fn apply_quarantines(&mut self, quarantines: Quarantines) -> BTreeSet<ObjectKey> {
        let before = std::mem::replace(&mut self.quarantines, quarantines);
        let owners: BTreeSet<&ObjectKey> =
            before.values().chain(self.quarantines.values()).flat_map(BTreeMap::keys).collect();
        let of = |quarantines: &Quarantines, owner: &ObjectKey| -> Vec<_> {
            let of = quarantines
                .iter()
                .filter_map(|(replica, of)| Some((replica.clone(), of.get(owner)?.clone())));
            of.collect()
        };
        let changed = owners.into_iter().filter(|owner| of(&before, owner) != of(&self.quarantines, owner));
        changed.cloned().collect()
    }

    /// The verdicts on targets of a policy that lead to no object. Policies of other groups may be those of other
    /// controllers, which know more kinds.
    pub(crate) fn judged_targets(&self, policy: &ObjectKey) -> JudgedTargets {
        if policy.kind.group() != PINGSIX_GROUP {
            return JudgedTargets::default();
        }
        let policy = self.world.object(policy).and_then(AnyPolicy::of);
        let exists = |target: &ObjectKey| {
            let is_hidden = self.hides_objects && target.kind.is_selected_by_label();
            let is_known = !is_hidden && self.world.is_complete(target.kind);
            is_known.then(|| self.world.contains(target))
        };
        policy.map(|policy| judge_targets(&policy, exists)).unwrap_or_default()
    }

    /// Verdict on a class of ours.
    pub fn class(&self, key: &ObjectKey) -> Option<&GatewayClassVerdict> {
        self.classes.get(key)
    }

    /// Every Gateway and IngressClass that is ours.
    pub fn ours(&self) -> BTreeSet<ObjectKey> {
        let gateways = self.world.keys::<Gateway>();
        let classes = self.world.keys::<IngressClass>();
        gateways.into_iter().chain(classes).filter(|owner| self.is_ours(owner)).collect()
    }

    /// Whether an owner exists and is ours. Its parameters, or those of its class, may be unusable.
    pub(super) fn is_ours(&self, owner: &ObjectKey) -> bool {
        if owner.kind == Kind::Gateway {
            self.world.get::<Gateway>(&owner.name).is_some_and(|gateway| {
                let class = ObjectName::new("", gateway.spec.gateway_class_name.as_str());
                let class = ObjectKey { kind: Kind::GatewayClass, name: class };
                self.classes.contains_key(&class)
            })
        } else {
            let class = self.world.get::<IngressClass>(&owner.name);
            class.is_some_and(|class| {
                let proxies = self.world.proxies([proxy_of_ingress_class(&class)]);
                judge_ingress_class(&class, &proxies, &self.options).is_some()
            })
        }
    }

    /// The Secrets and ConfigMaps to watch, if they differ from the last call.
    pub fn take_references(&mut self) -> Option<BTreeSet<ObjectKey>> {
        std::mem::take(&mut self.references_changed).then(|| self.referenced())
    }

    /// The Secrets and ConfigMaps to watch: the references of our owners.
    pub(crate) fn referenced(&self) -> BTreeSet<ObjectKey> {
        self.owners.values().flat_map(|entry| &entry.referenced).cloned().collect()
    }

    /// Records the addresses of an owner's data planes, which no backend may have. Returns whether they changed, so
    /// that the owner has to be reconciled.
    pub(crate) fn set_own_addresses(&mut self, owner: &ObjectKey, addresses: BTreeSet<OwnAddress>) -> bool {
        let Some(entry) = self.owners.get_mut(owner) else { return false };
        let is_other = !entry.own_addresses.keys().eq(&addresses);
        if is_other {
            entry.own_addresses = addresses.into_iter().map(|address| (address, ())).collect();
        }
        is_other
    }

    /// Ends waits for answers of the API server that have reached their time limit. The limit counts only while the
    /// API server answers. Callers repeat this about every second. Returns the owners to reconcile.
    pub(crate) fn end_waits(&mut self, now: Instant, is_answering: bool) -> BTreeSet<ObjectKey> {
        let owners = self.owners.iter_mut();
        let ended =
            owners.filter_map(|(owner, entry)| entry.waits.expire(now, is_answering).then_some(owner));
        ended.cloned().collect()
    }
}
