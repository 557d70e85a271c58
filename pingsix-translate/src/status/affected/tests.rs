use serde_json::{Value, json};

use crate::fixture::{add_listener_set, add_service, allow_listener_sets, gateway, object, run, snapshot};
use crate::model::{ConditionType, Kind, ObjectKey, Options};
use crate::pipeline::{TranslationMode, Translator};
use crate::snapshot::{Object, Objects};
use crate::status::{Conditions, Verdicts};

/// Gateway `infra/public` with listeners `a` and `b`, ListenerSet `infra/set` with listener `c`, and HTTPRoute `infra/web` with
/// rule `main`.
fn world() -> Objects {
    let mut objects = gateway(&json!([
        {"name": "a", "port": 80, "protocol": "HTTP"},
        {"name": "b", "port": 81, "protocol": "HTTP"},
    ]));
    allow_listener_sets(&mut objects);
    add_listener_set(
        &mut objects,
        ("infra", "set"),
        1,
        &json!([{"name": "c", "port": 82, "protocol": "HTTP"}]),
    );
    add_service(&mut objects, "web");
    add_route(&mut objects, "web");
    objects
}

fn add_route(objects: &mut Objects, name: &str) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "infra", "name": name, "generation": 3},
        "spec": {
            "parentRefs": [{"name": "public", "sectionName": "a"}, {"name": "public", "sectionName": "b"}],
            "rules": [{
                "name": "main",
                "matches": [{"path": {"value": format!("/{name}")}}],
                "backendRefs": [{"name": "web", "port": 80}],
            }],
        },
    }))));
}

/// Adds SecurityPolicy `infra/<name>`, which allows a network, for targets of this kind, name and section.
fn add_policy(objects: &mut Objects, name: &str, targets: &[[&str; 3]], network: &str) {
    let targets = targets.iter().map(|[kind, name, section]| {
        let mut target = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": name});
        if !section.is_empty() {
            target["sectionName"] = json!(section);
        }
        target
    });
    objects.insert(Object::SecurityPolicy(object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"namespace": "infra", "name": name, "generation": 5, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"targetRefs": targets.collect::<Vec<Value>>(), "authorization": {"allow": [network]}},
    }))));
}

const NETWORK: &str = "10.0.0.0/8";

fn verdicts(objects: &Objects) -> Verdicts {
    run(objects, &Options::default()).verdicts
}

fn message(conditions: &Conditions) -> Option<&str> {
    conditions.get(ConditionType::PolicyAffected).map(|condition| condition.message.as_str())
}

/// The messages of the Gateway, the ListenerSet, listeners a, b and c, and each parentRef of HTTPRoute `infra/web`.
fn messages(verdicts: &Verdicts) -> [Vec<Option<&str>>; 3] {
    let gateway = verdicts.gateway.as_ref().unwrap();
    let set = verdicts.listener_sets.values().next().unwrap();
    let listeners = gateway.listeners.iter().chain(&set.listeners);
    let route = verdicts.routes.get(&ObjectKey::new(Kind::HttpRoute, "infra", "web")).unwrap();
    [
        vec![message(&gateway.conditions), message(&set.conditions)],
        listeners.map(|listener| message(&listener.conditions)).collect(),
        route.parents.iter().map(|parent| message(&parent.conditions)).collect(),
    ]
}

#[test]
fn each_target_has_the_condition_and_no_other_object() {
    let mut objects = world();
    let none = [vec![None; 2], vec![None; 3], vec![None; 2]];
    assert_eq!(messages(&verdicts(&objects)), none);
    let gateway = "These policies apply to the Gateway: SecurityPolicy infra/p.";
    let set = "These policies apply to the ListenerSet: SecurityPolicy infra/p.";
    let listener = "These policies apply to the listener: SecurityPolicy infra/p.";
    let route = "These policies apply to the route: SecurityPolicy infra/p.";
    for (target, expected) in [
        (["Gateway", "public", ""], [vec![Some(gateway), None], vec![None; 3], vec![None; 2]]),
        (["Gateway", "public", "b"], [vec![None; 2], vec![None, Some(listener), None], vec![None; 2]]),
        (["ListenerSet", "set", ""], [vec![None, Some(set)], vec![None; 3], vec![None; 2]]),
        (["ListenerSet", "set", "c"], [vec![None; 2], vec![None, None, Some(listener)], vec![None; 2]]),
        (["HTTPRoute", "web", ""], [vec![None; 2], vec![None; 3], vec![Some(route); 2]]),
        (["HTTPRoute", "web", "main"], [vec![None; 2], vec![None; 3], vec![Some(route); 2]]),
        (["HTTPRoute", "other", ""], none.clone()),
        (["HTTPRoute", "web", "missing"], none.clone()),
    ] {
        add_policy(&mut objects, "p", &[target], NETWORK);
        let verdicts = verdicts(&objects);
        assert_eq!(messages(&verdicts), expected, "{target:?}");
        let generations = |conditions: &Conditions| {
            conditions.get(ConditionType::PolicyAffected).map(|condition| condition.observed_generation)
        };
        let route = verdicts.routes.values().next().unwrap();
        assert!(
            route.parents.iter().filter_map(|parent| generations(&parent.conditions)).all(|seen| seen == 3)
        );
    }
}

#[test]
fn a_policy_that_is_not_accepted_is_not_named() {
    let mut objects = world();
    add_policy(&mut objects, "a", &[["HTTPRoute", "web", ""]], NETWORK);
    add_policy(&mut objects, "b", &[["HTTPRoute", "web", ""]], NETWORK);
    let route = "These policies apply to the route: SecurityPolicy infra/a.";
    assert_eq!(messages(&verdicts(&objects))[2], [Some(route); 2], "b is Conflicted");
    add_policy(&mut objects, "a", &[["HTTPRoute", "web", ""]], "10.0.0.1/8");
    assert_eq!(messages(&verdicts(&objects))[2], [None; 2], "a is invalid and wins its target");
}

#[test]
fn a_message_names_a_few_policies_and_counts_the_others() {
    let mut objects = world();
    let rules: Vec<Value> = (0..6)
        .map(|index| {
            json!({
                "name": format!("r{index}"), "matches": [{"path": {"value": format!("/{index}")}}],
                "backendRefs": [{"name": "web", "port": 80}],
            })
        })
        .collect();
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"parentRefs": [{"name": "public"}], "rules": rules},
    }))));
    for index in 0..6 {
        add_policy(
            &mut objects,
            &format!("p{index}"),
            &[["HTTPRoute", "web", &format!("r{index}")]],
            NETWORK,
        );
    }
    let expected = "These policies apply to the route: SecurityPolicy infra/p0, SecurityPolicy infra/p1, SecurityPolicy \
                    infra/p2, SecurityPolicy infra/p3 and 2 others.";
    assert_eq!(messages(&verdicts(&objects))[2], [Some(expected)]);
}

#[test]
fn the_condition_follows_its_policy_and_other_routes_keep_their_verdicts() {
    let mut objects = world();
    for index in 0..40 {
        add_route(&mut objects, &format!("route-{index}"));
    }
    let mut translator = Translator::new(Options::default());
    translator.translate(&snapshot(&objects));
    let (web, other) = (["HTTPRoute", "web", ""], ["HTTPRoute", "route-1", ""]);
    let (both, first, second) = ([web, other], [web], [other]);
    let p = ("p", &both[..], NETWORK);
    let q = ("q", &first[..], NETWORK);
    let steps = [
        vec![p],
        vec![p, q],
        vec![("p", &both[..], "10.0.0.1/8"), q],
        vec![p, q],
        // The older one wins the other target of `p`, which is Conflicted then.
        vec![p, q, ("a", &second[..], NETWORK)],
        vec![],
    ];
    let mut seen = Vec::new();
    for (step, policies) in steps.iter().enumerate() {
        let mut objects = objects.clone();
        for (name, targets, network) in policies {
            add_policy(&mut objects, name, targets, network);
        }
        let got = translator.translate(&snapshot(&objects)).verdicts;
        assert!(
            matches!(translator.last_mode(), TranslationMode::Incremental { routes } if routes <= 2),
            "step {step}"
        );
        assert_eq!(got, verdicts(&objects), "step {step}");
        seen.push(messages(&got)[2][0].map(|message| message.contains("infra/p")));
    }
    assert_eq!(seen, [Some(true), Some(true), None, Some(true), None, None]);
}
