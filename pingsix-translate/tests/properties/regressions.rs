//! Tables that once were judged or answered wrongly, as small as they get.

use pingsix_translate::Layout;
use pingsix_translate::status::{ConditionStatus, ConditionType, Reason};
use serde_json::{Value, json};

use crate::case::{Case, Setting};

const SHARED: Setting = Setting { layout: Layout::Shared, responder: true };

fn gateway(listeners: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": { "namespace": "infra", "name": "public", "generation": 1 },
        "spec": { "gatewayClassName": "pingsix", "listeners": listeners },
    })
}

fn route(hostname: &str, sections: &[&str]) -> Value {
    let parents: Vec<Value> =
        sections.iter().map(|section| json!({ "name": "public", "sectionName": section })).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "namespace": "infra", "name": "web", "generation": 1 },
        "spec": { "hostnames": [hostname], "parentRefs": parents, "rules": [{}] },
    })
}

/// Status and reason of a condition of a parentRef of the only route.
fn of_parent(case: &Case, parent: usize, kind: ConditionType) -> Option<(ConditionStatus, Reason)> {
    let verdict = case.translation.verdicts.routes.values().next().unwrap();
    let condition = verdict.parents[parent].conditions.get(kind)?;
    Some((condition.status, condition.reason))
}

/// Port 80 has a wider listener that all hosts of the route fall to a narrower one of, and nothing is served.
#[test]
fn a_route_is_not_accepted_for_a_listener_that_serves_none_of_its_hosts() {
    let listeners = json!([
        { "name": "narrow", "port": 80, "protocol": "HTTP", "hostname": "*.com" },
        { "name": "wide", "port": 80, "protocol": "HTTP" },
        { "name": "other", "port": 8080, "protocol": "HTTP" },
    ]);
    let mut route = route("a.example.com", &[]);
    // One parentRef with both, so that only `other` serves the host, beside `narrow` without the route.
    route["spec"]["parentRefs"] = json!([{ "name": "public" }]);
    let mut gateway = gateway(&listeners);
    gateway["spec"]["listeners"][0]["allowedRoutes"]["namespaces"] =
        json!({ "from": "Selector", "selector": { "matchLabels": { "team": "nobody" } } });
    let case = Case::new(&[gateway, route], SHARED);
    let accepted = of_parent(&case, 0, ConditionType::Accepted);
    assert_eq!(accepted, Some((ConditionStatus::False, Reason::UnsupportedValue)));
    assert_eq!(of_parent(&case, 0, ConditionType::PartiallyInvalid), None);
}

/// The port without the route serves one host of the wildcard only.
#[test]
fn a_route_refused_for_some_hosts_is_accepted_and_partially_invalid() {
    let listeners = json!([
        { "name": "all", "port": 80, "protocol": "HTTP" },
        { "name": "one", "port": 8080, "protocol": "HTTP", "hostname": "a.example.com" },
    ]);
    let case = Case::new(&[gateway(&listeners), route("*.example.com", &["all"])], SHARED);
    let accepted = of_parent(&case, 0, ConditionType::Accepted);
    assert_eq!(accepted, Some((ConditionStatus::True, Reason::Accepted)));
    let partially = of_parent(&case, 0, ConditionType::PartiallyInvalid);
    assert_eq!(partially, Some((ConditionStatus::True, Reason::UnsupportedValue)));
}

#[test]
fn a_conflicted_listener_with_kinds_it_cannot_carry_is_also_unresolved() {
    let kinds = json!({ "kinds": [{ "kind": "TCPRoute" }] });
    let listeners = json!([
        { "name": "first", "port": 80, "protocol": "HTTP" },
        { "name": "second", "port": 80, "protocol": "HTTP", "allowedRoutes": kinds },
    ]);
    let case = Case::new(&[gateway(&listeners)], SHARED);
    let listeners = &case.translation.verdicts.gateway.as_ref().unwrap().listeners;
    let resolved = listeners[1].conditions.get(ConditionType::ResolvedRefs).unwrap();
    assert_eq!((resolved.status, resolved.reason), (ConditionStatus::False, Reason::InvalidRouteKinds));
    assert!(listeners[1].conditions.is_true(ConditionType::Conflicted));
    assert!(listeners[0].conditions.is_true(ConditionType::ResolvedRefs));
}
