//! Effects of a namespace that exhausts a data plane's budget on the requests of another: they may only become
//! unanswered.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot be set up fails, and one that draws says what it drew"
)]

mod closing;
mod newer;
mod shares;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use pingsix_translate::pingsix::router::UpstreamRef;
use pingsix_translate::pingsix::{DocumentKey, Outcome, Request, ResourceKind, Router};
use pingsix_translate::snapshot::AnyRoute;
use pingsix_translate::status::Reason;
use pingsix_translate::{
    Budget, DataPlane, Object, ObjectName, Objects, Options, Provenance, Translation, TranslationMode,
    Translator, translate, translate_ingress,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A Gateway that every namespace may attach to, a class, and a Service in each of two namespaces.
fn world() -> Objects {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"name": "gateway", "namespace": "infra"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [{
            "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
        }]},
    }))));
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    for (namespace, address) in [("a", "10.0.0.1"), ("b", "10.0.0.2")] {
        objects.insert(Object::Service(object(json!({
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"clusterIP": "10.1.0.1", "ports": [{"port": 80, "protocol": "TCP"}]},
        }))));
        objects.insert(Object::EndpointSlice(object(json!({
            "metadata": {"name": "web-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [{"port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address]}],
        }))));
    }
    objects
}

/// An HTTPRoute of a namespace, created in a year.
fn add_route(
    objects: &mut Objects,
    (namespace, name, year): (&str, &str, u16),
    hostnames: &[String],
    matches: &Value,
) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {
            "name": name, "namespace": namespace, "generation": 1,
            "creationTimestamp": format!("{year}-01-01T00:00:00Z"),
        },
        "spec": {
            "parentRefs": [{"name": "gateway", "namespace": "infra"}], "hostnames": hostnames,
            "rules": [{"matches": matches, "backendRefs": [{"name": "web", "port": 80}]}],
        },
    }))));
}

/// An Ingress of a namespace, created in a year, with a rule per host.
fn add_ingress(
    objects: &mut Objects,
    (namespace, name, year): (&str, &str, u16),
    rules: &[(&str, Vec<String>)],
) {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let rules: Vec<Value> = rules
        .iter()
        .map(|(host, paths)| {
            let paths: Vec<Value> = paths
                .iter()
                .map(|path| json!({"path": path, "pathType": "Prefix", "backend": backend}))
                .collect();
            if host.is_empty() {
                json!({"http": {"paths": paths}})
            } else {
                json!({"host": host, "http": {"paths": paths}})
            }
        })
        .collect();
    objects.insert(Object::Ingress(object(json!({
        "metadata": {
            "name": name, "namespace": namespace, "creationTimestamp": format!("{year}-01-01T00:00:00Z"),
        },
        "spec": {"ingressClassName": "pingsix", "rules": rules},
    }))));
}

fn any_path() -> Value {
    json!([{"path": {"type": "PathPrefix", "value": "/"}}])
}

/// 64 matches by 16 long headers each.
fn long_matches(length: usize) -> Value {
    let headers = |number: usize| -> Vec<Value> {
        (0..16)
            .map(|header| json!({"name": format!("x-{header}"), "value": format!("{number}-{}", "v".repeat(length))}))
            .collect()
    };
    (0..64).map(|number| json!({"headers": headers(number)})).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("large-{number}.example.com")).collect()
}

fn options(budget: Budget) -> Options {
    let responder = Some(SocketAddr::from(([127, 0, 0, 1], 9080)));
    Options { budget, responder, ..Options::default() }
}

fn run(objects: &Objects, budget: Budget) -> Translation {
    translate(&objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap(), &options(budget))
}

fn run_ingress(objects: &Objects, budget: Budget) -> Translation {
    translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), &options(budget))
}

fn plane(translation: &Translation) -> &DataPlane {
    translation.data_planes.values().next().unwrap()
}

/// The namespace whose backend answers a request, or the status it is answered with.
fn answer(plane: &DataPlane, request: &Request) -> String {
    let order = 0..plane.config.routes().count();
    let router = Router::build(&plane.config, order).unwrap();
    match router.outcome(request) {
        Outcome::NotFound => "404".to_owned(),
        Outcome::Static { status, .. } => status.to_string(),
        Outcome::Forward { candidates, .. } => {
            let targets: BTreeSet<String> = candidates
                .iter()
                .map(|candidate| {
                    let UpstreamRef::Named(id) = &candidate.upstream else {
                        panic!("an upstream without a name")
                    };
                    match &plane.provenance[&DocumentKey::new(ResourceKind::Upstream, id.clone())] {
                        Provenance::Backend { service, .. } => service.name.namespace.to_string(),
                        Provenance::Status { status: Some(status) } => status.to_string(),
                        _ => panic!("a request goes to {id}"),
                    }
                })
                .collect();
            targets.into_iter().collect::<Vec<_>>().join(" ")
        }
        _ => panic!("nobody asks for a redirect, nor for a preflight"),
    }
}

fn get(plane: &DataPlane, host: &str, path: &str) -> String {
    answer(plane, &Request::get(host, path))
}

fn refused(translation: &Translation) -> Vec<String> {
    let problems = translation.verdicts.problems.iter();
    let reasons = [Reason::BudgetExceeded, Reason::ShareExceeded];
    let refused = problems.filter(|problem| reasons.contains(&problem.reason));
    refused.map(|problem| problem.object.to_string()).collect()
}

fn assert_only_one_object_is_refused(translation: &Translation, object: &str) {
    let refused = refused(translation);
    assert!(refused.iter().all(|other| other == object), "{refused:?}");
}

/// The attack: namespace b is older, has a route for every host, and uses the budget up with another one.
fn attack(budget: Budget, catch_all: u16, large: u16) -> Translation {
    let mut objects = world();
    add_route(&mut objects, ("b", "catch-all", catch_all), &[], &any_path());
    add_route(&mut objects, ("b", "large", large), &names(16), &long_matches(150));
    add_route(&mut objects, ("a", "shop", 2022), &["shop.example.com".to_owned()], &any_path());
    run(&objects, budget)
}

#[test]
fn a_route_that_does_not_fit_does_not_fall_to_an_older_catch_all() {
    for budget in [3_670_016, 2_000_000, 500_000, 20_000] {
        for (catch_all, large) in [(2020, 2021), (2021, 2020)] {
            let translation = attack(Budget { bytes: budget, ..Budget::default() }, catch_all, large);
            let plane = plane(&translation);
            assert!(plane.size.bytes <= budget, "{budget}: {:?}", plane.size);
            let shop = get(plane, "shop.example.com", "/");
            assert!(
                ["a", "503"].contains(&&*shop),
                "budget {budget}: shop.example.com is answered by {shop}"
            );
            // A rule that is refused alone keeps no request from others.
            assert_eq!(get(plane, "other.example.com", "/"), "b", "budget {budget}");
            assert_eq!(shop, "a", "budget {budget}: {:?}", refused(&translation));
        }
    }
}

#[test]
fn a_budget_too_small_for_guards_fails_closed() {
    for bytes in (0..4_000).step_by(100) {
        for (catch_all, large) in [(2020, 2021), (2021, 2020)] {
            let translation = attack(Budget { bytes, ..Budget::default() }, catch_all, large);
            let plane = plane(&translation);
            assert!(plane.size.bytes <= bytes);
            for (host, owner) in [("shop.example.com", "a"), ("large-7.example.com", "b"), ("x.test", "b")] {
                let answer = get(plane, host, "/");
                assert!(
                    [owner, "503", "404"].contains(&&*answer),
                    "budget {bytes}: {host} is answered by {answer}"
                );
            }
        }
    }
}

#[test]
fn an_ingress_that_does_not_fit_does_not_fall_to_an_older_catch_all() {
    let paths: Vec<String> = (0..24_000).map(|number| format!("/b-{number}")).collect();
    for (catch_all, large) in [(2020, 2021), (2021, 2020)] {
        for host in ["", "large.example.com", "*.example.com"] {
            let mut objects = world();
            add_ingress(&mut objects, ("b", "catch-all", catch_all), &[("", vec!["/".to_owned()])]);
            add_ingress(&mut objects, ("b", "large", large), &[(host, paths.clone())]);
            add_ingress(&mut objects, ("a", "shop", 2022), &[("shop.example.com", vec!["/".to_owned()])]);
            let translation = run_ingress(&objects, Budget::default());
            let plane = plane(&translation);
            assert!(plane.size.bytes <= Budget::default().bytes);
            let shop = get(plane, "shop.example.com", "/");
            assert!(["a", "503"].contains(&&*shop), "shop.example.com is answered by {shop}");
            assert_eq!(get(plane, "shop.example.com", "/b-7"), shop);
        }
    }
}

const HOSTS: [&str; 8] =
    ["", "*.test", "*.a.test", "one.a.test", "two.a.test", "one.b.test", "*.b.test", "three.test"];
const PATHS: [&str; 7] = ["/", "/x", "/x/", "/x/y", "/x/y/z", "/v", "/long/path/of/several/elements"];

/// Namespaces with random routes for hosts of a list, created in a year that is drawn.
fn add_random(rng: &mut SmallRng, objects: &mut Objects, namespace: &str, years: Range<u16>, hosts: &[&str]) {
    for number in 0..rng.random_range(1..6) {
        let mut hostnames: Vec<&str> = Vec::new();
        for _ in 0..rng.random_range(1..4) {
            hostnames.push(hosts.choose(rng).unwrap());
        }
        let hostnames = if hostnames.contains(&"") { Vec::new() } else { hostnames };
        let rules: Vec<Value> = (0..rng.random_range(1..4)).map(|_| random_rule(rng)).collect();
        objects.insert(Object::HttpRoute(object(json!({
            "metadata": {
                "name": format!("r{number}"), "namespace": namespace, "generation": 1,
                "creationTimestamp": format!("{}-01-01T00:00:00Z", rng.random_range(years.clone())),
            },
            "spec": {
                "parentRefs": [{"name": "gateway", "namespace": "infra"}], "hostnames": hostnames, "rules": rules,
            },
        }))));
    }
}

fn random_rule(rng: &mut SmallRng) -> Value {
    let matches: Vec<Value> = (0..rng.random_range(1..4))
        .map(|_| {
            let kind = if rng.random_bool(0.3) { "Exact" } else { "PathPrefix" };
            let mut matched = json!({"path": {"type": kind, "value": PATHS.choose(rng)}});
            if rng.random_bool(0.3) {
                matched["method"] = json!(["GET", "POST"].choose(rng));
            }
            if rng.random_bool(0.3) {
                let value = "v".repeat(rng.random_range(1..400));
                let name = ["h", "i"].choose(rng).unwrap();
                matched["headers"] = json!([{"name": name, "value": value}, {"name": "k", "value": "1"}]);
            }
            if rng.random_bool(0.1) {
                matched["queryParams"] = json!([{"name": "q", "value": "a b"}]);
            }
            matched
        })
        .collect();
    let mut rule = json!({"matches": matches, "backendRefs": [{"name": "web", "port": 80}]});
    if rng.random_bool(0.2) {
        rule["filters"] = json!([{
            "type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "x-some", "value": "one"}]},
        }]);
    }
    rule
}

fn random_requests(rng: &mut SmallRng, objects: &Objects) -> Vec<Request> {
    let hosts = [
        "one.a.test",
        "two.a.test",
        "other.a.test",
        "one.b.test",
        "x.b.test",
        "three.test",
        "nobody.example",
    ];
    let snapshot = objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap();
    let values: Vec<String> = snapshot
        .routes
        .values()
        .filter_map(|route| if let AnyRoute::HttpRoute(route) = route { route.spec().rules } else { None })
        .flatten()
        .flat_map(|rule| rule.matches.unwrap_or_default())
        .flat_map(|matched| matched.headers.unwrap_or_default())
        .map(|header| header.value)
        .collect();
    (0..80)
        .map(|_| {
            let path = format!("{}{}", PATHS.choose(rng).unwrap(), ["", "/tail", "s"].choose(rng).unwrap());
            let path = path.replace("//", "/");
            let mut request = Request::get(hosts.choose(rng).unwrap(), &path)
                .method(["GET", "POST", "PUT"].choose(rng).unwrap());
            if let Some(value) = values.choose(rng).filter(|_| rng.random()) {
                request = request.header(["h", "i"].choose(rng).unwrap(), value).header("k", "1");
            }
            request
        })
        .collect()
}

fn answers(translation: &Translation, requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| answer(plane(translation), request)).collect()
}

/// A budget that the objects of a translation exhaust, mostly.
fn scarce(rng: &mut SmallRng, whole: &Translation) -> Budget {
    let size = plane(whole).size;
    let part = |rng: &mut SmallRng, size: usize| size * rng.random_range(0..120) / 100;
    if rng.random() {
        Budget { bytes: part(rng, size.bytes), ..Budget::default() }
    } else {
        Budget { matcher_entries: part(rng, size.matcher_entries), ..Budget::default() }
    }
}

#[test]
fn over_budget_no_request_is_answered_by_another_namespace() {
    let (mut unanswered, mut answered, mut refused_anything) = (0, 0, 0);
    for seed in 0..400 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = world();
        for namespace in ["a", "b"] {
            add_random(&mut rng, &mut objects, namespace, 2000..2010, &HOSTS);
        }
        let requests = random_requests(&mut rng, &objects);
        let whole = run(&objects, Budget::default());
        let budget = scarce(&mut rng, &whole);
        let translation = run(&objects, budget);
        let size = plane(&translation).size;
        assert!(
            size.bytes <= budget.bytes && size.matcher_entries <= budget.matcher_entries,
            "seed {seed}: {size:?} of {budget:?}"
        );
        refused_anything += usize::from(!refused(&translation).is_empty());
        let meant = answers(&whole, &requests);
        for ((request, meant), got) in requests.iter().zip(meant).zip(answers(&translation, &requests)) {
            if meant == "500" {
                // Of rules in one list with different filters, one is served and the others answer 500: with a budget
                // others may be.
                continue;
            }
            let is_left_out = ["503", "404", "500"].contains(&&*got);
            assert!(
                got == meant || is_left_out,
                "seed {seed}, {budget:?}: {request:?} is meant for {meant} and answered by {got}"
            );
            unanswered += usize::from(is_left_out && got != meant);
            answered += usize::from(got == meant && got != "404");
        }
    }
    println!("{refused_anything} worlds over budget, {answered} requests answered, {unanswered} not");
    assert!(refused_anything > 200 && answered > 1_000 && unanswered > 1_000);
}

#[test]
fn younger_objects_of_another_namespace_change_no_answer() {
    let (own, wider) =
        (["one.a.test", "two.a.test", "three.test"], ["", "*.test", "*.a.test", "one.b.test", "*.b.test"]);
    let mut compared = 0;
    for seed in 0..400 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = world();
        add_random(&mut rng, &mut objects, "a", 2000..2010, &own);
        let mut with = objects.clone();
        add_random(&mut rng, &mut with, "b", 2010..2020, &wider);
        add_route(&mut with, ("b", "large", 2010), &names(3), &long_matches(20));
        let requests = random_requests(&mut rng, &with);
        let whole = run(&objects, Budget::default());
        let budget = scarce(&mut rng, &whole);
        let meant = answers(&whole, &requests);
        let before = answers(&run(&objects, budget), &requests);
        let after = answers(&run(&with, budget), &requests);
        for (index, request) in requests.iter().enumerate().filter(|(index, _)| meant[*index] == "a") {
            let same = before[index] == after[index];
            assert!(
                same || (before[index] != "a" && after[index] != "b"),
                "seed {seed}, {budget:?}: {request:?} was answered by {} and is by {}",
                before[index],
                after[index]
            );
            compared += usize::from(before[index] == "a");
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// A Secret with a certificate for a name, behind a comment of this many bytes.
fn add_secret(objects: &mut Objects, namespace: &str, name: &str, comment: usize) {
    let pair = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let comment = format!("{}\n", "c".repeat(63)).repeat(comment / 64);
    objects.insert(Object::Secret(object(json!({
        "metadata": {"namespace": namespace, "name": name},
        "stringData": {"tls.crt": format!("{comment}{}", pair.cert.pem()), "tls.key": pair.signing_key.serialize_pem()},
    }))));
}

/// An Ingress with a certificate for its hosts.
fn add_tls(
    objects: &mut Objects,
    (namespace, name, year): (&str, &str, u16),
    secret: &str,
    hosts: &[String],
) {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let rule = json!({"host": hosts[0], "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}});
    objects.insert(Object::Ingress(object(json!({
        "metadata": {
            "name": name, "namespace": namespace, "creationTimestamp": format!("{year}-01-01T00:00:00Z"),
        },
        "spec": {"ingressClassName": "pingsix", "rules": [rule], "tls": [{"hosts": hosts, "secretName": secret}]},
    }))));
}

fn server_names(translation: &Translation) -> BTreeSet<String> {
    plane(translation).config.ssls().flat_map(|(_, ssl)| ssl.snis.clone()).collect()
}

#[test]
fn certificates_that_do_not_fit_are_those_of_the_youngest() {
    let budget = Budget { bytes: 100_000, ..Budget::default() };
    for (comment, count) in [(30_000, 7), (0, 900)] {
        let mut objects = world();
        add_secret(&mut objects, "a", "shop.example.com", 0);
        add_tls(&mut objects, ("a", "shop", 2020), "shop.example.com", &["shop.example.com".to_owned()]);
        add_ingress(&mut objects, ("a", "plain", 2021), &[("plain.example.com", vec!["/".to_owned()])]);
        add_secret(&mut objects, "b", "large.example.com", comment);
        add_tls(&mut objects, ("b", "large", 2022), "large.example.com", &names(count));
        let translation = run_ingress(&objects, budget);
        let plane = plane(&translation);
        assert!(plane.size.bytes <= budget.bytes, "{:?}", plane.size);
        assert_eq!(get(plane, "shop.example.com", "/"), "a");
        assert_eq!(get(plane, "plain.example.com", "/"), "a");
        assert!(server_names(&translation).contains("shop.example.com"));
        assert_only_one_object_is_refused(&translation, "Ingress b/large");
    }
}

#[test]
fn an_older_certificate_that_is_too_large_keeps_no_other_out() {
    let mut objects = world();
    add_secret(&mut objects, "b", "large.example.com", 30_000);
    add_tls(&mut objects, ("b", "large", 2020), "large.example.com", &names(7));
    add_secret(&mut objects, "a", "shop.example.com", 0);
    add_tls(&mut objects, ("a", "shop", 2021), "shop.example.com", &["shop.example.com".to_owned()]);
    let translation = run_ingress(&objects, Budget { bytes: 20_000, ..Budget::default() });
    assert_eq!(get(plane(&translation), "shop.example.com", "/"), "a");
    assert!(server_names(&translation).contains("shop.example.com"));
    assert_only_one_object_is_refused(&translation, "Ingress b/large");
}

#[test]
fn a_translator_is_incremental_over_budget() {
    is_incremental(&options(Budget { bytes: 20_000, ..Budget::default() }));
}

#[test]
fn a_translator_is_incremental_where_a_namespace_has_its_share() {
    // The same effort as without one of the smaller budget.
    is_incremental(&Options {
        namespace_share: 20,
        ..options(Budget { bytes: 100_000, ..Budget::default() })
    });
}

fn is_incremental(options: &Options) {
    let mut objects = world();
    for number in 0..200 {
        let name = format!("r{number}");
        add_route(&mut objects, ("a", &name, 2000 + number), &[format!("{name}.test")], &any_path());
    }
    let mut translator = Translator::new(options.clone());
    let mut check = |objects: &Objects, is_partial: bool| {
        let snapshot = objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap();
        let (got, fresh) = (translator.translate(&snapshot), translate(&snapshot, options));
        assert_eq!(plane(&got).config, plane(&fresh).config);
        assert_eq!(plane(&got).provenance, plane(&fresh).provenance);
        assert!(got.verdicts == fresh.verdicts);
        assert_eq!(translator.last_mode() != TranslationMode::Full, is_partial);
        refused(&got).len()
    };
    let refused = check(&objects, false);
    assert!((50..190).contains(&refused), "{refused}");
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"name": "web-1", "namespace": "a", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.0.0.3"]}],
    }))));
    assert_eq!(check(&objects, true), refused);
    // A younger one is refused, and an older one puts the youngest out.
    add_route(&mut objects, ("a", "youngest", 2300), &["youngest.test".to_owned()], &any_path());
    assert_eq!(check(&objects, true), refused + 1);
    let oldest = if options.namespace_share < 100 { "a" } else { "b" };
    add_route(&mut objects, (oldest, "oldest", 1990), &["oldest.test".to_owned()], &any_path());
    assert!(check(&objects, true) > refused + 1);
    // Growing objects reduce the room, and shrinking objects return it.
    add_route(&mut objects, (oldest, "oldest", 1990), &names(8), &any_path());
    let larger = check(&objects, true);
    assert!(larger > refused + 2, "{larger}");
    add_route(&mut objects, (oldest, "oldest", 1990), &["oldest.test".to_owned()], &any_path());
    assert!(check(&objects, true) < larger);
}
