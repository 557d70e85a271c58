//! Deviations of PingSIX from Gateway API: each test is a row of `docs/reference/mapping.md`, and shows the effect.
//!
//! The request domain of the property tests leaves out exactly these.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName};
use http::uri::PathAndQuery;
use pingsix_translate::pingsix::plugin::{Cors, ProxyRewrite, Redirect, ResponseRewrite, TrafficSplit};
use pingsix_translate::pingsix::router::{Outcome, Request, Router};
use pingsix_translate::pingsix::{Config, PassHost, Route, Scheme};
use pingsix_translate::responder::{LocationError, RedirectInstruction};
use pingsix_translate::{Object, ObjectName, Objects, Options, translate, translate_ingress};
use serde_json::{Value, json};

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// The configuration for one HTTPRoute with one rule and a backend, on `*.example.com`.
fn config(matched: &Value) -> Config {
    config_of(&json!({"matches": [matched], "backendRefs": [{"name": "cart", "port": 80}]}))
}

/// The configuration for one HTTPRoute with this rule, on `*.example.com`.
fn config_of(rule: &Value) -> Config {
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP", "hostname": "*.example.com"});
    config_on(&json!([listener]), rule)
}

fn config_on(listeners: &Value, rule: &Value) -> Config {
    translated(&objects_on(listeners, rule))
}

fn translated(objects: &Objects) -> Config {
    let snapshot = objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
    let options = Options { responder: Some("127.0.0.1:8089".parse().unwrap()), ..Options::default() };
    translate(&snapshot, &options).data_planes.into_values().next().unwrap().config
}

fn objects_on(listeners: &Value, rule: &Value) -> Objects {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"name": "gateway", "namespace": "shop"},
        "spec": {"gatewayClassName": "pingsix", "listeners": listeners},
    }))));
    objects.insert(Object::Service(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"ports": [
            {"name": "http", "port": 80}, {"name": "h2c", "port": 81, "appProtocol": "kubernetes.io/h2c"},
        ]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"name": "cart", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}, {"name": "h2c", "port": 8081}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gateway"}], "rules": [rule]},
    }))));
    objects
}

/// Whether the request reaches the backend.
fn is_served(config: &Config, request: &Request) -> bool {
    let router = Router::build(config, 0..config.routes().count()).unwrap();
    match router.outcome(request) {
        Outcome::Forward { candidates, .. } => {
            candidates.iter().any(|candidate| !format!("{:?}", candidate.upstream).contains("status-404"))
        }
        Outcome::NotFound | Outcome::Static { .. } | Outcome::Preflight { .. } | Outcome::Redirect { .. } => {
            false
        }
    }
}

fn get(target: &str) -> Request {
    Request::get("a.example.com", target)
}

#[test]
fn repeated_header_only_the_first_value_is_compared() {
    let config = config(&json!({"headers": [{"name": "X-Version", "value": "2"}]}));
    assert!(is_served(&config, &get("/").header("x-version", "2")));
    assert!(is_served(&config, &get("/").header("x-version", "2").header("x-version", "1")));
    assert!(!is_served(&config, &get("/").header("x-version", "1").header("x-version", "2")));
}

#[test]
fn empty_value_is_taken_for_none() {
    for kind in ["headers", "queryParams"] {
        let pattern = json!({"name": "q", "type": "RegularExpression", "value": ".*"});
        let config = config(&json!({kind: [pattern]}));
        let with = |value: &str| match kind {
            "headers" => get("/").header("q", value),
            _ => get(&format!("/?q={value}")),
        };
        let [refused, passed, none] =
            [with("1"), with(""), get("/")].map(|request| outcome(&config, &request));
        assert!(refused.contains("status-500"), "{kind}: {refused}");
        assert_eq!((&passed, passed.contains("404")), (&none, true), "{kind}");
    }
}

#[test]
fn query_value_is_compared_as_it_arrived() {
    let config = config(&json!({"queryParams": [{"name": "q", "value": "a b"}]}));
    assert!(is_served(&config, &get("/?q=a%20b")));
    assert!(is_served(&config, &get("/?q=a+b")));
    // Decodes to the same value, but is another text.
    assert!(!is_served(&config, &get("/?q=%61%20b")));
}

#[test]
fn absolute_form_target_is_not_found() {
    let config = config(&json!({}));
    assert!(is_served(&config, &get("/")));
    // PingSIX takes the whole target of HTTP/1.1 for the path.
    assert!(!is_served(&config, &get("http://a.example.com/")));
}

#[test]
fn host_with_a_trailing_dot_is_another_host() {
    let config = config(&json!({}));
    assert!(is_served(&config, &Request::get("a.example.com", "/")));
    assert!(!is_served(&config, &Request::get("a.example.com.", "/")));
}

/// The configuration for the protected HTTPRoute `admin.example` and an open one for every host, of one Service.
fn protected_beside_every_host() -> Config {
    let backends = json!([{"name": "cart", "port": 80}]);
    let listener = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    let mut objects = objects_on(&listener, &json!({"backendRefs": backends}));
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": "admin", "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gateway"}], "hostnames": ["admin.example"], "rules": [{"backendRefs": backends}]},
    }))));
    objects.insert(Object::SecurityPolicy(object(json!({
        "metadata": {"name": "networks", "namespace": "shop"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "admin"}],
            "authorization": {"allow": ["10.0.0.0/8"]},
        },
    }))));
    translated(&objects)
}

/// The host patterns of the Route that takes a request; none is every host.
fn hosts_of_route(config: &Config, request: &Request) -> Vec<String> {
    let router = Router::build(config, 0..config.routes().count()).unwrap();
    let Outcome::Forward { route, .. } = router.outcome(request) else { panic!("{request:?}") };
    let (_, route) = config.routes().find(|(id, _)| *id == route).unwrap();
    route.host_patterns().to_vec()
}

#[test]
fn odd_spellings_of_a_protected_host_reach_rules_for_every_host() {
    let config = protected_beside_every_host();
    let hosts = |host: &str| hosts_of_route(&config, &Request::get(host, "/"));
    for host in
        ["admin.example", "ADMIN.EXAMPLE.", "admin.example.:80", "[admin.example]", "[admin.example]:80"]
    {
        assert_eq!(hosts(host), ["admin.example", "admin.example.", "[admin.example]"], "{host}");
    }
    for host in ["admin.example:80:80", "admin.example..", "x@admin.example", "admin.example,b"] {
        assert_eq!(hosts(host), [""; 0], "{host}");
    }
}

#[test]
fn second_host_reaches_the_backend() {
    let config = protected_beside_every_host();
    // A Route for every host has no host to put in the place of the client's.
    let every =
        config.routes().map(|(_, route)| route).find(|route| route.host_patterns().is_empty()).unwrap();
    assert!(every.plugins.get::<ProxyRewrite>().is_none());
    assert!(
        config
            .upstreams()
            .all(|(_, upstream)| upstream.pass_host == PassHost::Pass || upstream.upstream_host.is_some())
    );
}

#[test]
fn path_is_compared_without_normalisation() {
    let config = config(&json!({"path": {"type": "PathPrefix", "value": "/cart"}}));
    assert!(is_served(&config, &get("/cart/1")));
    assert!(!is_served(&config, &get("//cart/1")));
    assert!(!is_served(&config, &get("/%63art/1")));
    assert!(!is_served(&config, &get("/x/../cart/1")));
}

#[test]
fn ingress_wildcard_stands_for_several_labels() {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    objects.insert(Object::Service(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"name": "cart", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
    let backend = json!({"service": {"name": "cart", "port": {"number": 80}}});
    objects.insert(Object::Ingress(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"ingressClassName": "pingsix", "rules": [
            {"host": "*.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}},
        ]},
    }))));
    let snapshot = objects.ingress_snapshot("pingsix").unwrap();
    let translation = translate_ingress(&snapshot, &Options::default());
    let config = translation.data_planes.into_values().next().unwrap().config;
    assert!(is_served(&config, &Request::get("a.example.com", "/")));
    assert!(!is_served(&config, &Request::get("example.com", "/")));
    // `networking.k8s.io/v1` has a wildcard stand for one label.
    assert!(is_served(&config, &Request::get("a.b.example.com", "/")));
}

/// The outcome of a request, as text.
fn outcome(config: &Config, request: &Request) -> String {
    let router = Router::build(config, 0..config.routes().count()).unwrap();
    match router.outcome(request) {
        Outcome::Redirect { location, .. } => location,
        Outcome::Preflight { allowed, .. } => format!("preflight, allowed: {allowed}"),
        Outcome::Forward { candidates, .. } => format!("{:?}", candidates[0].upstream),
        Outcome::NotFound => "404".to_owned(),
        Outcome::Static { status, .. } => status.to_string(),
    }
}

fn only_route(config: &Config) -> &Route {
    config.routes().next().unwrap().1
}

fn redirect_of_the_path() -> Config {
    let path = json!({"type": "ReplaceFullPath", "replaceFullPath": "/new"});
    config_of(&json!({"filters": [{"type": "RequestRedirect", "requestRedirect": {"path": path}}]}))
}

fn preflight(config: &Config) -> String {
    let request = get("/").method("OPTIONS").header("Origin", "https://shop.example");
    outcome(config, &request.header("Access-Control-Request-Method", "PUT"))
}

fn cors(cors: &Value, matched: &Value) -> Config {
    config_of(&json!({
        "matches": [matched],
        "filters": [{"type": "CORS", "cors": cors}],
        "backendRefs": [{"name": "cart", "port": 80}],
    }))
}

#[test]
fn statuses_of_the_responder_get_the_response_headers_of_the_list() {
    let modifier = json!({"set": [{"name": "X-Served-By", "value": "shop"}]});
    let config = config_of(&json!({
        "matches": [{"headers": [{"name": "X-Version", "value": "2"}]}],
        "filters": [{"type": "ResponseHeaderModifier", "responseHeaderModifier": modifier}],
        "backendRefs": [{"name": "cart", "port": 80}],
    }));
    // 404 is a target of the same Route, and the plugin is the Route's.
    assert!(outcome(&config, &get("/")).contains("status-404"));
    let plugins = &only_route(&config).plugins;
    assert!(plugins.get::<TrafficSplit>().is_some() && plugins.get::<ResponseRewrite>().is_some());
}

#[test]
fn redirect_of_the_path_keeps_the_origin_the_client_says() {
    let config = redirect_of_the_path();
    // Over HTTP/1.1 the client resolves it against its request.
    assert_eq!(outcome(&config, &get("/old?a=b")), "/new?a=b");
    // The listener has port 80.
    let request = Request::get("a.example.com:8443", "/old?a=b").over_http2();
    assert_eq!(outcome(&config, &request), "http://a.example.com:8443/new?a=b");
    assert_eq!(outcome(&config, &request.over_tls()), "https://a.example.com:8443/new?a=b");
}

#[test]
fn empty_query_is_lost_with_the_path() {
    assert_eq!(outcome(&redirect_of_the_path(), &get("/old?")), "/new");
}

#[test]
fn redirect_to_https_has_no_backend_behind_it() {
    let listener = |name: &str| json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": name});
    let filter = json!([{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]);
    let config = config_on(&json!([listener("a.example.com")]), &json!({"filters": filter}));
    assert_eq!(outcome(&config, &get("/p?")), "https://a.example.com/p?");
    // The same holds for a request that claims to have come over TLS.
    assert_eq!(outcome(&config, &get("/p").over_tls()), "Named(\"nowhere\")");
    let nodes = &config.upstream("nowhere").unwrap().nodes;
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["127.0.0.1:9"]);
    let redirect = only_route(&config).plugins.get::<Redirect>().unwrap().unwrap();
    assert!(redirect.http_to_https);
}

#[test]
fn cors_methods_with_credentials_are_a_list() {
    let any = json!({"allowOrigins": ["*"], "allowMethods": ["*"], "allowCredentials": true});
    let config = cors(&any, &json!({}));
    let plugin = only_route(&config).plugins.get::<Cors>().unwrap().unwrap();
    // PingSIX's value for the methods it knows.
    assert_eq!(plugin.allow_methods, "**");
    assert_eq!(preflight(&config), "preflight, allowed: true");
    let purge = get("/").method("OPTIONS").header("Origin", "https://shop.example");
    let purge = purge.header("Access-Control-Request-Method", "PURGE");
    assert_eq!(outcome(&config, &purge), "preflight, allowed: false");
}

#[test]
fn preflight_is_answered_whatever_the_conditions() {
    let any = json!({"allowOrigins": ["*"], "allowMethods": ["*"]});
    let config = cors(&any, &json!({"headers": [{"name": "X-Version", "value": "2"}]}));
    assert!(outcome(&config, &get("/")).contains("status-404"));
    assert_eq!(preflight(&config), "preflight, allowed: true");
}

#[test]
fn preflight_finds_the_rule_for_the_method_it_asks_for() {
    let any = json!({"allowOrigins": ["*"], "allowMethods": ["*"]});
    let config = cors(&any, &json!({"method": "PUT"}));
    assert_eq!(outcome(&config, &get("/").method("OPTIONS")), "404");
    assert_eq!(preflight(&config), "preflight, allowed: true");
}

#[test]
fn redirect_that_keeps_the_host_needs_one() {
    let filter = json!([{"type": "RequestRedirect", "requestRedirect": {"port": 8080}}]);
    let config =
        config_on(&json!([{"name": "http", "port": 80, "protocol": "HTTP"}]), &json!({"filters": filter}));
    assert_eq!(outcome(&config, &get("/")), outcome(&config, &Request::get("*", "/")));
    let rewrite = only_route(&config).plugins.get::<ProxyRewrite>().unwrap().unwrap();
    let told = rewrite.headers.unwrap().set.into_iter().map(|header| (header.name, header.value));
    let told: HeaderMap =
        told.map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect();
    let instruction = RedirectInstruction::from_headers(&told).unwrap().unwrap();
    let target = PathAndQuery::from_static("/");
    assert_eq!(instruction.location("a.example.com", &target).unwrap(), "http://a.example.com:8080/");
    assert_eq!(instruction.location("*", &target), Err(LocationError::Host));
    assert_eq!(instruction.location("", &target), Err(LocationError::Host));
}

#[test]
fn h2c_backend_gets_the_host_of_the_request() {
    let config = config_of(&json!({"backendRefs": [{"name": "cart", "port": 81}]}));
    let [upstream] = config.upstreams().map(|(_, upstream)| upstream).collect::<Vec<_>>()[..] else {
        panic!("one backend has one upstream");
    };
    // A missing host has no replacement.
    assert_eq!((upstream.scheme, upstream.pass_host), (Scheme::Grpc, PassHost::Pass));
    assert_eq!(upstream.upstream_host, None);
}

#[test]
fn timeout_is_an_idle_timer_of_whole_seconds() {
    let backends = json!([{"name": "cart", "port": 80}]);
    let config = config_of(&json!({"timeouts": {"request": "1200ms"}, "backendRefs": backends}));
    let timeouts: Vec<_> = config.upstreams().filter_map(|(_, upstream)| upstream.timeout.as_ref()).collect();
    // PingSIX restarts `read` with every read, and has no other timer.
    let [timeout] = timeouts.as_slice() else { panic!("{timeouts:?}") };
    assert_eq!((timeout.connect, timeout.send, timeout.read), (2, 2, 2));
}
