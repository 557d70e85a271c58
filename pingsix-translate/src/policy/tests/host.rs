//! The Host of requests against the name a policy has verified.

use super::*;

#[test]
fn a_route_with_any_other_host_is_not_served_and_both_authors_are_told() {
    for hostnames in [&[][..], &["other.test"], &[HOST, "other.test"], &["*.test"]] {
        let mut objects = world();
        add_service(&mut objects, "web");
        route_to(&mut objects, "web", hostnames, &json!([{"name": "web", "port": 80}]));
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let reasons = [(ConditionType::Accepted, Reason::UnsupportedValue)];
        assert_denied(&objects, &reasons, "spec.validation.hostname");
        let translation = translated(&objects);
        let (.., message) = condition(&policy(&translation, "tls").conditions, ConditionType::Accepted);
        assert!(message.contains("HTTPRoute infra/web spec.rules[0].backendRefs[0]"), "{message}");
    }
}

/// A rule for every request to Service `infra/web` that sends this Host instead of the client's.
fn rewriting(objects: &mut Objects, name: &str, host: &str) {
    let filter = json!({"type": "URLRewrite", "urlRewrite": {"hostname": host}});
    let spec = json!({
        "parentRefs": [{"name": "public"}],
        "rules": [{"filters": [filter], "backendRefs": [{"name": "web", "port": 80}]}],
    });
    add_route(objects, name, &spec);
}

#[test]
fn a_rule_that_rewrites_the_host_to_the_name_may_have_any_host() {
    let mut objects = served();
    let plain = run(&objects, &Options::default());
    rewriting(&mut objects, "any", "Backend.test");
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let [upstream] = &*upstreams(&translation) else { panic!("both routes share an upstream") };
    assert_eq!((upstream.scheme, upstream.upstream_host.as_deref()), (Scheme::Https, Some(HOST)));
    assert_eq!(translation.verdicts.problems.to_vec(), []);
    assert_eq!(upstreams(&plain)[0].upstream_host, None);

    // The rewritten Host decides, not that of the client.
    let spec = json!({
        "parentRefs": [{"name": "public"}], "hostnames": [HOST],
        "rules": [{
            "filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "other.test"}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }],
    });
    let mut objects = world();
    add_service(&mut objects, "web");
    add_route(&mut objects, "web", &spec);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    assert_denied(
        &objects,
        &[(ConditionType::Accepted, Reason::UnsupportedValue)],
        "spec.validation.hostname",
    );
}

#[test]
fn a_path_may_be_rewritten_for_http2_over_tls() {
    let mut objects = world();
    add_service(&mut objects, "web");
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"port": 80, "appProtocol": "kubernetes.io/h2c"}]},
    }))));
    let path = json!({"type": "ReplaceFullPath", "replaceFullPath": "/"});
    let spec = json!({
        "parentRefs": [{"name": "public"}], "hostnames": [HOST],
        "rules": [{
            "filters": [{"type": "URLRewrite", "urlRewrite": {"path": path}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }],
    });
    add_route(&mut objects, "web", &spec);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    assert_eq!(upstreams(&translation)[0].scheme, Scheme::Grpcs);
    assert_eq!(translation.verdicts.problems.to_vec(), []);
}

#[test]
fn a_listener_may_narrow_the_hosts_of_a_route_to_the_name() {
    let listener = |name: &str, port: u16, hostname: &str| json!({"name": name, "port": port, "protocol": "HTTP", "hostname": hostname});
    for (listeners, honoured) in [
        (json!([listener("a", 80, HOST)]), true),
        (json!([listener("a", 80, HOST), listener("b", 8080, HOST)]), true),
        (json!([listener("a", 80, HOST), listener("b", 80, "other.test")]), false),
        (json!([listener("a", 80, "*.test")]), false),
    ] {
        let mut objects = gateway(&listeners);
        add_service(&mut objects, "web");
        route_to(&mut objects, "web", &[], &json!([{"name": "web", "port": 80}]));
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let schemes: Vec<Scheme> =
            upstreams(&translated(&objects)).iter().map(|upstream| upstream.scheme).collect();
        assert_eq!(schemes, if honoured { vec![Scheme::Https] } else { vec![] }, "{listeners}");
    }
}

#[test]
fn a_policy_that_some_routes_cannot_honour_is_accepted_and_names_them() {
    let mut objects = served();
    route_to(&mut objects, "other", &["other.test"], &json!([{"name": "web", "port": 80}]));
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let (status, reason, message) =
        condition(&policy(&translation, "tls").conditions, ConditionType::Accepted);
    assert_eq!((status, reason), (ConditionStatus::True, Reason::Accepted));
    assert!(message.contains("HTTPRoute infra/other") && !message.contains("infra/web"), "{message}");
    assert_eq!(upstreams(&translation).len(), 1);
    assert!(route(&translation, "web").get(ConditionType::PartiallyInvalid).is_none());
    let (status, _, message) = condition(route(&translation, "other"), ConditionType::Accepted);
    assert_eq!(status, ConditionStatus::True);
    assert!(message.contains("BackendTLSPolicy infra/tls"), "{message}");
}

#[test]
fn a_route_is_partially_invalid_if_its_policies_leave_a_rule_to_serve() {
    let mut objects = world();
    add_service(&mut objects, "web");
    add_service(&mut objects, "plain");
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let rule = |path: &str, backend: &str| json!({"matches": [{"path": {"value": path}}], "backendRefs": [{"name": backend, "port": 80}]});
    let mut judged = |rules: &[Value]| {
        let spec = json!({"parentRefs": [{"name": "public"}], "hostnames": ["other.test"], "rules": rules});
        add_route(&mut objects, "web", &spec);
        let translation = translated(&objects);
        let conditions = route(&translation, "web");
        let (status, _, accepted) = condition(conditions, ConditionType::Accepted);
        assert_eq!(status, ConditionStatus::True);
        let partial = conditions.get(ConditionType::PartiallyInvalid).map(|partial| partial.message.clone());
        (accepted, partial.unwrap_or_default())
    };
    let (accepted, partial) = judged(&[rule("/x", "web"), rule("/y", "plain")]);
    assert_eq!(accepted, "The route is accepted.");
    assert!(partial.starts_with("Dropped Rule: spec.rules[0].backendRefs[0]: "), "{partial}");
    let (accepted, partial) = judged(&[rule("/x", "web"), rule("/y", "web")]);
    let is_told =
        |rule: usize| accepted.contains(&format!(" spec.rules[{rule}].backendRefs[0]: BackendTLSPolicy"));
    assert!(is_told(0) && is_told(1), "{accepted}");
    assert_eq!(partial, "");
    // With a rule that is invalid by itself, `PartiallyInvalid` names both rules.
    let mut mirroring = rule("/y", "plain");
    mirroring["filters"] = json!([{"type": "RequestMirror"}]);
    let (accepted, partial) = judged(&[rule("/x", "web"), mirroring]);
    assert_eq!(accepted, "The route is accepted.");
    assert!(partial.contains("spec.rules[1].filters[0]") && partial.contains("spec.rules[0].backendRefs[0]"));
}

#[test]
fn only_the_share_of_the_backend_is_denied() {
    let mut objects = world();
    add_service(&mut objects, "web");
    add_service(&mut objects, "plain");
    let backends =
        json!([{"name": "web", "port": 80, "weight": 1}, {"name": "plain", "port": 80, "weight": 3}]);
    route_to(&mut objects, "web", &["other.test"], &backends);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let plane = translation.data_planes.values().next().unwrap();
    let routes =
        serde_json::to_value(plane.config.routes().map(|(_, route)| route).collect::<Vec<_>>()).unwrap();
    let targets = &routes[0]["plugins"]["traffic-split"]["rules"][0]["weighted_upstreams"];
    assert_eq!((&targets[0]["upstream_id"], &targets[0]["weight"]), (&json!("status-500"), &json!(1)));
    assert_eq!(targets[1]["weight"], 3);
}
