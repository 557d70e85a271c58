//! Listeners and routes: which listeners are valid, which one a request is for, and which routes it has.

use std::collections::BTreeSet;

use super::hostname::{intersect, matches, specificity};
use super::world::{
    Listener, Metadata, ParentRef, RouteKind, RouteKindName, RouteNamespaces, SecretRef, Selector, World,
};

const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// Why a listener is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListenerFault {
    UnsupportedProtocol,
    ProtocolConflict,
    HostnameConflict,
    InvalidCertificateRef,
}

/// Why a route is not attached through a parentRef, as the condition's reason.
pub(crate) type NotAttached = &'static str;

impl World {
    /// Everything that keeps a listener from serving.
    pub(crate) fn listener_faults(&self, index: usize) -> BTreeSet<ListenerFault> {
        let listener = &self.gateway.spec.listeners[index];
        let mut faults = BTreeSet::new();
        if !speaks_http(listener) {
            faults.insert(ListenerFault::UnsupportedProtocol);
            return faults;
        }
        for (other_index, other) in self.gateway.spec.listeners.iter().enumerate() {
            // Protocols that are not implemented conflict with nothing.
            if other_index == index || other.port != listener.port || !speaks_http(other) {
                continue;
            }
            if other.protocol != listener.protocol {
                faults.insert(ListenerFault::ProtocolConflict);
            } else if other.hostname == listener.hostname {
                faults.insert(ListenerFault::HostnameConflict);
            }
        }
        if listener.protocol == "HTTPS" && !self.has_certificate(listener) {
            faults.insert(ListenerFault::InvalidCertificateRef);
        }
        faults
    }

    /// Every Secret that is generated holds a usable certificate, and none is shared between namespaces.
    fn has_certificate(&self, listener: &Listener) -> bool {
        !self.certificates(listener).is_empty()
    }

    /// Whether every reference to a certificate leads to one, and there is one at all.
    pub(super) fn has_every_certificate(&self, listener: &Listener) -> bool {
        let found = self.certificates(listener).len();
        found > 0 && found == listener.tls.certificate_refs.len()
    }

    /// The Secrets of the references that lead to one.
    pub(crate) fn certificates<'l>(&self, listener: &'l Listener) -> Vec<&'l str> {
        let own = &self.gateway.metadata.namespace;
        let exists = |reference: &&'l SecretRef| {
            let namespace = reference.namespace.as_ref().unwrap_or(own);
            namespace == own && self.secrets.contains(&(namespace.clone(), reference.name.clone()))
        };
        let existing = listener.tls.certificate_refs.iter().filter(exists);
        existing.map(|reference| reference.name.as_str()).collect()
    }

    /// Whether a listener serves requests.
    pub(crate) fn serves(&self, index: usize) -> bool {
        self.listener_faults(index).is_empty()
    }

    /// Ports with at least one listener that serves.
    pub(crate) fn ports(&self) -> BTreeSet<u16> {
        let listeners = &self.gateway.spec.listeners;
        (0..listeners.len()).filter(|&index| self.serves(index)).map(|index| listeners[index].port).collect()
    }

    /// The listener whose hosts a request is for: the one with the most specific hostname on the port. One that only
    /// lacks a certificate keeps its hosts from those that would serve them otherwise.
    pub(crate) fn listener_for(&self, port: u16, host: Option<&str>) -> Option<usize> {
        let listeners = &self.gateway.spec.listeners;
        let covering = (0..listeners.len()).filter(|&index| {
            listeners[index].port == port && matches(listeners[index].hostname.as_deref(), host)
        });
        let candidates: Vec<usize> = covering.filter(|&index| self.keeps_its_hosts(index)).collect();
        if !candidates.iter().any(|&index| self.serves(index)) {
            return None;
        }
        candidates.into_iter().max_by_key(|&index| specificity(listeners[index].hostname.as_deref()))
    }

    fn keeps_its_hosts(&self, index: usize) -> bool {
        self.listener_faults(index).iter().all(|fault| *fault == ListenerFault::InvalidCertificateRef)
    }

    /// Whether a parentRef of a route in this namespace names our Gateway.
    pub(crate) fn is_ours(&self, namespace: &str, parent: &ParentRef) -> bool {
        let gateway = &self.gateway.metadata;
        parent.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
            && parent.kind.as_deref().unwrap_or("Gateway") == "Gateway"
            && parent.namespace.as_deref().unwrap_or(namespace) == gateway.namespace
            && parent.name == gateway.name
    }

    /// The listeners a route attaches to through one parentRef that is ours.
    pub(crate) fn attach(&self, route: usize, parent: &ParentRef) -> Result<BTreeSet<usize>, NotAttached> {
        let route = &self.routes[route];
        let listeners = &self.gateway.spec.listeners;
        let mut selected: BTreeSet<usize> = (0..listeners.len()).collect();
        selected.retain(|&index| {
            let listener = &listeners[index];
            parent.section_name.as_ref().is_none_or(|section| *section == listener.name)
                && parent.port.is_none_or(|port| port == listener.port)
        });
        if selected.is_empty() {
            return Err("NoMatchingParent");
        }
        selected.retain(|&index| {
            let listener = &listeners[index];
            allows(listener, route.kind) && self.admits(&listener.allowed_routes.namespaces, &route.metadata)
        });
        if selected.is_empty() {
            return Err("NotAllowedByListeners");
        }
        selected.retain(|&index| {
            let listener = listeners[index].hostname.as_deref();
            let hostnames = &route.spec.hostnames;
            hostnames.is_empty() || hostnames.iter().any(|hostname| intersect(listener, Some(hostname)))
        });
        if selected.is_empty() {
            return Err("NoMatchingListenerHostname");
        }
        Ok(selected)
    }

    /// Whether a route is attached to a listener through any of its parentRefs.
    pub(crate) fn is_attached(&self, route: usize, listener: usize) -> bool {
        let namespace = &self.routes[route].metadata.namespace;
        self.routes[route].spec.parent_refs.iter().any(|parent| {
            self.is_ours(namespace, parent)
                && self.attach(route, parent).is_ok_and(|listeners| listeners.contains(&listener))
        })
    }

    fn admits(&self, namespaces: &RouteNamespaces, route: &Metadata) -> bool {
        match namespaces.from.as_deref().unwrap_or("Same") {
            "All" => true,
            "Same" => route.namespace == self.gateway.metadata.namespace,
            "Selector" => self.selects(&namespaces.selector, &route.namespace),
            _ => false,
        }
    }

    fn selects(&self, selector: &Selector, namespace: &str) -> bool {
        let Some(labels) = self.namespaces.get(namespace) else { return false };
        let by_labels = selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        by_labels
            && selector.match_expressions.iter().all(|requirement| {
                let value = labels.get(&requirement.key);
                let listed = value.is_some_and(|value| requirement.values.contains(value));
                match requirement.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
    }
}

fn speaks_http(listener: &Listener) -> bool {
    matches!(listener.protocol.as_str(), "HTTP" | "HTTPS")
}

fn allows(listener: &Listener, route: RouteKindName) -> bool {
    let kinds = &listener.allowed_routes.kinds;
    speaks_http(listener) && (kinds.is_empty() || kinds.iter().any(|kind| is_kind(kind, route)))
}

/// Whether an entry of `allowedRoutes.kinds` is this kind of route.
pub(crate) fn is_kind(kind: &RouteKind, route: RouteKindName) -> bool {
    kind.kind == route.as_str() && kind.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
}
