mod steps;

use std::collections::BTreeMap;

use pingsix_sink::{DocumentSet, plan};
use pingsix_translate::Kind;
use pingsix_translate::pingsix::plugin::Redirect;
use pingsix_translate::pingsix::{Outcome, Plugins, Request, ResourceKind, Route, Router, Ssl, Upstream};
use pingsix_translate::status::Reason;
use serde_json::json;

use super::*;
use crate::fixture::{options, plane, rule};
use steps::apply;

fn two_routes() -> (DataPlaneKey, DataPlane) {
    plane(&[
        ("shop", json!({ "hostnames": ["shop.example.com"], "rules": [rule("/cart", "a"), rule("/", "b")] })),
        ("blog", json!({ "hostnames": ["blog.example.com"], "rules": [rule("/", "c")] })),
    ])
}

/// The key of the Route that answers a request.
fn route_of(config: &Config, host: &str, path: &str) -> DocumentKey {
    let router = Router::build(config, 0..config.routes().count()).unwrap();
    router.lookup(Some(host), path, "GET").unwrap().clone()
}

fn status_of(config: &Config, host: &str, path: &str) -> Option<u16> {
    let router = Router::build(config, 0..config.routes().count()).unwrap();
    match router.outcome(&Request::get(host, path)) {
        Outcome::Static { status, .. } => Some(status),
        Outcome::NotFound => Some(404),
        Outcome::Forward { .. } | Outcome::Redirect { .. } | Outcome::Preflight { .. } => None,
    }
}

fn damage(plane: &mut DataPlane, key: &DocumentKey, damage: impl FnOnce(&mut Route)) {
    let mut route = plane.config.route(&key.id).unwrap().clone();
    damage(&mut route);
    plane.config.insert(key.id.clone(), route);
}

#[test]
fn documents_of_translation_pass_unchanged() {
    let (key, plane) = two_routes();
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.config, plane.config);
    assert!(bridged.quarantined.is_empty() && bridged.problems.is_empty(), "{bridged:?}");
    assert_eq!(bridged.desired.scope().as_str(), "/pingsix/infra/web");
    let documents = bridged.desired.documents();
    assert_eq!(documents.len(), plane.config.len());
    for document in documents {
        let (kind, id) = document.key.as_str().split_once('/').unwrap();
        let key = DocumentKey::new(ResourceKind::from_segment(kind).unwrap(), id);
        assert_eq!(document.value, plane.config.get(&key).unwrap().to_json());
    }
    let owners: std::collections::BTreeSet<String> =
        documents.iter().map(|document| document.owner.to_string()).collect();
    let expected = ["Gateway infra/web", "HTTPRoute infra/blog", "HTTPRoute infra/shop", "Service infra/a"];
    assert!(expected.iter().all(|owner| owners.contains(*owner)), "{owners:?}");
}

#[test]
fn a_path_that_looks_like_a_wildcard_is_no_problem() {
    let (key, plane) = plane(&[("shop", json!({ "rules": [rule("/cart/*", "a"), rule("/item/:id", "b")] }))]);
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert!(bridged.problems.is_empty(), "{:?}", bridged.problems);
}

#[test]
fn a_route_at_fault_answers_500_and_changes_no_other_route() {
    let (key, mut plane) = two_routes();
    let faulty = route_of(&plane.config, "shop.example.com", "/cart/1");
    damage(&mut plane, &faulty, |route| {
        route.plugins = Plugins::new().with(&Redirect::default()).with(&Redirect::default());
        route.plugins.insert_raw("no-such-plugin", json!({}));
    });
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.quarantined.len(), 1);
    assert_eq!(bridged.quarantined[0].measure, Measure::Closed);
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/cart/1"), Some(500));
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/other"), None);
    assert_eq!(status_of(&bridged.config, "blog.example.com", "/"), None);
    let [problem] = bridged.problems.as_slice() else { panic!("{:?}", bridged.problems) };
    assert_eq!(
        problem.to_string().split(": PingSIX").next(),
        Some("HTTPRoute infra/shop: spec.rules[0].matches[0]")
    );
    assert_eq!(problem.reason, Reason::Quarantined);
    // The check accepts its own result.
    let again = DataPlane { config: bridged.config.clone(), ..plane };
    assert!(bridge(&key, &again, &options()).unwrap().quarantined.is_empty());
}

#[test]
fn a_route_of_calls_at_fault_answers_503_unless_requests_share_it() {
    let (key, mut plane) = two_routes();
    let faulty = route_of(&plane.config, "shop.example.com", "/cart/1");
    damage(&mut plane, &faulty, |route| route.plugins.insert_raw("no-such-plugin", json!({})));
    let calls = Origin::object(Arc::new(ObjectKey::new(Kind::GrpcRoute, "infra", "calls")));
    let Some(Provenance::Rules { decisions, .. }) = plane.provenance.get_mut(&faulty) else {
        panic!("{faulty} has no rules");
    };
    let requests = decisions[0].origin.replace(calls);
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/cart/1"), Some(503));
    assert!(bridged.problems[0].message.contains("answered with 503"), "{:?}", bridged.problems);

    let Some(Provenance::Rules { redirect, .. }) = plane.provenance.get_mut(&faulty) else { unreachable!() };
    *redirect = requests.map(Box::new);
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/cart/1"), Some(500));
    // Both objects get a problem.
    let objects: Vec<String> = bridged.problems.iter().map(|problem| problem.object.to_string()).collect();
    assert_eq!(objects, ["HTTPRoute infra/shop", "GRPCRoute infra/calls"]);
}

#[test]
fn a_document_with_a_reference_to_an_omitted_one_is_closed() {
    let (key, mut plane) = two_routes();
    let upstream =
        plane.config.upstreams().find(|(_, upstream)| upstream.nodes.contains_key("10.0.0.1:8080"));
    let faulty = upstream.unwrap().0.clone();
    plane.config.insert(faulty.id.clone(), Upstream::default());
    let bridged = bridge(&key, &plane, &options()).unwrap();
    let measures: Vec<_> = bridged.quarantined.iter().map(|entry| (entry.key.kind, entry.measure)).collect();
    assert_eq!(
        measures,
        [(ResourceKind::Upstream, Measure::LeftOut), (ResourceKind::Route, Measure::Closed)]
    );
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/cart"), Some(500));
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/"), None);
    let objects: Vec<String> = bridged.problems.iter().map(|problem| problem.object.to_string()).collect();
    assert_eq!(objects, ["HTTPRoute infra/shop", "Service infra/a"]);
}

#[test]
fn a_pattern_that_pingsix_cannot_hold_costs_that_pattern() {
    let (key, mut plane) = two_routes();
    let faulty = route_of(&plane.config, "shop.example.com", "/cart/1");
    damage(&mut plane, &faulty, |route| route.uris.push("/{a".to_owned()));
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.quarantined[0].measure, Measure::Narrowed);
    assert_eq!(status_of(&bridged.config, "shop.example.com", "/cart/1"), Some(500));

    damage(&mut plane, &faulty, |route| route.uris = vec!["/{a".to_owned()]);
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.quarantined[0].measure, Measure::LeftOut);
    assert_eq!(bridged.config.len() + 1, plane.config.len());
}

#[test]
fn a_closed_route_keeps_the_hosts_of_its_service() {
    let mut config = Config::new();
    let upstream = Upstream { nodes: BTreeMap::from([("10.0.0.1:80".to_owned(), 1)]), ..Upstream::default() };
    config.insert("u", upstream);
    config.insert(
        "s",
        pingsix_translate::pingsix::Service {
            hosts: vec!["a.test".to_owned()],
            upstream_id: Some("u".to_owned()),
            ..Default::default()
        },
    );
    let plugins: Plugins = [("no-such-plugin".to_owned(), json!({}))].into_iter().collect();
    let route =
        Route { uri: Some("/".to_owned()), service_id: Some("s".to_owned()), plugins, ..Route::default() };
    config.insert("r", route);
    let (key, _) = two_routes();
    let plane = DataPlane { config, ..DataPlane::default() };
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.config.route("r").unwrap().hosts, ["a.test"]);
    // The document has no origin, so the Gateway gets the problem.
    assert_eq!(bridged.problems[0].object.to_string(), "Gateway infra/web");
}

#[test]
fn no_secret_reaches_a_problem_or_debug() {
    let (key, mut plane) = two_routes();
    let secret = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
    let snis = vec!["a.test".to_owned()];
    plane
        .config
        .insert("s", Ssl { cert: "nonsense".to_owned(), key: secret.to_owned(), snis, ..Ssl::default() });
    let bridged = bridge(&key, &plane, &options()).unwrap();
    assert_eq!(bridged.quarantined[0].measure, Measure::LeftOut);
    let text = format!("{bridged:?} {:?}", bridged.problems);
    assert!(!text.contains("c2VjcmV0"), "{text}");
}

#[test]
fn a_configuration_too_large_to_be_read_is_not_published() {
    let (key, mut plane) = two_routes();
    let (id, upstream) =
        plane.config.upstreams().next().map(|(key, upstream)| (key.id.clone(), upstream.clone())).unwrap();
    plane.config.insert(id, Upstream { name: Some("x".repeat(5 << 20)), ..upstream });
    let error = bridge(&key, &plane, &options()).unwrap_err();
    assert!(matches!(error, BridgeError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("infra/web"), "{error}");
}

#[test]
fn a_global_rule_at_fault_is_not_left_out() {
    let (key, mut plane) = two_routes();
    let plugins: Plugins = [("no-such-plugin".to_owned(), json!({}))].into_iter().collect();
    plane.config.insert("g", pingsix_translate::pingsix::GlobalRule { plugins, ..Default::default() });
    assert!(matches!(bridge(&key, &plane, &options()), Err(BridgeError::Refused { .. })));
}

#[test]
fn a_root_that_is_no_prefix_is_refused() {
    let (key, plane) = two_routes();
    let options = Options { root: "pingsix".to_owned(), ..options() };
    assert!(matches!(bridge(&key, &plane, &options), Err(BridgeError::Key { .. })));
    assert!(withdrawn(&key, &options).is_err());
}

#[test]
fn requests_are_answered_as_before_or_after_while_leaf_paths_are_added() {
    let route =
        |rules: serde_json::Value| [("shop", json!({ "hostnames": ["shop.example.com"], "rules": rules }))];
    let before = plane(&route(json!([rule("/", "a"), rule("/cart", "b")])));
    let after = plane(&route(json!([
        rule("/", "a"),
        rule("/cart", "b"),
        rule("/cart/items", "c"),
        rule("/blog", "d"),
        rule("/cart/gifts/new", "e"),
    ])));
    let [old, new] = [&before, &after].map(|(key, plane)| bridge(key, plane, &options()).unwrap());
    let steps = plan(old.desired.documents(), new.desired.documents());
    let requests = [
        "/",
        "/cart",
        "/cart/x",
        "/cart/items",
        "/cart/items/1",
        "/blog",
        "/blog/x",
        "/cart/gifts",
        "/cart/gifts/new",
        "/z",
    ];
    let settled = [&old, &new]
        .map(|bridged| Router::build(&bridged.config, 0..bridged.config.routes().count()).unwrap());
    for taken in 0..=steps.len() {
        let mut config = old.config.clone();
        apply(&mut config, &steps.as_slice()[..taken]);
        let count = config.routes().count();
        // Every rotation of the order and of its reverse: enough to put each Route before each other one.
        for rotation in 0..count * 2 {
            let mut order: Vec<usize> = (0..count).collect();
            if rotation >= count {
                order.reverse();
            }
            order.rotate_left(rotation % count);
            let partial = Router::build(&config, order).unwrap();
            for path in requests {
                let found = upstreams(&partial, path);
                let allowed = settled.each_ref().map(|router| upstreams(router, path));
                assert!(allowed.contains(&found), "{path} after {taken} steps: {found:?}");
            }
        }
    }
}

fn upstreams(router: &Router<'_>, path: &str) -> Vec<String> {
    match router.outcome(&Request::get("shop.example.com", path)) {
        Outcome::Forward { candidates, .. } => {
            candidates.into_iter().map(|candidate| format!("{:?}", candidate.upstream)).collect()
        }
        other @ (Outcome::NotFound
        | Outcome::Static { .. }
        | Outcome::Redirect { .. }
        | Outcome::Preflight { .. }) => vec![format!("{other:?}")],
    }
}

/// Compares an incremental bridge with a fresh one, and returns whether the documents are shared with the last
/// conversion.
fn bridge_again(
    bridging: &mut Bridge,
    key: &DataPlaneKey,
    plane: &DataPlane,
    before: &mut DocumentSet,
) -> (Bridged, usize) {
    let got = bridging.bridge(key, plane, &options()).unwrap();
    let fresh = bridge(key, plane, &options()).unwrap();
    assert_eq!(got.desired, fresh.desired);
    let rest =
        |bridged: &Bridged| format!("{:?} {:?} {:?}", bridged.config, bridged.quarantined, bridged.problems);
    assert_eq!(rest(&got), rest(&fresh));
    let documents = got.desired.documents();
    let shared = documents.iter().filter(|document| {
        before.get(&document.key).is_some_and(|before| before.value.as_ptr() == document.value.as_ptr())
    });
    let shared = shared.count();
    *before = documents.clone();
    (got, shared)
}

#[test]
fn a_bridge_that_remembers_gives_what_a_fresh_one_does() {
    let (key, first) = two_routes();
    let mut bridging = Bridge::default();
    let mut before = DocumentSet::default();
    let mut check = |plane: &DataPlane| {
        let (bridged, shared) = bridge_again(&mut bridging, &key, plane, &mut before);
        (bridged.quarantined.len(), shared, bridged.config.len())
    };
    let (_, none, all) = check(&first);
    assert_eq!((none, check(&first).1), (0, all), "what is the same is shared");

    // A route changes, then another one gets a violation, which its author mends.
    let mut plane = first.clone();
    let route = route_of(&plane.config, "shop.example.com", "/cart/1");
    damage(&mut plane, &route, |route| route.methods = vec!["GET".to_owned()]);
    assert_eq!(check(&plane), (0, all - 1, all));
    let sound = plane.clone();
    damage(&mut plane, &route, |route| route.plugins.insert_raw("no-such-plugin", json!({})));
    assert_eq!(check(&plane).0, 1);
    assert_eq!(check(&plane).0, 1);
    assert_eq!(check(&sound).0, 0);
    assert_eq!(check(&sound).1, all);

    // An upstream is removed although a route refers to it.
    let mut plane = sound.clone();
    let upstream = plane.config.route(&route.id).unwrap().upstream_id.clone().unwrap();
    let upstream = DocumentKey::new(ResourceKind::Upstream, upstream);
    plane.config.remove(&upstream);
    assert_eq!(check(&plane).0, 1);
    // The upstream is removed with its route, and added before the route.
    check(&sound);
    plane.config.remove(&route);
    plane.provenance.remove(&route);
    assert_eq!(check(&plane), (0, all - 2, all - 2));
    assert_eq!(check(&sound), (0, all - 2, all));
    // Only the provenance of a document changes.
    let mut plane = sound.clone();
    let other = Arc::new(ObjectKey::new(Kind::HttpRoute, "infra", "other"));
    plane.provenance.insert(route.clone(), Provenance::Backend { service: other, port: 1 });
    assert_eq!(check(&plane), (0, all, all));
    // Certificates, and patterns that may conflict.
    for harm in [
        |route: &mut Route| route.uri = Some("/{a}/b".to_owned()),
        |route: &mut Route| route.uri = Some("no-slash".to_owned()),
        |route: &mut Route| route.service_id = Some("missing".to_owned()),
    ] {
        let mut plane = sound.clone();
        damage(&mut plane, &route, |route| {
            route.uris.clear();
            harm(route);
        });
        check(&plane);
        check(&plane);
        check(&sound);
    }
    let mut plane = sound.clone();
    plane.config.insert("broken", Ssl { snis: vec!["a.test".to_owned()], ..Ssl::default() });
    assert_eq!(check(&plane).0, 1);
    check(&sound);
    // Another budget is another data plane.
    let size = pingsix_translate::Size { bytes: usize::MAX, ..sound.size };
    check(&DataPlane { size, ..sound.clone() });
}
