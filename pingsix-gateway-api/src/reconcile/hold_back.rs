//! Keeps the last version of an object until its new references are resolved.
//!
//! A listener that names another certificate keeps the former one until the new one can be read. So an object with an
//! unanswered reference counts as it was when all its references were answered. A new object counts as absent. All
//! other objects count as they are.
//!
//! A policy that protects its targets counts as it was only if its former version protects the same targets in as many ways.
//! Otherwise the policy counts as it is, and its targets fail closed until the answer.

use std::collections::BTreeSet;

use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{
    AnyPolicy, IngressSnapshot, OwnerSnapshot, Referents, Snapshot, proxy_of_class, proxy_of_gateway,
    references_of_gateway, references_of_ingress, references_of_listener_set, references_of_proxy,
    services_of_ingress,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName, SharedMap};

use crate::acceptance::may_retain;
use crate::world::World;

/// Replaces held objects by their versions in an earlier snapshot of the same owner. References that only these versions
/// have are restored with them, because nothing watches them any more. Permissions stay the present ones.
pub(super) fn hold_back(
    world: &World,
    now: &mut OwnerSnapshot,
    before: &OwnerSnapshot,
    held: &BTreeSet<ObjectKey>,
) {
    let held = &held.iter().filter(|key| may_retain(now, before, key)).cloned().collect::<BTreeSet<_>>();
    now.take_parts(before, held);
    match (now, before) {
        (OwnerSnapshot::Gateway(now), OwnerSnapshot::Gateway(before)) => {
            of_gateway(world, now, before, held);
        }
        (OwnerSnapshot::Ingress(now), OwnerSnapshot::Ingress(before)) => {
            of_ingress_class(world, now, before, held);
        }
        // They are of one owner.
        (OwnerSnapshot::Gateway(_), OwnerSnapshot::Ingress(_))
        | (OwnerSnapshot::Ingress(_), OwnerSnapshot::Gateway(_)) => {}
    }
}

fn of_gateway(world: &World, now: &mut Snapshot, before: &Snapshot, held: &BTreeSet<ObjectKey>) {
    let mut references = BTreeSet::new();
    for key in held {
        let namespace = &key.name.namespace;
        let of_object = if key.kind == Kind::Gateway {
            if before.gateway.spec.gateway_class_name != class_name(now) {
                now.class.clone_from(&before.class);
            }
            let referents = &mut now.referents;
            let proxies = now.class.as_deref().and_then(proxy_of_class).into_iter();
            let proxies = proxies.chain(proxy_of_gateway(&now.gateway, namespace));
            let proxies: BTreeSet<ObjectName> = proxies.collect();
            add(&mut referents.proxies, &before.referents.proxies, &proxies);
            references_of_gateway(&now.gateway, namespace)
        } else if let Some(set) = now.listener_sets.get(&key.name).filter(|_| key.kind == Kind::ListenerSet) {
            references_of_listener_set(set, namespace)
        } else {
            now.policies.get(key).map(AnyPolicy::references).unwrap_or_default()
        };
        permit(world, &mut now.referents, key, &of_object);
        references.extend(of_object);
    }
    add_references(&mut now.referents, &before.referents, references);
}

fn of_ingress_class(
    world: &World,
    now: &mut IngressSnapshot,
    before: &IngressSnapshot,
    held: &BTreeSet<ObjectKey>,
) {
    let mut references = BTreeSet::new();
    for key in held {
        if let Some(policy) = now.policies.get(key) {
            let of_policy = policy.references();
            permit(world, &mut now.referents, key, &of_policy);
            references.extend(of_policy);
        } else if let Some(ingress) = now.ingresses.get(&key.name).filter(|_| key.kind == Kind::Ingress) {
            references.extend(references_of_ingress(ingress, &key.name.namespace));
            for service in services_of_ingress(ingress, &key.name.namespace) {
                let (slices, found) = (world.slices_of(&service), world.get(&service));
                if !slices.is_empty() {
                    now.referents.endpoint_slices.insert(service.clone(), slices);
                }
                if let Some(found) = found {
                    now.referents.services.insert(service, found);
                }
            }
        }
    }
    add_references(&mut now.referents, &before.referents, references);
}

fn class_name(snapshot: &Snapshot) -> &str {
    let class = snapshot.class.as_deref().and_then(|class| class.metadata.name.as_deref());
    class.unwrap_or_default()
}

/// Adds these Secrets and ConfigMaps and those that parameters refer to, as far as they are not there.
fn add_references(now: &mut Referents, before: &Referents, mut references: BTreeSet<ObjectKey>) {
    for (name, proxy) in &now.proxies {
        references.extend(references_of_proxy(proxy, &name.namespace));
    }
    let of_kind = |kind| references.iter().filter(move |reference| reference.kind == kind);
    let names = |kind| of_kind(kind).map(|reference| reference.name.clone()).collect::<BTreeSet<_>>();
    add(&mut now.secrets, &before.secrets, &names(Kind::Secret));
    add(&mut now.config_maps, &before.config_maps, &names(Kind::ConfigMap));
}

/// Adds the permissions that references of an object into other namespaces take.
fn permit(world: &World, referents: &mut Referents, from: &ObjectKey, to: &BTreeSet<ObjectKey>) {
    let namespaces: BTreeSet<_> = to.iter().map(|to| &to.name.namespace).collect();
    for namespace in namespaces.into_iter().filter(|namespace| **namespace != from.name.namespace) {
        for (name, grant) in &world.grants(from.kind, &from.name.namespace, namespace) {
            referents.reference_grants.insert(name.clone(), grant.clone());
        }
    }
}

/// Adds the objects with these names, as far as they are not there.
fn add<V: Clone>(
    into: &mut SharedMap<ObjectName, V>,
    from: &SharedMap<ObjectName, V>,
    names: &BTreeSet<ObjectName>,
) {
    for name in names.iter().filter(|name| !into.contains_key(*name)).collect::<Vec<_>>() {
        if let Some(object) = from.get(name) {
            into.insert(name.clone(), object.clone());
        }
    }
}
