//! The model on tables whose behaviour was observed on PingSIX itself.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::pingsix::plugin::{Abort, FaultInjection, Redirect};
use crate::pingsix::{Plugins, Upstream};

fn config(value: &serde_json::Value) -> Config {
    Config::from_static(value).expect("the test's table decodes")
}

fn upstream() -> serde_json::Value {
    json!([{"id": "u", "nodes": {"127.0.0.1:9": 1}}, {"id": "v", "nodes": {"127.0.0.1:8": 1}}])
}

fn table(routes: &serde_json::Value) -> Config {
    let mut routes = routes.clone();
    for route in routes.as_array_mut().expect("a list of routes") {
        let fields = route.as_object_mut().expect("an object");
        fields.entry("upstream_id").or_insert_with(|| "u".into());
    }
    config(&json!({"upstreams": upstream(), "routes": routes}))
}

/// All orders of `n` indexes.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    permutations(n - 1)
        .into_iter()
        .flat_map(|order| {
            (0..n).map(move |at| {
                let mut order = order.clone();
                order.insert(at, n - 1);
                order
            })
        })
        .collect()
}

/// The outcomes of a request over all insertion orders: route ids, `404`, or `refused`.
fn answers(config: &Config, host: Option<&str>, path: &str, method: &str) -> BTreeSet<String> {
    let table = RouteTable::new(config);
    permutations(table.len())
        .into_iter()
        .map(|order| match table.insert_in(order) {
            Ok(router) => router.lookup(host, path, method).map_or("404".to_owned(), |key| key.id.clone()),
            Err(_) => "refused".to_owned(),
        })
        .collect()
}

fn set(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

#[test]
fn a_broad_path_swallows_a_narrow_one_when_it_comes_first() {
    let open = table(&json!([{"id": "root", "uri": "/{*p}"}, {"id": "a", "uri": "/a/{*p}"}]));
    assert_eq!(answers(&open, None, "/a/x", "GET"), set(&["a", "root"]));
    assert_eq!(answers(&open, None, "/q", "GET"), set(&["root"]));

    let prioritised =
        table(&json!([{"id": "root", "uri": "/{*p}"}, {"id": "a", "uri": "/a/{*p}", "priority": 9}]));
    assert_eq!(answers(&prioritised, None, "/a/x", "GET"), set(&["a"]));
    assert_eq!(answers(&prioritised, None, "/q", "GET"), set(&["a", "root"]));
}

#[test]
fn a_closed_table_answers_the_same_in_every_order() {
    let closed = table(&json!([
        {"id": "root", "uris": ["/a", "/a/", "/a/{*p}", "/", "/{*p}"]},
        {"id": "a", "uris": ["/a", "/a/", "/a/{*p}"], "priority": 9},
        {"id": "post", "uris": ["/a", "/a/", "/a/{*p}"], "methods": ["POST"], "priority": 10},
    ]));
    for (path, method, expected) in [
        ("/a/x", "GET", "a"),
        ("/a", "GET", "a"),
        ("/a/", "POST", "post"),
        ("/ab", "GET", "root"),
        ("/", "GET", "root"),
        ("/q", "POST", "root"),
    ] {
        assert_eq!(answers(&closed, None, path, method), set(&[expected]), "{method} {path}");
    }
}

#[test]
fn a_wildcard_host_swallows_an_exact_one_unless_it_lists_it() {
    let open = table(&json!([
        {"id": "exact", "host": "a.t", "uri": "/{*p}"},
        {"id": "wild", "host": "*.t", "uri": "/{*p}"},
    ]));
    assert_eq!(answers(&open, Some("a.t"), "/x", "GET"), set(&["exact", "wild"]));

    let closed = table(&json!([
        {"id": "exact", "host": "a.t", "uri": "/{*p}", "priority": 2},
        {"id": "wild", "hosts": ["a.t", "*.t"], "uri": "/{*p}", "priority": 1},
    ]));
    assert_eq!(answers(&closed, Some("a.t"), "/x", "GET"), set(&["exact"]));
    assert_eq!(answers(&closed, Some("b.t"), "/x", "GET"), set(&["wild"]));
}

#[test]
fn host_closure_without_the_cross_product_of_paths_is_not_enough() {
    let half = table(&json!([
        {"id": "exact", "host": "a.t", "uri": "/x", "priority": 2},
        {"id": "wild", "hosts": ["a.t", "*.t"], "uri": "/{*p}", "priority": 1},
    ]));
    assert_eq!(answers(&half, Some("a.t"), "/y", "GET"), set(&["exact", "wild"]));
}

#[test]
fn equal_priorities_are_decided_by_the_order() {
    let tied = table(&json!([{"id": "one", "uri": "/"}, {"id": "two", "uri": "/"}]));
    assert_eq!(answers(&tied, None, "/", "GET"), set(&["one", "two"]));
}

#[test]
fn a_parameter_beside_a_catch_all_is_refused_in_some_orders() {
    let mixed = table(&json!([{"id": "p", "uri": "/{a}/b"}, {"id": "c", "uri": "/{*p}"}]));
    assert!(answers(&mixed, None, "/x/b", "GET").contains("refused"));
    let listed_first = table(&json!([{"id": "r", "uris": ["/{a}/b", "/{*p}"]}]));
    assert_eq!(answers(&listed_first, None, "/", "GET"), set(&["refused"]));
}

#[test]
fn escaped_braces_conflict_with_themselves() {
    let twice = table(&json!([{"id": "one", "uri": "/{{x}}"}, {"id": "two", "uri": "/{{x}}"}]));
    assert_eq!(answers(&twice, None, "/{x}", "GET"), set(&["refused"]));
    let once = table(&json!([{"id": "one", "uri": "/{{x}}"}]));
    assert_eq!(answers(&once, None, "/{x}", "GET"), set(&["one"]));
    let host = table(&json!([{"id": "one", "host": "{{x}}", "uri": "/"}]));
    let error = Router::build(&host, [0]).expect_err("PingSIX panics on it");
    assert_eq!(error.cause, InsertionCause::Unfindable);
}

#[test]
fn patterns_wrong_by_themselves_are_named() {
    for (pattern, expected) in [
        ("/x/{a", PatternError::Name),
        ("/x/a}", PatternError::Name),
        ("/{}", PatternError::Name),
        ("/{*}", PatternError::Name),
        ("/{*a}/b", PatternError::CatchAllInside),
        ("/{a}.json", PatternError::Suffix),
        ("/{a/b}", PatternError::Name),
    ] {
        let one = table(&json!([{"id": "r", "uri": pattern}]));
        let error = Router::build(&one, [0]).expect_err(pattern);
        assert_eq!(error.cause, InsertionCause::Pattern(expected), "{pattern}");
        assert_eq!(error.pattern, pattern);
    }
    let many = |n: usize| table(&json!([{"id": "r", "uri": "/{a}".repeat(n)}]));
    assert!(Router::build(&many(25), [0]).is_ok());
    let error = Router::build(&many(26), [0]).expect_err("matchit panics on it");
    assert_eq!(error.cause, InsertionCause::Pattern(PatternError::TooManyParams));
}

#[test]
fn a_known_host_falls_back_once_to_routes_without_hosts() {
    let closed = table(&json!([
        {"id": "exact", "host": "A.t", "uri": "/x", "methods": ["POST"]},
        {"id": "any", "uris": ["/x", "/z"]},
    ]));
    assert_eq!(answers(&closed, Some("A.T"), "/x", "POST"), set(&["exact"]));
    assert_eq!(answers(&closed, Some("a.t"), "/x", "GET"), set(&["any"]));
    assert_eq!(answers(&closed, Some("a.t"), "/z", "GET"), set(&["any"]));
    assert_eq!(answers(&closed, Some("a.t."), "/x", "POST"), set(&["any"]));
    assert_eq!(answers(&closed, None, "/q", "GET"), set(&["404"]));
}

#[test]
fn an_exact_host_does_not_fall_back_to_a_wildcard() {
    let hosts = table(&json!([
        {"id": "exact", "host": "a.t", "uri": "/x"},
        {"id": "wild", "hosts": ["b.t", "*.t"], "uri": "/y"},
    ]));
    let table = RouteTable::new(&hosts);
    let router = table.insert_in([0, 1]).expect("inserts");
    assert_eq!(router.lookup(Some("a.t"), "/y", "GET"), None);
    assert_eq!(router.lookup(Some("x.y.t"), "/y", "GET").map(|key| key.id.as_str()), Some("wild"));
    assert_eq!(router.lookup(Some("t"), "/y", "GET"), None);
}

#[test]
fn a_route_without_hosts_takes_those_of_its_service() {
    let served = config(&json!({
        "upstreams": upstream(),
        "services": [{"id": "s", "upstream_id": "v", "hosts": ["s.t"]}],
        "routes": [{"id": "r", "uri": "/", "service_id": "s"}],
    }));
    let router = Router::build(&served, [0]).expect("inserts");
    assert_eq!(router.lookup(None, "/", "GET"), None);
    let Outcome::Forward { candidates, .. } = router.outcome(&Request::get("s.t:80", "/")) else {
        panic!("a route serves it");
    };
    assert_eq!(candidates, [Candidate { weight: 1, upstream: UpstreamRef::Named("v".to_owned()) }]);
}

#[test]
fn the_routing_host_loses_its_port() {
    for (host, expected) in
        [("a.t:80", "a.t"), ("a.t", "a.t"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:b:80", "a:b")]
    {
        assert_eq!(Request::get(host, "/").routing_host(), Some(expected));
    }
    assert_eq!(Request::get("a.t:80", "/").over_http2().routing_host(), Some("a.t"));
    assert_eq!(Request { host: None, ..Request::get("", "/") }.routing_host(), None);
}

fn split_router(vars: &serde_json::Value) -> Config {
    table(&json!([{"id": "r", "uri": "/", "plugins": {"traffic-split": {"rules": [
        {"vars": vars, "weighted_upstreams": [{"upstream_id": "v", "weight": 3}, {"weight": 1}, {"upstream_id": "u", "weight": 0}]},
    ]}}}]))
}

fn chosen(vars: &serde_json::Value, request: &Request) -> bool {
    let config = split_router(vars);
    let router = Router::build(&config, [0]).expect("inserts");
    let Outcome::Forward { candidates, .. } = router.outcome(request) else { panic!("a route serves it") };
    let named = |id: &str, weight| Candidate { weight, upstream: UpstreamRef::Named(id.to_owned()) };
    if candidates == [named("u", 1)] {
        return false;
    }
    assert_eq!(candidates, [named("v", 3), named("u", 1)]);
    true
}

#[test]
fn split_conditions_read_requests_as_pingsix_does() {
    let plain = || Request::get("h.t:81", "/");
    for (vars, request, expected) in [
        (json!([]), plain(), true),
        (json!([["http_X-Foo", "==", "a"]]), plain().header("x-foo", "a").header("X-Foo", "b"), true),
        (json!([["http_X-Foo", "==", "b"]]), plain().header("x-foo", "a").header("X-Foo", "b"), false),
        (json!([["http_x_foo", "==", "a"]]), plain().header("X-Foo", "a"), false),
        (json!([["http_X", "==", ""]]), plain(), true),
        (json!([["http_X", "!=", "v"]]), plain(), true),
        (json!([["http_X", "!=", ""]]), plain().header("X", "v"), true),
        (json!([["http_X", "==", ""]]), plain().header("X", "é"), true),
        (json!([["http_Host", "==", "h.t:81"]]), plain(), true),
        (json!([["http_Host", "==", ""]]), plain().over_http2(), true),
        (json!([["arg_a", "==", "1"]]), Request::get("h.t", "/?b=2&a=1&a=3"), true),
        (json!([["arg_a", "==", "a b"]]), Request::get("h.t", "/?a=a%20b"), false),
        (json!([["arg_a", "==", "a%20b"]]), Request::get("h.t", "/?a=a%20b"), true),
        (json!([["arg_A", "==", "1"]]), Request::get("h.t", "/?a=1"), false),
        (json!([["arg_a", "==", ""]]), Request::get("h.t", "/?a"), true),
        (json!([["uri", "==", "/"]]), Request::get("h.t", "/?a"), true),
        (json!([["request_uri", "==", "/?a"]]), Request::get("h.t", "/?a"), true),
        (json!([["query_string", "==", "a"]]), Request::get("h.t", "/?a"), true),
        (json!([["host", "==", ""]]), plain(), true),
        (json!([["uri", "~~", "/"]]), plain(), false),
        (json!([["uri", "=="]]), plain(), true),
        (json!([["uri", "==", "/"], ["host", "==", "x"]]), plain(), false),
    ] {
        assert_eq!(chosen(&vars, &request), expected, "{vars} {request:?}");
    }
}

#[test]
fn a_pass_through_target_cancels_what_a_global_rule_has_chosen() {
    let both = config(&json!({
        "upstreams": upstream(),
        "global_rules": [{"id": "g", "plugins": {"traffic-split": {"rules": [
            {"weighted_upstreams": [{"upstream_id": "v", "weight": 1}]}]}}}],
        "routes": [
            {"id": "own", "uri": "/own", "upstream_id": "u", "plugins": {"traffic-split": {"rules": [
                {"weighted_upstreams": [{"weight": 1}]}]}}},
            {"id": "plain", "uri": "/plain", "upstream_id": "u"},
        ],
    }));
    let router = Router::build(&both, 0..2).expect("inserts");
    let reached = |path: &str| {
        let outcome = router.outcome(&Request::get("h", path));
        let Outcome::Forward { candidates, .. } = outcome else { panic!("{outcome:?}") };
        candidates
    };
    assert_eq!(reached("/own"), [Candidate { weight: 1, upstream: UpstreamRef::Named("u".into()) }]);
    assert_eq!(reached("/plain"), [Candidate { weight: 1, upstream: UpstreamRef::Named("v".into()) }]);
}

fn plugged(plugins: Plugins) -> Config {
    let mut config = Config::new();
    config.insert("u", Upstream { nodes: [("127.0.0.1:9".into(), 1)].into(), ..Upstream::default() });
    config.insert(
        "r",
        Route {
            uris: vec!["/".into(), "/{*p}".into()],
            upstream_id: Some("u".into()),
            plugins,
            ..Route::default()
        },
    );
    config
}

fn outcome_of(plugins: Plugins, request: &Request) -> String {
    let config = plugged(plugins);
    let router = Router::build(&config, [0]).expect("inserts");
    match router.outcome(request) {
        Outcome::Static { status, headers, body, .. } => format!("{status} {headers:?} {body}"),
        Outcome::Redirect { status, location, .. } => format!("{status} {location}"),
        Outcome::Preflight { allowed, .. } => format!("preflight {allowed}"),
        Outcome::Forward { .. } => "forward".to_owned(),
        Outcome::NotFound => "404".to_owned(),
    }
}

#[test]
fn fault_injection_answers_before_everything_else() {
    let abort = Abort { http_status: 418, body: Some("tea".into()), ..Abort::default() };
    let plugins = |abort: Abort| {
        Plugins::new()
            .with(&FaultInjection { abort: Some(abort), delay: None })
            .with(&Redirect { uri: Some("/r".into()), ..Redirect::default() })
    };
    assert_eq!(outcome_of(plugins(abort.clone()), &Request::get("h", "/")), "418 [] tea");
    let never = Abort { percentage: Some(0), ..abort.clone() };
    assert_eq!(outcome_of(plugins(never), &Request::get("h", "/")), "302 /r");
    let odd = Abort { http_status: 1000, ..abort };
    assert_eq!(outcome_of(plugins(odd), &Request::get("h", "/")), "500 [] tea");
}

#[test]
fn redirects_build_their_location_as_pingsix_does() {
    let redirect = |config: Redirect| Plugins::new().with(&config);
    let regex = |pattern: &str, template: &str| Redirect {
        regex_uri: vec![pattern.into(), template.into()],
        ..Redirect::default()
    };
    let uri = |uri: &str| Redirect { uri: Some(uri.into()), ..Redirect::default() };
    let secure = Redirect {
        http_to_https: true,
        redirect_host: Some("s.t:8443".into()),
        ret_code: 301,
        ..Redirect::default()
    };
    let h1 = || Request::get("h.t", "/a/b?q=1");
    let h2 = || h1().over_http2().over_tls();
    for (config, request, expected) in [
        (secure.clone(), h1(), "301 https://s.t:8443/a/b?q=1"),
        (secure.clone(), h1().over_http2(), "301 https://s.t:8443/a/b?q=1"),
        (secure, h1().over_tls(), "forward"),
        (uri("/new"), h1(), "302 /new"),
        (uri("/new"), h2(), "302 https://h.t/new"),
        (uri("https://e/x"), h1(), "302 https://e/x"),
        (uri("https://e/x"), h2(), "302 https://h.thttps://e/x"),
        (Redirect { append_query_string: true, ..uri("/new") }, h1(), "302 /new?q=1"),
        (Redirect { append_query_string: true, ..uri("/new?x=1") }, h1(), "302 /new?x=1&q=1"),
        (Redirect { append_query_string: true, ..uri("/new?q=1") }, h1(), "302 /new?q=1"),
        (uri("/new?x=1"), h1(), "302 /new?x=1"),
        (uri("/with space"), h1(), "forward"),
        (regex("^/a/(.*)$", "https://e/$1/$0/$2"), h1(), "302 https://e/b/$0/"),
        (regex("^/nothing$", "/x"), h1(), "302 /a/b"),
        (Redirect { ret_code: 1000, ..uri("/new") }, h1(), "302 /new"),
        (Redirect::default(), h1(), "forward"),
    ] {
        assert_eq!(outcome_of(redirect(config.clone()), &request), expected, "{config:?} {request:?}");
    }
}

#[test]
fn a_preflight_finds_the_route_of_the_method_it_asks_for() {
    let cors = |methods: serde_json::Value| {
        table(
            &json!([{"id": "r", "uri": "/", "methods": methods, "plugins": {"cors": {"allow_methods": "GET"}}}]),
        )
    };
    let preflight = |method: &str| {
        Request::get("h", "/")
            .method("OPTIONS")
            .header("Origin", "http://o")
            .header("Access-Control-Request-Method", method)
    };
    let only_get = cors(json!(["GET"]));
    let router = Router::build(&only_get, [0]).expect("inserts");
    assert!(matches!(router.outcome(&preflight("GET")), Outcome::Preflight { allowed: true, .. }));
    assert_eq!(router.outcome(&preflight("POST")), Outcome::NotFound);
    let any = cors(json!([]));
    let router = Router::build(&any, [0]).expect("inserts");
    assert!(matches!(router.outcome(&preflight("POST")), Outcome::Preflight { allowed: false, .. }));
    let plain = Request::get("h", "/").method("OPTIONS");
    assert!(matches!(router.outcome(&plain), Outcome::Forward { .. }));
}

#[test]
fn any_text_can_be_inserted_without_a_panic() {
    use proptest::prelude::*;
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("{{"),
        Just("}}"),
        Just("*"),
        Just("/"),
        Just("a"),
        Just("é"),
        Just("è"),
        Just("{a}"),
        Just("{*p}"),
        Just("."),
        Just("/{"),
        Just("ab"),
    ];
    let text = || prop::collection::vec(piece.clone(), 0..8).prop_map(|pieces| pieces.concat());
    let route = (prop::collection::vec(text(), 0..3), prop::collection::vec(text(), 1..4));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(400));
    runner
        .run(&(prop::collection::vec(route, 1..6), text(), text()), |(routes, host, path)| {
            let mut config = Config::new();
            for (index, (hosts, uris)) in routes.into_iter().enumerate() {
                config.insert(index.to_string(), Route { uris, hosts, ..Route::default() });
            }
            let table = RouteTable::new(&config);
            // Inserting until the first failure leaves a router that must still answer.
            for first in 0..table.len() {
                if let Ok(router) = table.insert_in((first..table.len()).chain(0..first)) {
                    let _ = router.lookup(Some(&host), &path, "GET");
                }
            }
            Ok(())
        })
        .expect("no panic");
}

#[test]
fn a_backend_gets_the_rewritten_path_with_the_query() {
    let sent = |rewrite: serde_json::Value, upstream: serde_json::Value, target: &str| {
        let config = table(&json!([{"id": "r", "uri": "/{*p}", "plugins": {"proxy-rewrite": rewrite}}]));
        let router = Router::build(&config, [0]).expect("inserts");
        let request = Request::get("h:8080", target);
        let Outcome::Forward { route, .. } = router.outcome(&request) else { panic!("no backend") };
        let upstream: crate::pingsix::Upstream = serde_json::from_value(upstream).expect("decodes");
        let sent = router.sent(route, &upstream, &request).expect("a route");
        let SentRequest { method, target, host, .. } = sent;
        format!("{method} {target} {}", host.unwrap_or_else(|| "node".to_owned()))
    };
    let pass = json!({"nodes": {"10.0.0.1:80": 1}});
    assert_eq!(sent(json!({}), pass.clone(), "/a?b=1"), "GET /a?b=1 h:8080");
    assert_eq!(sent(json!({"uri": "/n", "host": "x"}), pass.clone(), "/a?b=1"), "GET /n?b=1 x");
    let regex = json!({"regex_uri": ["^/a/(.*)$", "/b/$1"], "method": "PUT"});
    assert_eq!(sent(regex.clone(), pass.clone(), "/a/c?"), "PUT /b/c h:8080");
    assert_eq!(sent(regex, pass, "/c"), "PUT /c h:8080");
    let own = json!({"nodes": {"10.0.0.1:80": 1}, "pass_host": "rewrite", "upstream_host": "u"});
    assert_eq!(sent(json!({"host": "x"}), own, "/a"), "GET /a u");
    let node = json!({"nodes": {"10.0.0.1:80": 1}, "pass_host": "node"});
    assert_eq!(sent(json!({}), node, "/a"), "GET /a node");
}
