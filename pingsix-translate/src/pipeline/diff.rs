//! The difference between the objects of a snapshot and those of the last one.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::{Change, SharedMap};
use crate::snapshot::{
    AnyPolicy, AnyRoute, ConfigMap, EndpointSlice, HttpRouteFilter, Namespace, OwnAddresses, Pending,
    PingsixProxy, Quarantine, ReferenceGrant, Referents, Secret, Service,
};

/// A changed, new or removed object.
#[derive(Debug)]
pub(super) struct ObjectDiff<T, N = ObjectName> {
    pub(super) name: N,
    /// `None` if it is new.
    pub(super) before: Option<T>,
    /// `None` if it is removed.
    pub(super) now: Option<T>,
}

/// Values with pointers to compare.
pub(super) trait Identity: Clone {
    fn is_same(&self, other: &Self) -> bool;
}

impl<K> Identity for Arc<K> {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl Identity for AnyRoute {
    fn is_same(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

impl Identity for AnyPolicy {
    fn is_same(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

impl<K> Identity for Option<Arc<K>> {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl<K> Identity for Vec<Arc<K>> {
    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// The objects of one kind in the last snapshot.
#[derive(Debug)]
pub(super) struct LastObjects<T, N = ObjectName>(SharedMap<N, T>);

impl<T: Identity, N: Ord + Clone> LastObjects<T, N> {
    pub(super) fn new(objects: &SharedMap<N, T>) -> Self {
        Self(objects.clone())
    }

    /// Compares with the next snapshot, and keeps that one.
    pub(super) fn update(&mut self, now: &SharedMap<N, T>) -> Vec<ObjectDiff<T, N>> {
        let before = std::mem::replace(&mut self.0, now.clone());
        let changes = now.changes(&before).into_iter();
        let differences = changes.filter_map(|change| {
            let (name, before, now) = match change {
                Change::Replaced(_, before, now) if before.is_same(now) => return None,
                Change::Replaced(name, before, now) => (name, Some(before.clone()), Some(now.clone())),
                Change::Added(name, now) => (name, None, Some(now.clone())),
                Change::Removed(name, before) => (name, Some(before.clone()), None),
            };
            Some(ObjectDiff { name: name.clone(), before, now })
        });
        differences.collect()
    }
}

/// The referents of the last snapshot.
#[derive(Debug)]
pub(super) struct LastReferents {
    proxies: LastObjects<Arc<PingsixProxy>>,
    http_route_filters: LastObjects<Arc<HttpRouteFilter>>,
    services: LastObjects<Arc<Service>>,
    slices: LastObjects<Vec<Arc<EndpointSlice>>>,
    reference_grants: LastObjects<Arc<ReferenceGrant>>,
    secrets: LastObjects<Arc<Secret>>,
    config_maps: LastObjects<Arc<ConfigMap>>,
    namespaces: LastObjects<Arc<Namespace>, Arc<str>>,
    quarantine: Quarantine,
    pending: Pending,
    own_addresses: OwnAddresses,
}

/// The difference between the referents of two snapshots.
#[derive(Debug)]
pub(super) struct ReferentsDiff {
    /// Whether parameters differ.
    pub(super) of_proxies: bool,
    /// ConfigMaps that differ, or whose existence became known or unknown.
    pub(super) config_maps: BTreeSet<ObjectName>,
    /// Whether the addresses of data planes differ.
    pub(super) of_own_addresses: bool,
    pub(super) http_route_filters: Vec<ObjectDiff<Arc<HttpRouteFilter>>>,
    pub(super) services: Vec<ObjectName>,
    /// Services with other EndpointSlices.
    pub(super) slices: Vec<ObjectName>,
    pub(super) reference_grants: Vec<ObjectDiff<Arc<ReferenceGrant>>>,
    pub(super) secrets: Vec<ObjectDiff<Arc<Secret>>>,
    pub(super) namespaces: Vec<ObjectDiff<Arc<Namespace>, Arc<str>>>,
    /// Objects that entered quarantine, left it, or are in it for another reason. Services and Secrets are among the
    /// fields above.
    pub(super) quarantined: BTreeSet<ObjectKey>,
}

impl LastReferents {
    pub(super) fn new(referents: &Referents) -> Self {
        Self {
            proxies: LastObjects::new(&referents.proxies),
            http_route_filters: LastObjects::new(&referents.http_route_filters),
            services: LastObjects::new(&referents.services),
            slices: LastObjects::new(&referents.endpoint_slices),
            reference_grants: LastObjects::new(&referents.reference_grants),
            secrets: LastObjects::new(&referents.secrets),
            config_maps: LastObjects::new(&referents.config_maps),
            namespaces: LastObjects::new(&referents.namespaces),
            quarantine: referents.quarantine.clone(),
            pending: referents.pending.clone(),
            own_addresses: referents.own_addresses.clone(),
        }
    }

    /// Compares with the next snapshot, and keeps that one.
    pub(super) fn update(&mut self, referents: &Referents) -> ReferentsDiff {
        let mut diff = ReferentsDiff {
            of_proxies: !self.proxies.update(&referents.proxies).is_empty(),
            config_maps: names(self.config_maps.update(&referents.config_maps)).into_iter().collect(),
            of_own_addresses: false,
            http_route_filters: self.http_route_filters.update(&referents.http_route_filters),
            services: names(self.services.update(&referents.services)),
            slices: names(self.slices.update(&referents.endpoint_slices)),
            reference_grants: self.reference_grants.update(&referents.reference_grants),
            secrets: self.secrets.update(&referents.secrets),
            namespaces: self.namespaces.update(&referents.namespaces),
            quarantined: BTreeSet::new(),
        };
        let before = std::mem::replace(&mut self.quarantine, referents.quarantine.clone());
        diff.add_quarantined(&before, referents);
        let before = std::mem::replace(&mut self.pending, referents.pending.clone());
        diff.add_pending(&before, referents);
        let before = std::mem::replace(&mut self.own_addresses, referents.own_addresses.clone());
        diff.of_own_addresses = !referents.own_addresses.changes(&before).is_empty();
        diff
    }
}

impl ReferentsDiff {
    /// Counts objects as changed that entered quarantine, left it, or are in it for another reason.
    fn add_quarantined(&mut self, before: &Quarantine, referents: &Referents) {
        let changes = referents.quarantine.changes(before).into_iter();
        self.quarantined = changes
            .map(|change| match change {
                Change::Added(origin, _) | Change::Replaced(origin, ..) | Change::Removed(origin, _) => {
                    (*origin.object).clone()
                }
            })
            .collect();
        for ObjectKey { kind, name } in self.quarantined.clone() {
            if kind == Kind::Secret {
                self.add_secret(&name, referents);
            } else if kind == Kind::Service && !self.services.contains(&name) {
                self.services.push(name);
            }
            // Objects of other kinds are up to the owner.
        }
    }

    /// Counts Secrets and ConfigMaps as changed whose existence became known or unknown.
    fn add_pending(&mut self, before: &Pending, referents: &Referents) {
        for change in referents.pending.changes(before) {
            match change {
                Change::Added(key, ()) | Change::Removed(key, ()) if key.kind == Kind::Secret => {
                    self.add_secret(&key.name, referents);
                }
                Change::Added(key, ()) | Change::Removed(key, ()) => {
                    self.config_maps.insert(key.name.clone());
                }
                Change::Replaced(..) => {}
            }
        }
    }

    /// Counts a Secret as changed, even if it is the same object.
    fn add_secret(&mut self, name: &ObjectName, referents: &Referents) {
        if self.secrets.iter().all(|secret| secret.name != *name) {
            let now = referents.secrets.get(name).cloned();
            self.secrets.push(ObjectDiff { name: name.clone(), before: now.clone(), now });
        }
    }
}

fn names<T>(differences: Vec<ObjectDiff<T>>) -> Vec<ObjectName> {
    differences.into_iter().map(|difference| difference.name).collect()
}
