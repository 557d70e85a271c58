//! The servers and locations that ingress-nginx writes for Ingresses.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::settings::{Canary, Settings};
use crate::original::objects::{Backend, IngressPath, IngressSpec, Object, ServiceReference, Services};

/// The name of the server of all other hosts.
pub(super) const CATCH_ALL: &str = "_";

/// The upstream that answers 404.
pub(super) const DEFAULT: &str = "upstream-default-backend";

/// An Ingress with its settings.
pub(super) struct Ingress {
    pub(super) object: Object<IngressSpec>,
    pub(super) settings: Rc<Settings>,
}

impl Ingress {
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.object.metadata.namespace(), self.object.metadata.name)
    }

    fn rules(&self) -> impl Iterator<Item = (usize, String, Option<&[IngressPath]>)> {
        self.object.spec.rules.iter().flatten().enumerate().map(|(index, rule)| {
            let host = rule.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(CATCH_ALL);
            (index, host.to_owned(), rule.http.as_ref().map(|http| http.paths.as_slice()))
        })
    }

    fn upstream(&self, service: &ServiceReference) -> String {
        format!("{}-{}-{}", self.object.metadata.namespace(), service.name, service.port.text())
    }

    fn has_canary(&self) -> bool {
        self.settings.canary.is_some()
    }
}

/// A server.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) aliases: Vec<String>,
    pub(super) locations: Vec<Location>,
    pub(super) from_to_www: bool,
    pub(super) certificate: Certificate,
    /// The reason for which its answers are unknown.
    pub(super) unknown: Option<String>,
}

/// The certificate of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Certificate {
    #[default]
    None,
    /// The one of ingress-nginx, or one that may be for the host.
    Default,
    Secret,
}

/// A location.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) path: String,
    pub(super) is_exact: bool,
    /// The name of the upstream.
    pub(super) backend: String,
    /// Whether no path of an Ingress has made it.
    pub(super) is_default: bool,
    pub(super) settings: Rc<Settings>,
    /// The namespace of the Ingress.
    pub(super) namespace: String,
    /// The object and the field.
    pub(super) origin: Option<String>,
    /// Whether another Ingress whose age is unknown has the path, too.
    pub(super) is_doubtful: bool,
}

impl Location {
    /// Whether the location makes all locations of its server regular expressions.
    pub(super) fn needs_regex(&self) -> bool {
        self.settings.use_regex || self.settings.target.as_ref().is_some_and(|target| *target != self.path)
    }
}

/// An upstream.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) namespace: String,
    pub(super) service: String,
    pub(super) backend: Backend,
    /// The canary, if the upstream is that of one. No location leads to it.
    pub(super) canary: Option<Canary>,
    pub(super) alternatives: Vec<String>,
}

/// The configuration of nginx.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub(super) servers: BTreeMap<String, Server>,
    pub(super) upstreams: BTreeMap<String, Upstream>,
}

impl Configuration {
    /// `ingresses` are in the order of their age.
    pub(super) fn new(ingresses: &[Ingress], services: &Services) -> Self {
        let mut configuration = Self::default();
        configuration.create_upstreams(ingresses, services);
        configuration.create_servers(ingresses);
        configuration.add_paths(ingresses);
        if ingresses.iter().any(|ingress| !ingress.has_canary()) {
            for ingress in ingresses.iter().filter(|ingress| ingress.has_canary()) {
                configuration.merge_canary(ingress);
            }
        }
        configuration.use_default_backends(services);
        for server in configuration.servers.values_mut() {
            server.sort_locations();
        }
        configuration
    }

    /// The first Ingress with a backend makes its upstream, and decides whether it is that of a canary.
    fn create_upstreams(&mut self, ingresses: &[Ingress], services: &Services) {
        for ingress in ingresses {
            let new = |service: &ServiceReference| {
                let namespace = ingress.object.metadata.namespace().to_owned();
                let mut backend = services.backend(&namespace, &service.name, &service.port.text());
                if let Backend::Port { has_endpoints, .. } = &mut backend
                    && ingress.settings.service_upstream
                    && services.has_address(&namespace, &service.name)
                {
                    *has_endpoints = true;
                }
                let canary = ingress.settings.canary.clone();
                let service = service.name.clone();
                Upstream { namespace, service, backend, canary, alternatives: Vec::new() }
            };
            let default = ingress.object.spec.default_backend.as_ref();
            if let Some(service) = default.and_then(|backend| backend.service.as_ref()) {
                self.upstreams.insert(ingress.upstream(service), new(service));
            }
            let paths = ingress.rules().filter_map(|(_, _, paths)| paths).flatten();
            for service in paths.filter_map(|path| path.backend.service.as_ref()) {
                self.upstreams.entry(ingress.upstream(service)).or_insert_with(|| new(service));
            }
        }
    }

    fn create_servers(&mut self, ingresses: &[Ingress]) {
        let root = Location {
            path: "/".to_owned(),
            is_exact: false,
            backend: DEFAULT.to_owned(),
            is_default: true,
            settings: Rc::new(Settings::default()),
            namespace: String::new(),
            origin: None,
            is_doubtful: false,
        };
        let catch_all = Server { locations: vec![root.clone()], ..Server::default() };
        self.servers.insert(CATCH_ALL.to_owned(), catch_all);
        let mains = || ingresses.iter().filter(|ingress| !ingress.has_canary());
        for ingress in mains() {
            let default = ingress.object.spec.default_backend.as_ref();
            let default = default.and_then(|backend| backend.service.as_ref());
            let backend = default.map_or_else(|| DEFAULT.to_owned(), |service| ingress.upstream(service));
            let origin = Some(format!("Ingress {}", ingress.name()));
            let namespace = ingress.object.metadata.namespace().to_owned();
            if default.is_some() && ingress.rules().next().is_none() {
                let server = self.servers.get_mut(CATCH_ALL);
                let location = server.and_then(|server| server.locations.first_mut());
                if let Some(location) = location.filter(|location| location.is_default) {
                    // Neither redirects nor rewrites hold for all hosts.
                    let settings = Settings {
                        target: None,
                        use_regex: false,
                        app_root: None,
                        ssl_redirect: false,
                        force_ssl_redirect: false,
                        redirect: None,
                        ..(*ingress.settings).clone()
                    };
                    location.is_default = false;
                    location.backend.clone_from(&backend);
                    location.settings = Rc::new(settings);
                    location.namespace.clone_from(&namespace);
                    location.origin.clone_from(&origin);
                }
            }
            for (_, host, _) in ingress.rules() {
                self.servers.entry(host).or_insert_with(|| {
                    let location = Location {
                        backend: backend.clone(),
                        settings: Rc::clone(&ingress.settings),
                        namespace: namespace.clone(),
                        origin: origin.clone(),
                        ..root.clone()
                    };
                    Server { locations: vec![location], ..Server::default() }
                });
            }
        }
        for ingress in mains() {
            for (_, host, _) in ingress.rules() {
                let Some(server) = self.servers.get_mut(&host) else { continue };
                if server.aliases.is_empty() {
                    server.aliases.clone_from(&ingress.settings.aliases);
                }
                if server.unknown.is_none() {
                    server.unknown.clone_from(&ingress.settings.unknown_server);
                }
                let tls = ingress.object.spec.tls.as_deref().unwrap_or_default();
                if server.certificate == Certificate::None && host != CATCH_ALL && !tls.is_empty() {
                    let of_host = tls
                        .iter()
                        .find(|tls| tls.hosts.iter().flatten().any(|one| one.eq_ignore_ascii_case(&host)));
                    // A Secret without the host in its entry counts if its certificate is for the host, which the input
                    // does not tell (`extractTLSSecretName` of `internal/ingress/controller/controller.go`).
                    let secret = of_host.is_some_and(|tls| tls.secret_name.is_some());
                    server.certificate = if secret { Certificate::Secret } else { Certificate::Default };
                }
            }
        }
        let hosts: BTreeSet<String> = self.servers.keys().cloned().collect();
        for server in self.servers.values_mut() {
            server.aliases.retain(|alias| !hosts.contains(alias));
        }
    }

    fn add_paths(&mut self, ingresses: &[Ingress]) {
        for ingress in ingresses {
            for (rule, host, paths) in ingress.rules() {
                let host = if self.servers.contains_key(&host) { host } else { CATCH_ALL.to_owned() };
                let Some(server) = self.servers.get_mut(&host) else { continue };
                for (index, path) in paths.unwrap_or_default().iter().enumerate() {
                    let Some(service) = &path.backend.service else { continue };
                    let backend = ingress.upstream(service);
                    if self.upstreams.get(&backend).is_none_or(|upstream| upstream.canary.is_some()) {
                        continue;
                    }
                    let field = format!("spec.rules[{rule}].http.paths[{index}]");
                    let location = Location {
                        path: written(path),
                        is_exact: path.path_type.as_deref() == Some("Exact"),
                        backend,
                        is_default: false,
                        settings: Rc::clone(&ingress.settings),
                        namespace: ingress.object.metadata.namespace().to_owned(),
                        origin: Some(format!("Ingress {} {field}", ingress.name())),
                        is_doubtful: false,
                    };
                    server.add(location, ingress.object.metadata.creation_timestamp.is_some());
                }
            }
        }
    }

    /// A canary takes requests of the upstreams of locations with its path, and so of all locations with these upstreams.
    fn merge_canary(&mut self, ingress: &Ingress) {
        let default = ingress.object.spec.default_backend.as_ref();
        if let Some(service) = default.and_then(|backend| backend.service.as_ref()) {
            self.merge(&ingress.upstream(service), CATCH_ALL, None);
        }
        for (_, host, paths) in ingress.rules() {
            for path in paths.unwrap_or_default() {
                if let Some(service) = &path.backend.service {
                    self.merge(&ingress.upstream(service), &host, Some(path));
                }
            }
        }
    }

    fn merge(&mut self, alternative: &str, host: &str, path: Option<&IngressPath>) {
        let Some(server) = self.servers.get(host) else { return };
        if !self.upstreams.contains_key(alternative) {
            return;
        }
        let mut is_merged = false;
        for location in &server.locations {
            let main = location.backend.as_str();
            if main == alternative {
                return;
            }
            let is_like = path.is_none_or(|path| {
                location.path == written(path)
                    && location.is_exact == (path.path_type.as_deref() == Some("Exact"))
            });
            let upstream = self.upstreams.get_mut(main).filter(|main| main.canary.is_none());
            if let Some(upstream) = upstream.filter(|_| is_like && main != DEFAULT) {
                is_merged = true;
                if !upstream.alternatives.iter().any(|known| known == alternative) {
                    upstream.alternatives.push(alternative.to_owned());
                }
            }
        }
        if !is_merged {
            self.upstreams.remove(alternative);
        }
    }

    /// The backend of the annotation answers for one without endpoints.
    fn use_default_backends(&mut self, services: &Services) {
        let mut added = Vec::new();
        for location in self.servers.values_mut().flat_map(|server| &mut server.locations) {
            let Some(name) = &location.settings.default_backend else { continue };
            let has_endpoints = self.upstreams.get(&location.backend).is_some_and(|upstream| {
                matches!(upstream.backend, Backend::Port { has_endpoints: true, .. } | Backend::NoService(_))
            });
            if has_endpoints || location.backend == DEFAULT {
                continue;
            }
            let Some(port) = services.first_port(&location.namespace, name) else { continue };
            let backend = services.backend(&location.namespace, name, &port.to_string());
            if matches!(backend, Backend::Port { has_endpoints: true, .. }) {
                let upstream = format!("custom-default-backend-{}-{name}", location.namespace);
                location.backend.clone_from(&upstream);
                let (namespace, service) = (location.namespace.clone(), name.clone());
                added.push((
                    upstream,
                    Upstream { namespace, service, backend, canary: None, alternatives: Vec::new() },
                ));
            }
        }
        self.upstreams.extend(added);
    }
}

fn written(path: &IngressPath) -> String {
    path.path.clone().filter(|path| !path.is_empty()).unwrap_or_else(|| "/".to_owned())
}

impl Server {
    /// Adds a location, unless an older Ingress has one with the path and type.
    fn add(&mut self, location: Location, has_age: bool) {
        let known = self.locations.iter_mut().find(|known| known.path == location.path);
        let known = known.filter(|known| known.is_exact == location.is_exact);
        let from_to_www = location.settings.from_to_www;
        match known {
            Some(known) if !known.is_default => {
                known.is_doubtful |= !has_age && known.origin != location.origin;
                return;
            }
            Some(known) => *known = location,
            None => self.locations.push(location),
        }
        self.from_to_www |= from_to_www;
    }

    /// The longest path comes first. A prefix of a path has a location for the path itself, too.
    fn sort_locations(&mut self) {
        self.locations.sort_by(|one, other| other.path.cmp(&one.path));
        self.locations.sort_by_key(|location| std::cmp::Reverse(location.path.len()));
        let exact: BTreeSet<String> =
            self.locations.iter().filter(|one| one.is_exact).map(|one| one.path.clone()).collect();
        let mut locations = Vec::with_capacity(self.locations.len() * 2);
        for location in self.locations.drain(..) {
            if location.path == "/" || location.is_exact || location.needs_regex() {
                locations.push(location);
                continue;
            }
            let slash = if location.path.ends_with('/') { "" } else { "/" };
            let below = Location { path: format!("{}{slash}", location.path), ..location.clone() };
            locations.push(below);
            if !exact.contains(&location.path) {
                locations.push(Location { is_exact: true, ..location });
            }
        }
        self.locations = locations;
    }
}
