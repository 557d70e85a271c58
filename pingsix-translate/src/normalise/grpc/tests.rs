//! Normalised matches and refusals.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::fixture::{add_grpc_route, add_service, gateway, object, run};
use crate::model::{Options, Provenance};
use crate::normalise::Expectation;
use crate::pingsix::plugin::FaultInjection;

fn normalise(spec: &Value) -> Route {
    normalise_grpc_route(&object::<GrpcRoute>(json!({
        "metadata": {"namespace": "infra", "name": "calls"}, "spec": spec,
    })))
}

/// The only rule of a route with these matches.
fn rule(matches: &Value) -> Rule {
    normalise(&json!({"rules": [{"matches": matches}]})).rules.remove(0)
}

/// The path a method match comes to, and the fields that are refused, seen from the match.
fn path_of(method: &Value) -> (Option<(PathKind, String)>, Vec<String>) {
    let rule = rule(&json!([{"method": method}]));
    let fields = rule
        .refusals
        .iter()
        .map(|refusal| refusal.at.as_str().trim_start_matches("spec.rules[0].matches[0].").to_owned());
    let path = rule.matches.first().map(|one| (one.path.kind, one.path.text.to_string()));
    (path, fields.collect())
}

#[test]
fn a_method_match_is_a_path() {
    let served = |kind, text: &str| (Some((kind, text.to_owned())), Vec::new());
    assert_eq!(
        path_of(&json!({"service": "shop.v1.Cart", "method": "Add"})),
        served(PathKind::Exact, "/shop.v1.Cart/Add")
    );
    assert_eq!(
        path_of(&json!({"type": "Exact", "service": ".shop.Cart", "method": "_add2"})),
        served(PathKind::Exact, "/.shop.Cart/_add2")
    );
    assert_eq!(path_of(&json!({"service": "Cart"})), served(PathKind::Prefix, "/Cart"));
    assert_eq!(path_of(&json!({"service": "Cart", "method": ""})), served(PathKind::Prefix, "/Cart"));
    assert_eq!(path_of(&Value::Null), served(PathKind::Prefix, "/"));
}

#[test]
fn a_match_without_a_path_form_is_refused_and_matches_nothing() {
    let refused = |field: &str| (None, vec![field.to_owned()]);
    assert_eq!(path_of(&json!({"method": "Add"})), refused("method.service"));
    assert_eq!(path_of(&json!({})), refused("method.service"));
    assert_eq!(
        path_of(&json!({"type": "RegularExpression", "service": "C.*", "method": "Add"})),
        refused("method.type")
    );
    let long = "a".repeat(1024);
    assert_eq!(path_of(&json!({"service": long, "method": long})), refused("method"));
}

#[test]
fn names_that_are_none_are_refused_and_keep_their_matches() {
    for service in ["shop-cart", "1shop", "shop..Cart", "shop.", "..Cart", "shop/Cart", "ärger"] {
        let (path, fields) = path_of(&json!({"service": service, "method": "Add"}));
        assert_eq!(fields, ["method.service"], "{service}");
        assert!(path.is_some(), "{service}");
    }
    for method in ["Add/", "1", "a.b", "{x}"] {
        let (path, fields) = path_of(&json!({"service": "Cart", "method": method}));
        assert_eq!(fields, ["method.method"], "{method}");
        assert!(path.is_some(), "{method}");
    }
}

#[test]
fn headers_are_read_as_those_of_an_http_route() {
    let rule = rule(&json!([{"headers": [
        {"name": "X-B", "value": "2"},
        {"name": "x-a", "value": "1", "type": "RegularExpression"},
        {"name": "x-b", "value": "void"},
    ]}]));
    let expected = [
        Condition { variable: Variable::Header("x-a".to_owned()), expectation: Expectation::Present },
        Condition {
            variable: Variable::Header("x-b".to_owned()),
            expectation: Expectation::Equals("2".to_owned()),
        },
    ];
    assert_eq!(*rule.matches[0].conditions, expected);
    assert_eq!(rule.refusals[0].at.as_str(), "spec.rules[0].matches[0].headers[1].type");
}

#[test]
fn a_rule_without_matches_matches_every_call() {
    for spec in [json!({}), json!({"rules": []}), json!({"rules": [{}]}), json!({"rules": [{"matches": []}]})]
    {
        let route = normalise(&spec);
        assert_eq!(route.rules[0].matches[0].path, Path::root());
        assert!(route.rules[0].refusals.is_empty());
    }
}

#[test]
fn every_other_field_of_a_rule_is_refused_by_name() {
    let route = normalise(&json!({"rules": [{
        "sessionPersistence": {"sessionName": "s"},
        "backendRefs": [
            {"name": "web", "port": 80},
            {"name": "web", "port": 80, "weight": -1, "filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x"]}},
            ]},
        ],
    }]}));
    let fields: Vec<&str> = route.rules[0].refusals.iter().map(|refusal| refusal.at.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.rules[0].sessionPersistence",
            "spec.rules[0].backendRefs[1].weight",
            "spec.rules[0].backendRefs[1].filters",
        ]
    );
}

/// The filters of an HTTPRoute, with the list of the only backend after the rule's.
#[test]
fn filters_change_headers() {
    let remove = |kind: &str, name: &str| {
        let field = format!("{}{}", kind[..1].to_lowercase(), &kind[1..]);
        json!({"type": kind, field: {"remove": [name]}})
    };
    let rule = |spec: &Value| normalise(&json!({"rules": [spec]})).rules.remove(0);
    let backend = |filters: &Value| json!([{"name": "web", "port": 80, "filters": filters}]);
    let both = rule(&json!({
        "filters": [remove("RequestHeaderModifier", "a")],
        "backendRefs": backend(&json!([remove("ResponseHeaderModifier", "b")])),
    }));
    assert!(both.refusals.is_empty());
    let filters = both.filters.unwrap();
    assert!(!filters.request_headers.is_empty() && !filters.response_headers.is_empty());
    let refused = rule(&json!({
        "filters": [
            {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web", "port": 80}}},
            {"type": "ExtensionRef", "extensionRef": {"group": "a.test", "kind": "K", "name": "k"}},
        ],
    }));
    let fields: Vec<&str> = refused.refusals.iter().map(|refusal| refusal.at.as_str()).collect();
    assert_eq!(fields, ["spec.rules[0].filters[0].type", "spec.rules[0].filters[1].extensionRef"]);
}

/// Every cause of failure besides those of HTTPRoutes.
#[test]
fn a_rule_that_cannot_be_honoured_is_unavailable() {
    let calls = |header: Option<&str>, name: &str| {
        let headers: Vec<Value> = header.iter().map(|value| json!({"name": "x", "value": value})).collect();
        json!({
            "matches": [{"method": {"service": "Cart"}, "headers": headers}],
            "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": [name]}}],
            "backendRefs": [{"name": "web", "port": 80}],
        })
    };
    let statuses = |rules: &Value, listeners: &Value, responder: bool| -> BTreeSet<u16> {
        let mut objects = gateway(listeners);
        add_service(&mut objects, "web");
        let parents = json!([{"name": "public", "sectionName": "a"}]);
        add_grpc_route(&mut objects, "r", &json!({"parentRefs": parents, "rules": rules}));
        let responder = responder.then(|| ([127, 0, 0, 1], 9080).into());
        let translation = run(&objects, &Options { responder, ..Options::default() });
        let plane = translation.data_planes.values().next().unwrap();
        let aborts = plane.config.routes().filter_map(|(_, route)| route.plugins.get::<FaultInjection>());
        let aborts = aborts.map(|plugin| plugin.unwrap().abort.unwrap().http_status);
        let of_responder = plane.provenance.values().filter_map(|provenance| {
            if let Provenance::Status { status } = provenance { *status } else { None }
        });
        aborts.chain(of_responder).collect()
    };
    let one = json!([{"name": "a", "port": 80, "protocol": "HTTP"}]);
    let two =
        json!([{"name": "a", "port": 80, "protocol": "HTTP"}, {"name": "b", "port": 81, "protocol": "HTTP"}]);
    let unavailable = BTreeSet::from([503]);
    // No backend, no rule at all, one that leads nowhere, one that is refused, and a port too many.
    assert_eq!(statuses(&json!([{}]), &one, true), unavailable);
    assert_eq!(statuses(&json!([]), &one, true), unavailable);
    let missing = json!([{"backendRefs": [{"name": "missing", "port": 80}, {"name": "web", "port": 80}]}]);
    assert_eq!(statuses(&missing, &one, true), unavailable);
    assert_eq!(statuses(&json!([{"sessionPersistence": {}}]), &one, true), unavailable);
    assert_eq!(statuses(&json!([calls(None, "a")]), &two, true), unavailable);
    // Filters that differ, and conditions without a responder.
    let differ = json!([calls(Some("1"), "a"), calls(None, "b")]);
    assert_eq!(statuses(&differ, &one, true), unavailable);
    assert_eq!(statuses(&json!([calls(Some("1"), "a")]), &one, false), unavailable);
}

#[test]
fn default_gateways_are_not_used_and_said_to_be_so() {
    let limitations = |scope: &str| -> Vec<String> {
        let route = normalise(&json!({"useDefaultGateways": scope, "rules": [{}]}));
        assert!(route.refusals.is_empty());
        route.limitations.iter().map(|limitation| limitation.at.to_string()).collect()
    };
    assert_eq!(limitations("All"), ["spec.useDefaultGateways"]);
    assert!(limitations("None").is_empty());
}
