//! The Secrets and ConfigMaps that a controller has to read for a Gateway.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::listeners::allows_listener_set;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::references::Grants;
use crate::shared_map::SharedMap;
use crate::snapshot::{
    BackendTrafficPolicy, Gateway, ListenerSet, Referents, SecurityPolicy, config_map_of_security_policy,
    config_maps_of_gateway, key_of, secret_of_backend_traffic_policy, secrets_of_gateway,
    secrets_of_listener_set, secrets_of_security_policy,
};

/// The Secrets and ConfigMaps that a Gateway, its ListenerSets and policies name and may use, existing or not: those of their own
/// namespace and those that a ReferenceGrant permits. ListenerSets that the Gateway does not allow have none. A controller
/// reads no other object for them, so no author can make it read a forbidden object.
///
/// The function uses the ReferenceGrants and Namespaces of `referents`.
pub fn permitted_references(
    gateway: &Gateway,
    listener_sets: &SharedMap<ObjectName, Arc<ListenerSet>>,
    backend_traffic_policies: &SharedMap<ObjectName, Arc<BackendTrafficPolicy>>,
    security_policies: &SharedMap<ObjectName, Arc<SecurityPolicy>>,
    referents: &Referents,
) -> BTreeSet<ObjectKey> {
    let grants = Grants::new(referents.reference_grants.values());
    let permitted = |referrer: &ObjectKey, kind: Kind, names: BTreeSet<ObjectName>| -> Vec<ObjectKey> {
        let names = names.into_iter().filter(|name| grants.permit(referrer, kind, name));
        names.map(|name| ObjectKey { kind, name }).collect()
    };
    let own = key_of(Kind::Gateway, &gateway.metadata);
    let namespace = &own.name.namespace;
    let mut references = BTreeSet::new();
    references.extend(permitted(&own, Kind::Secret, secrets_of_gateway(gateway, namespace)));
    references.extend(permitted(&own, Kind::ConfigMap, config_maps_of_gateway(gateway, namespace)));
    for (name, set) in listener_sets {
        if allows_listener_set(gateway, &name.namespace, referents) {
            let key = ObjectKey { kind: Kind::ListenerSet, name: name.clone() };
            references.extend(permitted(&key, Kind::Secret, secrets_of_listener_set(set, &name.namespace)));
        }
    }
    references.extend(of_policies(backend_traffic_policies, security_policies, &grants));
    references
}

/// The Secrets and ConfigMaps that policies of Ingresses and their backends name and may use, existing or not. A controller
/// reads no other object for them.
///
/// The function uses the ReferenceGrants of `referents`.
pub fn permitted_references_of_policies(
    backend_traffic_policies: &SharedMap<ObjectName, Arc<BackendTrafficPolicy>>,
    security_policies: &SharedMap<ObjectName, Arc<SecurityPolicy>>,
    referents: &Referents,
) -> BTreeSet<ObjectKey> {
    let grants = Grants::new(referents.reference_grants.values());
    of_policies(backend_traffic_policies, security_policies, &grants)
}

fn of_policies(
    backend_traffic_policies: &SharedMap<ObjectName, Arc<BackendTrafficPolicy>>,
    security_policies: &SharedMap<ObjectName, Arc<SecurityPolicy>>,
    grants: &Grants,
) -> BTreeSet<ObjectKey> {
    let mut references = BTreeSet::new();
    for (name, policy) in backend_traffic_policies {
        let key = ObjectKey { kind: Kind::BackendTrafficPolicy, name: name.clone() };
        let secret = secret_of_backend_traffic_policy(policy, &name.namespace);
        let secret = secret.filter(|secret| grants.permit(&key, Kind::Secret, secret));
        references.extend(secret.map(|name| ObjectKey { kind: Kind::Secret, name }));
    }
    for (name, policy) in security_policies {
        let key = ObjectKey { kind: Kind::SecurityPolicy, name: name.clone() };
        let secrets = secrets_of_security_policy(policy, &name.namespace).into_iter();
        let secrets = secrets.map(|name| ObjectKey { kind: Kind::Secret, name });
        let config_map = config_map_of_security_policy(policy, &name.namespace);
        let config_map = config_map.map(|name| ObjectKey { kind: Kind::ConfigMap, name });
        let named = secrets.chain(config_map);
        references.extend(named.filter(|target| grants.permit(&key, target.kind, &target.name)));
    }
    references
}
