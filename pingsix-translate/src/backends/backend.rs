//! From backendRefs to backends.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::service::PortRefusal;
use super::{Action, AppProtocol, Endpoints, Target};
use crate::interner::Interner;
use crate::model::{
    BackendAddresses, Capability, FieldPath, Hostname, Kind, ObjectKey, ObjectName, Problem, Reason, Refusal,
    SHARE_OF_DEFAULT, Severity, Traffic,
};
use crate::normalise::{
    BackendPort, BackendProtocol, BackendRef, BackendSettings, Part, Route, Rule, RuleRole,
    TimeoutsAndRetries,
};
use crate::packed::pack;
use crate::policy::{ListenerChains, RoutePolicies, TlsRequirement, TrafficRequirement, TrafficSettings};
use crate::references::References;
use crate::snapshot::{OwnAddress, ServicePort};
use thin_vec::ThinVec;

/// A port of a Service and its usage. Every usage becomes an upstream of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackendKey {
    pub(crate) service: ObjectName,
    pub(crate) port: i32,
    pub(crate) usage: Arc<ConnectionSettings>,
}

/// Properties of the connections from a rule to its backends. They belong to upstreams, so the rules of one decision list
/// may differ in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionSettings {
    /// The traffic of the route, and of a port without `appProtocol`.
    pub(crate) traffic: Traffic,
    pub(crate) timeouts: TimeoutsAndRetries,
    /// The Host in requests to backends; `None` is the client's Host, or `tls`.
    pub(crate) host: Option<Hostname>,
    /// The name to send and to verify over TLS, which is also the Host; `None` is plaintext.
    pub(crate) tls: Option<Hostname>,
    /// The settings of a BackendTrafficPolicy.
    pub(crate) settings: Option<Arc<TrafficSettings>>,
    /// Whether the only endpoint is the cluster IP of the Service.
    pub(crate) by_cluster_ip: bool,
}

/// A Service port with at least one endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backend {
    pub(crate) key: Arc<BackendKey>,
    /// Without meaning for traffic other than HTTP.
    pub(crate) protocol: AppProtocol,
    pub(crate) endpoints: Endpoints,
}

/// All backends of a translation. Each port of a Service is looked up once for each usage.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    lookups: BTreeMap<Arc<BackendKey>, PortLookup>,
    list: Vec<Backend>,
    /// Indices of removed lookups. A backend with the same key gets its index back.
    removed: BTreeMap<Arc<BackendKey>, usize>,
    /// Indices of backends that differ from the removed ones.
    changed: BTreeSet<usize>,
    /// Interned usages: nearly all ports have the same one.
    usages: Interner<Arc<ConnectionSettings>>,
    addresses: BackendAddresses,
}

/// The result of looking up a port of a Service.
#[derive(Clone, Debug, PartialEq)]
enum PortLookup {
    Backend {
        index: usize,
        /// Endpoints that are left out.
        refused: Option<Box<RefusedEndpoints>>,
    },
    NoEndpoints,
    Refused(Box<PortRefusal>),
}

/// Endpoints of a port that no backend may have.
#[derive(Clone, Debug, PartialEq)]
struct RefusedEndpoints {
    /// The first one.
    address: SocketAddr,
    reason: RefusedAddress,
    /// The number of all.
    count: usize,
}

/// The reason why no backend may have an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusedAddress {
    /// The address is that of the data plane.
    DataPlane,
    /// The rules for addresses of backends refuse the address.
    Rules,
}

impl RefusedEndpoints {
    fn of(refused: &BTreeMap<SocketAddr, RefusedAddress>) -> Option<Self> {
        let (address, reason) = refused.first_key_value()?;
        Some(Self { address: *address, reason: *reason, count: refused.len() })
    }

    /// The problem, as a sentence.
    fn message(&self, service: &ObjectName) -> String {
        let Self { address, reason, count } = self;
        let others = match count {
            0 | 1 => String::new(),
            2 => " (and 1 more)".to_owned(),
            count => format!(" (and {} more)", count - 1),
        };
        match reason {
            RefusedAddress::DataPlane => format!(
                "Endpoint {address}{others} of Service {service} is the data plane itself: requests would come back to it, or \
                 reach its metrics and status pages."
            ),
            RefusedAddress::Rules => format!(
                "Endpoint {address}{others} of Service {service} is no address of a backend: it belongs to the machine of the \
                 data plane, its link or its cloud, or to a network that the installation refuses."
            ),
        }
    }
}

impl Backends {
    /// Without a backend yet, with the rules for their addresses.
    pub(crate) fn new(addresses: BackendAddresses) -> Self {
        Self { addresses, ..Self::default() }
    }

    pub(crate) fn get(&self, index: usize) -> &Backend {
        &self.list[index]
    }

    /// Removes the lookups of a Service, so that its ports are looked up again.
    pub(crate) fn remove_service(&mut self, service: &ObjectName) {
        for key in self.of_service(service) {
            self.remove(&key);
        }
    }

    /// Releases spare memory.
    pub(crate) fn pack(&mut self) {
        pack(&mut self.lookups);
        self.list.shrink_to_fit();
    }

    /// The keys of the lookups of a Service.
    fn of_service(&self, service: &ObjectName) -> Vec<Arc<BackendKey>> {
        let first = BackendKey { service: service.clone(), port: i32::MIN, usage: Arc::default() };
        let of_service = self.lookups.range::<BackendKey, _>(first..).map(|(key, _)| key);
        of_service.take_while(|key| key.service == *service).cloned().collect()
    }

    /// Removes a lookup.
    fn remove(&mut self, key: &Arc<BackendKey>) -> Option<PortLookup> {
        let found = self.lookups.remove(key);
        if let Some(PortLookup::Backend { index, .. }) = found {
            self.removed.insert(key.clone(), index);
        }
        found
    }

    /// Whether most backends belong to removed lookups.
    pub(crate) fn is_mostly_removed(&self) -> bool {
        self.list.len() > 2 * self.lookups.len() + 1024
    }

    /// Takes the indices of the changed backends.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.changed)
    }

    fn add(&mut self, backend: Backend) -> usize {
        let Some(index) = self.removed.remove(&backend.key) else {
            self.list.push(backend);
            return self.list.len() - 1;
        };
        if self.list[index] != backend {
            self.list[index] = backend;
            self.changed.insert(index);
        }
        index
    }
}

/// A rule with its references resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedRule {
    pub(crate) action: Action,
    /// References that lead nowhere. The share of such a backend answers [`Traffic::failure`], and so does every rule with a
    /// mirror, or with a reference to a filter.
    pub(crate) unresolved: ThinVec<Refusal>,
    /// Backends that cannot be used as the rule asks; their share of the traffic answers [`Traffic::failure`].
    pub(crate) refused: ThinVec<Refusal>,
    /// The Services that would get the requests which the rule refuses.
    pub(crate) withheld: ThinVec<ObjectName>,
    /// The policies that count for its backends.
    pub(crate) policies: ThinVec<PolicyUse>,
    /// The inherited policies of its requests.
    pub(crate) chains: ListenerChains,
    /// Whether a Service of the rule also serves other hosts, with other protection. Requests for an exact host then reach the
    /// Service with that host, whatever Host a client sends.
    pub(crate) fixes_host: bool,
}

impl ResolvedRule {
    /// A rule without backends that answers with a status.
    pub(crate) fn answering(status: u16) -> Self {
        Self {
            action: Action::status(status),
            unresolved: ThinVec::default(),
            refused: ThinVec::default(),
            withheld: ThinVec::default(),
            policies: ThinVec::default(),
            chains: ListenerChains::default(),
            fixes_host: false,
        }
    }

    /// Whether the rule has the same targets and chains as another one. Weights may differ.
    pub(crate) fn is_charged_like(&self, other: &Self) -> bool {
        let targets = self.action.targets.iter().map(|(target, _)| target);
        targets.eq(other.action.targets.iter().map(|(target, _)| target))
            && self.chains == other.chains
            && self.fixes_host == other.fixes_host
    }

    /// References to backends that a policy forbids; their share answers like a reference that leads nowhere.
    pub(crate) fn denied(&self) -> impl Iterator<Item = &Refusal> {
        self.policies.iter().filter_map(|used| used.outcome.as_ref().err())
    }

    /// Whether every request gets an error. The refusal of a share is then one of the rule.
    pub(crate) fn serves_nothing(&self) -> bool {
        !self.action.is_filtered()
    }
}

/// A policy that counts for a backend of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PolicyUse {
    pub(crate) policy: Arc<ObjectKey>,
    /// Whether PingSIX honours the policy; if not, the refusal at the reference.
    pub(crate) outcome: Result<(), Refusal>,
}

impl References<'_> {
    /// Resolves the backendRefs of a rule. Services without endpoints go to `problems`.
    pub(crate) fn resolve_rule(
        &self,
        route: &Route,
        rule: &Rule,
        policies: RoutePolicies<'_>,
        backends: &mut Backends,
        problems: &mut Vec<Problem>,
    ) -> ResolvedRule {
        let failure = route.traffic.failure();
        let mut unresolved = Vec::new();
        let mut refused = Vec::new();
        let mut used = Vec::new();
        let policies = policies.with_host(rule.host.as_ref());
        let mut shares = Vec::with_capacity(rule.backends.len());
        let rewrites_path = rule.filters.as_ref().is_some_and(|filters| filters.path.is_some());
        problems.extend(self.annotation_problems(route, rule));
        for backend in &rule.backends {
            let at = || route.field_of_backend(rule, backend);
            let mut resolve = |backend: &BackendRef| {
                let resolved = self.resolve_backend(route, rule, backend, at, policies, (backends, problems));
                resolved.map(|Resolved { to, policies }| {
                    used.extend(policies);
                    to
                })
            };
            let mut resolved = resolve(backend);
            if let Some(default) = self.default_backend(rule).filter(|_| is_without_endpoints(&resolved))
                && let Ok(Destination::Backend(index)) = resolve(&default)
            {
                let own = std::mem::replace(&mut resolved, Ok(Destination::Backend(index)));
                match own {
                    Ok(Destination::NoEndpoints(key)) if backend.weight > 0 => {
                        let of = Some(&default.name);
                        problems.push(no_endpoints(&key, of));
                    }
                    Ok(_) => {}
                    Err(refusal) => unresolved.push(refusal),
                }
            }
            let target = match resolved {
                // With `pass_host: pass`, PingSIX loses the authority of a request over HTTP/2 whose path it
                // rewrites on the way to such a backend (`src/plugins/proxy_rewrite.rs`).
                Ok(Destination::Backend(index))
                    if rewrites_path
                        && rule.host.is_none()
                        && backends.get(index).key.usage.tls.is_none()
                        && backends.get(index).protocol == AppProtocol::H2c =>
                {
                    refused.push(Capability::PathOfH2cBackend.refuse(at()));
                    Target::Status(failure)
                }
                Ok(Destination::Backend(index)) => Target::Backend(index),
                Ok(Destination::NoEndpoints(key)) => {
                    if backend.weight > 0 {
                        problems.push(no_endpoints(&key, None));
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
        let mirrored = rule
            .mirrors
            .iter()
            .map(|mirror| self.port_of(route, &mirror.backend, || mirror.at.clone()).err());
        unresolved.extend(mirrored.flatten());
        unresolved.extend(rule.unresolved.iter().cloned());
        let redirects = rule.filters.as_ref().is_some_and(|filters| filters.redirect.is_some());
        let response = rule.filters.as_ref().and_then(|filters| filters.response.as_ref());
        let mut withheld = match &rule.role {
            RuleRole::Refusing(services) => services.clone(),
            RuleRole::Written | RuleRole::Closing => ThinVec::default(),
        };
        if !rule.is_honoured() {
            withheld.extend(shares.iter().filter_map(|(target, _)| match target {
                Target::Backend(index) => Some(backends.get(*index).key.service.clone()),
                Target::Status(_) | Target::Redirect => None,
            }));
        }
        let action = if !rule.is_honoured() {
            // A rule that cannot be honoured keeps its matches and fails closed.
            Action::status(failure)
        } else if redirects {
            Action::redirect()
        } else if let Some(response) = response {
            Action::status(response.status)
        } else {
            problems.extend(without_backends(route, rule));
            Action::weighted(shares.into_iter(), failure)
        };
        ResolvedRule {
            action,
            unresolved: unresolved.into(),
            refused: refused.into(),
            withheld,
            policies: used.into(),
            ..ResolvedRule::answering(failure)
        }
    }

    /// The Service that answers in place of a backend without endpoints.
    fn default_backend(&self, rule: &Rule) -> Option<BackendRef> {
        let name = rule.backend_settings.as_deref()?.default_backend.as_ref()?;
        let port = self.referents().services.get(name)?.ports.first()?.port;
        let port = Some(BackendPort::Number(port));
        Some(BackendRef { index: 0, other: None, name: name.clone(), port, weight: 1 })
    }

    /// The problems of annotations that depend on Services.
    fn annotation_problems(&self, route: &Route, rule: &Rule) -> Vec<Problem> {
        let Some(BackendSettings { by_cluster_ip, default_backend, .. }) = rule.backend_settings.as_deref()
        else {
            return Vec::new();
        };
        let services = &self.referents().services;
        let has_port =
            |name: &ObjectName| services.get(name).is_some_and(|service| !service.ports.is_empty());
        let default = default_backend.iter().filter(|name| !has_port(name)).map(|name| {
            let message = format!("default-backend: Service {name} does not exist or has no port.");
            (Reason::BackendNotFound, message)
        });
        let headless = rule.backends.iter().filter(|_| *by_cluster_ip).filter_map(|backend| {
            services.get(&backend.name).filter(|service| service.cluster_ip.is_none()).map(|service| {
                let name = &service.name;
                let message = format!(
                    "service-upstream: Service {name} has no cluster IP, so requests go to its endpoints."
                );
                (Reason::UnsupportedAnnotation, message)
            })
        });
        let problem = |(reason, message)| Problem {
            object: route.key.clone(),
            field: FieldPath::new("metadata").child("annotations"),
            severity: Severity::Warning,
            reason,
            message,
        };
        default.chain(headless).map(problem).collect()
    }

    fn resolve_backend(
        &self,
        route: &Route,
        rule: &Rule,
        backend: &BackendRef,
        at: impl Fn() -> FieldPath,
        policies: RoutePolicies<'_>,
        (backends, problems): (&mut Backends, &mut Vec<Problem>),
    ) -> Result<Resolved, Refusal> {
        let (service, port, service_port) = self.port_of(route, backend, &at)?;
        let settings = rule.backend_settings.as_deref();
        let protocol = settings.and_then(|settings| settings.protocol.as_ref());
        let by_cluster_ip =
            settings.is_some_and(|settings| settings.by_cluster_ip) && self.cluster_ip_of(&service).is_some();
        let mut usage = ConnectionSettings {
            by_cluster_ip,
            traffic: match protocol {
                None => route.traffic,
                Some(BackendProtocol::Grpc) => Traffic::Grpc,
                Some(BackendProtocol::Tls { traffic, name: _ }) => *traffic,
            },
            timeouts: rule.timeouts,
            host: rule.host.clone(),
            ..ConnectionSettings::default()
        };
        let mut used = Vec::new();
        let denied = |policy: &Arc<ObjectKey>, message| PolicyUse {
            policy: policy.clone(),
            outcome: Err(Refusal::new(at(), Reason::UnsupportedValue, message)),
        };
        match policies.tls(&service, service_port.name.as_deref()) {
            None => {
                if let Some(BackendProtocol::Tls { traffic: _, name }) = protocol {
                    (usage.host, usage.tls) = (None, Some(name.clone()));
                }
            }
            Some(TlsRequirement { policy, tls: Ok(hostname) }) => {
                (usage.host, usage.tls) = (None, Some(hostname.clone()));
                used.push(PolicyUse { policy: policy.clone(), outcome: Ok(()) });
            }
            Some(TlsRequirement { policy, tls: Err(message) }) => {
                used.push(denied(policy, message));
                return Ok(Resolved { to: Destination::Denied, policies: used });
            }
        }
        match policies.traffic(&service, service_port.name.as_deref(), usage.tls.is_some()) {
            None => {}
            Some(TrafficRequirement { policy, settings: Ok(settings) }) => {
                // Without a setting, the upstream is the same as without the policy.
                usage.settings =
                    Some(settings.clone()).filter(|settings| **settings != TrafficSettings::default());
                used.push(PolicyUse { policy: policy.clone(), outcome: Ok(()) });
            }
            Some(TrafficRequirement { policy, settings: Err(message) }) => {
                used.push(denied(policy, message));
                return Ok(Resolved { to: Destination::Denied, policies: used });
            }
        }
        if let Some(annotations) = policies.settings_of_annotations() {
            usage.settings = Some(match usage.settings {
                Some(settings) => Arc::new(settings.or(annotations)),
                None => annotations.clone(),
            });
        }
        let key = BackendKey { service, port, usage: backends.usages.share(usage) };
        if !backends.lookups.contains_key(&key) {
            let key = Arc::new(key.clone());
            let found = self.look_up(&key, service_port, backends);
            backends.lookups.insert(key, found);
        }
        let to = match backends.lookups.get(&key) {
            Some(PortLookup::Backend { index, refused }) => {
                if let Some(refused) = refused.as_deref().filter(|_| backend.weight > 0) {
                    problems.push(refused_endpoints(&key.service, refused));
                }
                Destination::Backend(*index)
            }
            Some(PortLookup::Refused(refusal)) => return Err(PortRefusal::clone(refusal).at(&at())),
            Some(PortLookup::NoEndpoints) | None => Destination::NoEndpoints(key),
        };
        Ok(Resolved { to, policies: used })
    }

    /// Looks up the ports of a Service with other EndpointSlices again. Returns whether a rule that refers to them may
    /// resolve differently: a backend keeps its index when its endpoints change, and rules depend on EndpointSlices by
    /// lookups alone.
    pub(crate) fn refresh_endpoints(&self, service: &ObjectName, backends: &mut Backends) -> bool {
        let mut is_different = false;
        for key in backends.of_service(service) {
            let before = backends.remove(&key);
            let port = self.service_port(service, key.port, key.usage.traffic);
            let found = port.ok().map(|port| self.look_up(&key, port, backends));
            is_different |= found != before;
            if let Some(found) = found {
                backends.lookups.insert(key, found);
            }
        }
        is_different
    }

    /// The Service and port to which a reference leads.
    fn port_of(
        &self,
        route: &Route,
        backend: &BackendRef,
        at: impl Fn() -> FieldPath,
    ) -> Result<(ObjectName, i32, &ServicePort), Refusal> {
        let service = self.service_of(&route.key, backend, &at)?;
        let port = match &backend.port {
            Some(BackendPort::Number(port)) => *port,
            Some(BackendPort::Name(port)) => {
                self.port_named(&service, port, route.traffic).map_err(|refusal| refusal.at(&at()))?
            }
            None => {
                return Err(Refusal::new(
                    at().child("port"),
                    Reason::BackendNotFound,
                    format!("A reference to Service {service} needs a port."),
                ));
            }
        };
        let found = self.service_port(&service, port, route.traffic);
        let service_port = found.map_err(|refusal| refusal.at(&at()))?;
        Ok((service, port, service_port))
    }

    fn look_up(
        &self,
        key: &Arc<BackendKey>,
        service_port: &ServicePort,
        backends: &mut Backends,
    ) -> PortLookup {
        let BackendKey { service: name, port, usage } = &**key;
        let refuse =
            |field, reason, message| PortLookup::Refused(Box::new(PortRefusal { field, reason, message }));
        let written = service_port.app_protocol.as_deref().unwrap_or_default();
        let Some(protocol) = AppProtocol::of(written, usage.traffic, usage.tls.is_some()) else {
            let cannot = match (usage.traffic, written) {
                (Traffic::Grpc, _) => "does not carry gRPC",
                (_, "https" | "kubernetes.io/wss") => "needs a BackendTLSPolicy that says what to verify",
                _ => "is not supported",
            };
            return refuse(
                "port",
                Reason::UnsupportedProtocol,
                format!("Port {port} of Service {name} has appProtocol {written}, which {cannot}."),
            );
        };
        let slices = self.referents().endpoint_slices.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut refused = BTreeMap::new();
        let mut admit = |address: SocketAddr| {
            let reason = self.refused_address(address, &backends.addresses);
            refused.extend(reason.map(|reason| (address, reason)));
            reason.is_none()
        };
        let port_name = service_port.name.as_deref().unwrap_or_default();
        let endpoints = Endpoints::ready(slices, port_name, &mut admit);
        let cluster_ip = self.cluster_ip_of(name).filter(|_| usage.by_cluster_ip);
        let by_cluster_ip = cluster_ip.zip(u16::try_from(*port).ok());
        let by_cluster_ip = by_cluster_ip.map(|(address, port)| SocketAddr::new(address, port));
        let is_by_cluster_ip = by_cluster_ip.is_some_and(&mut admit);
        let refused = RefusedEndpoints::of(&refused);
        // Requests through the cluster IP come to all endpoints.
        let endpoints = match by_cluster_ip {
            Some(address) => Some(Endpoints::one(address)).filter(|_| is_by_cluster_ip && refused.is_none()),
            None => endpoints,
        };
        match (endpoints, refused) {
            (Some(endpoints), refused) => {
                let index = backends.add(Backend { key: key.clone(), protocol, endpoints });
                PortLookup::Backend { index, refused: refused.map(Box::new) }
            }
            (None, Some(lack)) => refuse("name", Reason::UnsupportedValue, lack.message(name)),
            (None, None) if Endpoints::are_names(slices) => refuse(
                "name",
                Reason::UnsupportedValue,
                match usage.traffic {
                    Traffic::Http | Traffic::Grpc => Capability::NamedEndpoints,
                    Traffic::Tcp | Traffic::Tls | Traffic::Udp => Capability::NamedEndpointsOfConnections,
                }
                .message(&[&name.to_string()]),
            ),
            (None, None) => PortLookup::NoEndpoints,
        }
    }

    fn cluster_ip_of(&self, service: &ObjectName) -> Option<IpAddr> {
        self.referents().services.get(service)?.cluster_ip
    }

    /// The reason why no backend may have an address.
    fn refused_address(&self, address: SocketAddr, rules: &BackendAddresses) -> Option<RefusedAddress> {
        let own = &self.referents().own_addresses;
        let is_own = || {
            own.contains_key(&OwnAddress::Pod(address.ip()))
                || own.contains_key(&OwnAddress::Clients(address))
        };
        if !own.is_empty() && is_own() {
            Some(RefusedAddress::DataPlane)
        } else {
            (!rules.admit(address.ip())).then_some(RefusedAddress::Rules)
        }
    }
}

/// The problem of a rule whose requests go nowhere, because no backend has a weight.
fn without_backends(route: &Route, rule: &Rule) -> Option<Problem> {
    let is_without = rule.backends.iter().all(|backend| backend.weight == 0);
    let is_asked = route.part == Part::Whole && rule.role == RuleRole::Written;
    let (severity, cause) = if rule.backends.is_empty() {
        (Severity::Error, "The rule has no backendRefs")
    } else {
        (Severity::Warning, "All backendRefs of the rule have weight 0")
    };
    let consequence = match route.traffic {
        Traffic::Http => "every request gets 500",
        Traffic::Grpc => "every call gets the status UNAVAILABLE",
        Traffic::Tcp | Traffic::Tls | Traffic::Udp => "every connection is closed",
    };
    (is_without && is_asked).then(|| Problem {
        object: route.key.clone(),
        field: route.field_of(rule).child("backendRefs"),
        severity,
        reason: Reason::NoBackends,
        message: format!("{cause}, so {consequence}."),
    })
}

/// A resolved backendRef.
struct Resolved {
    to: Destination,
    /// The policies that count for it, one of a kind.
    policies: Vec<PolicyUse>,
}

enum Destination {
    Backend(usize),
    NoEndpoints(BackendKey),
    /// A policy that PingSIX cannot honour counts for the backend.
    Denied,
}

/// Whether a backend has no endpoint that takes traffic, or does not exist.
fn is_without_endpoints(resolved: &Result<Destination, Refusal>) -> bool {
    match resolved {
        Ok(Destination::NoEndpoints(_)) => true,
        Ok(Destination::Backend(_) | Destination::Denied) => false,
        Err(refusal) => refusal.reason == Reason::BackendNotFound,
    }
}

/// The warning about endpoints that are left out.
fn refused_endpoints(service: &ObjectName, refused: &RefusedEndpoints) -> Problem {
    Problem {
        object: Arc::new(ObjectKey { kind: Kind::Service, name: service.clone() }),
        field: FieldPath::new("spec").child("ports"),
        severity: Severity::Warning,
        reason: Reason::UnsupportedValue,
        message: format!("{} The other endpoints get the requests.", refused.message(service)),
    }
}

/// The warning about a port without endpoints. `default` is the Service that answers instead.
fn no_endpoints(key: &BackendKey, default: Option<&ObjectName>) -> Problem {
    Problem {
        object: Arc::new(ObjectKey { kind: Kind::Service, name: key.service.clone() }),
        field: FieldPath::new("spec").child("ports"),
        severity: Severity::Warning,
        reason: Reason::NoEndpoints,
        message: format!(
            "Service {} has no endpoint that takes traffic on port {}; {}.",
            key.service,
            key.port,
            match (default, key.usage.traffic) {
                (Some(default), _) => format!("{SHARE_OF_DEFAULT}{default}"),
                (None, Traffic::Http | Traffic::Grpc) => {
                    "its share of requests is answered with 503".to_owned()
                }
                (None, Traffic::Tcp | Traffic::Tls | Traffic::Udp) => {
                    "its share of connections is refused".to_owned()
                }
            }
        ),
    }
}

#[cfg(test)]
mod tests;
