//! The expected statuses.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::attach::{ListenerProblem, NotAttached, is_kind, speaks_http};
use super::hostname::{matches, representative};
use super::list::Refusals;
use super::row::is_unsupported;
use super::world::{BackendRef, RouteKindName, Rule};

/// The backends that filters of a rule, or of its backends, have requests copied to.
fn mirrors(rule: &Rule) -> impl Iterator<Item = BackendRef> {
    let of_backends = rule.backend_refs.iter().flat_map(|backend| &backend.filters);
    let mirrors = rule.filters.iter().chain(of_backends).filter(|filter| filter["type"] == "RequestMirror");
    mirrors.map(|filter| {
        let backend = filter["requestMirror"]["backendRef"].clone();
        serde_json::from_value(backend).expect("a mirror has a backend")
    })
}

/// The expected status of a listener.
#[derive(Debug)]
pub(crate) struct ListenerStatus {
    pub(crate) problems: BTreeSet<ListenerProblem>,
    /// Whether its protocol is one that is implemented.
    pub(crate) speaks_http: bool,
    /// Whether `allowedRoutes.kinds` names something a listener of HTTP cannot carry.
    pub(crate) has_wrong_kinds: bool,
    /// Why certificates are missing; the listener serves all the same while it has another.
    pub(crate) certificate_problems: BTreeSet<&'static str>,
    /// Kinds of routes that are supported.
    pub(crate) supported_kinds: BTreeSet<&'static str>,
    pub(crate) attached_routes: i32,
}

/// The expected entry of a route's `status.parents`.
#[derive(Debug)]
pub(crate) struct ParentStatus {
    /// Index into `spec.parentRefs`.
    pub(crate) index: usize,
    /// The reason of `Accepted=False`.
    pub(crate) refused: Option<NotAttached>,
    pub(crate) partially_invalid: bool,
    /// The listeners the route is attached to.
    pub(crate) listeners: BTreeSet<usize>,
}

impl World {
    /// The expected statuses of all listeners.
    pub(crate) fn listener_statuses(&self, refusals: &Refusals) -> Vec<ListenerStatus> {
        let mut attached: BTreeMap<usize, i32> = BTreeMap::new();
        for route in 0..self.routes.len() {
            let accepted =
                self.parent_statuses(route, refusals).into_iter().filter(|parent| parent.refused.is_none());
            let listeners: BTreeSet<usize> = accepted.flat_map(|parent| parent.listeners).collect();
            for listener in listeners {
                // Not where none of its hosts can be served.
                if matches!(self.zones(route, &BTreeSet::from([listener]), refusals.shared), (0, 1..)) {
                    continue;
                }
                *attached.entry(listener).or_default() += 1;
            }
        }
        let listeners = self.listeners.iter().enumerate();
        listeners
            .map(|(index, listener)| {
                let kinds = &listener.allowed_routes.kinds;
                let problems = self.listener_problems(index).clone();
                let carried = [RouteKindName::Http, RouteKindName::Grpc];
                ListenerStatus {
                    has_wrong_kinds: !kinds
                        .iter()
                        .all(|kind| carried.iter().any(|known| is_kind(kind, *known))),
                    speaks_http: speaks_http(listener),
                    certificate_problems: self.certificate_problems(listener),
                    supported_kinds: carried
                        .iter()
                        .filter(|_| speaks_http(listener))
                        .filter(|known| kinds.is_empty() || kinds.iter().any(|kind| is_kind(kind, **known)))
                        .map(|known| known.as_str())
                        .collect(),
                    attached_routes: attached.get(&index).copied().unwrap_or_default(),
                    problems,
                }
            })
            .collect()
    }

    /// The expected status of a route: one entry per parentRef that is ours.
    pub(crate) fn parent_statuses(&self, route: usize, refusals: &Refusals) -> Vec<ParentStatus> {
        let Refusals { shared, by_plane } = refusals;
        let spec = &self.routes[route].spec;
        let namespace = &self.routes[route].metadata.namespace;
        let ours = spec.parent_refs.iter().enumerate().filter(|(_, parent)| self.is_ours(namespace, parent));
        ours.map(|(index, parent)| match self.attach(route, parent) {
            Err(reason) => ParentStatus {
                index,
                refused: Some(reason),
                partially_invalid: false,
                listeners: BTreeSet::new(),
            },
            Ok(listeners) => {
                let (served, unserved) = self.zones(route, &listeners, *shared);
                // A rule may fail on one port and not on another. Where no listener of this parent serves, another parent's
                // may, and the rule fails for those who come through that.
                let serving = listeners.iter().filter(|listener| self.serves(**listener));
                let planes: BTreeSet<Option<u16>> =
                    serving.map(|listener| (!*shared).then(|| self.listeners[*listener].port)).collect();
                let refused_on: Vec<&BTreeSet<(usize, usize)>> =
                    planes.iter().filter_map(|plane| by_plane.get(plane)).collect();
                let fails = |(index, rule): (usize, &Rule)| {
                    let unsupported = is_unsupported(rule);
                    let loses = self.has_hostless_backend(&self.routes[route], rule);
                    let whole = unsupported || self.has_hostless_backends_alone(&self.routes[route], rule);
                    let on = refused_on.iter().filter(|refused| refused.contains(&(route, index))).count();
                    (unsupported || loses || on > 0, whole || (on > 0 && on == refused_on.len()))
                };
                let failing: Vec<(bool, bool)> = spec.rules.iter().enumerate().map(fails).collect();
                let unsupported = failing.iter().filter(|(somewhere, _)| *somewhere).count();
                let everywhere = failing.iter().filter(|(_, everywhere)| *everywhere).count();
                let nothing = everywhere == spec.rules.len() || (unserved > 0 && served == 0);
                ParentStatus {
                    index,
                    refused: nothing.then_some("UnsupportedValue"),
                    partially_invalid: !nothing && (unsupported > 0 || unserved > 0),
                    listeners,
                }
            }
        })
        .collect()
    }

    /// The reasons of `ResolvedRefs=False`; empty when everything is resolved.
    pub(crate) fn unresolved_reasons(&self, route: usize) -> BTreeSet<&'static str> {
        let route = &self.routes[route];
        let backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
        let backends = backends.filter_map(|backend| self.unresolved(route, backend));
        let mirrors = route.spec.rules.iter().flat_map(mirrors);
        // Mirrors get no requests, so no protocol of a mirror is at fault.
        let mirrors = mirrors
            .filter_map(|mirror| self.unresolved(route, &mirror))
            .filter(|reason| *reason != "UnsupportedProtocol");
        backends.chain(mirrors).collect()
    }

    /// Whether a reference leads to a Service that is not followed for what it is; nothing says which condition
    /// that is a matter of.
    pub(crate) fn refers_to_external(&self, route: usize) -> bool {
        let route = &self.routes[route];
        let backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
        let mirrors = route.spec.rules.iter().flat_map(mirrors);
        backends.cloned().chain(mirrors).any(|backend| {
            let namespace = backend.namespace.as_ref().unwrap_or(&route.metadata.namespace);
            let service = self.services.get(&(namespace.clone(), backend.name.clone()));
            service.is_some_and(super::backend::is_external)
        })
    }

    /// In how many kinds of hosts the route is served through these listeners, and in how many it is not.
    fn zones(&self, route: usize, attached: &BTreeSet<usize>, shared: bool) -> (usize, usize) {
        if !shared {
            return (1, 0);
        }
        let hostnames = &self.routes[route].spec.hostnames;
        let listeners = self.listeners.iter().map(|listener| listener.hostname.as_deref());
        let patterns: BTreeSet<Option<&str>> =
            listeners.chain(hostnames.iter().map(|name| Some(name.as_str()))).chain([None]).collect();
        let (mut served, mut unserved) = (0, 0);
        for host in patterns.into_iter().map(representative) {
            let is_named =
                hostnames.is_empty() || hostnames.iter().any(|name| matches(Some(name), Some(&host)));
            let listeners = self.listeners_for(None, Some(&host));
            let is_served = listeners.iter().any(|&listener| self.serves(listener));
            if !is_named || !is_served || listeners.is_disjoint(attached) {
                continue;
            }
            if self.refuses(None, route, &listeners) {
                unserved += 1;
            } else {
                served += 1;
            }
        }
        (served, unserved)
    }
}
