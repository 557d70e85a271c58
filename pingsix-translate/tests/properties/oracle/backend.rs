//! Backends: where the requests of a rule go, and in which shares.

use std::collections::{BTreeMap, BTreeSet};

use super::filter;
use super::world::{BackendRef, EndpointConditions, Route, RouteKindName, Rule, Service, World};
use super::{Answer, BackendProtocol, Target};
use crate::effect::Way;
use crate::probe::Probe;

impl World {
    /// The answer of an honoured rule to a request.
    pub(crate) fn answer_of(&self, route: &Route, rule: &Rule, request: &Probe) -> Answer {
        let read = filter::read(rule);
        if let Some(redirect) = &read.filters.redirect {
            return Answer::new([(redirect.target(request.port, request), 1)].into());
        }
        let mut shares: BTreeMap<Target, u64> = BTreeMap::new();
        for backend in &rule.backend_refs {
            let target = match self.target_of(route, backend) {
                Target::Service { protocol: BackendProtocol::H2c, .. } if read.loses_host() => {
                    Target::Status(route.kind.failure())
                }
                Target::Service { namespace, name, port, protocol, .. } => {
                    let way = filter::way(rule, protocol).expect("a rule that is honoured");
                    // The timeouts show all other properties of a connection that stays open.
                    let protocol = if protocol == BackendProtocol::WebSocket {
                        BackendProtocol::Http1
                    } else {
                        protocol
                    };
                    Target::Service { namespace, name, port, protocol, way }
                }
                other @ (Target::Status(_) | Target::Redirect { .. } | Target::Preflight(_)) => other,
            };
            *shares.entry(target).or_default() += backend.weight.unwrap_or(1);
        }
        if shares.values().all(|weight| *weight == 0) {
            return Answer::status(route.kind.failure());
        }
        Answer::new(shares)
    }

    /// Why a backendRef leads nowhere, as the reason of `ResolvedRefs`.
    pub(crate) fn unresolved(&self, route: &Route, backend: &BackendRef) -> Option<&'static str> {
        let namespace = route.metadata.namespace.as_str();
        if !backend.group.as_deref().unwrap_or_default().is_empty()
            || backend.kind.as_deref().unwrap_or("Service") != "Service"
        {
            return Some("InvalidKind");
        }
        let target = backend.namespace.as_deref().unwrap_or(namespace);
        if target != namespace && !self.grants(route, target, &backend.name) {
            return Some("RefNotPermitted");
        }
        let service = self.services.get(&(target.to_owned(), backend.name.clone()));
        let port = service
            .and_then(|service| service.spec.ports.iter().find(|port| Some(port.port) == backend.port));
        match port {
            None => Some("BackendNotFound"),
            Some(port) => {
                protocol(port.app_protocol.as_deref(), route.kind).is_none().then_some("UnsupportedProtocol")
            }
        }
    }

    pub(super) fn target_of(&self, route: &Route, backend: &BackendRef) -> Target {
        let namespace = route.metadata.namespace.as_str();
        if self.unresolved(route, backend).is_some() {
            return Target::Status(route.kind.failure());
        }
        let name = (backend.namespace.clone().unwrap_or_else(|| namespace.to_owned()), backend.name.clone());
        let service = &self.services[&name];
        let port = backend.port.expect("a resolved reference has a port");
        if is_external(service) {
            return Target::Status(route.kind.failure());
        }
        if self.nodes(&name.0, &name.1, port).is_empty() {
            return Target::Status(503);
        }
        let written = service.spec.ports.iter().find(|candidate| candidate.port == port);
        let written = written.and_then(|port| port.app_protocol.as_deref());
        let protocol = protocol(written, route.kind).expect("a resolved reference has a protocol");
        Target::Service { namespace: name.0, name: name.1, port, protocol, way: Way::default() }
    }

    /// The endpoints of a Service port that take traffic, as `address:port`, with IPv6 addresses in brackets.
    ///
    /// Gateway API speaks of ready endpoints only. Kubernetes adds that, when there are none, those that are
    /// terminating but still serve are used (`EndpointConditions`).
    pub(crate) fn nodes(&self, namespace: &str, name: &str, port: u16) -> BTreeSet<String> {
        // Readiness that is not known counts as ready.
        let ready = self.nodes_that(namespace, name, port, |conditions| conditions.ready != Some(false));
        if !ready.is_empty() {
            return ready;
        }
        self.nodes_that(namespace, name, port, |conditions| {
            conditions.serving == Some(true) && conditions.terminating == Some(true)
        })
    }

    fn nodes_that(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
        fit: impl Fn(&EndpointConditions) -> bool,
    ) -> BTreeSet<String> {
        let service = &self.services[&(namespace.to_owned(), name.to_owned())];
        let port = service.spec.ports.iter().find(|candidate| candidate.port == port).unwrap();
        let mut nodes = BTreeSet::new();
        for slice in &self.slices {
            let owner = slice.metadata.labels.get("kubernetes.io/service-name");
            if slice.metadata.namespace != namespace || owner.is_none_or(|owner| owner != name) {
                continue;
            }
            for slice_port in slice.ports.iter().filter(|slice_port| slice_port.name == port.name) {
                for endpoint in slice.endpoints.iter().filter(|endpoint| fit(&endpoint.conditions)) {
                    let Some(address) = endpoint.addresses.first() else { continue };
                    let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
                    nodes.insert(format!("{host}:{}", slice_port.port));
                }
            }
        }
        nodes
    }

    fn grants(&self, from: &Route, to: &str, service: &str) -> bool {
        self.grants.iter().any(|grant| {
            let from_fits = grant.spec.from.iter().any(|entry| {
                entry.group == "gateway.networking.k8s.io"
                    && entry.kind == from.kind.as_str()
                    && entry.namespace == from.metadata.namespace
            });
            let to_fits = grant.spec.to.iter().any(|entry| {
                entry.group.is_empty()
                    && entry.kind == "Service"
                    && entry.name.as_ref().is_none_or(|name| name == service)
            });
            grant.metadata.namespace == to && from_fits && to_fits
        })
    }
}

/// The protocol of a Service port: its own, or else that of the route's clients. `None` if the two are incompatible.
fn protocol(app_protocol: Option<&str>, route: RouteKindName) -> Option<BackendProtocol> {
    match (app_protocol, route) {
        (Some("kubernetes.io/h2c"), _) | (None, RouteKindName::Grpc) => Some(BackendProtocol::H2c),
        (None | Some("http"), RouteKindName::Http) => Some(BackendProtocol::Http1),
        (Some("kubernetes.io/ws"), RouteKindName::Http) => Some(BackendProtocol::WebSocket),
        _ => None,
    }
}

/// Services of type `ExternalName` are not followed.
pub(crate) fn is_external(service: &Service) -> bool {
    service.spec.r#type.as_deref() == Some("ExternalName")
}
