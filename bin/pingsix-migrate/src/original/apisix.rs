//! APISIX with the router `radixtree_host_uri`, and its ingress controller: ApisixRoutes and Ingresses.
//!
//! ```text
//! ApisixRoutes, Ingresses ──► routes (hosts, paths, conditions, plugins, backends) ──► router ──► plugins ──► answers
//! ```

mod conditions;
mod plugins;
mod routes;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::ObjectName;
use serde_json::Value;

use self::routes::{Route, Target};
use super::Told;
use super::objects::{self, Services};
use crate::answer::{Answer, Backend, Request};

/// Names of hosts with a certificate.
type Certificates = BTreeSet<String>;

/// APISIX with its routes.
pub(super) struct Apisix {
    routes: Vec<Route>,
    /// The indexes of routes by host; without hosts, by an empty name.
    by_host: BTreeMap<String, Vec<usize>>,
    services: Services,
    certificates: Certificates,
    /// The hosts of requests to backends, from ApisixUpstreams, by Service.
    upstreams: BTreeMap<ObjectName, PassHost>,
    /// The reason for which no answer is known.
    unmodelled: Option<String>,
}

/// The host that a backend gets.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PassHost {
    Pass,
    Node,
    Rewrite(String),
    Unknown,
}

impl Apisix {
    /// `None` without an object of the controller.
    pub(super) fn read(objects: &[Value], are_ready: bool) -> Option<Self> {
        let configs = routes::plugin_configs(objects);
        let mut routes = routes::of_apisix_routes(objects, &configs);
        let (of_ingresses, mut certificates) = routes::of_ingresses(objects, &configs);
        routes.extend(of_ingresses);
        if routes.is_empty() {
            return None;
        }
        let mut by_host: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, route) in routes.iter().enumerate() {
            let any = route.hosts.is_empty().then(String::new);
            for host in route.hosts.iter().cloned().chain(any) {
                by_host.entry(host).or_default().push(index);
            }
        }
        let mut unmodelled = None;
        let mut upstreams = BTreeMap::new();
        for object in objects {
            let spec = &object["spec"];
            match object["kind"].as_str().unwrap_or_default() {
                "ApisixGlobalRule" | "GatewayProxy" => {
                    let plugins = spec["plugins"].as_array().into_iter().flatten();
                    let names: Vec<&str> = plugins.filter_map(|plugin| plugin["name"].as_str()).collect();
                    if let Some(name) = names.iter().find(|name| !plugins::is_without_effect(name)) {
                        unmodelled = Some(format!("plugin {name} for all routes is not modelled"));
                    }
                }
                "ApisixTls" => {
                    if spec.get("client").is_some() {
                        unmodelled = Some("certificates of clients are not modelled".to_owned());
                    }
                    let hosts = spec["hosts"].as_array().into_iter().flatten();
                    certificates.extend(hosts.filter_map(|host| Some(host.as_str()?.to_ascii_lowercase())));
                }
                "ApisixUpstream" => {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
                    upstreams.insert(ObjectName::new(namespace, name), pass_host(spec));
                }
                _ => {}
            }
        }
        Some(Self {
            routes,
            by_host,
            services: Services::read(objects, are_ready),
            certificates,
            upstreams,
            unmodelled,
        })
    }

    pub(super) fn answer(&self, request: &Request) -> Told {
        let told = |answer| Told { answer, by: None, is_fallback: false };
        if let Some(unmodelled) = &self.unmodelled {
            return told(Answer::Unknown(unmodelled.clone()));
        }
        let Some(uri) = super::uri::normalised(&request.path) else { return told(Answer::Status(400)) };
        let host = super::host_name(&request.host);
        if request.https && !self.certificates.iter().any(|name| covers(name, &host)) {
            let why =
                "the host has no certificate, so that APISIX closes the connection or shows another one";
            return told(Answer::Unknown(why.to_owned()));
        }
        match self.find(request, &host, &uri) {
            Ok(None) => told(Answer::Status(404)),
            Ok(Some(route)) => {
                let answer = self.at(route, request, &host, &uri);
                Told { answer, by: Some(route.origin.clone()), is_fallback: false }
            }
            Err(why) => told(Answer::Unknown(why)),
        }
    }

    /// The route of a request: those of the host come first, then those of wildcards, the longest first, then those
    /// without hosts.
    fn find(&self, request: &Request, host: &str, uri: &str) -> Result<Option<&Route>, String> {
        let parents = host.match_indices('.').map(|(at, _)| format!("*{}", &host[at..]));
        let names = std::iter::once(host.to_owned()).chain(parents).chain([String::new()]);
        for name in names {
            let routes = self.by_host.get(&name).into_iter().flatten();
            let routes = routes.filter_map(|index| self.routes.get(*index));
            let mut found: Vec<(&str, &Route)> = routes
                .flat_map(|route| {
                    let uris = route.uris.iter().map(String::as_str);
                    uris.filter(|written| has(written, uri)).map(move |written| (written, route))
                })
                .collect();
            // Exact paths come first, then longer ones, then those with a higher priority.
            let rank = |written: &str, route: &Route| {
                (written.ends_with('*'), std::cmp::Reverse(written.len()), std::cmp::Reverse(route.priority))
            };
            found.sort_by_key(|(written, route)| rank(written, route));
            let mut first: Option<(&str, &Route)> = None;
            for (written, route) in found {
                if let Some((other, chosen)) = first
                    && (rank(other, chosen) != rank(written, route) || chosen.origin == route.origin)
                {
                    break;
                }
                if !route.takes(request, uri)? {
                    continue;
                }
                if first.is_some() {
                    return Err("two routes have the path and the priority".to_owned());
                }
                first = Some((written, route));
            }
            if let Some((_, route)) = first {
                return Ok(Some(route));
            }
        }
        Ok(None)
    }

    fn at(&self, route: &Route, request: &Request, host: &str, uri: &str) -> Answer {
        if let Some(why) = &route.unknown {
            return Answer::Unknown(why.clone());
        }
        let sent = match plugins::run(&route.plugins, request, host, uri) {
            Ok(sent) => sent,
            Err(answer) => return answer,
        };
        let mut backends: BTreeMap<Backend, u64> = BTreeMap::new();
        let mut is_empty = true;
        for Target { namespace, service, port, weight } in &route.backends {
            let number = match self.services.backend(namespace, service, port) {
                objects::Backend::Port { number, has_endpoints: true }
                | objects::Backend::NoService(Some(number)) => number,
                objects::Backend::Port { .. } => continue,
                objects::Backend::NoPort | objects::Backend::NoService(None) => {
                    return Answer::Unknown(format!("the port of Service {namespace}/{service} is unknown"));
                }
            };
            is_empty = false;
            let service = ObjectName::new(namespace.as_str(), service.as_str());
            let host = match self.upstreams.get(&service).unwrap_or(&PassHost::Pass) {
                PassHost::Pass => Some(sent.host.clone()),
                PassHost::Node => None,
                PassHost::Rewrite(host) => Some(host.clone()),
                PassHost::Unknown => return Answer::Unknown("an ApisixUpstream is not modelled".to_owned()),
            };
            let backend = Backend { service, port: i32::from(number), target: sent.target.clone(), host };
            if *weight > 0 {
                *backends.entry(backend).or_default() += u64::from(*weight);
            }
        }
        if is_empty {
            return Answer::Status(503);
        }
        if route.backends.len() > 1
            && backends.len() < route.backends.iter().filter(|one| one.weight > 0).count()
        {
            return Answer::Unknown("a share of the requests has no endpoint".to_owned());
        }
        Answer::Backends { backends, checks: sent.checks }
    }
}

fn pass_host(spec: &Value) -> PassHost {
    let is_plain = ["externalNodes", "subsets", "discovery", "portLevelSettings"]
        .iter()
        .all(|field| spec.get(field).is_none());
    let host = spec["upstreamHost"].as_str();
    match (spec["passHost"].as_str(), host) {
        _ if !is_plain => PassHost::Unknown,
        (Some("node"), _) => PassHost::Node,
        (Some("rewrite"), Some(host)) => PassHost::Rewrite(host.to_owned()),
        (Some("pass") | None, _) => PassHost::Pass,
        (Some(_), _) => PassHost::Unknown,
    }
}

/// Whether a name with or without a wildcard has a host. A wildcard stands for one or more labels.
fn covers(name: &str, host: &str) -> bool {
    match name.strip_prefix('*') {
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => name == host,
    }
}

/// Whether a path of a route has the path of a request.
fn has(written: &str, uri: &str) -> bool {
    match written.strip_suffix('*') {
        Some(prefix) => uri.starts_with(prefix),
        None => written == uri,
    }
}
