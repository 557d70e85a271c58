//! The Secrets and ConfigMaps that a controller has to read for a Gateway.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::listeners::allows_listener_set;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::references::Grants;
use crate::shared_map::SharedMap;
use crate::snapshot::{
    AnyPolicy, Gateway, ListenerSet, Referents, key_of, references_of_gateway, references_of_listener_set,
};

/// The Secrets and ConfigMaps that a Gateway, its ListenerSets and policies name and may use, existing or not: those of their own
/// namespace and those that a ReferenceGrant permits. ListenerSets that the Gateway does not allow have none. A controller
/// reads no other object for them, so no author can make it read a forbidden object.
///
/// The function uses the ReferenceGrants and Namespaces of `referents`.
pub(crate) fn permitted_references(
    gateway: &Gateway,
    listener_sets: &SharedMap<ObjectName, Arc<ListenerSet>>,
    policies: &SharedMap<ObjectKey, AnyPolicy>,
    referents: &Referents,
) -> BTreeSet<ObjectKey> {
    let grants = Grants::new(referents.reference_grants.values());
    let own = key_of(Kind::Gateway, &gateway.metadata);
    let namespace = &own.name.namespace;
    let mut references = BTreeSet::new();
    references.extend(permitted(&grants, &own, references_of_gateway(gateway, namespace)));
    for (name, set) in listener_sets {
        if allows_listener_set(gateway, &name.namespace, referents) {
            let key = ObjectKey { kind: Kind::ListenerSet, name: name.clone() };
            references.extend(permitted(&grants, &key, references_of_listener_set(set, &name.namespace)));
        }
    }
    references.extend(of_policies(policies, &grants));
    references
}

/// The Secrets and ConfigMaps that policies of Ingresses and their backends name and may use, existing or not. A controller
/// reads no other object for them.
///
/// The function uses the ReferenceGrants of `referents`.
pub(crate) fn permitted_references_of_policies(
    policies: &SharedMap<ObjectKey, AnyPolicy>,
    referents: &Referents,
) -> BTreeSet<ObjectKey> {
    of_policies(policies, &Grants::new(referents.reference_grants.values())).collect()
}

fn of_policies<'p>(
    policies: &'p SharedMap<ObjectKey, AnyPolicy>,
    grants: &'p Grants,
) -> impl Iterator<Item = ObjectKey> + 'p {
    policies.iter().flat_map(|(key, policy)| permitted(grants, key, policy.references()))
}

fn permitted(
    grants: &Grants,
    referrer: &ObjectKey,
    references: BTreeSet<ObjectKey>,
) -> impl Iterator<Item = ObjectKey> {
    references.into_iter().filter(move |to| grants.permit(referrer, to.kind, &to.name))
}
