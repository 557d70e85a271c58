//! The difference between the objects of a snapshot and those of the last one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lower::DataPlane;
use crate::model::{DataPlaneKey, Kind, ObjectKey, ObjectName, Provenance};
use crate::pingsix::DocumentKey;
use crate::shared_map::{Change, SharedMap};
use crate::snapshot::{
    HttpRouteFilter, Namespace, Part, Pending, Quarantine, ReferenceGrant, Referents, Secret,
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

/// The changed, new and removed objects.
pub(super) fn difference<T: Part, N: Ord + Clone>(
    now: &SharedMap<N, T>,
    before: &SharedMap<N, T>,
) -> Vec<ObjectDiff<T, N>> {
    let differences = now.changes(before).into_iter().filter_map(|change| {
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

impl ReferentsDiff {
    pub(super) fn between(before: &Referents, now: &Referents) -> Self {
        let mut diff = Self {
            of_proxies: !difference(&now.proxies, &before.proxies).is_empty(),
            config_maps: names(difference(&now.config_maps, &before.config_maps)).into_iter().collect(),
            of_own_addresses: !now.own_addresses.changes(&before.own_addresses).is_empty(),
            http_route_filters: difference(&now.http_route_filters, &before.http_route_filters),
            services: names(difference(&now.services, &before.services)),
            slices: names(difference(&now.endpoint_slices, &before.endpoint_slices)),
            reference_grants: difference(&now.reference_grants, &before.reference_grants),
            secrets: difference(&now.secrets, &before.secrets),
            namespaces: difference(&now.namespaces, &before.namespaces),
            quarantined: BTreeSet::new(),
        };
        diff.add_quarantined(&before.quarantine, now);
        diff.add_pending(&before.pending, now);
        diff
    }

    /// Counts objects as changed that entered quarantine, left it, or are in it for another reason.
    fn add_quarantined(&mut self, before: &Quarantine, referents: &Referents) {
        let changes = referents.quarantine.changes(before).into_iter();
        self.quarantined = changes.map(|change| (*change.key().object).clone()).collect();
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
        let changes = referents.pending.changes(before).into_iter();
        let changes = changes.filter(|change| !matches!(change, Change::Replaced(..)));
        for ObjectKey { kind, name } in changes.map(|change| change.key()) {
            if *kind == Kind::Secret {
                self.add_secret(name, referents);
            } else {
                self.config_maps.insert(name.clone());
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

/// The origins of documents, by data plane.
pub(super) type Provenances = BTreeMap<DataPlaneKey, SharedMap<DocumentKey, Provenance>>;

/// The origins of the documents of data planes.
pub(super) fn provenances(data_planes: &BTreeMap<DataPlaneKey, DataPlane>) -> Provenances {
    data_planes.iter().map(|(key, plane)| (key.clone(), plane.provenance.clone())).collect()
}

/// The difference between the origins of documents.
#[derive(Debug, Default)]
pub(super) struct ProvenanceDiff<'a> {
    pub(super) removed: Vec<&'a Provenance>,
    pub(super) added: Vec<&'a Provenance>,
}

impl<'a> ProvenanceDiff<'a> {
    pub(super) fn between(before: &'a Provenances, now: &'a Provenances) -> Self {
        let mut diff = Self::default();
        let gone = before.iter().filter(|(key, _)| !now.contains_key(*key));
        diff.removed.extend(gone.flat_map(|(_, documents)| documents.values()));
        for (key, documents) in now {
            let Some(before) = before.get(key) else {
                diff.added.extend(documents.values());
                continue;
            };
            for change in documents.changes(before) {
                let (removed, added) = match change {
                    Change::Added(_, now) => (None, Some(now)),
                    Change::Replaced(_, before, now) => (Some(before), Some(now)),
                    Change::Removed(_, before) => (Some(before), None),
                };
                diff.removed.extend(removed);
                diff.added.extend(added);
            }
        }
        diff
    }
}
