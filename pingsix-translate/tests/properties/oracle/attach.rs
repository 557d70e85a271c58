//! Listeners and routes: which listeners are valid, which one a request is for, and which routes it has.

use std::collections::BTreeSet;

use super::hostname::{intersect, matches, specificity};
use super::world::{
    FromNamespaces, Listener, Name, Owner, ParentRef, RouteKind, RouteKindName, SecretRef, Selector, World,
};

pub(super) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// Why a listener is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListenerProblem {
    UnsupportedProtocol,
    ProtocolConflict,
    HostnameConflict,
    InvalidCertificateRef,
}

/// Why a route is not attached through a parentRef, as the condition's reason.
pub(crate) type NotAttached = &'static str;

impl World {
    /// Finds out what keeps each of the listeners from serving, once and for all.
    pub(super) fn judge_listeners(&mut self) {
        self.problems = vec![BTreeSet::new(); self.listeners.len()];
        let owners: BTreeSet<Owner> = self.listeners.iter().map(|listener| listener.owner).collect();
        for owner in owners {
            // The first owner wins, and has nothing to fear from those that come later. Among the listeners of one owner
            // there is no winner. The specification
            // is silent about hosts that the losers keep from others; in this oracle, they keep none.
            for rivals in [true, false] {
                let lost: Vec<(usize, ListenerProblem)> = self
                    .listeners_of(owner)
                    .into_iter()
                    .flat_map(|index| {
                        self.conflicts(index, rivals).into_iter().map(move |problem| (index, problem))
                    })
                    .collect();
                for (index, problem) in lost {
                    self.problems[index].insert(problem);
                }
            }
        }
        for index in 0..self.listeners.len() {
            let listener = &self.listeners[index];
            // Of a ListenerSet's listener it says more that its port is taken.
            if !speaks_http(listener) && self.problems[index].is_empty() {
                self.problems[index].insert(ListenerProblem::UnsupportedProtocol);
            } else if listener.protocol == "HTTPS" && self.certificates(listener).is_empty() {
                self.problems[index].insert(ListenerProblem::InvalidCertificateRef);
            }
        }
    }

    /// The conflicts that a listener loses to listeners of earlier owners, or to others of its own owner.
    fn conflicts(&self, index: usize, to_earlier: bool) -> BTreeSet<ListenerProblem> {
        let listener = &self.listeners[index];
        let is_free = |index: usize| self.problems[index].is_empty();
        if !is_free(index) {
            return BTreeSet::new();
        }
        let rivals = self.listeners.iter().enumerate().filter(|(rival, other)| {
            let is_rival =
                if to_earlier { other.owner < listener.owner } else { other.owner == listener.owner };
            // Protocols that are not implemented conflict with nothing.
            is_rival
                && *rival != index
                && is_free(*rival)
                && other.port == listener.port
                && speaks_http(other)
        });
        let conflict = |(_, other): (usize, &Listener)| match listener.protocol.as_str() {
            "HTTP" | "HTTPS" if listener.protocol != other.protocol => {
                Some(ListenerProblem::ProtocolConflict)
            }
            "HTTP" | "HTTPS" => {
                (listener.hostname == other.hostname).then_some(ListenerProblem::HostnameConflict)
            }
            // A TCP listener would need the port for itself.
            "TCP" if to_earlier => Some(ListenerProblem::ProtocolConflict),
            _ => None,
        };
        rivals.filter_map(conflict).collect()
    }

    /// Everything that keeps a listener from serving.
    pub(crate) fn listener_problems(&self, index: usize) -> &BTreeSet<ListenerProblem> {
        &self.problems[index]
    }

    /// The reasons why references to certificates do not lead to one.
    pub(super) fn certificate_problems(&self, listener: &Listener) -> BTreeSet<&'static str> {
        if listener.protocol != "HTTPS" {
            return BTreeSet::new();
        }
        let references = listener.tls.certificate_refs.iter();
        let problem = |reference: &SecretRef| {
            let secret = self.secret(listener, reference);
            if self.may_use_secret(listener.owner, &secret) {
                (!self.secrets.contains(&secret)).then_some("InvalidCertificateRef")
            } else {
                Some("RefNotPermitted")
            }
        };
        references.filter_map(problem).collect()
    }

    /// The Secrets of the references that lead to one. Every Secret that is generated holds a usable certificate.
    pub(crate) fn certificates<'l>(&self, listener: &'l Listener) -> Vec<&'l str> {
        let is_usable = |reference: &&SecretRef| {
            let secret = self.secret(listener, reference);
            self.may_use_secret(listener.owner, &secret) && self.secrets.contains(&secret)
        };
        let usable = listener.tls.certificate_refs.iter().filter(is_usable);
        usable.map(|reference| reference.name.as_str()).collect()
    }

    fn secret(&self, listener: &Listener, reference: &SecretRef) -> Name {
        let own = &self.metadata_of(listener.owner).namespace;
        (reference.namespace.as_ref().unwrap_or(own).clone(), reference.name.clone())
    }

    /// Whether a listener serves requests.
    pub(crate) fn serves(&self, index: usize) -> bool {
        self.listener_problems(index).is_empty()
    }

    /// Ports with at least one listener that serves.
    pub(crate) fn ports(&self) -> BTreeSet<u16> {
        let listeners = &self.listeners;
        (0..listeners.len()).filter(|&index| self.serves(index)).map(|index| listeners[index].port).collect()
    }

    /// The listener whose hosts a request is for: the one with the most specific hostname on the port. One that only
    /// lacks a certificate keeps its hosts from those that would serve them otherwise.
    pub(crate) fn listener_for(&self, port: u16, host: Option<&str>) -> Option<usize> {
        let listeners = &self.listeners;
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
        self.listener_problems(index).iter().all(|problem| *problem == ListenerProblem::InvalidCertificateRef)
    }

    /// Whether a parentRef of a route in this namespace names our Gateway, or a ListenerSet of it.
    pub(crate) fn is_ours(&self, namespace: &str, parent: &ParentRef) -> bool {
        self.named_by(namespace, parent).is_some()
    }

    /// The listeners a route attaches to through one parentRef that is ours.
    pub(crate) fn attach(&self, route: usize, parent: &ParentRef) -> Result<BTreeSet<usize>, NotAttached> {
        let route = &self.routes[route];
        let listeners = &self.listeners;
        // A ListenerSet that is not allowed has no listeners for routes.
        let owner = self.named_by(&route.metadata.namespace, parent).expect("the parentRef is ours");
        let mut selected: BTreeSet<usize> = self.listeners_of(owner).into_iter().collect();
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
            let own = &self.metadata_of(listener.owner).namespace;
            allows(listener, route.kind)
                && self.admits(&listener.allowed_routes.namespaces, "Same", own, &route.metadata.namespace)
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

    /// Whether an object in `own` namespace lets one of another take part.
    pub(super) fn admits(&self, from: &FromNamespaces, default: &str, own: &str, other: &str) -> bool {
        match from.from.as_deref().unwrap_or(default) {
            "All" => true,
            "Same" => other == own,
            "Selector" => self.selects(&from.selector, other),
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

pub(super) fn speaks_http(listener: &Listener) -> bool {
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
