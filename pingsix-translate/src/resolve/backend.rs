//! backendRefs to what a request is sent to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Endpoints, References};
use crate::attach::Hostname;
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey, ObjectName};
use crate::policy::{Demand, InEffect};
use crate::route::{BackendPort, BackendRef, Exchange, Refusal, Route, Rule, Traffic};
use crate::snapshot::{Service, ServicePort};
use crate::verdict::{Problem, Reason, Severity};

/// A port of a Service, what is spoken there, and how it is used. Every use becomes an upstream of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackendKey {
    pub(crate) service: ObjectName,
    pub(crate) port: i32,
    pub(crate) usage: Usage,
}

/// What a rule asks for on the way to its backends. A property of upstreams, so that rules which a Route decides
/// among may differ in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usage {
    /// A port without `appProtocol` is spoken to as the route's clients speak.
    pub(crate) traffic: Traffic,
    pub(crate) exchange: Exchange,
    /// The Host that backends see; `None` is what the client sent, or `tls`.
    pub(crate) host: Option<Hostname>,
    /// The name to send and to verify over TLS, which is also the Host; `None` is plaintext.
    pub(crate) tls: Option<Hostname>,
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

    /// `failure` when nothing takes traffic.
    fn weighted(shares: impl Iterator<Item = (Target, u32)>, failure: u16) -> Self {
        let mut targets: Vec<(Target, u32)> = Vec::new();
        for (target, weight) in shares.filter(|(_, weight)| *weight > 0) {
            match targets.iter_mut().find(|(existing, _)| *existing == target) {
                Some((_, total)) => *total = total.saturating_add(weight),
                None => targets.push((target, weight)),
            }
        }
        // Gateway API: a rule without a backend that takes traffic answers 500, or UNAVAILABLE to gRPC.
        if targets.is_empty() {
            return Self::status(failure);
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

/// How to speak to a backend, besides TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AppProtocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/1.1 with connections that stay open (WebSocket).
    WebSocket,
    /// HTTP/2 with prior knowledge.
    H2c,
}

impl AppProtocol {
    /// Reads `appProtocol`, empty when not written; `None` for one that cannot carry the traffic, or that means TLS
    /// and is to be used without.
    fn of(written: &str, usage: &Usage) -> Option<Self> {
        match (written, usage.traffic) {
            ("", Traffic::Grpc) | ("kubernetes.io/h2c" | "grpc", Traffic::Http | Traffic::Grpc) => {
                Some(Self::H2c)
            }
            // Bytes are passed on as they are, whatever is said about them.
            ("" | "http" | "kubernetes.io/http", Traffic::Http)
            | (_, Traffic::Tcp | Traffic::Tls | Traffic::Udp) => Some(Self::Http),
            ("kubernetes.io/ws", Traffic::Http) => Some(Self::WebSocket),
            ("https", Traffic::Http) if usage.tls.is_some() => Some(Self::Http),
            ("kubernetes.io/wss", Traffic::Http) if usage.tls.is_some() => Some(Self::WebSocket),
            _ => None,
        }
    }
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

impl Unusable {
    fn missing(service: &ObjectName) -> Self {
        let message = format!("Service {service} does not exist.");
        Self { field: "name", reason: Reason::BackendNotFound, message }
    }
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
    /// References that lead nowhere; their share of the traffic answers [`Traffic::failure`].
    pub(crate) unresolved: Vec<Refusal>,
    /// What cannot be done with the backends the references lead to; their share of the traffic answers
    /// [`Traffic::failure`].
    pub(crate) refused: Vec<Refusal>,
    /// What policies had to say.
    pub(crate) policies: Vec<PolicyUse>,
}

impl ResolvedRule {
    /// References that resolve to what a policy keeps PingSIX from speaking to; their share answers like one that
    /// leads nowhere.
    pub(crate) fn denied(&self) -> impl Iterator<Item = &Refusal> {
        self.policies.iter().filter_map(|used| used.outcome.as_ref().err())
    }

    /// Whether no request gets anything but an error, so that what is refused of one share is refused of the rule.
    pub(crate) fn serves_nothing(&self) -> bool {
        !self.action.is_filtered()
    }
}

/// A policy that counts for a backend of a rule.
#[derive(Clone, Debug)]
pub(crate) struct PolicyUse {
    /// Index into [`crate::policy::BackendTlsPolicies`].
    pub(crate) policy: usize,
    /// Whether it is honoured, and if not, why, at the reference.
    pub(crate) outcome: Result<(), Refusal>,
}

impl References<'_> {
    /// Resolves the backendRefs of a rule. What is found missing in passing goes to `problems`.
    pub(crate) fn resolve_rule(
        &self,
        route: &Route,
        rule: &Rule,
        policies: InEffect<'_>,
        backends: &mut Backends,
        problems: &mut Vec<Problem>,
    ) -> ResolvedRule {
        let failure = route.traffic.failure();
        let mut unresolved = Vec::new();
        let mut refused = Vec::new();
        let mut used = Vec::new();
        let policies = policies.rewritten(rule.host.as_ref());
        let mut shares = Vec::with_capacity(rule.backends.len());
        let rewrites_path = rule.filters.as_ref().is_some_and(|filters| filters.path.is_some());
        for backend in &rule.backends {
            let at = || route.field_of_backend(rule, backend);
            let resolved = self.resolve_backend(route, rule, backend, at, policies, backends).map(
                |Resolved { to, policy }| {
                    used.extend(policy);
                    to
                },
            );
            let target = match resolved {
                // With `pass_host: pass`, PingSIX loses the authority of a request over HTTP/2 whose path it
                // rewrites on the way to such a backend (`src/plugins/proxy_rewrite.rs`).
                Ok(Destination::Backend(index))
                    if rewrites_path
                        && rule.host.is_none()
                        && backends.get(index).key.usage.tls.is_none()
                        && backends.get(index).protocol == AppProtocol::H2c =>
                {
                    refused.push(Refusal::new(
                        at(),
                        Reason::UnsupportedValue,
                        "PingSIX loses the host when it rewrites the path of a request to an h2c backend; give the \
                         URLRewrite filter a hostname.",
                    ));
                    Target::Status(failure)
                }
                Ok(Destination::Backend(index)) => Target::Backend(index),
                Ok(Destination::NoEndpoints(key)) => {
                    if backend.weight > 0 {
                        problems.push(no_endpoints(&key));
                    }
                    Target::Status(503)
                }
                Ok(Destination::Denied) => Target::Status(failure),
                Err(refusal) => {
                    unresolved.push(refusal);
                    Target::Status(failure)
                }
            };
            shares.push((target, backend.weight));
        }
        let redirects = rule.filters.as_ref().is_some_and(|filters| filters.redirect.is_some());
        let action = if !rule.refusals.is_empty() {
            // A rule that cannot be honoured keeps its matches and fails closed.
            Action::status(failure)
        } else if redirects {
            Action::redirect()
        } else {
            Action::weighted(shares.into_iter(), failure)
        };
        ResolvedRule { action, unresolved, refused, policies: used }
    }

    fn resolve_backend(
        &self,
        route: &Route,
        rule: &Rule,
        backend: &BackendRef,
        at: impl Fn() -> FieldPath,
        policies: InEffect<'_>,
        backends: &mut Backends,
    ) -> Result<Resolved, Refusal> {
        let service = self.service_of(&route.key, backend, &at)?;
        let refusal =
            |Unusable { field, reason, message }: Unusable| Refusal::new(at().child(field), reason, message);
        let port = match &backend.port {
            Some(BackendPort::Number(port)) => *port,
            Some(BackendPort::Name(port)) => {
                self.port_named(&service, port, route.traffic).map_err(refusal)?
            }
            None => {
                return Err(Refusal::new(
                    at().child("port"),
                    Reason::BackendNotFound,
                    format!("A reference to Service {service} needs a port."),
                ));
            }
        };
        let service_port = self.service_port(&service, port, route.traffic).map_err(refusal)?;
        let mut usage =
            Usage { traffic: route.traffic, exchange: rule.exchange, host: rule.host.clone(), tls: None };
        let mut used = None;
        match policies.demand(&service, service_port.name.as_deref()) {
            None => {}
            Some(Demand { policy, tls: Ok(hostname) }) => {
                (usage.host, usage.tls) = (None, Some(hostname.clone()));
                used = Some(PolicyUse { policy, outcome: Ok(()) });
            }
            Some(Demand { policy, tls: Err(message) }) => {
                let outcome = Err(Refusal::new(at(), Reason::UnsupportedValue, message));
                return Ok(Resolved { to: Destination::Denied, policy: Some(PolicyUse { policy, outcome }) });
            }
        }
        let key = BackendKey { service, port, usage };
        let Backends { known, list } = backends;
        let to = match known.entry(key.clone()).or_insert_with(|| self.look_up(&key, service_port, list)) {
            Found::Backend(index) => Destination::Backend(*index),
            Found::NoEndpoints => Destination::NoEndpoints(key),
            Found::Refused(unusable) => return Err(refusal(unusable.clone())),
        };
        Ok(Resolved { to, policy: used })
    }

    /// The Service a backendRef names, if the referrer may use it and whether it exists or not.
    pub(crate) fn service_of(
        &self,
        referrer: &ObjectKey,
        backend: &BackendRef,
        at: impl Fn() -> FieldPath,
    ) -> Result<ObjectName, Refusal> {
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
        Ok(service)
    }

    /// The number of the port of this name, which no other port of the Service has (`ServicePort.name`).
    fn port_named(&self, service: &ObjectName, port: &str, traffic: Traffic) -> Result<i32, Unusable> {
        let unusable = |reason, message| Unusable { field: "port", reason, message };
        let object = self.referents.services.get(service).ok_or_else(|| Unusable::missing(service))?;
        let mut ports = object.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        match ports.find(|candidate| candidate.name.as_deref() == Some(port)) {
            // Judged with its number.
            _ if is_external_name(object) => Ok(0),
            None => Err(unusable(
                Reason::BackendNotFound,
                format!("Service {service} has no port named \"{port}\"."),
            )),
            Some(named) if protocol_of(named) != traffic.transport() => Err(unusable(
                Reason::UnsupportedProtocol,
                format!("Port \"{port}\" of Service {service} is not a {} port.", traffic.transport()),
            )),
            Some(named) => Ok(named.port),
        }
    }

    /// The port of a Service that a backendRef means.
    fn service_port(&self, name: &ObjectName, port: i32, traffic: Traffic) -> Result<&ServicePort, Unusable> {
        let unusable = |field, reason, message| Err(Unusable { field, reason, message });
        let Some(service) = self.referents.services.get(name) else {
            return Err(Unusable::missing(name));
        };
        if is_external_name(service) {
            return unusable(
                "name",
                Reason::UnsupportedValue,
                match traffic {
                    Traffic::Http | Traffic::Grpc => format!(
                        "Service {name} is of type ExternalName; a name that does not resolve would freeze PingSIX, \
                         so it is not used."
                    ),
                    Traffic::Tcp | Traffic::Tls | Traffic::Udp => {
                        format!("Service {name} is of type ExternalName; names are not resolved.")
                    }
                },
            );
        }
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
        // A number may be there once per protocol (`ServiceSpec.ports`).
        let transport = traffic.transport();
        let with_number = || ports.iter().filter(|candidate| candidate.port == port);
        match with_number().find(|port| protocol_of(port) == transport) {
            Some(service_port) => Ok(service_port),
            None if with_number().next().is_some() => unusable(
                "port",
                Reason::UnsupportedProtocol,
                format!("Port {port} of Service {name} is not a {transport} port."),
            ),
            None => unusable("port", Reason::BackendNotFound, format!("Service {name} has no port {port}.")),
        }
    }

    fn look_up(&self, key: &BackendKey, service_port: &ServicePort, list: &mut Vec<Backend>) -> Found {
        let BackendKey { service: name, port, usage } = key;
        let unusable = |field, reason, message| Found::Refused(Unusable { field, reason, message });
        let written = service_port.app_protocol.as_deref().unwrap_or_default();
        let Some(protocol) = AppProtocol::of(written, usage) else {
            let cannot = match (usage.traffic, written) {
                (Traffic::Grpc, _) => "does not carry gRPC",
                (_, "https" | "kubernetes.io/wss") => "needs a BackendTLSPolicy that says what to verify",
                _ => "is not supported",
            };
            return unusable(
                "port",
                Reason::UnsupportedProtocol,
                format!("Port {port} of Service {name} has appProtocol {written}, which {cannot}."),
            );
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
                match usage.traffic {
                    Traffic::Http | Traffic::Grpc => format!(
                        "The endpoints of Service {name} are DNS names; one that does not resolve would freeze \
                         PingSIX, so they are not used."
                    ),
                    Traffic::Tcp | Traffic::Tls | Traffic::Udp => {
                        format!("The endpoints of Service {name} are DNS names; names are not resolved.")
                    }
                },
            ),
            None => Found::NoEndpoints,
        }
    }
}

/// What a backendRef leads to.
struct Resolved {
    to: Destination,
    /// The policy that counts there.
    policy: Option<PolicyUse>,
}

enum Destination {
    Backend(usize),
    NoEndpoints(BackendKey),
    /// A policy keeps us from speaking to it.
    Denied,
}

fn protocol_of(port: &ServicePort) -> &str {
    port.protocol.as_deref().unwrap_or("TCP")
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
            match key.usage.traffic {
                Traffic::Http | Traffic::Grpc => "its share of requests is answered with 503",
                Traffic::Tcp | Traffic::Tls | Traffic::Udp => "its share of connections is refused",
            }
        ),
    }
}

#[cfg(test)]
mod tests;
