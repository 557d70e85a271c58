//! From a parentRef to listeners.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::attach::{ListenerSupport, judge_listeners};
use crate::fixture::{add_route, gateway, snapshot};
use crate::model::{GATEWAY_GROUP, Kind, ObjectKey};
use crate::normalise::{Extensions, normalise_route};

/// The listeners the route attaches to through its first parentRef, or the reason and field of the refusal.
fn attach(listeners: &Value, route: &Value) -> Result<Vec<usize>, (Reason, String)> {
    let mut objects = gateway(listeners);
    add_route(&mut objects, "r", route);
    let snapshot = snapshot(&objects);
    let references = References::new(&snapshot.referents);
    let key = Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public"));
    let listeners = judge_listeners(
        &snapshot,
        &key,
        &references,
        ListenerSupport::unfronted(false, usize::MAX),
        &mut Vec::new(),
    );
    let route = normalise_route(
        &snapshot.routes[&ObjectKey::new(Kind::HttpRoute, "infra", "r")],
        &Extensions::default(),
    );
    let attachment = attach_route(&route, &listeners, &references).remove(0);
    attachment.outcome.map_err(|refusal| (refusal.reason, refusal.at.to_string()))
}

fn refused(reason: Reason, field: &str) -> Result<Vec<usize>, (Reason, String)> {
    Err((reason, field.to_owned()))
}

fn through(parent: &Value) -> Result<Vec<usize>, (Reason, String)> {
    let listeners = json!([
        {"name": "a", "port": 80, "protocol": "HTTP"},
        {"name": "b", "port": 81, "protocol": "HTTP"},
        {"name": "huge", "port": 70_000, "protocol": "HTTP"},
        {"name": "below", "port": -1, "protocol": "HTTP"},
    ]);
    let mut parent = parent.clone();
    parent["name"] = json!("public");
    attach(&listeners, &json!({"parentRefs": [parent]}))
}

#[test]
fn section_name_and_port_select_listeners() {
    assert_eq!(through(&json!({})), Ok(vec![0, 1, 2, 3]));
    assert_eq!(through(&json!({"sectionName": ""})), Ok(vec![0, 1, 2, 3]));
    assert_eq!(through(&json!({"sectionName": "b"})), Ok(vec![1]));
    assert_eq!(through(&json!({"port": 81})), Ok(vec![1]));
    assert_eq!(through(&json!({"sectionName": "b", "port": 81})), Ok(vec![1]));
    let nothing = refused(Reason::NoMatchingParent, "spec.parentRefs[0]");
    assert_eq!(through(&json!({"sectionName": "c"})), nothing);
    assert_eq!(through(&json!({"sectionName": "b", "port": 80})), nothing);
    assert_eq!(through(&json!({"port": 82})), nothing);
}

/// Whether a listener is accepted plays no part, so neither does a port it cannot have.
#[test]
fn ports_are_compared_as_written() {
    assert_eq!(through(&json!({"port": 70_000})), Ok(vec![2]));
    assert_eq!(through(&json!({"port": -1})), Ok(vec![3]));
    assert_eq!(through(&json!({"port": 0})), refused(Reason::NoMatchingParent, "spec.parentRefs[0]"));
}

#[test]
fn parents_that_are_not_the_gateway_are_none_of_ours() {
    let namespace = "infra";
    let gateway = ObjectKey::new(Kind::Gateway, "infra", "public");
    let parent = |group: Option<&str>, kind: Option<&str>, namespace: Option<&str>, name: &str| ParentRef {
        index: 0,
        group: group.map(str::to_owned),
        kind: kind.map(str::to_owned),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        section_name: None,
        port: None,
    };
    let is_ours = |parent: ParentRef| parent.names(namespace, &gateway);
    assert!(is_ours(parent(None, None, None, "public")));
    assert!(is_ours(parent(Some(GATEWAY_GROUP), Some("Gateway"), Some("infra"), "public")));
    assert!(!is_ours(parent(None, None, Some("app"), "public")));
    assert!(!is_ours(parent(None, None, None, "other")));
    assert!(!is_ours(parent(None, Some("Service"), None, "public")));
    assert!(!is_ours(parent(Some(""), None, None, "public")));
}

#[test]
fn kind_then_namespace_then_hostname_decide() {
    let route = json!({"parentRefs": [{"name": "public"}], "hostnames": ["a.test"]});
    let one = |listener: Value| {
        let mut listener = listener;
        for (field, value) in [("name", json!("l")), ("port", json!(80)), ("protocol", json!("HTTP"))] {
            listener[field] = value;
        }
        attach(&json!([listener]), &route)
    };
    assert_eq!(one(json!({"hostname": "*.test"})), Ok(vec![0]));
    let not_allowed = refused(Reason::NotAllowedByListeners, "spec.parentRefs[0]");
    // The hostname does not fit either.
    assert_eq!(
        one(json!({"hostname": "b.test", "allowedRoutes": {"kinds": [{"kind": "TCPRoute"}]}})),
        not_allowed
    );
    assert_eq!(
        one(
            json!({"allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"a": "b"}}}}})
        ),
        not_allowed
    );
    assert_eq!(
        one(json!({"hostname": "b.test"})),
        refused(Reason::NoMatchingListenerHostname, "spec.hostnames")
    );
}

#[test]
fn a_route_whose_hostnames_are_all_unusable_is_not_a_route_for_every_host() {
    let listeners = json!([{"name": "l", "port": 80, "protocol": "HTTP"}]);
    let route = json!({"parentRefs": [{"name": "public"}], "hostnames": ["10.0.0.1"]});
    assert_eq!(attach(&listeners, &route), refused(Reason::NoMatchingListenerHostname, "spec.hostnames"));
}

#[test]
fn the_served_name_is_the_narrower_one_and_the_original_is_kept() {
    let host = |name: &str| Hostname::parse(name).unwrap();
    let hostnames = |names: &[&str]| Hostnames::Named(names.iter().map(|name| host(name)).collect());
    let listener = host("*.example.com");
    let names = served_names(&hostnames(&["*.com", "a.example.com", "example.com"]), Some(&listener));
    assert_eq!(
        names,
        [
            ServedName { served: Some(listener.clone()), original: Some(host("*.com")) },
            ServedName { served: Some(host("a.example.com")), original: Some(host("a.example.com")) },
        ]
    );
    let any = served_names(&Hostnames::Any, Some(&listener));
    assert_eq!(any, [ServedName { served: Some(listener), original: None }]);
    assert_eq!(served_names(&Hostnames::Any, None), [ServedName { served: None, original: None }]);
}
