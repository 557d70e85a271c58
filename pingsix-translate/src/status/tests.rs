//! Verdicts on a Gateway and its routes.

mod gateway;
mod listener_set;

use serde_json::{Value, json};

use super::*;
use crate::fixture::{add_grpc_route, add_route, add_service, gateway, object, run};
use crate::model::Options;
use crate::snapshot::{Object, Objects};

fn per_port() -> Options {
    Options { layout: Layout::PerPort, ..Options::default() }
}

/// One condition as `True Reason: message`.
fn read(conditions: &Conditions, kind: ConditionType) -> String {
    let condition = conditions.get(kind).unwrap();
    format!("{} {}: {}", condition.status.as_str(), condition.reason, condition.message)
}

/// Two HTTP listeners, and Service `web`.
fn objects() -> Objects {
    let mut objects = gateway(&json!([
        {"name": "a", "port": 80, "protocol": "HTTP"},
        {"name": "b", "port": 81, "protocol": "HTTP", "hostname": "b.test"},
    ]));
    add_service(&mut objects, "web");
    objects
}

/// The verdict on a route of the Gateway.
fn judge(spec: &Value) -> RouteVerdict {
    let mut objects = objects();
    add_route(&mut objects, "r", spec);
    run(&objects, &per_port()).verdicts.routes.values().next().unwrap().clone()
}

fn rule(path: &str, backend: &str) -> Value {
    json!({"matches": [{"path": {"value": path}}], "backendRefs": [{"name": backend, "port": 80}]})
}

fn unsupported(path: &str) -> Value {
    json!({"matches": [{"path": {"value": path}}], "filters": [{"type": "RequestMirror"}]})
}

#[test]
fn a_route_is_judged_once_for_each_of_its_parent_refs() {
    let verdict = judge(&json!({
        "hostnames": ["a.test"],
        "parentRefs": [
            {"name": "public", "sectionName": "a"},
            {"name": "somebody-elses"},
            {"name": "public", "sectionName": "b"},
            {"name": "public", "port": 82},
            {"name": "public"},
        ],
        "rules": [rule("/", "web")],
    }));
    let accepted: Vec<(usize, Reason)> = verdict
        .parents
        .iter()
        .map(|parent| {
            (parent.parent_ref.index, parent.conditions.get(ConditionType::Accepted).unwrap().reason)
        })
        .collect();
    assert_eq!(
        accepted,
        [
            (0, Reason::Accepted),
            (2, Reason::NoMatchingListenerHostname),
            (3, Reason::NoMatchingParent),
            (4, Reason::Accepted),
        ]
    );
    let observed = |conditions: &Conditions| conditions.iter().all(|one| one.observed_generation == 3);
    assert!(verdict.parents.iter().all(|parent| observed(&parent.conditions)));
}

#[test]
fn a_rule_is_dropped_only_when_none_of_its_backends_is_served() {
    let options = Options { responder: Some("127.0.0.1:8089".parse().unwrap()), ..per_port() };
    let mut with_h2c = objects();
    add_service(&mut with_h2c, "h2c");
    with_h2c.insert(Object::Service(object(json!({"metadata": {"namespace": "infra", "name": "h2c"},
        "spec": {"ports": [{"port": 80, "appProtocol": "kubernetes.io/h2c"}]}}))));
    let rewriting = |backends: &[&str]| {
        let path = json!({"type": "ReplaceFullPath", "replaceFullPath": "/new"});
        let backends: Vec<Value> = backends.iter().map(|name| json!({"name": name, "port": 80})).collect();
        json!({"backendRefs": backends, "filters": [{"type": "URLRewrite", "urlRewrite": {"path": path}}]})
    };
    let read_all = |rules: &[Value]| {
        let mut objects = with_h2c.clone();
        add_route(&mut objects, "r", &json!({"parentRefs": [{"name": "public"}], "rules": rules}));
        let verdict = run(&objects, &options).verdicts.routes.values().next().unwrap().clone();
        let conditions = &verdict.parents[0].conditions;
        let partial = conditions.get(ConditionType::PartiallyInvalid);
        let start = |condition: &Condition| condition.message.split(": PingSIX").next().unwrap().to_owned();
        (conditions.is_true(ConditionType::Accepted), partial.map(start))
    };
    let share = "Dropped Backend: spec.rules[0].backendRefs[1]".to_owned();
    assert_eq!(read_all(&[rewriting(&["web", "h2c"])]), (true, Some(share)));
    assert_eq!(read_all(&[rewriting(&["h2c"])]), (false, None));
    let rule_and_share = read_all(&[
        rewriting(&["h2c"]),
        json!({"matches": [{"path": {"value": "/x"}}],
            "backendRefs": [{"name": "web", "port": 80}]}),
    ]);
    assert_eq!(rule_and_share, (true, Some("Dropped Rule: spec.rules[0].backendRefs[0]".to_owned())));
}

#[test]
fn some_rules_refused_is_partially_invalid_and_all_is_not_accepted() {
    let parents = json!([{"name": "public"}]);
    let some = judge(&json!({"parentRefs": parents, "rules": [rule("/", "web"), unsupported("/x")]}));
    let conditions = &some.parents[0].conditions;
    assert_eq!(read(conditions, ConditionType::Accepted), "True Accepted: The route is accepted.");
    assert_eq!(
        read(conditions, ConditionType::PartiallyInvalid),
        "True UnsupportedValue: Dropped Rule: spec.rules[1].filters[0].type: PingSIX cannot mirror requests."
    );
    let all = judge(&json!({"parentRefs": parents, "rules": [unsupported("/"), unsupported("/x")]}));
    let conditions = &all.parents[0].conditions;
    assert_eq!(
        read(conditions, ConditionType::Accepted),
        "False UnsupportedValue: spec.rules[0].filters[0].type: PingSIX cannot mirror requests. \
         spec.rules[1].filters[0].type: PingSIX cannot mirror requests."
    );
    assert_eq!(conditions.get(ConditionType::PartiallyInvalid), None);
}

#[test]
fn references_are_judged_also_for_a_route_that_is_not_accepted() {
    let verdict = judge(&json!({
        "hostnames": ["a.test"],
        "parentRefs": [{"name": "public", "sectionName": "b"}],
        "rules": [rule("/", "web"), rule("/x", "missing")],
    }));
    let conditions = &verdict.parents[0].conditions;
    assert!(!conditions.is_true(ConditionType::Accepted));
    assert_eq!(
        read(conditions, ConditionType::ResolvedRefs),
        "False BackendNotFound: spec.rules[1].backendRefs[0].name: Service infra/missing does not exist."
    );
}

#[test]
fn a_hostname_that_is_not_used_is_named() {
    let verdict = judge(&json!({
        "hostnames": ["a.test", "10.0.0.1"],
        "parentRefs": [{"name": "public", "sectionName": "a"}],
        "rules": [rule("/", "web")],
    }));
    assert_eq!(
        read(&verdict.parents[0].conditions, ConditionType::Accepted),
        "True Accepted: The route is accepted. spec.hostnames[1]: \"10.0.0.1\" is not a hostname a request could \
         have: it is an IP address."
    );
}

#[test]
fn routes_of_several_kinds_are_judged_side_by_side() {
    let mut objects = objects();
    let parents = json!([{"name": "public", "sectionName": "a"}]);
    add_route(&mut objects, "r", &json!({"parentRefs": parents, "rules": [rule("/", "web")]}));
    let calls = |service: &str, backend: &str| json!({"matches": [{"method": {"service": service}}], "backendRefs": [{"name": backend, "port": 80}]});
    let spec = json!({
        "parentRefs": parents, "useDefaultGateways": "All",
        "rules": [calls("Cart", "web"), calls("a-b", "web"), calls("Other", "missing")],
    });
    add_grpc_route(&mut objects, "r", &spec);
    let verdicts = run(&objects, &per_port()).verdicts;
    let kinds: Vec<&str> = verdicts.routes.keys().map(|key| key.kind.as_str()).collect();
    assert_eq!(kinds, ["HTTPRoute", "GRPCRoute"]);
    let conditions = &verdicts.routes.values().last().unwrap().parents[0].conditions;
    assert_eq!(read(conditions, ConditionType::Accepted), "True Accepted: The route is accepted.");
    assert_eq!(
        read(conditions, ConditionType::PartiallyInvalid),
        "True UnsupportedValue: Dropped Rule: spec.rules[1].matches[0].method.service: \"a-b\" is not the name of a \
         gRPC service."
    );
    assert_eq!(
        read(conditions, ConditionType::ResolvedRefs),
        "False BackendNotFound: spec.rules[2].backendRefs[0].name: Service infra/missing does not exist."
    );
    assert_eq!(
        read(conditions, ConditionType::Limited),
        "True Limited: spec.useDefaultGateways: There are no default Gateways; only those that parentRefs name serve \
         the route."
    );
    let warnings = verdicts.problems.iter().filter(|problem| problem.severity == Severity::Warning);
    assert!(warnings.map(|problem| problem.field.as_str()).eq(["spec.useDefaultGateways"]));
    assert_eq!(verdicts.gateway.unwrap().listeners[0].attached_routes, 2);
}

#[test]
fn accepted_routes_count_once_per_listener() {
    let mut objects = objects();
    let parents = json!([{"name": "public"}, {"name": "public", "sectionName": "a"}]);
    add_route(&mut objects, "both", &json!({"parentRefs": parents, "rules": [rule("/", "missing")]}));
    add_route(
        &mut objects,
        "first",
        &json!({"parentRefs": parents, "hostnames": ["a.test"], "rules": [rule("/", "web")]}),
    );
    add_route(&mut objects, "refused", &json!({"parentRefs": parents, "rules": [unsupported("/")]}));
    let verdicts = run(&objects, &per_port()).verdicts;
    let counts: Vec<i32> = verdicts
        .gateway
        .as_ref()
        .unwrap()
        .listeners
        .iter()
        .map(|listener| listener.attached_routes)
        .collect();
    assert_eq!(counts, [2, 1]);
}

/// Attached to both by one parentRef, the route is refused on the listener whose hosts another port serves too.
#[test]
fn a_route_is_not_counted_where_it_is_not_served() {
    let mut objects = crate::fixture::gateway(&json!([
        {"name": "a", "port": 80, "protocol": "HTTP", "hostname": "a.test"},
        {"name": "other", "port": 81, "protocol": "HTTP", "hostname": "a.test",
            "allowedRoutes": {"kinds": [{"kind": "GRPCRoute"}]}},
        {"name": "b", "port": 80, "protocol": "HTTP", "hostname": "b.test"},
    ]));
    add_service(&mut objects, "web");
    add_route(&mut objects, "r", &json!({"parentRefs": [{"name": "public"}], "rules": [rule("/", "web")]}));
    let verdicts = run(&objects, &Options::default()).verdicts;
    let conditions = &verdicts.routes.values().next().unwrap().parents[0].conditions;
    assert!(conditions.is_true(ConditionType::Accepted));
    assert!(conditions.is_true(ConditionType::PartiallyInvalid));
    let counts: Vec<i32> =
        verdicts.gateway.unwrap().listeners.iter().map(|listener| listener.attached_routes).collect();
    assert_eq!(counts, [0, 0, 1]);
}

/// Two rules of one cell need a responder for the 404 between them; on the other port there is one rule alone.
#[test]
fn refusals_of_one_port_are_reported_on_its_parent_refs() {
    let conditional = json!({
        "matches": [{"headers": [{"name": "x", "value": "1"}]}], "backendRefs": [{"name": "web", "port": 80}],
    });
    let mut objects = objects();
    add_route(
        &mut objects,
        "r",
        &json!({
            "parentRefs": [{"name": "public", "sectionName": "a"}, {"name": "public", "sectionName": "b"}],
            "hostnames": ["b.test"], "rules": [conditional],
        }),
    );
    // On port 81 an older route without conditions ends the list.
    add_route(
        &mut objects,
        "s",
        &json!({"parentRefs": [{"name": "public", "sectionName": "b"}], "rules": [rule("/", "web")]}),
    );
    let verdicts = run(&objects, &per_port()).verdicts;
    let route = verdicts.routes.values().find(|verdict| &*verdict.key.name.name == "r").unwrap();
    let said: Vec<String> = route
        .parents
        .iter()
        .map(|parent| read(&parent.conditions, ConditionType::Accepted).chars().take(30).collect())
        .collect();
    assert_eq!(said, ["False UnsupportedValue: spec.r", "True Accepted: The route is ac"]);
    assert_eq!(route.parents[1].conditions.get(ConditionType::PartiallyInvalid), None);
}

#[test]
fn a_gateway_is_accepted_as_long_as_one_listener_is() {
    let judge = |listeners: &Value| {
        let verdict = run(&gateway(listeners), &Options::default()).verdicts.gateway.unwrap();
        assert!(verdict.conditions.iter().all(|condition| condition.observed_generation == 7));
        read(&verdict.conditions, ConditionType::Accepted)
    };
    let good = json!({"name": "good", "port": 80, "protocol": "HTTP"});
    let bad = json!({"name": "bad", "port": 81, "protocol": "TCP"});
    assert_eq!(judge(&json!([good])), "True Accepted: The Gateway is accepted.");
    assert_eq!(judge(&json!([good, bad])), "True ListenersNotValid: These listeners are not valid: bad.");
    assert_eq!(judge(&json!([bad])), "False ListenersNotValid: No listener is valid: bad.");
    assert_eq!(judge(&json!([])), "False ListenersNotValid: The Gateway has no listener.");
}

/// `Programmed` of the Gateway, then of each listener, as status and reason.
fn programmed(verdicts: &Verdicts, delivery: &[(u16, Delivery)]) -> Vec<(bool, Reason)> {
    let gateway = crate::model::ObjectName::new("infra", "public");
    let delivery = delivery
        .iter()
        .map(|(port, delivery)| {
            (DataPlaneKey::Gateway { gateway: gateway.clone(), port: Some(*port) }, delivery.clone())
        })
        .collect();
    let Verdicts { gateway, .. } = with_delivery(verdicts.clone(), &delivery);
    let gateway = gateway.unwrap();
    let of = |conditions: &Conditions| {
        let condition = conditions.get(ConditionType::Programmed).unwrap();
        assert_eq!(condition.observed_generation, 7);
        (condition.status == ConditionStatus::True, condition.reason)
    };
    std::iter::once(of(&gateway.conditions))
        .chain(gateway.listeners.iter().map(|listener| of(&listener.conditions)))
        .collect()
}

#[test]
fn a_gateway_is_programmed_when_every_data_plane_that_serves_it_is() {
    let verdicts = run(&objects(), &per_port()).verdicts;
    let yes = (true, Reason::Programmed);
    let pending = (false, Reason::Pending);
    let refused = || Delivery::Refused("No.".to_owned());
    assert_eq!(programmed(&verdicts, &[]), [pending, pending, pending]);
    assert_eq!(
        programmed(&verdicts, &[(80, Delivery::Delivered), (81, Delivery::Confirmed)]),
        [yes, yes, yes]
    );
    assert_eq!(programmed(&verdicts, &[(80, Delivery::Confirmed)]), [pending, yes, pending]);
    assert_eq!(
        programmed(&verdicts, &[(80, refused()), (81, Delivery::Confirmed)]),
        [(false, Reason::Invalid), (false, Reason::Invalid), yes]
    );
}

#[test]
fn an_unserved_listener_is_unprogrammed_and_does_not_delay_the_others() {
    let objects = gateway(&json!([
        {"name": "good", "port": 80, "protocol": "HTTP"},
        {"name": "bad", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "missing"}]}},
    ]));
    let verdicts = run(&objects, &per_port()).verdicts;
    assert_eq!(
        programmed(&verdicts, &[(80, Delivery::Confirmed), (443, Delivery::Confirmed)]),
        [(true, Reason::Programmed), (true, Reason::Programmed), (false, Reason::Invalid)]
    );
    let none = run(&gateway(&json!([])), &per_port()).verdicts;
    assert_eq!(programmed(&none, &[]), [(false, Reason::Invalid)]);
}

#[test]
fn an_unaccepted_gateway_serves_nothing_and_each_listener_says_so() {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public", "generation": 7},
        "spec": {
            "gatewayClassName": "pingsix", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}],
            "infrastructure": {"parametersRef": {"group": "example.com", "kind": "Unknown", "name": "p"}},
        },
    }))));
    add_service(&mut objects, "web");
    add_route(&mut objects, "r", &json!({"parentRefs": [{"name": "public"}], "rules": [rule("/", "web")]}));
    let translation = run(&objects, &per_port());
    assert!(translation.data_planes.values().all(|data_plane| data_plane.config.is_empty()));
    assert_eq!(
        programmed(&translation.verdicts, &[(80, Delivery::Confirmed)]),
        [(false, Reason::Invalid), (false, Reason::Invalid)]
    );
}

#[test]
fn verdicts_of_several_gateways_merge_in_the_order_of_the_spec() {
    let spec = |index| {
        let mut parents = vec![json!({"name": "other"}); 3];
        parents[index] = json!({"name": "public"});
        json!({"parentRefs": parents})
    };
    let mut merged = judge(&spec(2));
    merged.merge(&judge(&spec(0)));
    merged.merge(&judge(&spec(0)));
    let indices: Vec<usize> = merged.parents.iter().map(|parent| parent.parent_ref.index).collect();
    assert_eq!(indices, [0, 2]);
}

#[test]
fn a_status_repeats_the_parent_ref_as_it_was_written() {
    let parent = json!({"name": "public", "namespace": "infra", "port": 80});
    let verdict = judge(&json!({"parentRefs": [parent], "rules": [rule("/", "web")]}));
    assert_eq!(
        StatusMerge::without_times("example.com/controller").route(&Value::Null, &verdict),
        json!({"parents": [{
            "parentRef": parent,
            "controllerName": "example.com/controller",
            "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Accepted",
                    "message": "The route is accepted.", "observedGeneration": 3},
                {"type": "ResolvedRefs", "status": "True", "reason": "ResolvedRefs",
                    "message": "All references are resolved.", "observedGeneration": 3},
            ],
        }]})
    );
}

#[test]
fn a_gateway_status_has_one_entry_per_listener() {
    let objects = gateway(&json!([
        {"name": "a", "port": 80, "protocol": "HTTP"},
        {"name": "b", "port": 80, "protocol": "UDP"},
    ]));
    let gateway = run(&objects, &Options::default()).verdicts.gateway.unwrap();
    let status = StatusMerge::without_times("us").gateway(&Value::Null, &gateway);
    let listeners = status["listeners"].as_array().unwrap();
    assert_eq!(listeners.len(), 2);
    assert_eq!(listeners[0]["name"], "a");
    assert_eq!(
        listeners[0]["supportedKinds"],
        json!([
            {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"},
            {"group": "gateway.networking.k8s.io", "kind": "GRPCRoute"},
        ])
    );
    assert_eq!(listeners[1]["supportedKinds"], json!([]));
    assert_eq!(listeners[1]["attachedRoutes"], 0);
    let types: Vec<&str> = listeners[1]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["Accepted", "Conflicted", "ResolvedRefs"]);
}
