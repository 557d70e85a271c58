//! From TrafficPolicies to services, answers and verdicts.

use serde_json::{Value, json};

use crate::fixture::run;
use crate::model::{ConditionType, Kind, ObjectKey, ObjectName, Options, Provenance, Reason};
use crate::pingsix::Plugins;
use crate::pipeline::{Translation, TranslationMode, Translator};
use crate::policy::fixture::{
    ROUTE, add_policy, add_route, condition, config, route, services, status, translated, verdict, world,
};
use crate::snapshot::Objects;
use crate::status::{ConditionContent, ConditionStatus};

const TRAFFIC: Kind = Kind::TrafficPolicy;
const GATEWAY: [&str; 3] = ["Gateway", "public", ""];

fn add(objects: &mut Objects, name: &str, target: [&str; 3], fields: &Value) {
    add_policy(objects, (TRAFFIC, name), target, fields);
}

/// The translation of the world with a policy of its route.
fn under(fields: &Value) -> Translation {
    let mut objects = world();
    add(&mut objects, "policy", ROUTE, fields);
    translated(&objects)
}

/// The configurations of the one service.
fn plugins(translation: &Translation) -> Value {
    let [plugins] = services(translation)[..] else { panic!("one service") };
    object_of(plugins)
}

fn object_of(plugins: &Plugins) -> Value {
    plugins
        .iter()
        .map(|(name, config)| (name.to_owned(), config.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn accepted(translation: &Translation, name: &str) -> ConditionContent {
    condition(verdict(translation, (TRAFFIC, name)), ConditionType::Accepted)
}

fn limit(requests: u32) -> Value {
    json!({"rateLimit": {"local": {"limit": {"requests": requests, "unit": "Minute"}}}})
}

#[test]
fn every_field_has_its_plugin() {
    for (fields, expected) in [
        (
            limit(3),
            json!({"limit-count": {"count": 3, "time_window": 60, "rejected_code": 429, "key_missing_policy": "default"}}),
        ),
        (
            json!({"rateLimit": {"local": {
                "limit": {"requests": 9, "unit": "Day"}, "key": {"type": "Header", "name": "X-User"},
                "onMissingKey": "Deny", "rejectCode": 503, "quotaHeaders": false,
            }}}),
            json!({"limit-count": {
                "count": 9, "time_window": 86400, "key_type": "head", "key": "x-user", "key_missing_policy": "deny",
                "show_limit_quota_header": false,
            }}),
        ),
        (
            json!({"rateLimit": {"local": {
                "limit": {"requests": 1, "unit": "Second"}, "key": {"type": "QueryParam", "name": "user"},
            }}}),
            json!({"limit-count": {
                "count": 1, "time_window": 1, "key": "arg_user", "rejected_code": 429, "key_missing_policy": "default",
            }}),
        ),
        (
            json!({"compression": [{"type": "Gzip", "level": 6}, {"type": "Brotli"}]}),
            json!({"gzip": {"comp_level": 6}, "brotli": {}}),
        ),
        (json!({"requestID": {}}), json!({"request-id": {}})),
        (
            json!({"requestID": {"headerName": "X-Trace", "inResponse": false}}),
            json!({"request-id": {"header_name": "X-Trace", "include_in_response": false}}),
        ),
        (
            json!({"faultInjection": {
                "delay": {"duration": "1m", "percentage": 0}, "abort": {"httpStatus": 599, "percentage": 1},
            }}),
            json!({"fault-injection": {
                "delay": {"duration": 60.0, "percentage": 0}, "abort": {"http_status": 599, "percentage": 1},
            }}),
        ),
        (
            json!({"faultInjection": {"delay": {"duration": "250ms", "percentage": 100}}}),
            json!({"fault-injection": {"delay": {"duration": 0.25}}}),
        ),
        (json!({"grpcWeb": {}}), json!({"grpc-web": {}})),
        (
            json!({"responseHeaders": {
                "set": [{"name": "X-A", "value": "1"}], "add": [{"name": "X-B", "value": "2"}], "remove": ["X-C"],
            }}),
            json!({"response-rewrite": {"headers": {"set": {"x-a": "1"}, "add": ["x-b: 2"], "remove": ["x-c"]}}}),
        ),
        (
            json!({"cache": {"ttl": "5m", "methods": ["GET"], "statuses": [200, 404]}}),
            json!({"cache": {"ttl": 300, "cache_http_methods": ["GET"], "cache_http_statuses": [200, 404]}}),
        ),
        (json!({"cache": {"ttl": "86400s"}}), json!({"cache": {"ttl": 86400}})),
    ] {
        let translation = under(&fields);
        assert_eq!(plugins(&translation), expected, "{fields}");
        assert!(route(&translation, "/").service_id.is_some(), "{fields}");
        assert_eq!(accepted(&translation, "policy").0, ConditionStatus::True, "{fields}");
    }
}

/// Bad values and the fields that they are in. None of them is a rate limit.
fn bad_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("spec.compression[0].level", json!({"compression": [{"type": "Gzip", "level": 10}]})),
        ("spec.compression[0].level", json!({"compression": [{"type": "Brotli", "level": 0}]})),
        ("spec.compression[1].type", json!({"compression": [{"type": "Gzip"}, {"type": "Gzip"}]})),
        ("spec.compression", json!({"compression": []})),
        ("spec.compression[0].type", json!({"compression": [{"type": "Zstd"}]})),
        ("spec.requestID.headerName", json!({"requestID": {"headerName": "X Id"}})),
        ("spec.requestID.headerName", json!({"requestID": {"headerName": "Host"}})),
        ("spec.requestID.headerName", json!({"requestID": {"headerName": "Content-Length"}})),
        ("spec.requestID.algorithm", json!({"requestID": {"algorithm": "range_id"}})),
        ("spec.faultInjection", json!({"faultInjection": {}})),
        ("spec.faultInjection.delay.duration", json!({"faultInjection": {"delay": {"duration": "60.5s"}}})),
        ("spec.faultInjection.delay.duration", json!({"faultInjection": {"delay": {"duration": "61s"}}})),
        (
            "spec.faultInjection.delay.percentage",
            json!({"faultInjection": {"delay": {"duration": "1s", "percentage": 101}}}),
        ),
        ("spec.faultInjection.abort.httpStatus", json!({"faultInjection": {"abort": {"httpStatus": 199}}})),
        ("spec.faultInjection.abort.httpStatus", json!({"faultInjection": {"abort": {"httpStatus": 600}}})),
        ("spec.responseHeaders", json!({"responseHeaders": {}})),
        (
            "spec.responseHeaders.set[0].name",
            json!({"responseHeaders": {"set": [{"name": "X A", "value": "1"}]}}),
        ),
        (
            "spec.responseHeaders.add[0].value",
            json!({"responseHeaders": {"add": [{"name": "X-A", "value": "$remote_addr"}]}}),
        ),
        ("spec.cache.ttl", json!({"cache": {"ttl": "500ms"}})),
        ("spec.cache.ttl", json!({"cache": {"ttl": "0s"}})),
        ("spec.cache.ttl", json!({"cache": {"ttl": "25h"}})),
        ("spec.cache.ttl", json!({"cache": {"ttl": "soon"}})),
        ("spec.cache.methods", json!({"cache": {"ttl": "1s", "methods": []}})),
        ("spec.cache.methods[0]", json!({"cache": {"ttl": "1s", "methods": ["POST"]}})),
        ("spec.cache.statuses[1]", json!({"cache": {"ttl": "1s", "statuses": [200, 206]}})),
        ("spec.cache.statuses[0]", json!({"cache": {"ttl": "1s", "statuses": [600]}})),
        ("spec.mirror", json!({"mirror": {}})),
    ]
}

#[test]
fn a_bad_field_is_named_and_leaves_traffic_and_other_fields_alone() {
    for (field, mut fields) in bad_fields() {
        let translation = under(&fields);
        assert_eq!(status(route(&translation, "/")), None, "{field}");
        assert!(services(&translation).is_empty(), "{field}");
        let (is_accepted, _, message) = accepted(&translation, "policy");
        assert!(is_accepted == ConditionStatus::False && message.contains(field), "{field}: {message}");
        fields["grpcWeb"] = json!({});
        let translation = under(&fields);
        assert_eq!(plugins(&translation), json!({"grpc-web": {}}), "{field}");
        assert_eq!(accepted(&translation, "policy").2, message, "{field}");
    }
}

#[test]
fn a_bad_limit_is_named_and_closes_its_rules_alone() {
    let with_key =
        |key: Value| json!({"rateLimit": {"local": {"limit": {"requests": 1, "unit": "Hour"}, "key": key}}});
    let mut bad_code = limit(3);
    bad_code["rateLimit"]["local"]["rejectCode"] = json!(200);
    let mut bad_strategy = limit(3);
    bad_strategy["strategy"] = json!("Overrides");
    let mut unknown_strategy = limit(3);
    unknown_strategy["strategy"] = json!("Merge");
    for (field, mut fields) in [
        ("spec.rateLimit.local.limit.requests", limit(0)),
        ("spec.rateLimit.local.rejectCode", bad_code),
        ("spec.rateLimit.local.key.name", with_key(json!({"type": "Header"}))),
        ("spec.rateLimit.local.key.name", with_key(json!({"type": "Cookie", "name": "a b"}))),
        ("spec.rateLimit.local.key.name", with_key(json!({"type": "RemoteAddress", "name": "a"}))),
        ("spec.rateLimit.local.key.type", with_key(json!({"type": "JWTClaim", "name": "sub"}))),
        ("spec.rateLimit.global", json!({"rateLimit": {"global": {}}})),
        ("spec.rateLimit", json!({"rateLimit": 3})),
        ("spec.strategy", bad_strategy),
        ("spec.strategy", unknown_strategy),
    ] {
        fields["requestID"] = json!({});
        let mut objects = world();
        let backend = json!([{"name": "web", "port": 80}]);
        let other = json!([{"matches": [{"path": {"value": "/other"}}], "backendRefs": backend}]);
        add_route(&mut objects, "other", &other);
        add(&mut objects, "policy", ROUTE, &fields);
        let translation = translated(&objects);
        assert_eq!(status(route(&translation, "/")), Some(500), "{field}");
        assert_eq!(status(route(&translation, "/other")), None, "{field}");
        let (is_accepted, _, message) = accepted(&translation, "policy");
        assert!(is_accepted == ConditionStatus::False && message.contains(field), "{field}: {message}");
    }
}

#[test]
fn a_policy_that_is_invalid_as_a_whole_has_no_effect_without_a_limit() {
    let translation = under(&json!({"strategy": "Overrides", "requestID": {}}));
    assert!(services(&translation).is_empty());
    assert_eq!(status(route(&translation, "/")), None);
    let (is_accepted, reason, message) = accepted(&translation, "policy");
    assert_eq!((is_accepted, reason), (ConditionStatus::False, Reason::Invalid));
    assert!(message.contains("spec.strategy"), "{message}");
}

#[test]
fn a_bad_limit_of_a_gateway_closes_a_limited_route_only_if_it_overrides() {
    for (strategy, expected) in [("Defaults", None), ("Overrides", Some(500))] {
        let mut objects = world();
        let mut bad = limit(0);
        bad["strategy"] = json!(strategy);
        add(&mut objects, "gateway", GATEWAY, &bad);
        add(&mut objects, "route", ROUTE, &limit(5));
        let translation = translated(&objects);
        assert_eq!(status(route(&translation, "/")), expected, "{strategy}");
        if expected.is_none() {
            assert_eq!(plugins(&translation)["limit-count"]["count"], 5);
        }
    }
}

#[test]
fn policies_of_both_kinds_become_one_service() {
    let mut objects = world();
    let networks = json!({"authorization": {"allow": ["10.0.0.0/8"]}});
    add_policy(&mut objects, (Kind::SecurityPolicy, "networks"), GATEWAY, &networks);
    add(&mut objects, "gzip", ROUTE, &json!({"compression": [{"type": "Gzip"}]}));
    let translation = translated(&objects);
    let networks = ["10.0.0.0/8", "::ffff:10.0.0.0/104"];
    assert_eq!(plugins(&translation), json!({"gzip": {}, "ip-restriction": {"whitelist": networks}}));
    let mut provenance = translation.data_planes.values().next().unwrap().provenance.values();
    let of_service = provenance.find(|of| matches!(of, Provenance::Policies { .. }));
    let Some(Provenance::Policies { policies }) = of_service else { panic!("no policies") };
    let named: Vec<String> =
        policies.iter().map(|(policy, plugins)| format!("{policy} {plugins:?}")).collect();
    assert_eq!(
        named,
        ["SecurityPolicy infra/networks [\"ip-restriction\"]", "TrafficPolicy infra/gzip [\"gzip\"]"]
    );
}

#[test]
fn rules_of_one_list_need_the_same_policies_of_both_kinds() {
    let mut objects = world();
    let headers = json!([{"name": "x", "value": "1"}]);
    let rules = json!([{"matches": [{"headers": headers}], "backendRefs": [{"name": "web", "port": 80}]}]);
    add_route(&mut objects, "younger", &rules);
    let networks = json!({"authorization": {"allow": ["10.0.0.0/8"]}});
    add_policy(&mut objects, (Kind::SecurityPolicy, "networks"), GATEWAY, &networks);
    add(&mut objects, "gzip", ["HTTPRoute", "younger", ""], &json!({"compression": [{"type": "Gzip"}]}));
    let translation = translated(&objects);
    let verdict = &translation.verdicts.routes[&ObjectKey::new(Kind::HttpRoute, "infra", "younger")];
    let message = &verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap().message;
    let instead =
        "(SecurityPolicy infra/networks instead of SecurityPolicy infra/networks, TrafficPolicy infra/gzip)";
    assert!(message.contains(instead), "{message}");
    let networks = ["10.0.0.0/8", "::ffff:10.0.0.0/104"];
    assert_eq!(plugins(&translation), json!({"ip-restriction": {"whitelist": networks}}));
}

#[test]
fn a_filter_does_not_replace_the_headers_of_a_policy() {
    let mut objects = world();
    let set = json!([{"name": "X-A", "value": "2"}]);
    let filter = json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": set}});
    let backend = json!([{"name": "web", "port": 80}]);
    add_route(&mut objects, "web", &json!([{"filters": [filter], "backendRefs": backend}]));
    let headers = json!({"responseHeaders": {"set": [{"name": "X-A", "value": "1"}]}});
    add(&mut objects, "headers", GATEWAY, &headers);
    let translation = translated(&objects);
    assert_eq!(status(route(&translation, "/")), Some(500));
    let verdict = &translation.verdicts.routes[&ObjectKey::new(Kind::HttpRoute, "infra", "web")];
    let message = &verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap().message;
    let said = "TrafficPolicy infra/headers asks for the plugin response-rewrite, and so does a filter";
    assert!(message.contains(said), "{message}");
}

#[test]
fn a_changed_limit_changes_one_document_and_no_route() {
    let mut objects = world();
    add(&mut objects, "limit", GATEWAY, &limit(3));
    let gateway = ObjectName::new("infra", "public");
    let mut translator = Translator::new(Options::default());
    let before = translator.translate(&objects.snapshot(&gateway).unwrap());
    add(&mut objects, "limit", GATEWAY, &limit(4));
    let now = translator.translate(&objects.snapshot(&gateway).unwrap());
    assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 0 });
    assert_eq!(config(&now).documents().changes(config(&before).documents()).len(), 1);
    assert_eq!(plugins(&now)["limit-count"]["count"], 4);
    // A limit that becomes invalid closes its rules, and a valid one opens them again.
    for (requests, expected) in [(0, Some(500)), (5, None)] {
        add(&mut objects, "limit", GATEWAY, &limit(requests));
        let now = translator.translate(&objects.snapshot(&gateway).unwrap());
        assert_eq!(status(route(&now, "/")), expected, "{requests}");
        assert_eq!(config(&now), config(&run(&objects, &Options::default())));
    }
}

#[test]
fn brotli_is_limited() {
    let translation = under(&json!({"compression": [{"type": "Brotli"}]}));
    let verdict = verdict(&translation, (TRAFFIC, "policy"));
    let (limited, _, message) = condition(verdict, ConditionType::Limited);
    assert!(limited == ConditionStatus::True && message.contains("spec.compression"), "{message}");
    let translation = under(&json!({"compression": [{"type": "Gzip"}]}));
    let verdict = crate::policy::fixture::verdict(&translation, (TRAFFIC, "policy"));
    assert!(verdict.conditions.get(ConditionType::Limited).is_none());
}

#[test]
fn the_older_of_two_policies_counts_also_with_a_bad_limit() {
    for (requests, expected) in [(3, None), (0, Some(500))] {
        let mut objects = world();
        // Policies of one age are in the order of their names.
        add(&mut objects, "a", ROUTE, &limit(requests));
        add(&mut objects, "b", ROUTE, &json!({"requestID": {}, "rateLimit": limit(9)["rateLimit"]}));
        let translation = translated(&objects);
        assert_eq!(status(route(&translation, "/")), expected);
        let (is_accepted, reason, message) = accepted(&translation, "b");
        assert_eq!((is_accepted, reason), (ConditionStatus::False, Reason::Conflicted));
        assert!(message.contains("TrafficPolicy infra/a"), "{message}");
        if expected.is_none() {
            assert_eq!(plugins(&translation)["limit-count"]["count"], 3);
            assert!(plugins(&translation).get("request-id").is_none());
        }
    }
}
