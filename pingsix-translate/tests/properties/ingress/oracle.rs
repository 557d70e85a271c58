//! A direct reading of `networking.k8s.io/v1`: what a request is answered, without any thought of PingSIX's routes.
//!
//! The oracle shares no code with translation, not even the types of objects. Where the specification leaves a choice to
//! the controller, the oracle follows `docs/reference/mapping.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::CLASS;
use super::generate::CERTIFIED;
use crate::effect::{Headers, Way};
use crate::oracle::{BackendProtocol, Target, World, spelling};
use crate::probe::Probe;
use crate::protection::Protection;

/// The Ingress that decides about a request, and the target of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// `namespace/name` of the Ingress and the field; `None` for 404.
    pub(crate) origin: Option<(String, String)>,
    pub(crate) target: Target,
    /// The demands of policies, if a backend gets the request.
    pub(crate) protection: Protection,
    /// The headers of the response; none of an answer without a backend.
    pub(crate) response: Headers,
}

impl Decided {
    /// Without a backend.
    pub(super) fn without_backend(origin: Option<(String, String)>, target: Target) -> Self {
        Self { origin, target, protection: Protection::default(), response: Headers::new() }
    }
}

/// The number of labels that a wildcard covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// As the specification has it.
    One,
    /// As PingSIX has it: a row of the deviations.
    Several,
}

/// A type of path of this model: all requests that no other path takes.
pub(super) const REST: &str = "Rest";

/// The Ingresses of the class, oldest first.
pub(super) struct Ingresses {
    oldest_first: Vec<Ingress>,
    secrets: BTreeSet<(String, String)>,
    /// Whether hosts belong to namespaces.
    are_owned: bool,
}

/// Something that matches a request.
struct Candidate<'a> {
    /// The greater, the more specific: host, then path.
    rank: (HostRank, PathRank),
    host: Option<&'a str>,
    origin: (String, String),
    namespace: &'a str,
    backend: &'a Backend,
}

/// An exact host before a wildcard before none, then the longer one.
type HostRank = (u8, usize);

/// A path that is written before none, an exact one before a prefix, then the longer one.
type PathRank = (bool, bool, usize);

impl Ingresses {
    pub(super) fn read(objects: &[Value]) -> Self {
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        let mut defaults: Vec<Metadata> = of_kind("IngressClass")
            .map(|class| Metadata::deserialize(&class["metadata"]).unwrap())
            .filter(|class| {
                let is_default = class.annotations.get("ingressclass.kubernetes.io/is-default-class");
                is_default.is_some_and(|is_default| is_default == "true")
            })
            .collect();
        // The newest comes last, and among equally old ones the first by name.
        defaults.sort_by(|left, right| {
            let by_age = left.creation_timestamp.cmp(&right.creation_timestamp);
            by_age.then_with(|| right.name.cmp(&left.name))
        });
        let default = defaults.last().map(|class| class.name.clone());
        let mut ingresses: Vec<Ingress> = of_kind("Ingress")
            .map(|ingress| Ingress::deserialize(ingress).unwrap())
            .filter(|ingress| {
                let written = ingress.spec.ingress_class_name.as_ref();
                let written = written.or(ingress.metadata.annotations.get("kubernetes.io/ingress.class"));
                written.or(default.as_ref()).is_some_and(|class| class == CLASS)
            })
            .collect();
        ingresses.sort_by_key(|ingress| {
            let age = ingress.metadata.creation_timestamp.clone();
            (age.is_none(), age, ingress.name())
        });
        let secrets = of_kind("Secret")
            .map(|secret| Metadata::deserialize(&secret["metadata"]).unwrap())
            .map(|metadata| (metadata.namespace, metadata.name))
            .collect();
        let are_owned = of_kind("PingsixProxy")
            .any(|proxy| proxy["spec"]["ingress"]["hostOwnership"] == "OldestNamespace");
        Self { oldest_first: ingresses, secrets, are_owned }
    }

    /// The namespace of the oldest Ingress that names a host as it is written.
    pub(super) fn owner(&self, host: Option<&str>) -> Option<&String> {
        self.oldest_first
            .iter()
            .find(|ingress| ingress.names(host))
            .map(|ingress| &ingress.metadata.namespace)
    }

    /// Whether a namespace may have something for a host.
    fn is_own(&self, host: Option<&str>, namespace: &String) -> bool {
        !self.are_owned || self.owner(host).is_none_or(|owner| owner == namespace)
    }

    /// The most specific host of a rule that a request has, and its owner.
    pub(super) fn named_by_rules(&self, host: Option<&str>, labels: Labels) -> Option<(&str, &String)> {
        let rules = self.oldest_first.iter().flat_map(|ingress| {
            ingress.spec.rules.iter().filter_map(move |rule| {
                let says_something = !rule.http.paths.is_empty() || ingress.spec.default_backend.is_some();
                rule.host.as_deref().filter(|_| says_something).map(|written| (ingress, written))
            })
        });
        rules
            .filter(|(ingress, written)| {
                host_matches(Some(written), host, labels)
                    && self.is_own(Some(written), &ingress.metadata.namespace)
            })
            .max_by_key(|(_, written)| host_rank(Some(written)))
            .and_then(|(_, written)| Some((written, self.owner(Some(written))?)))
    }

    /// Namespaces and names.
    pub(super) fn names(&self) -> BTreeSet<(String, String)> {
        let metadata = self.oldest_first.iter().map(|ingress| &ingress.metadata);
        metadata.map(|metadata| (metadata.namespace.clone(), metadata.name.clone())).collect()
    }

    pub(super) fn served(&self) -> BTreeSet<String> {
        self.oldest_first.iter().map(Ingress::name).collect()
    }

    /// The answer to a request.
    pub(super) fn decide(&self, world: &World, probe: &Probe, labels: Labels) -> Decided {
        let host = probe.routing_host();
        // The target `*` is no path, and asks the server itself.
        let path = Some(&probe.path).filter(|path| path.starts_with('/'));
        let mut best: Option<Candidate<'_>> = None;
        let (named, default_of) = match self.named_by_rules(host.as_deref(), labels) {
            Some((named, owner)) if self.are_owned => (Some(Some(named)), Some(owner)),
            Some(_) | None => (self.are_owned.then_some(None), None),
        };
        for (ingress, path) in self.oldest_first.iter().filter_map(|ingress| Some((ingress, path?))) {
            let namespace = &ingress.metadata.namespace;
            for candidate in ingress.candidates(host.as_deref(), path, labels) {
                // Where hosts are owned, only the most specific one that is named counts, or the default backend of its
                // owner.
                let counts = named.is_none_or(|named| {
                    let is_default = candidate.rank == ((0, 0), (false, false, 0));
                    let is_of_host = candidate.host == named;
                    self.is_own(candidate.host, namespace)
                        && (is_of_host || is_default && default_of == Some(namespace))
                });
                if !counts {
                    continue;
                }
                // The first of equals stays: oldest, by name, in order.
                if best.as_ref().is_none_or(|best| candidate.rank > best.rank) {
                    best = Some(candidate);
                }
            }
        }
        match best {
            None => Decided::without_backend(None, Target::Status(404)),
            Some(Candidate { origin, namespace, backend, .. }) => {
                let target = backend.target(world, namespace);
                if !matches!(target, Target::Service { .. }) {
                    return Decided::without_backend(Some(origin), target);
                }
                let name = origin.0.split_once('/').expect("a namespace and a name").1;
                let answered =
                    |status| Decided::without_backend(Some(origin.clone()), Target::Status(status));
                let ingress = (namespace.to_owned(), name.to_owned());
                let Some(policies) = world.policies_of_ingress(&ingress) else { return answered(500) };
                if let Some(status) = policies.protection.certain_error() {
                    return answered(status);
                }
                let response = policies.response();
                Decided { origin: Some(origin), target, protection: policies.protection, response }
            }
        }
    }

    /// Whether a request has another spelling of a path, which protection of an Ingress may answer with 400.
    pub(super) fn has_other_spelling(&self, probe: &Probe) -> bool {
        let mut paths = self.oldest_first.iter().flat_map(Ingress::paths);
        paths.any(|(_, _, path)| spelling::is_other(path.text(), &probe.path))
    }

    /// Whether PingSIX's reading of wildcards may differ from the specification's for this request.
    pub(super) fn deviates(&self, probe: &Probe) -> bool {
        let host = probe.routing_host();
        let rules = self.oldest_first.iter().flat_map(|ingress| &ingress.spec.rules);
        rules.filter_map(|rule| rule.host.as_deref()).any(|pattern| {
            host_matches(Some(pattern), host.as_deref(), Labels::Several)
                && !host_matches(Some(pattern), host.as_deref(), Labels::One)
        })
    }

    /// Paths, default backends and entries of `tls` that cannot be honoured.
    pub(super) fn errors(&self, world: &World) -> BTreeSet<String> {
        let mut errors = BTreeSet::new();
        for ingress in &self.oldest_first {
            let name = ingress.name();
            let namespace = &ingress.metadata.namespace;
            for (index, rule) in ingress.spec.rules.iter().enumerate() {
                if !self.is_own(rule.host.as_deref(), namespace) {
                    errors.insert(format!("{name} spec.rules[{index}]"));
                }
            }
            if ingress.spec.default_backend.is_some() && !self.is_own(None, namespace) {
                errors.insert(format!("{name} spec.defaultBackend"));
            }
            for (rule, path, content) in ingress.paths() {
                if !self.is_own(ingress.spec.rules[rule].host.as_deref(), namespace) {
                    continue;
                }
                if !content.backend.is_usable(world, namespace) {
                    errors.insert(format!("{name} spec.rules[{rule}].http.paths[{path}]"));
                }
            }
            if ingress.spec.default_backend.iter().any(|backend| !backend.is_usable(world, namespace)) {
                errors.insert(format!("{name} spec.defaultBackend"));
            }
            for (index, tls) in ingress.spec.tls.iter().enumerate() {
                let is_at_fault = |secret: &String| {
                    let of_others = |name: &String| !self.is_own(Some(name), namespace);
                    !self.has_secret(namespace, secret) || tls.names(secret).iter().any(of_others)
                };
                if tls.secret_name.iter().any(is_at_fault) {
                    errors.insert(format!("{name} spec.tls[{index}]"));
                }
            }
        }
        errors
    }

    /// Which entry of `tls` provides a name: the first that has a usable Secret.
    pub(super) fn certificates(&self) -> BTreeSet<String> {
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        for ingress in &self.oldest_first {
            for (index, tls) in ingress.spec.tls.iter().enumerate() {
                let Some(secret) = &tls.secret_name else { continue };
                if !self.has_secret(&ingress.metadata.namespace, secret) {
                    continue;
                }
                let names = tls.names(secret).into_iter();
                for name in names.filter(|name| self.is_own(Some(name), &ingress.metadata.namespace)) {
                    by_name.entry(name).or_insert_with(|| format!("{} spec.tls[{index}]", ingress.name()));
                }
            }
        }
        by_name.into_iter().map(|(name, by)| format!("{name} {by}")).collect()
    }

    fn has_secret(&self, namespace: &str, secret: &str) -> bool {
        self.secrets.contains(&(namespace.to_owned(), secret.to_owned()))
    }
}

impl Ingress {
    fn name(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// Whether a rule, an entry of `tls` or, for every host, the default backend names a host.
    fn names(&self, host: Option<&str>) -> bool {
        let has_default = host.is_none() && self.spec.default_backend.is_some();
        let mut hosts = self.spec.tls.iter().flat_map(|tls| &tls.hosts);
        has_default
            || self.spec.rules.iter().any(|rule| rule.host.as_deref() == host)
            || hosts.any(|named| Some(named.as_str()) == host)
    }

    /// Every path with the index of its rule and its own.
    fn paths(&self) -> impl Iterator<Item = (usize, usize, &Path)> {
        self.spec.rules.iter().enumerate().flat_map(|(rule, content)| {
            content.http.paths.iter().enumerate().map(move |(path, content)| (rule, path, content))
        })
    }

    fn candidates<'s>(&'s self, host: Option<&str>, path: &str, labels: Labels) -> Vec<Candidate<'s>> {
        let candidate = |host: Option<&'s str>, path: PathRank, field: String, backend| Candidate {
            rank: (host_rank(host), path),
            host,
            origin: (self.name(), field),
            namespace: &self.metadata.namespace,
            backend,
        };
        let of_host = |rule: &Rule| host_matches(rule.host.as_deref(), host, labels);
        let mut candidates: Vec<Candidate<'s>> = self
            .paths()
            .filter(|(rule, _, content)| of_host(&self.spec.rules[*rule]) && content.matches(path))
            .map(|(rule, index, content)| {
                let field = format!("spec.rules[{rule}].http.paths[{index}]");
                candidate(self.spec.rules[rule].host.as_deref(), content.rank(), field, &content.backend)
            })
            .collect();
        let Some(default) = &self.spec.default_backend else { return candidates };
        let unwritten = (false, false, 0);
        for (index, rule) in self.spec.rules.iter().enumerate() {
            // A rule without paths for every host says no more than the default backend itself.
            if rule.http.paths.is_empty() && rule.host.is_some() && of_host(rule) {
                let field = format!("spec.rules[{index}]");
                candidates.push(candidate(rule.host.as_deref(), unwritten, field, default));
            }
        }
        candidates.push(candidate(None, unwritten, "spec.defaultBackend".to_owned(), default));
        candidates
    }
}

impl Tls {
    /// The server names of the certificate in a Secret.
    fn names(&self, secret: &str) -> Vec<String> {
        if !self.hosts.is_empty() {
            return self.hosts.clone();
        }
        CERTIFIED.into_iter().find(|(name, _)| *name == secret).unwrap().1.map(str::to_owned).to_vec()
    }
}

impl Path {
    fn text(&self) -> &str {
        if self.written.is_empty() { "/" } else { &self.written }
    }

    fn rank(&self) -> PathRank {
        if self.kind == REST {
            return (false, false, 0);
        }
        // A prefix of bytes comes after the prefix of elements with its text.
        (true, self.kind == "Exact", 2 * self.text().len() - usize::from(self.kind == "Literal"))
    }

    fn matches(&self, requested: &str) -> bool {
        if self.kind == REST {
            return true;
        }
        if self.kind == "Exact" {
            return requested == self.text();
        }
        if self.kind == "Literal" {
            return requested.starts_with(self.text());
        }
        // Element by element, where a slash at the end of the prefix makes no element.
        let prefix = self.text().strip_suffix('/').unwrap_or(self.text());
        let mut elements = requested.split('/');
        prefix.split('/').all(|element| elements.next() == Some(element))
    }
}

/// Where the requests for a backend of an Ingress go.
pub(super) fn target(world: &World, namespace: &str, backend: &Value) -> Target {
    Backend::deserialize(backend).unwrap().target(world, namespace)
}

impl Backend {
    /// The port of the Service that is there and its name, whatever its endpoints, and how it is spoken to.
    fn port<'w>(&self, world: &'w World, namespace: &str) -> Option<(u16, &'w str, BackendProtocol)> {
        let reference = self.service.as_ref()?;
        let service = world.services.get(&(namespace.to_owned(), reference.name.clone()))?;
        if service.spec.r#type.as_deref() == Some("ExternalName") {
            return None;
        }
        let mut ports = service.spec.ports.iter();
        let port = ports.find(|port| match (&reference.port.name, reference.port.number) {
            (Some(name), _) => port.name == *name,
            (None, number) => Some(port.port) == number,
        })?;
        let protocol = match port.app_protocol.as_deref() {
            None | Some("http") => BackendProtocol::Http1,
            Some("kubernetes.io/ws") => BackendProtocol::WebSocket,
            Some("kubernetes.io/h2c") => BackendProtocol::H2c,
            Some(_) => return None,
        };
        Some((port.port, &port.name, protocol))
    }

    /// The connection to the port; `None` if a policy forbids it.
    fn way(&self, world: &World, namespace: &str) -> Option<Way> {
        let (_, port, protocol) = self.port(world, namespace)?;
        // No Ingress asks for another way; streams stay open for a day.
        let idle = (protocol != BackendProtocol::Http1).then_some(86_400);
        let way = Way { timeout: idle.map(|seconds| (5, seconds, seconds)), retries: 1 };
        let service = (namespace.to_owned(), self.service.as_ref()?.name.clone());
        world.way_under_policies(&service, port, way)
    }

    fn is_usable(&self, world: &World, namespace: &str) -> bool {
        self.way(world, namespace).is_some()
    }

    fn target(&self, world: &World, namespace: &str) -> Target {
        let (Some((port, _, protocol)), Some(service)) = (self.port(world, namespace), &self.service) else {
            return Target::Status(500);
        };
        let Some(way) = self.way(world, namespace) else { return Target::Status(500) };
        if world.nodes(namespace, &service.name, port).is_empty() {
            return Target::Status(503);
        }
        let protocol = if protocol == BackendProtocol::WebSocket { BackendProtocol::Http1 } else { protocol };
        Target::Service { namespace: namespace.to_owned(), name: service.name.clone(), port, protocol, way }
    }
}

fn host_rank(pattern: Option<&str>) -> HostRank {
    match pattern {
        None => (0, 0),
        Some(wildcard) if wildcard.starts_with("*.") => (1, wildcard.len()),
        Some(exact) => (2, exact.len()),
    }
}

fn host_matches(pattern: Option<&str>, host: Option<&str>, labels: Labels) -> bool {
    let Some(pattern) = pattern else { return true };
    let Some(host) = host else { return false };
    match pattern.strip_prefix('*') {
        None => host == pattern,
        Some(suffix) => host
            .strip_suffix(suffix)
            .is_some_and(|rest| !rest.is_empty() && (labels == Labels::Several || !rest.contains('.'))),
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    namespace: String,
    creation_timestamp: Option<String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Ingress {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    ingress_class_name: Option<String>,
    default_backend: Option<Backend>,
    rules: Vec<Rule>,
    tls: Vec<Tls>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    host: Option<String>,
    http: Http,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Http {
    paths: Vec<Path>,
}

#[derive(Clone, Debug, Deserialize)]
struct Path {
    #[serde(default, rename = "path")]
    written: String,
    #[serde(rename = "pathType")]
    kind: String,
    backend: Backend,
}

#[derive(Clone, Debug, Deserialize)]
struct Backend {
    service: Option<ServiceRef>,
}

#[derive(Clone, Debug, Deserialize)]
struct ServiceRef {
    name: String,
    port: PortRef,
}

#[derive(Clone, Debug, Deserialize)]
struct PortRef {
    name: Option<String>,
    number: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    hosts: Vec<String>,
    secret_name: Option<String>,
}
