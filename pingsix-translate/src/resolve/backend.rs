//! backendRefs to what a request is sent to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Endpoints, References};
use crate::attach::Hostname;
use crate::field::{self, FieldPath};
use crate::object::{Kind, ObjectKey, ObjectName};
use crate::route::{BackendRef, Exchange, Refusal, Route, Rule};
use crate::snapshot::{Service, ServicePort};
use crate::verdict::{Problem, Reason, Severity};

/// A port of a Service, what is spoken there, and how it is used. Every use becomes an upstream of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackendKey {
    pub(crate) service: ObjectName,
    pub(crate) port: i32,
    pub(crate) wire: Wire,
    pub(crate) usage: Usage,
}

/// What a route speaks to its backends. A port number may be there once per protocol, and `appProtocol` concerns HTTP
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wire {
    /// HTTP over TCP, in the version `appProtocol` asks for.
    Http,
    /// Bytes over TCP.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Wire {
    /// What routes of a kind speak.
    fn of(kind: Kind) -> Self {
        if kind == Kind::UdpRoute {
            Self::Udp
        } else if matches!(kind, Kind::TcpRoute | Kind::TlsRoute) {
            Self::Tcp
        } else {
            Self::Http
        }
    }

    /// The protocol of the Service port.
    pub(crate) const fn transport(self) -> &'static str {
        match self {
            Self::Http | Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// What a rule asks for on the way to its backends. A property of upstreams, so that rules which a Route decides
/// among may differ in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usage {
    pub(crate) exchange: Exchange,
    /// The Host that backends see; `None` is what the client sent.
    pub(crate) host: Option<Hostname>,
}

/// What a rule does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// Never empty; weights are positive and have no common divisor; no target appears twice.
    pub(crate) targets: Vec<(Target, u32)>,
}

/// One place a request may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Index into [`Backends`].
    Backend(usize),
    /// An answer without a backend.
    Status(u16),
    /// The responder, which redirects as the Route's plugins tell it.
    Redirect,
}

impl Action {
    /// Answers every request with a status.
    pub(crate) fn status(status: u16) -> Self {
        Self { targets: vec![(Target::Status(status), 1)] }
    }

    /// Sends every client elsewhere.
    fn redirect() -> Self {
        Self { targets: vec![(Target::Redirect, 1)] }
    }

    /// Whether filters make a difference: statuses are the same with and without.
    pub(crate) fn is_filtered(&self) -> bool {
        self.targets.iter().any(|(target, _)| !matches!(target, Target::Status(_)))
    }

    /// The status, when the action is nothing else.
    pub(crate) fn only_status(&self) -> Option<u16> {
        match self.targets.as_slice() {
            [(Target::Status(status), _)] => Some(*status),
            _ => None,
        }
    }

    fn weighted(shares: impl Iterator<Item = (Target, u32)>) -> Self {
        let mut targets: Vec<(Target, u32)> = Vec::new();
        for (target, weight) in shares.filter(|(_, weight)| *weight > 0) {
            match targets.iter_mut().find(|(existing, _)| *existing == target) {
                Some((_, total)) => *total = total.saturating_add(weight),
                None => targets.push((target, weight)),
            }
        }
        // Gateway API: a rule without a backend that takes traffic answers 500.
        if targets.is_empty() {
            return Self::status(500);
        }
        let divisor = targets.iter().fold(0, |divisor, (_, weight)| gcd(divisor, *weight));
        for (_, weight) in &mut targets {
            *weight /= divisor;
        }
        Self { targets }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How to speak to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AppProtocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/1.1 with connections that stay open (WebSocket).
    WebSocket,
    /// HTTP/2 in cleartext with prior knowledge.
    H2c,
}

/// A Service port with at least one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    pub(crate) key: BackendKey,
    /// Of no meaning unless HTTP is spoken.
    pub(crate) protocol: AppProtocol,
    pub(crate) endpoints: Endpoints,
}

/// Every Service port looked at in one translation, looked up once.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    known: BTreeMap<BackendKey, Found>,
    list: Vec<Backend>,
}

#[derive(Clone, Debug)]
enum Found {
    Backend(usize),
    NoEndpoints,
    Refused(Unusable),
}

/// Why a Service port cannot be used, and which field of the reference is at fault.
#[derive(Clone, Debug)]
struct Unusable {
    field: &'static str,
    reason: Reason,
    message: String,
}

impl Backends {
    pub(crate) fn get(&self, index: usize) -> &Backend {
        &self.list[index]
    }
}

/// A rule with its references resolved.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedRule {
    pub(crate) action: Action,
    /// References that lead nowhere; their share of the traffic answers 500.
    pub(crate) unresolved: Vec<Refusal>,
    /// What cannot be done with the backends the references lead to; their share of the traffic answers 500.
    pub(crate) refused: Vec<Refusal>,
}

impl References<'_> {
    /// Resolves the backendRefs of a rule. What is found missing in passing goes to `problems`.
    pub(crate) fn resolve_rule(
        &self,
        route: &Route,
        rule: &Rule,
        backends: &mut Backends,
        problems: &mut Vec<Problem>,
    ) -> ResolvedRule {
        let mut unresolved = Vec::new();
        let mut refused = Vec::new();
        let mut shares = Vec::with_capacity(rule.backends.len());
        let rewrites_path = rule.filters.as_ref().is_some_and(|filters| filters.path.is_some());
        for backend in &rule.backends {
            let at = || field::rule(rule.index).child("backendRefs").index(backend.index);
            let target = match self.resolve_backend(route, rule, backend, at, backends) {
                // With `pass_host: pass`, PingSIX loses the authority of a request over HTTP/2 whose path it
                // rewrites on the way to such a backend (`src/plugins/proxy_rewrite.rs`).
                Ok(Resolved::Backend(index))
                    if rewrites_path
                        && rule.host.is_none()
                        && backends.get(index).protocol == AppProtocol::H2c =>
                {
                    refused.push(Refusal::new(
                        at(),
                        Reason::UnsupportedValue,
                        "PingSIX loses the host when it rewrites the path of a request to an h2c backend; give the \
                         URLRewrite filter a hostname.",
                    ));
                    Target::Status(500)
                }
                Ok(Resolved::Backend(index)) => Target::Backend(index),
                Ok(Resolved::NoEndpoints(key)) => {
                    if backend.weight > 0 {
                        problems.push(no_endpoints(&key));
                    }
                    Target::Status(503)
                }
                Err(refusal) => {
                    unresolved.push(refusal);
                    Target::Status(500)
                }
            };
            shares.push((target, backend.weight));
        }
        let redirects = rule.filters.as_ref().is_some_and(|filters| filters.redirect.is_some());
        let action = if !rule.refusals.is_empty() {
            // A rule that cannot be honoured keeps its matches and fails closed.
            Action::status(500)
        } else if redirects {
            Action::redirect()
        } else {
            Action::weighted(shares.into_iter())
        };
        ResolvedRule { action, unresolved, refused }
    }

    fn resolve_backend(
        &self,
        route: &Route,
        rule: &Rule,
        backend: &BackendRef,
        at: impl Fn() -> FieldPath,
        backends: &mut Backends,
    ) -> Result<Resolved, Refusal> {
        let referrer = &*route.key;
        if !backend.group.is_empty() || backend.kind != Kind::Service.as_str() {
            let group = if backend.group.is_empty() { "the core group" } else { &backend.group };
            let field = if backend.kind == Kind::Service.as_str() { "group" } else { "kind" };
            return Err(Refusal::new(
                at().child(field),
                Reason::InvalidKind,
                format!("A backend of kind {} of {group} is not supported.", backend.kind),
            ));
        }
        let service = match &backend.namespace {
            None => ObjectName::new(referrer.name.namespace.clone(), backend.name.as_str()),
            Some(namespace) => ObjectName::new(namespace.as_str(), backend.name.as_str()),
        };
        // Judged before existence, so that nobody learns what another namespace holds.
        if !self.grants.permit(referrer, Kind::Service, &service) {
            return Err(Refusal::new(
                at().child("namespace"),
                Reason::RefNotPermitted,
                format!(
                    "No ReferenceGrant in namespace {} lets {referrer} use Service {service}.",
                    service.namespace
                ),
            ));
        }
        let Some(port) = backend.port else {
            return Err(Refusal::new(
                at().child("port"),
                Reason::BackendNotFound,
                format!("A reference to Service {service} needs a port."),
            ));
        };
        let usage = Usage { exchange: rule.exchange, host: rule.host.clone() };
        let key = BackendKey { service, port, wire: Wire::of(referrer.kind), usage };
        let Backends { known, list } = backends;
        match known.entry(key.clone()).or_insert_with(|| self.look_up(&key, list)) {
            Found::Backend(index) => Ok(Resolved::Backend(*index)),
            Found::NoEndpoints => Ok(Resolved::NoEndpoints(key)),
            Found::Refused(Unusable { field, reason, message }) => {
                Err(Refusal::new(at().child(field), *reason, message.clone()))
            }
        }
    }

    fn look_up(&self, key: &BackendKey, list: &mut Vec<Backend>) -> Found {
        let BackendKey { service: name, port, wire, .. } = key;
        let unusable = |field, reason, message| Found::Refused(Unusable { field, reason, message });
        let Some(service) = self.referents.services.get(name) else {
            return unusable("name", Reason::BackendNotFound, format!("Service {name} does not exist."));
        };
        if is_external_name(service) {
            return unusable(
                "name",
                Reason::UnsupportedValue,
                match wire {
                    Wire::Http => format!(
                        "Service {name} is of type ExternalName; a name that does not resolve would freeze PingSIX, \
                         so it is not used."
                    ),
                    Wire::Tcp | Wire::Udp => {
                        format!("Service {name} is of type ExternalName; names are not resolved.")
                    }
                },
            );
        }
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
        // A number may be there once per protocol (`ServiceSpec.ports`).
        let transport = wire.transport();
        let fits = |port: &&ServicePort| port.protocol.as_deref().unwrap_or("TCP") == transport;
        let with_number = || ports.iter().filter(|candidate| candidate.port == *port);
        let Some(service_port) = with_number().find(fits) else {
            return if with_number().next().is_some() {
                unusable(
                    "port",
                    Reason::UnsupportedProtocol,
                    format!("Port {port} of Service {name} is not a {transport} port."),
                )
            } else {
                unusable("port", Reason::BackendNotFound, format!("Service {name} has no port {port}."))
            };
        };
        let app_protocol = service_port.app_protocol.as_deref().filter(|_| *wire == Wire::Http);
        let protocol = match app_protocol {
            None | Some("" | "http" | "kubernetes.io/http") => AppProtocol::Http,
            Some("kubernetes.io/ws") => AppProtocol::WebSocket,
            Some("kubernetes.io/h2c" | "grpc") => AppProtocol::H2c,
            Some(other) => {
                return unusable(
                    "port",
                    Reason::UnsupportedProtocol,
                    format!("Port {port} of Service {name} has appProtocol {other}, which is not supported."),
                );
            }
        };
        let slices = self.referents.endpoint_slices.get(name).map(Vec::as_slice).unwrap_or_default();
        match Endpoints::ready(slices, service_port.name.as_deref().unwrap_or_default()) {
            Some(endpoints) => {
                list.push(Backend { key: key.clone(), protocol, endpoints });
                Found::Backend(list.len() - 1)
            }
            None if Endpoints::are_names(slices) => unusable(
                "name",
                Reason::UnsupportedValue,
                match wire {
                    Wire::Http => format!(
                        "The endpoints of Service {name} are DNS names; one that does not resolve would freeze \
                         PingSIX, so they are not used."
                    ),
                    Wire::Tcp | Wire::Udp => {
                        format!("The endpoints of Service {name} are DNS names; names are not resolved.")
                    }
                },
            ),
            None => Found::NoEndpoints,
        }
    }
}

enum Resolved {
    Backend(usize),
    NoEndpoints(BackendKey),
}

fn is_external_name(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ExternalName")
}

fn no_endpoints(key: &BackendKey) -> Problem {
    Problem {
        object: Arc::new(ObjectKey { kind: Kind::Service, name: key.service.clone() }),
        field: FieldPath::new("spec").child("ports"),
        severity: Severity::Warning,
        reason: Reason::NoEndpoints,
        message: format!(
            "Service {} has no endpoint that takes traffic on port {}; {}.",
            key.service,
            key.port,
            match key.wire {
                Wire::Http => "its share of requests is answered with 503",
                Wire::Tcp | Wire::Udp => "its share of connections is refused",
            }
        ),
    }
}

#[cfg(test)]
mod tests;
