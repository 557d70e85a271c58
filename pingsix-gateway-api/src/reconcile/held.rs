//! Objects that count as they were, until it is known whether what they refer to now is there.
//!
//! A listener that names another certificate keeps the former one until the new one can be read. So an object with an
//! unanswered reference counts as it was when all its references were answered. A new object counts as absent. All
//! other objects count as they are.
//!
//! A policy that protects its targets counts as it was only if its former version protects the same targets in as many ways.
//! Otherwise the policy counts as it is, and its targets fail closed until the answer.

use std::collections::BTreeSet;

use pingsix_translate::snapshot::{
    BackendTrafficPolicy, IngressSnapshot, Referents, SecurityPolicy, Snapshot,
    config_map_of_security_policy, config_maps_of_gateway, config_maps_of_policy, proxy_of_class,
    proxy_of_gateway, secret_of_backend_traffic_policy, secrets_of_gateway, secrets_of_ingress,
    secrets_of_listener_set, secrets_of_proxy, secrets_of_security_policy, services_of_ingress,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName, SharedMap};

use crate::acceptance::{may_retain, put};
use crate::world::{OwnerSnapshot, World};

/// Makes these objects what they are in an earlier snapshot of the same owner, where they may not be. Their former
/// references that no other object has now are as they were then, since nothing watches them any more. Permissions are as
/// they are now.
pub(super) fn hold_back(
    world: &World,
    now: &mut OwnerSnapshot,
    before: &OwnerSnapshot,
    held: &BTreeSet<ObjectKey>,
) {
    let held = &held.iter().filter(|key| may_retain(now, before, key)).cloned().collect::<BTreeSet<_>>();
    put(now, before, held);
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
    let mut secrets: BTreeSet<ObjectName> = BTreeSet::new();
    let mut config_maps: BTreeSet<ObjectName> = BTreeSet::new();
    for key in held {
        let namespace = &key.name.namespace;
        if key.kind == Kind::Gateway {
            if before.gateway.spec.gateway_class_name != class_name(now) {
                now.class.clone_from(&before.class);
            }
            let referents = &mut now.referents;
            let proxies = now.class.as_deref().and_then(proxy_of_class).into_iter();
            let proxies = proxies.chain(proxy_of_gateway(&now.gateway, namespace)).collect();
            add(&mut referents.proxies, &before.referents.proxies, &proxies);
            let secrets_now = secrets_of_gateway(&now.gateway, namespace);
            permit(world, referents, key, &secrets_now);
            let config_maps_now = config_maps_of_gateway(&now.gateway, namespace);
            permit(world, referents, key, &config_maps_now);
            config_maps.extend(config_maps_now);
            secrets.extend(secrets_now);
        } else if let Some(set) = now.listener_sets.get(&key.name).filter(|_| key.kind == Kind::ListenerSet) {
            let secrets_now = secrets_of_listener_set(set, namespace);
            permit(world, &mut now.referents, key, &secrets_now);
            secrets.extend(secrets_now);
        } else if let Some(policy) =
            now.backend_tls_policies.get(&key.name).filter(|_| key.kind == Kind::BackendTlsPolicy)
        {
            config_maps.extend(config_maps_of_policy(policy, namespace));
        } else if let Some(policy) =
            now.backend_traffic_policies.get(&key.name).filter(|_| key.kind == Kind::BackendTrafficPolicy)
        {
            let policy = policy.clone();
            secrets.extend(of_backend_traffic_policy(world, &mut now.referents, key, &policy));
        } else if let Some(policy) =
            now.security_policies.get(&key.name).filter(|_| key.kind == Kind::SecurityPolicy)
        {
            let policy = policy.clone();
            let (of_policy, config_map) = of_security_policy(world, &mut now.referents, key, &policy);
            secrets.extend(of_policy);
            config_maps.extend(config_map);
        }
    }
    add_credentials(&now.referents, &mut secrets);
    add(&mut now.referents.secrets, &before.referents.secrets, &secrets);
    add(&mut now.referents.config_maps, &before.referents.config_maps, &config_maps);
}

fn of_ingress_class(
    world: &World,
    now: &mut IngressSnapshot,
    before: &IngressSnapshot,
    held: &BTreeSet<ObjectKey>,
) {
    let (mut secrets, mut config_maps) = (BTreeSet::new(), BTreeSet::new());
    for key in held.iter().filter(|key| key.kind == Kind::SecurityPolicy) {
        let Some(policy) = now.security_policies.get(&key.name).cloned() else { continue };
        let (of_policy, config_map) = of_security_policy(world, &mut now.referents, key, &policy);
        secrets.extend(of_policy);
        config_maps.extend(config_map);
    }
    for key in held.iter().filter(|key| key.kind == Kind::BackendTrafficPolicy) {
        let Some(policy) = now.backend_traffic_policies.get(&key.name).cloned() else { continue };
        secrets.extend(of_backend_traffic_policy(world, &mut now.referents, key, &policy));
    }
    for key in held.iter().filter(|key| key.kind == Kind::Ingress) {
        let Some(ingress) = now.ingresses.get(&key.name) else { continue };
        secrets.extend(secrets_of_ingress(ingress, &key.name.namespace));
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
    add_credentials(&now.referents, &mut secrets);
    add(&mut now.referents.secrets, &before.referents.secrets, &secrets);
    add(&mut now.referents.config_maps, &before.referents.config_maps, &config_maps);
}

/// The Secret to which a policy refers, after the permission has been added.
fn of_backend_traffic_policy(
    world: &World,
    referents: &mut Referents,
    key: &ObjectKey,
    policy: &BackendTrafficPolicy,
) -> BTreeSet<ObjectName> {
    let secret = secret_of_backend_traffic_policy(policy, &key.name.namespace).into_iter().collect();
    permit(world, referents, key, &secret);
    secret
}

/// The Secrets and the ConfigMap to which a policy refers, after the permissions have been added.
fn of_security_policy(
    world: &World,
    referents: &mut Referents,
    key: &ObjectKey,
    policy: &SecurityPolicy,
) -> (BTreeSet<ObjectName>, BTreeSet<ObjectName>) {
    let secrets = secrets_of_security_policy(policy, &key.name.namespace);
    let config_map = config_map_of_security_policy(policy, &key.name.namespace).into_iter().collect();
    permit(world, referents, key, &secrets);
    permit(world, referents, key, &config_map);
    (secrets, config_map)
}

fn class_name(snapshot: &Snapshot) -> &str {
    let class = snapshot.class.as_deref().and_then(|class| class.metadata.name.as_deref());
    class.unwrap_or_default()
}

/// Adds the Secrets that parameters refer to.
fn add_credentials(referents: &Referents, secrets: &mut BTreeSet<ObjectName>) {
    for (name, proxy) in &referents.proxies {
        secrets.extend(secrets_of_proxy(proxy, &name.namespace));
    }
}

/// Adds the permissions that references of an object into other namespaces take.
fn permit(world: &World, referents: &mut Referents, from: &ObjectKey, to: &BTreeSet<ObjectName>) {
    let foreign: BTreeSet<_> = to.iter().map(|to| &to.namespace).collect();
    for namespace in foreign.into_iter().filter(|namespace| **namespace != from.name.namespace) {
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
