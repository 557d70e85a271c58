//! Statuses before and after a merge.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::{Address, Layout, ObjectKey, ParentRef, Reason};
use crate::status::{Ancestor, Condition, ConditionStatus, ParentVerdict};

const OURS: &str = "example.com/ours";
const THEIRS: &str = "example.com/theirs";
const EARLIER: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-02-01T00:00:00Z";

fn merge_at(now: &str) -> StatusMerge {
    StatusMerge::new(OURS, &serde_json::from_value(json!(now)).unwrap())
}

fn conditions(accepted: bool) -> Conditions {
    let status = if accepted { ConditionStatus::True } else { ConditionStatus::False };
    Conditions::from(Condition {
        kind: ConditionType::Accepted,
        status,
        reason: Reason::Accepted,
        message: "A sentence.".to_owned(),
        observed_generation: 3,
    })
}

/// A condition as it stands in a status.
fn written(kind: &str, status: &str, time: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "Accepted", "message": "A sentence.", "observedGeneration": 3,
        "lastTransitionTime": time,
    })
}

fn gateway(accepted: bool, listeners: &[(&str, bool)]) -> GatewayVerdict {
    GatewayVerdict {
        key: Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public")),
        generation: 3,
        layout: Layout::Shared,
        conditions: conditions(accepted),
        obstacle: None,
        listeners: listeners
            .iter()
            .map(|&(name, accepted)| ListenerVerdict {
                name: name.to_owned(),
                port: 80,
                protocol: "HTTP".to_owned(),
                hostname: None,
                supported_kinds: Vec::new(),
                attached_routes: 1,
                conditions: conditions(accepted),
                keeps_hosts: true,
                data_plane: None,
                front: None,
            })
            .collect(),
        attached_listener_sets: 2,
    }
}

fn parent(name: &str, section_name: Option<&str>) -> ParentRef {
    ParentRef {
        index: 0,
        group: None,
        kind: None,
        namespace: None,
        name: name.to_owned(),
        section_name: section_name.map(str::to_owned),
        port: None,
    }
}

fn route(parents: &[(&str, Option<&str>, bool)]) -> RouteVerdict {
    RouteVerdict {
        key: Arc::new(ObjectKey::new(Kind::HttpRoute, "infra", "r")),
        generation: 3,
        parents: parents
            .iter()
            .map(|&(name, section, accepted)| ParentVerdict {
                parent_ref: parent(name, section),
                conditions: conditions(accepted),
            })
            .collect(),
    }
}

#[test]
fn a_first_status_has_everything_with_the_time() {
    let merged = merge_at(LATER).gateway(&Value::Null, &gateway(true, &[("a", true)]));
    assert_eq!(
        merged,
        json!({
            "conditions": [written("Accepted", "True", LATER)],
            "listeners": [{
                "name": "a", "supportedKinds": [], "attachedRoutes": 1,
                "conditions": [written("Accepted", "True", LATER)],
            }],
            "attachedListenerSets": 2,
        })
    );
}

#[test]
fn the_time_of_a_transition_changes_with_the_status_alone() {
    let mut current = merge_at(EARLIER).gateway(&Value::Null, &gateway(true, &[("a", true)]));
    assert_eq!(merge_at(LATER).gateway(&current, &gateway(true, &[("a", true)])), current);
    current["conditions"][0]["message"] = json!("Another sentence.");
    current["conditions"][0]["observedGeneration"] = json!(2);
    let merged = merge_at(LATER).gateway(&current, &gateway(true, &[("a", false)]));
    assert_eq!(merged["conditions"][0], written("Accepted", "True", EARLIER));
    assert_eq!(merged["listeners"][0]["conditions"][0], written("Accepted", "False", LATER));
}

#[test]
fn foreign_conditions_stay_and_obsolete_ones_of_ours_are_removed() {
    let foreign = json!({"type": "example.com/Checked", "status": "Unknown", "odd": [1, {"a": null}]});
    let current = json!({
        "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
        "conditions": [foreign, written("Programmed", "True", EARLIER), written("Accepted", "True", EARLIER)],
        "listeners": [
            {"name": "gone", "conditions": []},
            {"name": "a", "attachedRoutes": 7, "conditions": [written("Conflicted", "True", EARLIER), foreign]},
        ],
    });
    let merged = merge_at(LATER).gateway(&current, &gateway(true, &[("a", true)]));
    assert_eq!(merged["addresses"], current["addresses"]);
    assert_eq!(merged["conditions"], json!([foreign, written("Accepted", "True", EARLIER)]));
    assert_eq!(
        merged["listeners"],
        json!([{
            "name": "a", "supportedKinds": [], "attachedRoutes": 1,
            "conditions": [foreign, written("Accepted", "True", LATER)],
        }])
    );
}

/// The API server writes these when an object is created.
#[test]
fn default_conditions_are_overwritten() {
    let current = json!({"conditions": [
        {"type": "Accepted", "status": "Unknown", "reason": "Pending", "message": "Waiting for controller",
            "lastTransitionTime": "1970-01-01T00:00:00Z"},
    ]});
    let verdict = ListenerSetVerdict {
        key: Arc::new(ObjectKey::new(Kind::ListenerSet, "infra", "s")),
        generation: 3,
        conditions: conditions(true),
        listeners: Vec::new(),
    };
    let merged = merge_at(LATER).listener_set(&current, &verdict);
    assert_eq!(merged, json!({"conditions": [written("Accepted", "True", LATER)], "listeners": []}));
}

#[test]
fn foreign_entries_keep_their_places_and_ours_go_with_their_references() {
    let theirs = json!({"parentRef": {"name": "public"}, "controllerName": THEIRS, "conditions": [{"x": 1}]});
    let entry = |name: &str, conditions: Value| {
        json!({
            "parentRef": {"group": GATEWAY_GROUP, "kind": "Gateway", "name": name}, "controllerName": OURS,
            "conditions": conditions,
        })
    };
    let foreign = json!({"type": "example.com/Checked", "status": "True"});
    let current = json!({"parents": [
        entry("gone", json!([])),
        theirs,
        entry("public", json!([written("PartiallyInvalid", "True", EARLIER), foreign, written("Accepted", "True", EARLIER)])),
    ]});
    let verdict = route(&[("public", None, true), ("new", None, false)]);
    let merged = merge_at(LATER).route(&current, &verdict);
    assert_eq!(
        merged,
        json!({"parents": [
            theirs,
            entry("public", json!([foreign, written("Accepted", "True", EARLIER)])),
            // As written; the API server adds the defaults.
            {"parentRef": {"name": "new"}, "controllerName": OURS,
                "conditions": [written("Accepted", "False", LATER)]},
        ]})
    );
    assert_eq!(merge_at(LATER).route(&merged, &verdict), merged);
    let nothing = merge_at(LATER).route(&merged, &route(&[]));
    assert_eq!(nothing, json!({"parents": [theirs]}));
}

#[test]
fn a_route_that_is_none_of_ours_gets_no_status() {
    assert_eq!(merge_at(LATER).route(&Value::Null, &route(&[])), Value::Null);
    assert_eq!(merge_at(LATER).route(&json!({"parents": []}), &route(&[])), json!({"parents": []}));
}

#[test]
fn sections_of_one_gateway_are_entries_of_their_own() {
    let verdict =
        route(&[("public", Some("a"), true), ("public", Some("b"), false), ("public", Some("a"), true)]);
    let merged = merge_at(LATER).route(&Value::Null, &verdict);
    let entries = merged["parents"].as_array().unwrap();
    let sections: Vec<&Value> = entries.iter().map(|entry| &entry["parentRef"]["sectionName"]).collect();
    assert_eq!(sections, ["a", "b"]);
    assert_eq!(entries[1]["conditions"][0]["status"], "False");
}

fn policy(ancestor: &str, accepted: bool) -> PolicyVerdict {
    PolicyVerdict {
        key: Arc::new(ObjectKey::new(Kind::BackendTlsPolicy, "infra", "p")),
        generation: 3,
        ancestor: Ancestor::Owner(Arc::new(ObjectKey::new(Kind::Gateway, "infra", ancestor))),
        conditions: conditions(accepted),
    }
}

#[test]
fn a_full_list_of_ancestors_takes_no_more() {
    let theirs: Vec<Value> = (0..15)
        .map(|index| json!({"ancestorRef": {"name": format!("g{index}")}, "controllerName": THEIRS}))
        .collect();
    let current = json!({"ancestors": theirs});
    let merged = merge_at(LATER).policy(&current, &[policy("one", true), policy("two", true)]);
    let ancestors = merged["ancestors"].as_array().unwrap();
    assert_eq!(ancestors.len(), 16);
    assert_eq!(ancestors[..15], theirs);
    assert_eq!(
        ancestors[15]["ancestorRef"],
        json!({"group": GATEWAY_GROUP, "kind": "Gateway", "namespace": "infra", "name": "one"})
    );
    // An existing entry keeps its place.
    let kept = merge_at(LATER).policy(&merged, &[policy("two", true), policy("one", false)]);
    assert_eq!(kept["ancestors"][15]["ancestorRef"]["name"], "one");
    assert_eq!(kept["ancestors"][15]["conditions"][0]["status"], "False");
}

fn class(features: Vec<&'static str>) -> GatewayClassVerdict {
    GatewayClassVerdict {
        key: Arc::new(ObjectKey::new(Kind::GatewayClass, "", "public")),
        generation: 3,
        conditions: conditions(true),
        is_managed: false,
        supported_features: features,
        problems: Vec::new(),
    }
}

#[test]
fn a_class_claims_its_features_while_it_is_accepted() {
    let accepted = class(vec!["Gateway", "HTTPRoute"]);
    let merged = merge_at(LATER).gateway_class(&Value::Null, &accepted);
    assert_eq!(merged["supportedFeatures"], json!([{"name": "Gateway"}, {"name": "HTTPRoute"}]));
    let refused = merge_at(LATER).gateway_class(&merged, &class(Vec::new()));
    assert_eq!(refused.get("supportedFeatures"), None);
}

fn ip(last: u8) -> Address {
    Address::Ip([192, 0, 2, last].into())
}

#[test]
fn addresses_of_a_gateway_are_those_given_in_their_order_and_each_once() {
    let name = Address::Hostname("lb.example.com".to_owned());
    let merge = merge_at(LATER);
    let status = merge.gateway_addresses(&json!({"odd": 1}), &[ip(2), name, ip(2), ip(1)]);
    assert_eq!(
        status,
        json!({"odd": 1, "addresses": [
            {"type": "IPAddress", "value": "192.0.2.2"},
            {"type": "Hostname", "value": "lb.example.com"},
            {"type": "IPAddress", "value": "192.0.2.1"},
        ]})
    );
    assert_eq!(merge.gateway_addresses(&status, &[]), json!({"odd": 1}));
    assert_eq!(merge.gateway_addresses(&Value::Null, &[]), Value::Null);
    let many: Vec<Address> = (0..40).map(ip).collect();
    assert_eq!(merge.gateway_addresses(&Value::Null, &many)["addresses"].as_array().unwrap().len(), 16);
}

#[test]
fn an_ingress_is_reached_where_the_data_plane_is() {
    let merge = merge_at(LATER);
    let current = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ports": [{"port": 80}]}, {"ip": "192.0.2.9"}]}});
    let status = merge.ingress(&current, &[ip(1), Address::Hostname("a.example".to_owned())]);
    assert_eq!(
        status,
        json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ports": [{"port": 80}]}, {"hostname": "a.example"}]}})
    );
    assert_eq!(merge.ingress(&Value::Null, &[]), Value::Null);
    assert_eq!(merge.ingress(&current, &[]), json!({"loadBalancer": {}}));
    // A released Ingress loses only our addresses.
    assert_eq!(merge.release_ingress(&current, &[ip(1), ip(9)]), json!({"loadBalancer": {}}));
    assert_eq!(merge.release_ingress(&current, &[ip(1)]), current);
    assert_eq!(merge.release_ingress(&current, &[ip(9), ip(1)]), current);
    assert_eq!(merge.release_ingress(&Value::Null, &[]), Value::Null);
}

#[test]
fn a_gateway_that_is_released_loses_what_is_certainly_ours() {
    let merge = merge_at(LATER);
    let verdict = gateway(true, &[("a", true), ("b", true)]);
    let mine = merge.gateway_addresses(&merge.gateway(&Value::Null, &verdict), &[ip(1)]);
    // Without content of other controllers, nothing is left, whether or not the spec has changed.
    for generation in [3, 4] {
        let released = merge.release_gateway(&mine, generation, &verdict, &[ip(1)]);
        assert_eq!(released, json!({"conditions": [], "listeners": []}));
    }
    // Others have: their conditions, listeners and addresses stay.
    let foreign = json!({"type": "example.com/Checked", "status": "True"});
    let mut theirs = written("Accepted", "True", EARLIER);
    theirs["observedGeneration"] = json!(4);
    let mut outdated = written("Programmed", "False", EARLIER);
    outdated["observedGeneration"] = json!(2);
    let mut current = mine.clone();
    current["conditions"] = json!([foreign, theirs, outdated]);
    current["listeners"][1]["conditions"].as_array_mut().unwrap().push(foreign.clone());
    current["addresses"] = json!([{"type": "IPAddress", "value": "198.51.100.1"}]);
    let released = merge.release_gateway(&current, 4, &verdict, &[ip(1)]);
    assert_eq!(
        released,
        json!({
            "conditions": [foreign, theirs],
            "listeners": [{"name": "b", "supportedKinds": [], "attachedRoutes": 1, "conditions": [foreign]}],
            "attachedListenerSets": 2,
            "addresses": [{"type": "IPAddress", "value": "198.51.100.1"}],
        })
    );
    assert_eq!(merge.release_gateway(&released, 4, &verdict, &[ip(1)]), released);
    assert_eq!(merge.release_gateway(&Value::Null, 4, &verdict, &[ip(1)]), Value::Null);
    // A class that was recreated for another controller has the same generation: other words indicate another author.
    let mut reworded = mine.clone();
    reworded["conditions"][0]["message"] = json!("Another sentence.");
    let released = merge.release_gateway(&reworded, 3, &verdict, &[]);
    assert_eq!(released["conditions"], reworded["conditions"]);
    assert_eq!(released["addresses"], mine["addresses"]);
}

#[test]
fn a_listener_set_that_is_released_keeps_its_listeners_of_others() {
    let merge = merge_at(LATER);
    let GatewayVerdict { key, generation, conditions, listeners, .. } = gateway(true, &[("a", false)]);
    let verdict = ListenerSetVerdict { key, generation, conditions, listeners };
    let mut current = merge.listener_set(&Value::Null, &verdict);
    current["listeners"].as_array_mut().unwrap().push(json!({"name": "theirs", "conditions": []}));
    assert_eq!(
        merge.release_listener_set(&current, 4, &verdict),
        json!({"conditions": [], "listeners": [{"name": "theirs", "conditions": []}]})
    );
}

#[test]
fn entries_that_carry_our_name_go_from_routes_and_policies_alike() {
    let merge = merge_at(LATER);
    let current = merge.route(&json!({"odd": 1}), &route(&[("public", None, true)]));
    assert_eq!(merge.release_entries(&current), json!({"odd": 1, "parents": []}));
    let current = merge.policy(&Value::Null, &[policy("one", true)]);
    assert_eq!(merge.release_entries(&current), json!({"ancestors": []}));
    assert_eq!(merge.release_entries(&Value::Null), Value::Null);
}

/// Anything that could stand in a status.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

fn a_condition() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "Accepted",
        "Programmed",
        "ResolvedRefs",
        "example.com/A",
        "example.com/B",
    ]);
    let odd = value().prop_map(|odd| json!({"type": "example.com/Odd", "odd": odd}));
    prop_oneof![
        (kinds, any::<bool>())
            .prop_map(|(kind, status)| { written(kind, if status { "True" } else { "False" }, EARLIER) }),
        odd,
        value(),
    ]
}

fn a_list_of_conditions() -> impl Strategy<Value = Value> {
    prop::collection::vec(a_condition(), 0..4).prop_map(|conditions| {
        // The API server ensures one entry per type.
        let mut seen = std::collections::BTreeSet::new();
        conditions.into_iter().filter(|one| seen.insert(one["type"].to_string())).collect()
    })
}

fn a_gateway_status() -> impl Strategy<Value = Value> {
    let listeners = prop::collection::btree_map("[a-d]", (a_list_of_conditions(), value()), 0..4);
    (a_list_of_conditions(), listeners, value()).prop_map(|(conditions, listeners, odd)| {
        let listeners: Value = listeners
            .into_iter()
            .map(|(name, (conditions, odd))| json!({"name": name, "conditions": conditions, "odd": odd}))
            .collect();
        json!({"conditions": conditions, "listeners": listeners, "addresses": odd})
    })
}

fn a_route_status() -> impl Strategy<Value = Value> {
    let entry = (prop::sample::select(vec!["a", "b", "c"]), prop::sample::select(vec![OURS, THEIRS]));
    let entries = prop::collection::vec((entry, a_list_of_conditions(), value()), 0..5);
    entries.prop_map(|entries| {
        let parents: Value = entries
            .into_iter()
            .map(|((name, controller), conditions, odd)| {
                json!({
                    "parentRef": {"name": name}, "controllerName": controller, "conditions": conditions, "odd": odd,
                })
            })
            .collect();
        json!({"parents": parents})
    })
}

fn is_foreign(condition: &Value) -> bool {
    !is_ours(&condition["type"])
}

/// The conditions of others, as they stand in a list.
fn foreign(conditions: &Value) -> Vec<&Value> {
    conditions.as_array().into_iter().flatten().filter(|condition| is_foreign(condition)).collect()
}

fn theirs(status: &Value) -> Vec<&Value> {
    let entries = status["parents"].as_array().into_iter().flatten();
    entries.filter(|entry| entry["controllerName"] != OURS).collect()
}

proptest! {
    #[test]
    fn merging_twice_is_merging_once_and_leaves_others_alone(
        current in prop_oneof![a_gateway_status(), value()],
        accepted in any::<bool>(),
        names in prop::collection::btree_map("[a-d]", any::<bool>(), 0..4),
    ) {
        let listeners: Vec<(&str, bool)> = names.iter().map(|(name, accepted)| (name.as_str(), *accepted)).collect();
        let verdict = gateway(accepted, &listeners);
        let merged = merge_at(LATER).gateway(&current, &verdict);
        prop_assert_eq!(&merge_at(EARLIER).gateway(&merged, &verdict), &merged);
        prop_assert_eq!(foreign(&merged["conditions"]), foreign(&current["conditions"]));
        prop_assert_eq!(&merged["addresses"], &current["addresses"]);
        let stated: Vec<&Value> = merged["listeners"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
        prop_assert_eq!(stated, listeners.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for entry in merged["listeners"].as_array().unwrap() {
            let before = current["listeners"].as_array().into_iter().flatten().find(|other| other["name"] == entry["name"]);
            if let Some(before) = before {
                prop_assert_eq!(foreign(&entry["conditions"]), foreign(&before["conditions"]));
                prop_assert_eq!(&entry["odd"], &before["odd"]);
            }
        }
    }

    #[test]
    fn releasing_does_no_harm_to_others_whatever_stands_there(
        current in prop_oneof![a_gateway_status(), a_route_status(), value()],
        generation in 0..6_i64,
    ) {
        let merge = merge_at(LATER);
        let verdict = gateway(true, &[("a", true)]);
        let released = merge.release_gateway(&merge.release_entries(&current), generation, &verdict, &[]);
        prop_assert_eq!(foreign(&released["conditions"]), foreign(&current["conditions"]));
        prop_assert_eq!(theirs(&released), theirs(&current));
        let again = merge.release_gateway(&merge.release_entries(&released), generation, &verdict, &[]);
        prop_assert_eq!(again, released);
    }

    #[test]
    fn entries_of_others_never_change(
        current in prop_oneof![a_route_status(), value()],
        names in prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c", "d"]), any::<bool>(), 0..4),
    ) {
        let parents: Vec<(&str, Option<&str>, bool)> =
            names.iter().map(|(name, accepted)| (*name, None, *accepted)).collect();
        let verdict = route(&parents);
        let merged = merge_at(LATER).route(&current, &verdict);
        prop_assert_eq!(&merge_at(EARLIER).route(&merged, &verdict), &merged);
        prop_assert_eq!(theirs(&merged), theirs(&current));
        let entries = merged["parents"].as_array().into_iter().flatten();
        let ours: Vec<&Value> = entries.filter(|entry| entry["controllerName"] == OURS).collect();
        prop_assert_eq!(ours.len(), names.len());
        for entry in ours {
            let name = entry["parentRef"]["name"].as_str().unwrap();
            let stated = entry["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Accepted").unwrap();
            prop_assert_eq!(&stated["status"], if names[name] { "True" } else { "False" });
        }
    }
}
