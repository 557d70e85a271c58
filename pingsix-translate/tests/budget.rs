//! The budget of a data plane: rules are admitted oldest first, the others are refused and named, and nothing
//! that cannot fit is built.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::sync::Arc;

use pingsix_translate::status::{ConditionStatus, ConditionType, Reason};
use pingsix_translate::{
    Budget, DataPlane, Kind, Object, ObjectKey, ObjectName, Objects, Options, Translation, TranslationMode,
    Translator, translate,
};
use serde_json::{Value, json};

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn gateway() -> Objects {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"name": "gateway", "namespace": "shop"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }))));
    objects
}

fn add_route(objects: &mut Objects, name: &str, created: &str, hostname: &str, paths: &[String]) {
    let rules: Vec<Value> = paths
        .iter()
        .map(|path| json!({"matches": [{"path": {"type": "PathPrefix", "value": path}}]}))
        .collect();
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created, "generation": 1},
        "spec": {"parentRefs": [{"name": "gateway"}], "hostnames": [hostname], "rules": rules},
    }))));
}

fn run(objects: &Objects, budget: Budget) -> Translation {
    let snapshot = objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
    translate(&snapshot, &Options { budget, ..Options::default() })
}

fn accepted(translation: &Translation, name: &str) -> (ConditionStatus, Reason) {
    let verdict = translation.verdicts.routes.iter().find(|(key, _)| &*key.name.name == name).unwrap().1;
    let condition = verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap();
    (condition.status, condition.reason)
}

#[test]
fn over_budget_the_youngest_rules_are_refused_and_named() {
    let mut objects = gateway();
    for index in 0..10 {
        let created = format!("2026-01-{:02}T00:00:00Z", 20 - index);
        add_route(&mut objects, &format!("r{index}"), &created, &format!("h{index}.test"), &["/".to_owned()]);
    }
    // Two entries a route: `/` and everything below.
    let budget = Budget { matcher_entries: 9, ..Budget::default() };
    let translation = run(&objects, budget);
    let data_plane = translation.data_planes.values().next().unwrap();
    assert_eq!(data_plane.size.matcher_entries, 8);
    // r9 is the oldest.
    for name in ["r9", "r8", "r7", "r6"] {
        assert_eq!(accepted(&translation, name), (ConditionStatus::True, Reason::Accepted), "{name}");
    }
    for name in ["r0", "r5"] {
        assert_eq!(
            accepted(&translation, name),
            (ConditionStatus::False, Reason::UnsupportedValue),
            "{name}"
        );
    }
    let named =
        translation.verdicts.problems.iter().filter(|problem| problem.reason == Reason::BudgetExceeded);
    assert_eq!(named.count(), 6);
}

#[test]
fn a_wildcard_that_would_multiply_every_path_costs_itself_alone() {
    let mut objects = gateway();
    for index in 0..3_000 {
        let paths: Vec<String> = ["/".to_owned()].into_iter().chain([format!("/only-{index}")]).collect();
        add_route(
            &mut objects,
            &format!("r{index}"),
            "2026-01-01T00:00:00Z",
            &format!("h{index}.test"),
            &paths,
        );
    }
    // Closed, it would put 9,000 patterns into each of 3,000 hosts.
    add_route(&mut objects, "wildcard", "2026-02-01T00:00:00Z", "*.test", &["/".to_owned()]);
    let translation = run(&objects, Budget::default());
    assert_eq!(accepted(&translation, "r2999"), (ConditionStatus::True, Reason::Accepted));
    assert_eq!(accepted(&translation, "wildcard"), (ConditionStatus::False, Reason::UnsupportedValue));
}

#[test]
fn a_budget_for_nothing_leaves_a_data_plane_without_rules() {
    let mut objects = gateway();
    add_route(&mut objects, "r", "2026-01-01T00:00:00Z", "h.test", &["/".to_owned()]);
    let translation = run(&objects, Budget { bytes: 0, matcher_entries: 0 });
    assert!(translation.data_planes.values().next().unwrap().config.is_empty());
    assert_eq!(accepted(&translation, "r"), (ConditionStatus::False, Reason::UnsupportedValue));
}

fn refusals(translation: &Translation) -> Vec<String> {
    let problems = translation.verdicts.problems.iter();
    let refused = problems.filter(|problem| problem.reason == Reason::BudgetExceeded);
    refused.map(|problem| format!("{} {}: {}", problem.object, problem.field, problem.message)).collect()
}

#[test]
fn a_rule_is_told_of_older_ones_only_if_there_are_any() {
    let mut objects = gateway();
    add_route(&mut objects, "large", "2026-01-01T00:00:00Z", "h.test", &["/a".to_owned()]);
    add_route(&mut objects, "small", "2026-01-02T00:00:00Z", "h.test", &["/b".to_owned()]);
    // Three entries a rule: the prefix, with a slash at its end, and everything below.
    let told = |matcher_entries| refusals(&run(&objects, Budget { matcher_entries, bytes: 10_000 }));
    assert_eq!(
        told(2),
        [
            "HTTPRoute shop/large spec.rules[0]: Data plane shop/gateway has no room for the rule: the documents \
             of the rule alone exceed its budget of 10000 bytes and 2 matcher entries.",
            "HTTPRoute shop/small spec.rules[0]: Data plane shop/gateway has no room for the rule: the documents \
             of the rule alone exceed its budget of 10000 bytes and 2 matcher entries.",
        ]
    );
    assert_eq!(
        told(5),
        [
            "HTTPRoute shop/small spec.rules[0]: Data plane shop/gateway has no room for the rule: older rules use up \
             its budget of 10000 bytes and 5 matcher entries."
        ]
    );
}

fn plane(translation: &Translation) -> &DataPlane {
    translation.data_planes.values().next().unwrap()
}

/// Adds the routes of a number to a table.
type Shape = fn(&mut Objects, usize);

#[test]
fn the_charge_comes_near_the_budget_before_anything_is_refused() {
    let hosts: Shape = |objects, number| {
        let paths = [format!("/path-{number}"), "/".to_owned()];
        add_route(objects, &format!("r{number}"), "2026-01-01T00:00:00Z", &format!("h{number}.test"), &paths);
    };
    // Each path is listed for the wildcard, too.
    let wildcard: Shape = |objects, number| {
        add_route(objects, "wildcard", "2025-01-01T00:00:00Z", "*.test", &["/".to_owned()]);
        let path = format!("/path-{number}");
        add_route(
            objects,
            &format!("r{number}"),
            "2026-01-01T00:00:00Z",
            &format!("h{number}.test"),
            &[path],
        );
    };
    for (add, budget) in [
        (hosts, Budget { bytes: 100_000, ..Budget::default() }),
        (wildcard, Budget { matcher_entries: 20_000, ..Budget::default() }),
    ] {
        let (mut objects, mut last) = (gateway(), 0.0);
        for number in 0.. {
            add(&mut objects, number);
            let translation = run(&objects, budget);
            let plane = plane(&translation);
            if !refusals(&translation).is_empty() {
                assert!(plane.charged_ratio > 0.9 && plane.charged_ratio <= 1.0, "{}", plane.charged_ratio);
                break;
            }
            assert!(plane.charged_ratio > last, "{} after {last}", plane.charged_ratio);
            assert!(plane.charged_ratio >= plane.size.ratio_of(budget));
            last = plane.charged_ratio;
        }
        assert!(last > 0.95 && last <= 1.0, "{last}");
    }
}

#[test]
fn a_table_that_changes_for_a_long_time_is_charged_as_if_it_were_new() {
    let budget = Budget { bytes: 20_000, ..Budget::default() };
    let name = ObjectName::new("shop", "gateway");
    let options = Options { budget, ..Options::default() };
    let (mut translator, mut objects) = (Translator::new(options.clone()), gateway());
    let mut incremental = 0;
    let mut charged = |objects: &Objects| {
        let snapshot = objects.snapshot(&name).unwrap();
        let [got, fresh] = [translator.translate(&snapshot), translate(&snapshot, &options)];
        assert!(refusals(&got).is_empty());
        incremental += usize::from(translator.last_mode() != TranslationMode::Full);
        let [got, fresh] = [got, fresh].map(|translation| plane(&translation).charged_ratio);
        assert!((got - fresh).abs() < 0.05, "{got} for {fresh}");
        got
    };
    let add = |objects: &mut Objects, number: usize, path: &str| {
        let (name, host) = (format!("r{number}"), format!("h{number}.test"));
        add_route(objects, &name, "2026-01-01T00:00:00Z", &host, &[path.to_owned()]);
    };
    for number in 0..60 {
        add(&mut objects, number, "/path");
        charged(&objects);
    }
    let full = charged(&objects);
    assert!(full > 0.5, "{full}");
    for change in 0..200 {
        add(&mut objects, change % 60, &format!("/path-{}", change / 60));
        let part = charged(&objects);
        assert!(part < full + 0.1, "{part} after {full}");
    }
    for number in 0..60 {
        objects.remove(&ObjectKey::new(Kind::HttpRoute, "shop", format!("r{number}")));
        charged(&objects);
    }
    assert!(charged(&objects) < 0.1 && incremental > 200, "{incremental}");
}

/// [`gateway`] with a Service, since filters of rules without a backend become no documents.
fn gateway_and_service() -> Objects {
    let mut objects = gateway();
    objects.insert(Object::Service(object(json!({
        "metadata": {"name": "site", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {
            "name": "site", "namespace": "shop", "labels": {"kubernetes.io/service-name": "site"},
        },
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 8080}],
    }))));
    objects
}

/// Route `r<index>` for `/p<index>`, whose path is rewritten by a filter with a pattern.
fn add_pattern(objects: &mut Objects, index: usize, pattern: &str) {
    objects.insert(Object::HttpRouteFilter(object(json!({
        "metadata": {"name": format!("f{index}"), "namespace": "shop"},
        "spec": {"urlRewrite": {"path": {
            "type": "ReplaceRegexMatch", "pattern": pattern, "substitution": "/x",
        }}},
    }))));
    let filter = json!({"group": "pingsix.io", "kind": "HTTPRouteFilter", "name": format!("f{index}")});
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {
            "name": format!("r{index}"), "namespace": "shop",
            "creationTimestamp": format!("2026-01-01T00:{:02}:{:02}Z", index / 60, index % 60), "generation": 1,
        },
        "spec": {"parentRefs": [{"name": "gateway"}], "hostnames": [format!("h{index}.test")], "rules": [{
            "matches": [{"path": {"value": format!("/p{index}")}}],
            "filters": [{"type": "ExtensionRef", "extensionRef": filter}],
            "backendRefs": [{"name": "site", "port": 80}],
        }]},
    }))));
}

#[test]
fn patterns_are_charged_what_they_may_take_at_run_time() {
    let several_ways = |index: usize| format!("^/p{index}/(.*)/(.*)$");
    let mut objects = gateway_and_service();
    for index in 0..100 {
        add_pattern(&mut objects, index, &several_ways(index));
    }
    let admitted = |translation: &Translation| {
        let is_admitted =
            |index: &usize| accepted(translation, &format!("r{index}")).0 == ConditionStatus::True;
        (0..100).filter(is_admitted).collect::<Vec<usize>>()
    };
    let translation = run(&objects, Budget::default());
    let of_all = admitted(&translation);
    // The oldest ones, though their documents take a small part of the budget.
    assert_eq!(of_all, (0..of_all.len()).collect::<Vec<_>>());
    assert!((20..80).contains(&of_all.len()), "{}", of_all.len());
    assert!(plane(&translation).size.bytes < 100_000, "{:?}", plane(&translation).size);
    let message = refusals(&translation).pop().unwrap();
    assert!(
        message.contains(
            "For the memory that PingSIX may need for its regular expressions, each Route counts as"
        )
    );
    // A namespace uses its share of it.
    let snapshot = objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
    let shared = translate(&snapshot, &Options { namespace_share: 25, ..Options::default() });
    let of_share = admitted(&shared).len();
    assert!(of_share > 0 && of_share <= of_all.len() / 4 + 1, "{of_share} of {}", of_all.len());
    let problems = &shared.verdicts.problems;
    assert!(problems.iter().any(|problem| problem.reason == Reason::ShareExceeded));
    // Patterns with one way to go on are free, or nearly so.
    let mut objects = gateway_and_service();
    for index in 0..100 {
        add_pattern(&mut objects, index, &format!("^/p{index}(?:/([^/]+)/(.*))?$"));
    }
    assert_eq!(admitted(&run(&objects, Budget::default())).len(), 100);
}

#[test]
fn a_pattern_that_changes_is_charged_as_if_it_were_new() {
    let mut objects = gateway_and_service();
    for index in 0..60 {
        add_pattern(&mut objects, index, &format!("^/p{index}/(.*)$"));
    }
    let options = Options::default();
    let mut translator = Translator::new(options.clone());
    let name = ObjectName::new("shop", "gateway");
    for index in 0..60 {
        for pattern in [format!("^/p{index}/(.*)/(.*)$"), format!("^/p{index}/(?:[ab]*a[ab]{{13}}c)*$")] {
            add_pattern(&mut objects, index, &pattern);
            if index % 7 != 0 {
                break;
            }
        }
        let snapshot = objects.snapshot(&name).unwrap();
        let translation = translator.translate(&snapshot);
        if index % 6 == 0 || index > 50 {
            let fresh = translate(&snapshot, &options);
            assert_eq!(plane(&translation).config, plane(&fresh).config, "{index}");
            assert_eq!(refusals(&translation), refusals(&fresh), "{index}");
        }
    }
}

/// Adds a route that sends requests for a path to the Service, and protects it if it is not the root.
fn add_served(objects: &mut Objects, name: &str, created: &str, path: &str) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created, "generation": 1},
        "spec": {"parentRefs": [{"name": "gateway"}], "hostnames": ["shop.test"], "rules": [{
            "matches": [{"path": {"value": path}}], "backendRefs": [{"name": "site", "port": 80}],
        }]},
    }))));
    if path == "/" {
        return;
    }
    objects.insert(Object::SecurityPolicy(object(json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name}],
            "authorization": {"allow": ["10.0.0.0/8"]},
        },
    }))));
}

#[test]
fn other_spellings_are_charged_to_the_rule_that_they_protect() {
    let budget = Budget { bytes: 200_000, ..Budget::default() };
    let options = Options { budget, ..Options::default() };
    let (mut objects, mut translator) = (gateway_and_service(), Translator::new(options.clone()));
    // The open rule is the oldest one, and its Route lists the spellings of the others.
    add_served(&mut objects, "open", "2025-01-01T00:00:00Z", "/");
    let mut alone = gateway_and_service();
    for number in 0.. {
        let name = format!("r{number}");
        for objects in [&mut objects, &mut alone] {
            add_served(objects, &name, "2026-01-01T00:00:00Z", &format!("/admin-{number}/users"));
        }
        let snapshot = objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
        let [got, fresh] = [translator.translate(&snapshot), translate(&snapshot, &options)];
        assert_eq!(refusals(&got), refusals(&fresh), "{number}");
        assert!(plane(&got).charged_ratio >= plane(&got).size.ratio_of(budget), "{number}");
        // An open rule adds no Route of its own, so it takes little.
        let without = run(&alone, budget);
        assert!(plane(&without).config.len() < plane(&fresh).config.len());
        assert!(plane(&without).charged_ratio > plane(&fresh).charged_ratio * 0.4, "{number}");
        if !refusals(&got).is_empty() {
            assert!(number > 8, "{number}");
            // Of routes of one age, the last one by name has no room.
            assert!(
                refusals(&got).iter().all(|refusal| !refusal.contains("shop/open")),
                "{:?}",
                refusals(&got)
            );
            break;
        }
    }
}

/// A request header of so many bytes, for every request of a rule.
fn header_filter(bytes: usize) -> Value {
    let header = json!({"name": "x-filler", "value": "v".repeat(bytes)});
    json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [header]}})
}

/// A route with a parentRef, hostnames and a rule.
fn add_filtered(objects: &mut Objects, name: &str, parent: &Value, rule: &Value, hosts: usize) {
    let hostnames: Vec<String> = (0..hosts).map(|host| format!("h{host}.test")).collect();
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": name, "namespace": "shop", "generation": 1},
        "spec": {
            "parentRefs": [parent], "hostnames": hostnames,
            "rules": [rule],
        },
    }))));
}

#[test]
fn the_charge_covers_filters_that_routes_share_and_those_that_differ() {
    let pair = rcgen::generate_simple_self_signed(["h0.test".to_owned()]).unwrap();
    for (bytes, hosts, has_redirect) in [1, 40, 8_000]
        .into_iter()
        .flat_map(|bytes| [1, 3, 40].map(|hosts| (bytes, hosts)))
        .flat_map(|(bytes, hosts)| [false, true].map(|has_redirect| (bytes, hosts, has_redirect)))
    {
        let mut objects = gateway();
        objects.insert(Object::Gateway(object(json!({
            "metadata": {"name": "gateway", "namespace": "shop"},
            "spec": {"gatewayClassName": "pingsix", "listeners": [
                {"name": "http", "port": 80, "protocol": "HTTP"},
                {
                    "name": "https", "port": 443, "protocol": "HTTPS",
                    "tls": {"certificateRefs": [{"name": "tls"}]},
                },
            ]},
        }))));
        objects.insert(Object::Secret(object(json!({
            "metadata": {"namespace": "shop", "name": "tls"},
            "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()},
        }))));
        objects.insert(Object::Service(object(
            json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"ports": [{"port": 80}]}}),
        )));
        objects.insert(Object::EndpointSlice(object(json!({
            "metadata": {"namespace": "shop", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
        }))));
        if has_redirect {
            // Its Routes name their hosts, so no two of them have the same plugins.
            let redirect = json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}});
            let redirect = json!({"filters": [redirect]});
            add_filtered(
                &mut objects,
                "redirect",
                &json!({"name": "gateway", "sectionName": "http"}),
                &redirect,
                hosts,
            );
        }
        // Without a redirect, the route would be served in plaintext, too.
        let parent = if has_redirect {
            json!({"name": "gateway", "sectionName": "https"})
        } else {
            json!({"name": "gateway"})
        };
        let rule = json!({"filters": [header_filter(bytes)], "backendRefs": [{"name": "web", "port": 80}]});
        add_filtered(&mut objects, "rule", &parent, &rule, hosts);
        let case = format!("{bytes} bytes, {hosts} hosts, redirect: {has_redirect}");
        let budget = Budget { bytes: 4_000_000, ..Budget::default() };
        let translation = run(&objects, budget);
        let problems = &translation.verdicts.problems;
        assert_eq!(accepted(&translation, "rule").0, ConditionStatus::True, "{case}: {problems:?}");
        let plane = translation.data_planes.values().next().unwrap();
        assert!(plane.charged_ratio >= plane.size.ratio_of(budget), "{case}: {}", plane.charged_ratio);
        let services = plane.config.services().filter(|(key, _)| key.id.starts_with('f')).count();
        assert_eq!(services, usize::from(hosts >= 3 && !has_redirect), "{case}");
    }
}
