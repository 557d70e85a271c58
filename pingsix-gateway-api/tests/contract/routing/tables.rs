//! Random tables without closure.

use pingsix_translate::pingsix::plugin::{
    Abort, Cors, Echo, FaultInjection, Header, HeaderChanges, ProxyRewrite, Redirect, SplitRule,
    TrafficSplit, WeightedUpstream,
};
use pingsix_translate::pingsix::{Config, Plugins, Route, Service};

use crate::echo::ROUTE;
use crate::rng::SeededRng;

/// The backends, and the upstreams named like them.
pub(super) const BACKENDS: [&str; 4] = ["one", "two", "three", "four"];

const HOSTS: [&str; 9] = ["a.t", "b.a.t", "*.a.t", "*.t", "*", "A.T", "a.t.", "*t", "x.*.t"];

const PATHS: [&str; 18] = [
    "/",
    "/{*p}",
    "/a",
    "/a/",
    "/a/{*p}",
    "/a/b",
    "/a/b/",
    "/a/b/{*p}",
    "/ab",
    "/a{*p}",
    "/b/{*p}",
    "/a//b",
    "/a//{*p}",
    "/a%2Fb",
    "/A",
    "/A/{*p}",
    "/a/b?v=1",
    "a",
];

/// Patterns that may stand in each other's way.
const PARAMETERS: [&str; 6] = ["/{x}", "/a/{x}", "/{x}/b", "/v{x}", "/a/{y}/c", "/a/{x}/{*p}"];

/// Numbers above 999 become 500.
const STATUSES: [u16; 10] = [200, 200, 201, 299, 403, 404, 500, 503, 999, 1000];

const METHODS: [&str; 6] = ["GET", "POST", "HEAD", "OPTIONS", "PURGE", "get"];

/// Three to six routes, with ties and with broad patterns before narrow ones.
pub(super) fn open(rng: &mut SeededRng) -> Config {
    let mut config = Config::new();
    let parameters = rng.percent(25);
    let services = rng.percent(30);
    if services {
        let count = rng.below(3);
        let hosts = rng.some(count, &HOSTS);
        let upstream_id = Some(rng.one(&BACKENDS).to_owned());
        let plugins = if rng.percent(50) { Plugins::new().with(&Cors::default()) } else { Plugins::new() };
        config.insert("s", Service { hosts, upstream_id, plugins, ..Service::default() });
    }
    // All orders are tried in the model, so that six routes cost thirty times as much as four.
    let routes = if rng.percent(10) { 6 } else { 3 + rng.below(3) };
    for index in 0..routes {
        let id = format!("r{index}");
        let count = 1 + rng.below(3);
        let mut uris = rng.some(count, &PATHS);
        if parameters && rng.percent(40) {
            uris.push(rng.one(&PARAMETERS).to_owned());
        }
        let count = rng.below(3);
        let hosts = if rng.percent(40) { Vec::new() } else { rng.some(count, &HOSTS) };
        let count = 1 + rng.below(2);
        let methods = if rng.percent(60) { Vec::new() } else { rng.some(count, &METHODS) };
        let service_id = (services && rng.percent(40)).then(|| "s".to_owned());
        let route = Route { uris, hosts, methods, service_id, priority: rng.number(4), ..Route::default() };
        config.insert(&*id, answering(rng, &id, route));
    }
    config
}

/// The classic: which of the two gets an entry depends on the order.
pub(super) fn swallowing() -> Config {
    let mut config = Config::new();
    for (id, uri) in [("broad", "/{*p}"), ("narrow", "/a/{*p}")] {
        let route =
            Route { uri: Some(uri.to_owned()), upstream_id: Some("one".to_owned()), ..Route::default() };
        config.insert(id, Route { plugins: Plugins::new().with(&fixed(id, 200)), ..route });
    }
    config
}

/// Gives a route a distinct response: without a backend, by a redirect, or by backends.
pub(super) fn answering(rng: &mut SeededRng, id: &str, route: Route) -> Route {
    let upstream_id = match &route.service_id {
        Some(_) if rng.percent(50) => None,
        _ => Some(rng.one(&BACKENDS).to_owned()),
    };
    let plugins = match rng.below(10) {
        0..5 => Plugins::new().with(&fixed(id, STATUSES[rng.below(STATUSES.len())])),
        5 => Plugins::new()
            .with(&Echo { body: id.to_owned(), headers: [(ROUTE.to_owned(), id.to_owned())].into() }),
        // Over TLS the backend of a redirect to HTTPS gets the request.
        6 => Plugins::new().with(&redirect(rng, id)).with(&marking(id)),
        _ => Plugins::new().with(&split(rng)).with(&marking(id)),
    };
    let plugins = if rng.percent(25) { plugins.with(&cors(rng)) } else { plugins };
    // A plugin of the service that nothing replaces must not hide the mark of the route.
    Route { plugins, upstream_id, ..route }
}

fn fixed(id: &str, http_status: u16) -> FaultInjection {
    let headers = [(ROUTE.to_owned(), id.into())].into();
    let abort = Abort { http_status, body: Some(id.to_owned()), headers: Some(headers), percentage: None };
    FaultInjection { delay: None, abort: Some(abort) }
}

fn marking(id: &str) -> ProxyRewrite {
    let header = Header { name: ROUTE.to_owned(), value: id.to_owned() };
    ProxyRewrite {
        headers: Some(HeaderChanges { set: vec![header], ..HeaderChanges::default() }),
        ..ProxyRewrite::default()
    }
}

fn redirect(rng: &mut SeededRng, id: &str) -> Redirect {
    let ret_code = [301, 302, 303, 307, 308][rng.below(5)];
    let append_query_string = rng.percent(50);
    let redirect = Redirect { ret_code, append_query_string, ..Redirect::default() };
    match rng.below(3) {
        0 => Redirect { uri: Some(format!("/{id}?moved=1")), ..redirect },
        1 => Redirect { http_to_https: true, redirect_host: Some(format!("{id}.t:8443")), ..redirect },
        _ => Redirect { regex_uri: vec!["^/(a?)(.*)$".to_owned(), format!("/{id}/$2/$1/$3")], ..redirect },
    }
}

fn cors(rng: &mut SeededRng) -> Cors {
    Cors {
        allow_origins: rng.one(&["*", "**", "http://o.t", "http://p.t, http://o.t"]).to_owned(),
        allow_methods: rng.one(&["*", "GET", "get,POST"]).to_owned(),
        allow_headers: rng.one(&["*", "x-a", "X-B, x-a"]).to_owned(),
        ..Cors::default()
    }
}

/// A decision list over headers, arguments and other variables, weights included.
fn split(rng: &mut SeededRng) -> TrafficSplit {
    const VARIABLES: [&str; 16] = [
        "http_x-v",
        "http_X-V",
        "http_x_v",
        "http_host",
        "http_missing",
        "arg_v",
        "arg_V",
        "arg_w",
        "arg_%76",
        "uri",
        "request_uri",
        "query_string",
        "remote_addr",
        "cookie_v",
        "host",
        "method",
    ];
    const VALUES: [&str; 12] =
        ["", "1", "2", "1 ", "%31", "/a/b", "/a/b?v=1", "v=1", "a.t", "1+1", "a=b", "GET"];
    let rule = |rng: &mut SeededRng| SplitRule {
        vars: (0..rng.below(3))
            .map(|_| {
                let operator = rng.one(&["==", "==", "==", "!=", "!=", "~~"]);
                let mut condition = vec![rng.one(&VARIABLES), operator, rng.one(&VALUES)];
                condition.truncate(if rng.percent(5) { 2 } else { 3 });
                condition.into_iter().map(str::to_owned).collect()
            })
            .collect(),
        weighted_upstreams: (0..=rng.below(3))
            .map(|index| WeightedUpstream {
                upstream_id: rng.percent(85).then(|| rng.one(&BACKENDS).to_owned()),
                upstream: None,
                // The first has a share, because a sum of zero is refused.
                weight: if index == 0 { 1 } else { rng.number(3) },
            })
            .collect(),
    };
    TrafficSplit { rules: (0..=rng.below(3)).map(|_| rule(rng)).collect() }
}
