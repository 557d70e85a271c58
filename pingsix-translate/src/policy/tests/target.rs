//! The policy that counts for a Service port.

use super::*;

#[test]
fn the_oldest_policy_of_a_target_wins_whether_or_not_it_can_be_honoured() {
    let conflicted = [(ConditionType::Accepted, Reason::Conflicted)];
    for targets in [web(), web_port("main")] {
        let mut objects = served();
        add_named_port(&mut objects, None);
        add_policy(&mut objects, "b", 1, &targets, &system());
        add_policy(&mut objects, "c", 1, &targets, &json!({"hostname": "nonsense!"}));
        let translation = translated(&objects);
        assert!(policy(&translation, "b").conditions.is_true(ConditionType::Accepted));
        assert_eq!(refused(&policy(&translation, "c").conditions), conflicted);
        assert_eq!(upstreams(&translation)[0].scheme, Scheme::Https);

        // Older, though its name is last and it makes no sense.
        add_policy(&mut objects, "z", 0, &targets, &json!({"hostname": HOST}));
        let translation = translated(&objects);
        assert_eq!(
            refused(&policy(&translation, "z").conditions),
            [(ConditionType::Accepted, Reason::Invalid)]
        );
        let (.., message) = condition(&policy(&translation, "b").conditions, ConditionType::Accepted);
        assert_eq!(
            message,
            "spec.targetRefs[0]: BackendTLSPolicy infra/z has the same target and takes precedence over this \
             policy."
        );
        assert_eq!(upstreams(&translation), []);
    }
}

/// Service `infra/web` with ports `one` and `two`, and a route to each.
fn two_ports() -> Objects {
    let mut objects = world();
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"port": 1, "name": "one"}, {"port": 2, "name": "two"}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 8080, "name": "one"}, {"port": 8080, "name": "two"}],
    }))));
    route_to(&mut objects, "one", &["one.test"], &json!([{"name": "web", "port": 1}]));
    route_to(&mut objects, "two", &["two.test"], &json!([{"name": "web", "port": 2}]));
    objects
}

/// The names verified on the ports of [`two_ports`], sorted; empty for plaintext.
fn verified(translation: &Translation) -> Vec<String> {
    let mut names: Vec<String> = upstreams(translation)
        .into_iter()
        .map(|upstream| upstream.upstream_host.unwrap_or_default())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_policy_for_a_port_precedes_one_for_the_service_without_conflict() {
    let mut objects = two_ports();
    add_policy(&mut objects, "all", 0, &web(), &named("two.test"));
    add_policy(&mut objects, "one", 1, &web_port("one"), &named("one.test"));
    let translation = translated(&objects);
    assert_eq!(verified(&translation), ["one.test", "two.test"]);
    for name in ["all", "one"] {
        assert!(policy(&translation, name).conditions.is_true(ConditionType::Accepted), "{name}");
    }
}

#[test]
fn a_policy_for_a_port_leaves_the_others_alone() {
    let mut objects = two_ports();
    add_policy(&mut objects, "one", 0, &web_port("one"), &named("one.test"));
    assert_eq!(verified(&translated(&objects)), ["", "one.test"]);
}

#[test]
fn a_target_that_does_not_exist_is_not_found() {
    let not_found = [(ConditionType::Accepted, Reason::TargetNotFound)];
    let mut objects = two_ports();
    add_policy(&mut objects, "tls", 0, &web_port("three"), &system());
    let translation = translated(&objects);
    assert_eq!(refused(&policy(&translation, "tls").conditions), not_found);
    assert_eq!(verified(&translation), ["", ""]);

    let mut objects = world();
    route_to(&mut objects, "web", &[HOST], &json!([{"name": "web", "port": 80}]));
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    assert_eq!(refused(&policy(&translation, "tls").conditions), not_found);
    let missing = [(ConditionType::ResolvedRefs, Reason::BackendNotFound)];
    assert_eq!(refused(route(&translation, "web")), missing);
}

#[test]
fn a_policy_that_loses_one_of_its_targets_says_which_and_keeps_the_others() {
    let mut objects = two_ports();
    let port = |name: &str| json!({"group": "", "kind": "Service", "name": "web", "sectionName": name});
    add_policy(&mut objects, "old", 0, &json!([port("one")]), &named("one.test"));
    let bucket = json!({"group": "a.test", "kind": "Bucket", "name": "web"});
    let unused = json!({"group": "", "kind": "Service", "name": "unused"});
    let targets = json!([port("two"), port("one"), bucket, unused, port("two")]);
    add_policy(&mut objects, "new", 1, &targets, &named("two.test"));
    let translation = translated(&objects);
    assert_eq!(verified(&translation), ["one.test", "two.test"]);
    let (status, reason, message) =
        condition(&policy(&translation, "new").conditions, ConditionType::Accepted);
    assert_eq!((status, reason), (ConditionStatus::False, Reason::Conflicted));
    assert!(message.contains("spec.targetRefs[1]: ") && message.contains("spec.targetRefs[2].kind: "));
    assert!(!message.contains("spec.targetRefs[0]") && !message.contains("spec.targetRefs[3]"), "{message}");
    assert!(!message.contains("spec.targetRefs[4]"), "a target listed twice is no conflict: {message}");
}
