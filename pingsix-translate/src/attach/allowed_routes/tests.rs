//! Namespaces and kinds.

use serde_json::{Value, json};

use super::*;
use crate::fixture::object;

fn listener(allowed_routes: &Value) -> std::sync::Arc<api::GatewayListeners> {
    object(json!({"name": "l", "port": 80, "protocol": "HTTP", "allowedRoutes": allowed_routes}))
}

fn at() -> FieldPath {
    FieldPath::new("l")
}

/// Whether routes of namespace `app`, which has label team=shop, may attach to a Gateway of namespace `infra`.
fn admits(namespaces: &Value) -> bool {
    let labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
    let listener = listener(&json!({"namespaces": namespaces}));
    AllowedNamespaces::of(&listener, &at()).unwrap().admits("infra", "app", &labels)
}

fn selects(expression: &Value) -> bool {
    admits(&json!({"from": "Selector", "selector": {"matchExpressions": [expression]}}))
}

#[test]
fn routes_of_the_gateways_own_namespace_alone_unless_said_otherwise() {
    assert!(!admits(&json!({})));
    assert!(!admits(&json!({"from": "Same"})));
    assert!(admits(&json!({"from": "All"})));
}

#[test]
fn all_requirements_of_a_selector_must_hold() {
    assert!(admits(&json!({"from": "Selector", "selector": {}})));
    assert!(admits(&json!({"from": "Selector", "selector": {"matchLabels": {"team": "shop"}}})));
    assert!(!admits(&json!({"from": "Selector", "selector": {"matchLabels": {"team": "shop", "a": "b"}}})));
    assert!(selects(&json!({"key": "team", "operator": "In", "values": ["a", "shop"]})));
    assert!(!selects(&json!({"key": "team", "operator": "NotIn", "values": ["a", "shop"]})));
    assert!(selects(&json!({"key": "absent", "operator": "NotIn", "values": ["a"]})));
    assert!(selects(&json!({"key": "team", "operator": "Exists"})));
    assert!(!selects(&json!({"key": "team", "operator": "DoesNotExist"})));
}

#[test]
fn a_selector_that_cannot_be_evaluated_is_refused_with_its_field() {
    for (namespaces, field) in [
        (json!({"from": "Selector"}), "l.allowedRoutes.namespaces.selector"),
        (
            json!({"from": "Selector", "selector": {"matchExpressions": [{"key": "team", "operator": "in", "values": ["a"]}]}}),
            "l.allowedRoutes.namespaces.selector.matchExpressions[0]",
        ),
        (
            json!({"from": "Selector", "selector": {"matchExpressions": [{"key": "team", "operator": "In"}]}}),
            "l.allowedRoutes.namespaces.selector.matchExpressions[0]",
        ),
    ] {
        let refusal =
            AllowedNamespaces::of(&listener(&json!({"namespaces": namespaces})), &at()).unwrap_err();
        assert_eq!((refusal.at.as_str(), refusal.reason), (field, Reason::UnsupportedValue));
    }
}

#[test]
fn kinds_that_cannot_attach_are_dropped_and_refused_one_by_one() {
    let kinds = |kinds: Value| {
        let (supported, refused) =
            supported_kinds(&listener(&json!({"kinds": kinds})), Protocol::Http, &at());
        let supported: Vec<String> = supported.into_iter().map(|kind| kind.kind).collect();
        let refused: Vec<String> = refused.into_iter().map(|refusal| refusal.at.to_string()).collect();
        (supported.join(" "), refused.join(" "))
    };
    let expect = |supported: &str, refused: &str| (supported.to_owned(), refused.to_owned());
    assert_eq!(kinds(json!([])), expect("HTTPRoute GRPCRoute", ""));
    assert_eq!(kinds(json!([{"kind": "GRPCRoute"}])), expect("GRPCRoute", ""));
    assert_eq!(kinds(json!([{"kind": "HTTPRoute"}, {"kind": "HTTPRoute"}])), expect("HTTPRoute", ""));
    assert_eq!(
        kinds(json!([{"kind": "TCPRoute"}, {"kind": "HTTPRoute"}, {"group": "a.b", "kind": "HTTPRoute"}])),
        expect("HTTPRoute", "l.allowedRoutes.kinds[0] l.allowedRoutes.kinds[2]")
    );
    assert_eq!(kinds(json!([{"kind": "TCPRoute"}])), expect("", "l.allowedRoutes.kinds[0]"));
}
