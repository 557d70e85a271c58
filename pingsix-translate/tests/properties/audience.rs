//! One data plane for a plaintext and several HTTPS listeners: what is meant for one of them is served there, redirected
//! or refused, and never served where it is not meant to be.
//!
//! The tables are small and made for this: routes attached to one listener or to all, of which some do nothing but send
//! clients to HTTPS. The reading of the specification below works on the tables, not on manifests.

use std::cmp::Reverse;

use pingsix_translate::pingsix::router::UpstreamRef;
use pingsix_translate::pingsix::{DocumentKey, Outcome, Request, ResourceKind, RouteTable, Router};
use pingsix_translate::responder::parse_status_host;
use pingsix_translate::{DataPlane, Layout, Options, Provenance, translate};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::answer::RESPONDER;
use crate::case::snapshot;
use crate::cases;
use crate::generate::gateway::certificates;
use crate::oracle::hostname::{intersect, matches, narrower, specificity};

/// Name, port, protocol and hostname of each listener; the first speaks plaintext.
const LISTENERS: [(&str, u16, &str, Option<&str>); 3] = [
    ("plain", 80, "HTTP", None),
    ("exact", 443, "HTTPS", Some("a.example.com")),
    ("wildcard", 443, "HTTPS", Some("*.a.example.com")),
];
const NAMES: [Option<&str>; 4] =
    [None, Some("a.example.com"), Some("x.a.example.com"), Some("*.a.example.com")];
const HOSTS: [&str; 4] = ["a.example.com", "x.a.example.com", "y.a.example.com", "other.test"];
const PATHS: [(bool, &str); 4] = [(false, "/"), (false, "/app"), (true, "/app"), (false, "/app/api")];
const TARGETS: [&str; 4] = ["/", "/app", "/app/api/x", "/other"];

impl Action {
    /// Where a client goes that asked a host for a path; `None` if nowhere else.
    fn location(self, host: &str, path: &str) -> Option<String> {
        match self {
            Self::Serve => None,
            Self::ToHttps { hostname } => Some(format!("https://{}{path}", hostname.unwrap_or(host))),
        }
    }
}

/// A route of the table.
#[derive(Clone, Debug)]
struct Route {
    name: String,
    /// Smaller is older.
    age: u32,
    /// Index into [`LISTENERS`]; `None` is all of them.
    section: Option<usize>,
    hostname: Option<&'static str>,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    is_exact: bool,
    path: &'static str,
    /// Whether the header `x-beta: 1` is asked for.
    conditional: bool,
    action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// To the Service port that stands for the rule.
    Serve,
    /// To HTTPS, to the host of the request or to another one.
    ToHttps { hostname: Option<&'static str> },
}

fn table(rng: &mut SmallRng) -> Vec<Route> {
    (0..rng.random_range(1..=5))
        .map(|index| {
            let redirects = rng.random_bool(0.4);
            let section = match rng.random_range(0..6) {
                0 | 1 if !redirects => Some(1),
                2 if !redirects => Some(2),
                0..=4 if redirects => Some(0),
                _ => None,
            };
            let rules = (0..rng.random_range(1..=2))
                .map(|_| {
                    let (is_exact, path) = PATHS[rng.random_range(0..PATHS.len())];
                    let hostname = if rng.random_bool(0.3) { Some("www.example.com") } else { None };
                    let action = if redirects { Action::ToHttps { hostname } } else { Action::Serve };
                    Rule { is_exact, path, conditional: rng.random_bool(0.2), action }
                })
                .collect();
            let hostname = NAMES[rng.random_range(0..NAMES.len())];
            let route =
                Route { name: format!("r{index}"), age: rng.random_range(0..3), section, hostname, rules };
            // Half of the tables have what people write: everything in plaintext is sent to HTTPS.
            if index == 0 && rng.random_bool(0.5) { everything_to_https(route) } else { route }
        })
        .collect()
}

fn everything_to_https(route: Route) -> Route {
    let rule =
        Rule { is_exact: false, path: "/", conditional: false, action: Action::ToHttps { hostname: None } };
    Route { section: Some(0), hostname: Some("a.example.com"), rules: vec![rule], ..route }
}

fn manifests(table: &[Route]) -> Vec<Value> {
    let listener = |(name, port, protocol, hostname): &(&str, u16, &str, Option<&str>)| {
        let mut listener = json!({"name": name, "port": port, "protocol": protocol});
        if let Some(hostname) = hostname {
            listener["hostname"] = json!(hostname);
            listener["tls"] = json!({"certificateRefs": [{"name": "nested"}]});
        }
        listener
    };
    let listeners: Vec<Value> = LISTENERS.iter().map(listener).collect();
    let mut objects = vec![
        json!({"kind": "Gateway", "metadata": {"namespace": "infra", "name": "public"},
            "spec": {"gatewayClassName": "pingsix", "listeners": listeners}}),
        json!({"kind": "Service", "metadata": {"namespace": "infra", "name": "web"}, "spec": {"ports":
            (0..16).map(|port| json!({"name": format!("p{port}"), "port": 8000 + port})).collect::<Vec<_>>()}}),
        json!({"kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
            "ports": (0..16).map(|port| json!({"name": format!("p{port}"), "port": 9000 + port})).collect::<Vec<_>>(),
            "endpoints": [{"addresses": ["10.0.0.1"]}]}),
    ];
    objects.extend(certificates("infra"));
    objects.extend(table.iter().enumerate().map(|(index, route)| {
        let rule = |(position, rule): (usize, &Rule)| {
            let headers = if rule.conditional { json!([{"name": "x-beta", "value": "1"}]) } else { json!([]) };
            let kind = if rule.is_exact { "Exact" } else { "PathPrefix" };
            let matched = json!({"path": {"type": kind, "value": rule.path}, "headers": headers});
            match rule.action {
                Action::ToHttps { hostname } => {
                    let mut redirect = json!({"scheme": "https"});
                    if let Some(hostname) = hostname {
                        redirect["hostname"] = json!(hostname);
                    }
                    let filter = json!({"type": "RequestRedirect", "requestRedirect": redirect});
                    json!({"matches": [matched], "filters": [filter]})
                }
                Action::Serve => json!({"matches": [matched], "backendRefs": [{"name": "web", "port": port(index, position)}]}),
            }
        };
        let mut parent = json!({"name": "public"});
        if let Some(section) = route.section {
            parent["sectionName"] = json!(LISTENERS[section].0);
        }
        let created = format!("2026-01-01T00:00:{:02}Z", route.age);
        json!({"kind": "HTTPRoute",
            "metadata": {"namespace": "infra", "name": route.name, "creationTimestamp": created},
            "spec": {"parentRefs": [parent], "hostnames": route.hostname.into_iter().collect::<Vec<_>>(),
                "rules": route.rules.iter().enumerate().map(rule).collect::<Vec<_>>()}})
    }));
    objects
}

/// The Service port that stands for a rule.
fn port(route: usize, rule: usize) -> usize {
    8000 + route * 2 + rule
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Everybody,
    Tls,
    Plaintext,
    /// Attached to some of the listeners that the data plane cannot tell apart.
    Nobody,
}

/// The expected answer to a request, in words.
fn expected(table: &[Route], request: &Request) -> String {
    let host = request.host.as_deref().unwrap();
    // The zone: the most specific hostname of any listener that covers the host.
    let zone = zone_of(Some(host));
    let zone_listeners: Vec<usize> = (0..LISTENERS.len())
        .filter(|&index| LISTENERS[index].3.is_none() || LISTENERS[index].3 == zone)
        .collect();
    let attached = |route: &Route, listener: usize| {
        route.section.is_none_or(|section| section == listener)
            && intersect(LISTENERS[listener].3, route.hostname)
    };
    let audience = |route: &Route| {
        let of: Vec<bool> = zone_listeners.iter().map(|&listener| attached(route, listener)).collect();
        match of.as_slice() {
            all if all.iter().all(|attached| *attached) => Audience::Everybody,
            [true, false] if redirects(route, zone) => Audience::Plaintext,
            [false, true] => Audience::Tls,
            _ => Audience::Nobody,
        }
    };
    let in_zone = |route: &&Route| {
        intersect(zone, route.hostname)
            && zone_of(narrower(zone, route.hostname)) == zone
            && zone_listeners.iter().any(|&listener| attached(route, listener))
    };
    let has_redirect = table.iter().filter(in_zone).any(|route| audience(route) == Audience::Plaintext);
    let audience = |route: &Route| match audience(route) {
        Audience::Tls if !has_redirect => Audience::Nobody,
        other @ (Audience::Everybody | Audience::Tls | Audience::Plaintext | Audience::Nobody) => other,
    };

    let mut rows: Vec<(&Route, usize)> = table
        .iter()
        .filter(in_zone)
        .filter(|route| matches(narrower(zone, route.hostname), Some(host)))
        .flat_map(|route| (0..route.rules.len()).map(move |rule| (route, rule)))
        .filter(|(route, rule)| takes(&route.rules[*rule], &request.path))
        .collect();
    rows.sort_by_key(|(route, index)| {
        let rule = &route.rules[*index];
        let path = (rule.is_exact, rule.path.len());
        (
            Reverse((specificity(route.hostname), path, rule.conditional)),
            route.age,
            route.name.clone(),
            *index,
        )
    });
    let first_in_plaintext = rows.iter().find(|(route, _)| audience(route) != Audience::Tls).copied();
    if let Some((route, rule)) =
        first_in_plaintext.filter(|(route, _)| audience(route) == Audience::Plaintext)
    {
        if !request.tls {
            return route.rules[rule].action.location(host, &request.path).unwrap();
        }
        rows.retain(|(route, _)| audience(route) != Audience::Plaintext);
    }
    let redirected = first_in_plaintext.is_some_and(|(route, _)| audience(route) == Audience::Plaintext);
    let fails = |route: &Route| match audience(route) {
        Audience::Everybody => false,
        Audience::Tls | Audience::Plaintext => !redirected,
        Audience::Nobody => true,
    };
    // The list from which conditions choose: no condition twice, and no rule behind one without conditions.
    let mut list: Vec<(&Route, &Rule, usize)> = Vec::new();
    for (route, index) in rows {
        let rule = &route.rules[index];
        if list.iter().all(|(_, earlier, _)| earlier.conditional != rule.conditional) {
            list.push((route, rule, index));
        }
        if !rule.conditional {
            break;
        }
    }
    // Redirects and backends cannot stand in one list; those of the oldest route count that has the most specific hostname
    // and path.
    let honoured = || list.iter().filter(|(route, ..)| !fails(route));
    let cell =
        |(route, rule, _): &(&Route, &Rule, usize)| (specificity(route.hostname), rule.is_exact, rule.path);
    let first = honoured().next().map(cell);
    let of_cell = honoured().take_while(|entry| Some(cell(entry)) == first);
    let owner = of_cell.map(|(route, ..)| (route.age, &route.name)).min();
    let agreed = honoured().rev().find(|(route, ..)| Some((route.age, &route.name)) == owner);
    let beta = request.first_header("x-beta") == Some("1");
    let Some((route, rule, index)) = list.iter().find(|(_, rule, _)| beta || !rule.conditional) else {
        return "404".to_owned();
    };
    if fails(route) || agreed.is_some_and(|(_, agreed, _)| agreed.action != rule.action) {
        return "500".to_owned();
    }
    rule.action.location(host, &request.path).unwrap_or_else(|| {
        let position = table.iter().position(|other| other.name == route.name).unwrap();
        port(position, *index).to_string()
    })
}

fn zone_of(host: Option<&str>) -> Option<&'static str> {
    let covers = |hostname: Option<&str>| match (hostname, host) {
        (Some(wide), Some(host)) => {
            wide == host || wide.strip_prefix('*').is_some_and(|suffix| host.ends_with(suffix))
        }
        (hostname, _) => hostname.is_none(),
    };
    LISTENERS
        .iter()
        .map(|listener| listener.3)
        .filter(|hostname| covers(*hostname))
        .max_by_key(|hostname| specificity(*hostname))
        .unwrap()
}

/// Whether a route does nothing but send clients to HTTPS, to one host and without conditions.
fn redirects(route: &Route, zone: Option<&str>) -> bool {
    let host = narrower(zone, route.hostname);
    route.rules.iter().all(|rule| {
        let is_known = |hostname: Option<&str>| hostname.or(host).is_some_and(|host| !host.starts_with('*'));
        let to_one_host = match rule.action {
            Action::ToHttps { hostname } => is_known(hostname),
            Action::Serve => false,
        };
        to_one_host && !rule.conditional
    })
}

fn takes(rule: &Rule, path: &str) -> bool {
    if rule.is_exact || rule.path == "/" {
        return !rule.is_exact || path == rule.path;
    }
    path.strip_prefix(rule.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The data plane's answer, in the same words.
fn answered(plane: &DataPlane, router: &Router<'_>, request: &Request) -> String {
    let (route, candidates) = match router.outcome(request) {
        Outcome::NotFound => return "404".to_owned(),
        Outcome::Static { status, .. } => return status.to_string(),
        Outcome::Redirect { location, .. } => return location,
        Outcome::Forward { route, candidates } => (route, candidates),
        outcome @ Outcome::Preflight { .. } => panic!("nobody asked for {outcome:?}"),
    };
    let [candidate] = candidates.as_slice() else { panic!("{candidates:?}") };
    let UpstreamRef::Named(id) = &candidate.upstream else { panic!("an inline upstream") };
    match &plane.provenance[&DocumentKey::new(ResourceKind::Upstream, id.clone())] {
        Provenance::Backend { port, .. } => port.to_string(),
        Provenance::Redirect => {
            let plugins = crate::answer::plugins_of(plane, route).unwrap();
            let (_, location) = crate::evaluate::instructed(&plugins, request).unwrap();
            location.unwrap()
        }
        Provenance::Status { .. } => {
            let host = plane.config.upstream(id).unwrap().upstream_host.clone().unwrap();
            parse_status_host(&host).unwrap().as_u16().to_string()
        }
        other @ (Provenance::Rules { .. }
        | Provenance::Guard { .. }
        | Provenance::Telemetry { .. }
        | Provenance::Policies { .. }
        | Provenance::Filters
        | Provenance::Certificate { .. }) => {
            panic!("{id} is a target and has provenance {other:?}")
        }
    }
}

/// Every kind of request that a listener takes: over TLS none for a host that only the plaintext listener serves.
fn requests() -> impl Iterator<Item = Request> {
    let all = HOSTS.into_iter().flat_map(|host| {
        TARGETS.into_iter().flat_map(move |path| {
            [(false, false), (false, true), (true, false), (true, true)].into_iter().map(
                move |(tls, beta)| {
                    let request = Request::get(host, path);
                    let request = if tls { request.over_tls() } else { request };
                    if beta { request.header("x-beta", "1") } else { request }
                },
            )
        })
    });
    all.filter(|request| !request.tls || zone_of(request.host.as_deref()).is_some())
}

#[test]
fn a_route_meant_for_https_is_served_over_https_alone() {
    let options = Options { layout: Layout::Shared, responder: Some(RESPONDER), ..Options::default() };
    let (mut checks, mut served_by_tls_alone) = (0_u32, 0_u32);
    for seed in 0..cases() * 8 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let table = table(&mut rng);
        let translation = translate(&snapshot(&manifests(&table)), &options);
        let plane = translation.data_planes.values().next().unwrap();
        let documents = RouteTable::new(&plane.config);
        let mut order: Vec<usize> = (0..documents.len()).collect();
        order.shuffle(&mut rng);
        let router = documents.insert_in(order).unwrap();
        for request in requests() {
            let (expected, answered) = (expected(&table, &request), answered(plane, &router, &request));
            assert_eq!(answered, expected, "seed {seed}, {request:?}: {table:#?}");
            checks += 1;
            let plaintext = Request { tls: false, ..request.clone() };
            let is_service = answered.len() == 4;
            served_by_tls_alone += u32::from(
                request.tls && is_service && self::answered(plane, &router, &plaintext) != answered,
            );
        }
    }
    println!("audiences: {checks} checks, {served_by_tls_alone} served over TLS alone");
    assert!(served_by_tls_alone * 100 > checks, "the tables are all alike");
}
