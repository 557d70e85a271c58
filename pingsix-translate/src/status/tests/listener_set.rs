//! Verdicts on ListenerSets and on routes that name them.

use super::*;
use crate::fixture::{add_certificate, add_listener_set, allow_listener_sets, https, pem};
use crate::pipeline::Translation;

fn http(name: &str, port: i32, hostname: &str) -> Value {
    json!({
        "name": name, "port": port, "protocol": "HTTP", "hostname": hostname,
        "allowedRoutes": {"namespaces": {"from": "All"}},
    })
}

/// A Gateway with listener `own` on port 80 that allows ListenerSets, and Service `web`.
fn allowing() -> Objects {
    let mut objects = crate::fixture::gateway(&json!([http("own", 80, "own.test")]));
    allow_listener_sets(&mut objects);
    add_service(&mut objects, "web");
    objects
}

/// Status and reason of a condition.
fn brief(conditions: &Conditions, kind: ConditionType) -> String {
    let condition = conditions.get(kind).unwrap();
    format!("{} {}", condition.status.as_str(), condition.reason)
}

/// `Accepted` and `Programmed` of a ListenerSet, then of each listener, when every data plane is confirmed.
fn conditions_of(objects: &Objects, name: &str) -> Vec<[String; 2]> {
    let Translation { data_planes, verdicts, .. } = run(objects, &per_port());
    let delivery = data_planes.into_keys().map(|key| (key, Delivery::Confirmed)).collect();
    let verdicts = with_delivery(verdicts, &delivery);
    let set = verdicts.listener_sets.values().find(|set| &*set.key.name.name == name).unwrap();
    let all =
        std::iter::once(&set.conditions).chain(set.listeners.iter().map(|listener| &listener.conditions));
    all.map(|conditions| {
        assert!(conditions.iter().all(|condition| condition.observed_generation == 5));
        [brief(conditions, ConditionType::Accepted), brief(conditions, ConditionType::Programmed)]
    })
    .collect()
}

fn attached_sets(objects: &Objects) -> i32 {
    run(objects, &per_port()).verdicts.gateway.unwrap().attached_listener_sets
}

fn both(accepted: &str, programmed: &str) -> [String; 2] {
    [accepted.to_owned(), programmed.to_owned()]
}

#[test]
fn a_listener_set_is_accepted_as_long_as_one_of_its_listeners_is() {
    let mut objects = allowing();
    let good = http("good", 80, "a.test");
    let bad = http("bad", 80, "own.test");
    add_listener_set(&mut objects, ("infra", "all"), 1, &json!([good]));
    add_listener_set(&mut objects, ("infra", "some"), 2, &json!([http("good", 81, "a.test"), bad]));
    add_listener_set(&mut objects, ("infra", "none"), 3, &json!([bad, good]));
    let yes = both("True Accepted", "True Programmed");
    let lost = both("False HostnameConflict", "False HostnameConflict");
    assert_eq!(conditions_of(&objects, "all"), [yes.clone(), yes.clone()]);
    assert_eq!(
        conditions_of(&objects, "some"),
        [both("True ListenersNotValid", "True Programmed"), yes, lost.clone()]
    );
    assert_eq!(
        conditions_of(&objects, "none"),
        [both("False ListenersNotValid", "False ListenersNotValid"), lost.clone(), lost]
    );
    assert_eq!(attached_sets(&objects), 2);
}

#[test]
fn a_listener_set_with_nothing_but_unresolved_listeners_is_not_accepted() {
    let mut objects = allowing();
    let foreign = json!({
        "name": "l", "port": 443, "protocol": "HTTPS",
        "tls": {"certificateRefs": [{"name": "c", "namespace": "secrets"}]},
    });
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([foreign]));
    assert_eq!(
        conditions_of(&objects, "s"),
        [both("False ListenersNotValid", "False ListenersNotValid"), both("True Accepted", "False Invalid"),]
    );
    let verdicts = run(&objects, &per_port()).verdicts;
    let listener = &verdicts.listener_sets.values().next().unwrap().listeners[0];
    assert_eq!(brief(&listener.conditions, ConditionType::ResolvedRefs), "False RefNotPermitted");
    assert_eq!(attached_sets(&objects), 0);
}

#[test]
fn a_disallowed_listener_set_serves_nothing_and_is_not_counted() {
    let mut objects = crate::fixture::gateway(&json!([http("own", 80, "own.test")]));
    add_service(&mut objects, "web");
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([http("l", 8080, "s.test")]));
    let parent = json!({"kind": "ListenerSet", "name": "s"});
    add_route(&mut objects, "r", &json!({"parentRefs": [parent], "rules": [rule("/", "web")]}));
    let no = both("False NotAllowed", "False NotAllowed");
    assert_eq!(conditions_of(&objects, "s"), [no.clone(), no]);
    assert_eq!(attached_sets(&objects), 0);
    let translation = run(&objects, &per_port());
    assert!(translation.data_planes.values().all(|data_plane| data_plane.config.is_empty()));
    let route = translation.verdicts.routes.values().next().unwrap();
    assert_eq!(brief(&route.parents[0].conditions, ConditionType::Accepted), "False NoMatchingParent");
    let problems: Vec<String> = translation.verdicts.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems[0],
        "ListenerSet infra/s: spec.parentRef: Gateway infra/public does not allow ListenerSets of this namespace; \
         its allowedListeners say which."
    );
}

#[test]
fn references_of_a_forbidden_listener_set_are_not_reported() {
    let mut objects = crate::fixture::gateway(&json!([http("own", 80, "own.test")]));
    add_listener_set(&mut objects, ("shop", "s"), 1, &json!([https("l", 443, None, &["tls"])]));
    let before = run(&objects, &per_port()).verdicts;
    let listener = &before.listener_sets.values().next().unwrap().listeners[0];
    assert_eq!(brief(&listener.conditions, ConditionType::ResolvedRefs), "Unknown NotAllowed");
    // Whether the Secret exists makes no difference.
    objects.insert(Object::Secret(object(json!({"metadata": {"namespace": "shop", "name": "tls"}}))));
    let after = run(&objects, &per_port()).verdicts;
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}

#[test]
fn a_listener_set_of_a_gateway_that_is_not_accepted_says_so() {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public"},
        "spec": {
            "gatewayClassName": "pingsix", "listeners": [http("own", 80, "own.test")],
            "allowedListeners": {"namespaces": {"from": "All"}}, "addresses": [{"type": "example.com/x"}],
        },
    }))));
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([http("l", 80, "s.test")]));
    assert_eq!(
        conditions_of(&objects, "s"),
        [
            both("False ParentNotAccepted", "False ParentNotProgrammed"),
            both("True Accepted", "False Invalid")
        ]
    );
    assert_eq!(attached_sets(&objects), 0);
}

/// The reason and listeners of each parentRef of a route of namespace `infra`.
fn parents(objects: &mut Objects, refs: &Value) -> Vec<String> {
    add_route(objects, "r", &json!({"parentRefs": refs, "rules": [rule("/", "web")]}));
    let verdicts = run(objects, &per_port()).verdicts;
    let route = verdicts.routes.values().next().unwrap();
    route.parents.iter().map(|parent| brief(&parent.conditions, ConditionType::Accepted)).collect()
}

#[test]
fn each_parent_ref_attaches_to_the_listeners_of_what_it_names() {
    let mut objects = allowing();
    add_listener_set(&mut objects, ("shop", "s"), 1, &json!([http("l", 80, "s.test")]));
    let set = |section: &str| json!({"kind": "ListenerSet", "namespace": "shop", "name": "s", "sectionName": section});
    let gateway = |section: &str| json!({"name": "public", "sectionName": section});
    assert_eq!(
        parents(
            &mut objects,
            &json!([
                set("l"), gateway("own"), gateway("l"), set("own"),
                // Not ours, or not there.
                {"kind": "ListenerSet", "name": "s"}, {"name": "s", "namespace": "shop"},
                {"kind": "ListenerSet", "name": "public"},
            ])
        ),
        ["True Accepted", "True Accepted", "False NoMatchingParent", "False NoMatchingParent"]
    );
    let verdicts = run(&objects, &per_port()).verdicts;
    let counts: Vec<i32> = verdicts.listeners().map(|listener| listener.attached_routes).collect();
    assert_eq!(counts, [1, 1]);
}

#[test]
fn a_ref_to_the_gateway_does_not_reach_its_listener_sets() {
    let mut objects = allowing();
    add_listener_set(&mut objects, ("shop", "s"), 1, &json!([http("l", 80, "s.test")]));
    assert_eq!(parents(&mut objects, &json!([{"name": "public"}])), ["True Accepted"]);
    let translation = run(&objects, &per_port());
    let counts: Vec<i32> =
        translation.verdicts.listeners().map(|listener| listener.attached_routes).collect();
    assert_eq!(counts, [1, 0]);
    let hosts: Vec<_> = translation
        .data_planes
        .values()
        .flat_map(|plane| plane.config.routes())
        .map(|(_, route)| route.host.clone())
        .collect();
    assert_eq!(hosts, [Some("own.test".to_owned())]);
}

#[test]
fn same_means_the_namespace_of_the_listener_set() {
    let mut objects = allowing();
    let mut same = http("l", 80, "s.test");
    same["allowedRoutes"] = json!({"namespaces": {"from": "Same"}});
    add_listener_set(&mut objects, ("shop", "s"), 1, &json!([same]));
    let parent = json!([{"kind": "ListenerSet", "namespace": "shop", "name": "s"}]);
    assert_eq!(parents(&mut objects, &parent), ["False NotAllowedByListeners"]);
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "shop", "name": "own"}, "spec": {"parentRefs": parent},
    }))));
    let verdicts = run(&objects, &per_port()).verdicts;
    let own = verdicts.routes.values().find(|route| &*route.key.name.name == "own").unwrap();
    assert_eq!(brief(&own.parents[0].conditions, ConditionType::Accepted), "True Accepted");
}

#[test]
fn a_gateway_without_valid_listeners_is_as_far_as_its_listener_sets() {
    let mut objects = crate::fixture::gateway(&json!([{"name": "own", "port": 80, "protocol": "TCP"}]));
    allow_listener_sets(&mut objects);
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([http("l", 81, "s.test")]));
    let verdicts = run(&objects, &per_port()).verdicts;
    assert_eq!(
        read(&verdicts.gateway.as_ref().unwrap().conditions, ConditionType::Accepted),
        "True ListenersNotValid: Only listeners of ListenerSets are valid. Invalid listeners of the \
         Gateway: own."
    );
    assert_eq!(programmed(&verdicts, &[(81, Delivery::Confirmed)])[0], (true, Reason::Programmed));
    assert_eq!(programmed(&verdicts, &[])[0], (false, Reason::Pending));
}

#[test]
fn a_certificate_of_a_listener_set_is_its_own() {
    let mut objects = allowing();
    add_certificate(&mut objects, "c", &pem::pair(&["s.test"]));
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([https("l", 443, Some("s.test"), &["c"])]));
    let translation = run(&objects, &per_port());
    let owners: Vec<String> = translation
        .data_planes
        .values()
        .flat_map(|plane| plane.provenance.values())
        .filter_map(|provenance| {
            let crate::Provenance::Certificate { secret, by } = provenance else { return None };
            Some(format!("{} {} {secret}", by[0], by[0].field()))
        })
        .collect();
    assert_eq!(
        owners,
        ["ListenerSet infra/s listener l spec.listeners[0].tls.certificateRefs[0] Secret infra/c"]
    );
}

#[test]
fn a_status_has_the_conditions_and_listeners_of_the_set() {
    let mut objects = allowing();
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([http("l", 80, "s.test")]));
    let verdicts = run(&objects, &per_port()).verdicts;
    let merge = StatusMerge::without_times("us");
    let status = merge.listener_set(&Value::Null, verdicts.listener_sets.values().next().unwrap());
    assert_eq!(status["conditions"][0]["type"], "Accepted");
    assert_eq!(status["listeners"][0]["name"], "l");
    assert_eq!(merge.gateway(&Value::Null, &verdicts.gateway.unwrap())["attachedListenerSets"], 1);
}

#[test]
fn a_listener_without_a_certificate_has_no_part_in_refusals_of_rules() {
    let mut objects = crate::fixture::gateway(&json!([https("wide", 443, None, &["c"])]));
    allow_listener_sets(&mut objects);
    add_service(&mut objects, "web");
    add_certificate(&mut objects, "c", &pem::pair(&["s.test"]));
    // Its hosts are kept from the wider listener, so that it is a listener of the data plane.
    let without_certificate = https("l", 443, Some("s.test"), &["missing"]);
    add_listener_set(&mut objects, ("infra", "s"), 1, &json!([without_certificate]));
    // Both rules are for the same host, path and method, and one alone has filters.
    let mut filtered = rule("/", "web");
    filtered["matches"][0]["headers"] = json!([{"name": "x-env", "value": "one"}]);
    filtered["filters"] =
        json!([{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["x-keep"]}}]);
    let parents = json!([{"name": "public"}, {"kind": "ListenerSet", "name": "s"}]);
    add_route(&mut objects, "r", &json!({"parentRefs": parents, "rules": [filtered, rule("/", "web")]}));
    for layout in [Layout::Shared, Layout::PerPort] {
        let verdicts = run(&objects, &Options { layout, ..Options::default() }).verdicts;
        let parents = &verdicts.routes.values().next().unwrap().parents;
        let invalid = parents.iter().map(|parent| parent.conditions.is_true(ConditionType::PartiallyInvalid));
        assert_eq!(invalid.collect::<Vec<_>>(), [true, false], "{layout:?}");
    }
}
