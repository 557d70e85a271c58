//! Whose listeners a Gateway serves: its own, and those of the ListenerSets it allows.

use super::attach::GATEWAY_GROUP;
use super::world::{Grant, ListenerSet, Metadata, Name, Owner, ParentRef, World};

impl World {
    /// Sorts out the ListenerSets that are the Gateway's, and puts all listeners in order of precedence.
    pub(super) fn gather_listeners(&mut self) {
        let mut sets = std::mem::take(&mut self.listener_sets);
        let gateway = &self.gateway.metadata;
        sets.retain(|set| names(&set.spec.parent_ref, "Gateway", &set.metadata.namespace, gateway));
        sets.sort_by(|one, other| one.metadata.age().cmp(&other.metadata.age()));
        let mut listeners = self.gateway.spec.listeners.clone();
        for (index, set) in sets.iter().enumerate().filter(|(_, set)| self.allows_set(set)) {
            let mut own = set.spec.listeners.clone();
            for listener in &mut own {
                listener.owner = Owner::Set(index);
            }
            listeners.append(&mut own);
        }
        self.listener_sets = sets;
        self.listeners = listeners;
    }

    /// Whether the Gateway lets a ListenerSet take part.
    pub(crate) fn allows_set(&self, set: &ListenerSet) -> bool {
        let from = &self.gateway.spec.allowed_listeners.namespaces;
        self.admits(from, "None", &self.gateway.metadata.namespace, &set.metadata.namespace)
    }

    /// The places of an owner's listeners among all that take part.
    pub(crate) fn listeners_of(&self, owner: Owner) -> Vec<usize> {
        let listeners = self.listeners.iter().enumerate();
        listeners.filter(|(_, listener)| listener.owner == owner).map(|(index, _)| index).collect()
    }

    /// Whether routes or listeners of other namespaces may be the Gateway's.
    pub(crate) fn is_shared(&self) -> bool {
        let own = &self.gateway.metadata.namespace;
        self.listeners.iter().any(|listener| {
            let from = listener.allowed_routes.namespaces.from.as_deref().unwrap_or("Same");
            !["Same", "None"].contains(&from) || self.metadata_of(listener.owner).namespace != *own
        })
    }

    pub(crate) fn metadata_of(&self, owner: Owner) -> &Metadata {
        match owner {
            Owner::Gateway => &self.gateway.metadata,
            Owner::Set(index) => &self.listener_sets[index].metadata,
        }
    }

    /// The owner that a parentRef of a route in this namespace names, if the owner is ours, allowed or not.
    pub(crate) fn named_by(&self, namespace: &str, parent: &ParentRef) -> Option<Owner> {
        if names(parent, "Gateway", namespace, &self.gateway.metadata) {
            return Some(Owner::Gateway);
        }
        let named = |set: &ListenerSet| names(parent, "ListenerSet", namespace, &set.metadata);
        self.listener_sets.iter().position(named).map(Owner::Set)
    }

    /// Whether listeners of an owner may use a Secret: one of the same namespace, or of one where a grant says so.
    pub(crate) fn may_use_secret(&self, owner: Owner, (namespace, name): &Name) -> bool {
        let kind = match owner {
            Owner::Gateway => "Gateway",
            Owner::Set(_) => "ListenerSet",
        };
        let own = &self.metadata_of(owner).namespace;
        let says_so = |grant: &Grant| {
            let from = grant.spec.from.iter();
            let mut from = from
                .filter(|from| from.group == GATEWAY_GROUP && from.kind == kind && from.namespace == *own);
            let to = grant.spec.to.iter();
            let mut to = to.filter(|to| {
                to.group.is_empty() && to.kind == "Secret" && to.name.as_ref().is_none_or(|to| to == name)
            });
            grant.metadata.namespace == *namespace && from.next().is_some() && to.next().is_some()
        };
        namespace == own || self.grants.iter().any(says_so)
    }
}

/// Whether a reference in an object of this namespace is to the object of this kind.
fn names(reference: &ParentRef, kind: &str, namespace: &str, object: &Metadata) -> bool {
    reference.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
        && reference.kind.as_deref().unwrap_or("Gateway") == kind
        && reference.namespace.as_deref().unwrap_or(namespace) == object.namespace
        && reference.name == object.name
}
