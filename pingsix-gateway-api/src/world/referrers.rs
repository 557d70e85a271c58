//! The objects of an owner that refer to a target.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::selection::Target;
use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::{Kind, ObjectKey, ObjectName, SharedMap};

use super::{KindStore, Stored, World};

impl World {
    /// The objects of a snapshot that refer to one of these Secrets and ConfigMaps now. The cost is proportional to
    /// their dependents, and independent of the size of the snapshot.
    pub fn referrers(&self, snapshot: &OwnerSnapshot, to: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        let mut referrers = BTreeSet::new();
        for key in to {
            let target = Target::Object(key.clone());
            let mut add = |kind, names: &mut dyn Iterator<Item = &ObjectName>| {
                referrers.extend(names.map(|name| ObjectKey { kind, name: name.clone() }));
            };
            let referents = match snapshot {
                OwnerSnapshot::Gateway(snapshot) => {
                    let metadata = &snapshot.gateway.metadata;
                    let namespace = metadata.namespace.as_deref().unwrap_or_default();
                    let gateway = ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default());
                    if self.gateways.has_dependent(&target, |name| *name == gateway) {
                        add(Kind::Gateway, &mut [gateway].iter());
                    }
                    add(
                        Kind::ListenerSet,
                        &mut dependents_in(&self.listener_sets, &target, &snapshot.listener_sets),
                    );
                    &snapshot.referents
                }
                OwnerSnapshot::Ingress(snapshot) => {
                    add(Kind::Ingress, &mut dependents_in(&self.ingresses, &target, &snapshot.ingresses));
                    &snapshot.referents
                }
            };
            for kind in Kind::policies() {
                let has = |name: &ObjectName| {
                    snapshot.policies().contains_key(&ObjectKey { kind, name: name.clone() })
                };
                add(kind, &mut self.dependents(kind, &target).into_iter().filter(|name| has(name)));
            }
            add(Kind::PingsixProxy, &mut dependents_in(&self.proxies, &target, &referents.proxies));
        }
        referrers
    }
}

/// The objects of a snapshot that depend on a target.
fn dependents_in<'w, K: Stored>(
    store: &'w KindStore<K>,
    target: &Target,
    seen: &SharedMap<ObjectName, Arc<K>>,
) -> impl Iterator<Item = &'w ObjectName> {
    store.dependents(target).filter(|name| seen.contains_key(*name))
}
