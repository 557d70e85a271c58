//! Connections over TLS and their protocols.

use super::*;

#[test]
fn a_policy_pingsix_can_honour_makes_the_upstream_verify_its_name() {
    let mut objects = served();
    let plaintext = translated(&objects);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    let translation = translated(&objects);
    let [upstream] = &*upstreams(&translation) else { panic!("one upstream") };
    assert_eq!((upstream.scheme, upstream.pass_host), (Scheme::Https, PassHost::Rewrite));
    assert_eq!(upstream.upstream_host.as_deref(), Some(HOST));
    let verdict = policy(&translation, "tls");
    assert_eq!((verdict.generation, &verdict.ancestor.to_value()["name"]), (5, &serde_json::json!("public")));
    let accepted = condition(&verdict.conditions, ConditionType::Accepted);
    assert_eq!(accepted, (ConditionStatus::True, Reason::Accepted, "The policy is accepted.".to_owned()));
    assert!(verdict.conditions.is_true(ConditionType::ResolvedRefs));
    assert!(verdict.conditions.iter().all(|condition| condition.observed_generation == 5));
    assert_eq!(translation.verdicts.problems.to_vec(), []);
    // Another document, so that no Route can point at the one while it turns into the other.
    let ids = |translation: &Translation| -> BTreeSet<String> {
        let planes = translation.data_planes.values();
        planes.flat_map(|plane| plane.config.upstreams().map(|(key, _)| key.id.clone())).collect()
    };
    assert!(ids(&plaintext).is_disjoint(&ids(&translation)));
}

#[test]
fn hostnames_are_compared_without_regard_to_case() {
    let mut objects = served();
    let validation = json!({"wellKnownCACertificates": "System", "hostname": "Backend.TEST"});
    add_policy(&mut objects, "tls", 0, &web(), &validation);
    let translation = translated(&objects);
    assert_eq!(upstreams(&translation)[0].upstream_host.as_deref(), Some(HOST));
}

#[test]
fn an_app_protocol_chooses_what_runs_over_tls() {
    for (protocol, plaintext, scheme, streams) in [
        (None, true, Scheme::Https, false),
        (Some("http"), true, Scheme::Https, false),
        (Some("https"), false, Scheme::Https, false),
        (Some("kubernetes.io/ws"), true, Scheme::Https, true),
        (Some("kubernetes.io/wss"), false, Scheme::Https, true),
        (Some("kubernetes.io/h2c"), true, Scheme::Grpcs, true),
        (Some("grpc"), true, Scheme::Grpcs, true),
    ] {
        let mut objects = served();
        objects.insert(Object::Service(object(json!({
            "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"ports": [{"port": 80, "appProtocol": protocol}]},
        }))));
        let before = translated(&objects);
        assert_eq!(upstreams(&before).len(), usize::from(plaintext), "{protocol:?}");
        let unsupported = (ConditionType::ResolvedRefs, Reason::UnsupportedProtocol);
        assert_eq!(refused(route(&before, "web")).contains(&unsupported), !plaintext, "{protocol:?}");
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let [upstream] = &*upstreams(&translated(&objects)) else { panic!("one upstream") };
        assert_eq!((upstream.scheme, upstream.timeout.is_some()), (scheme, streams), "{protocol:?}");
    }
}

#[test]
fn a_grpc_route_is_served_over_tls_or_answers_unavailable() {
    for (hostname, honoured) in [(HOST, true), ("other.test", false)] {
        let mut objects = world();
        add_service(&mut objects, "web");
        let spec = json!({
            "parentRefs": [{"name": "public"}], "hostnames": [hostname],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        });
        add_grpc_route(&mut objects, "web", &spec);
        add_policy(&mut objects, "tls", 0, &web(), &system());
        let translation = translated(&objects);
        let schemes: Vec<Scheme> = upstreams(&translation).iter().map(|upstream| upstream.scheme).collect();
        assert_eq!(schemes, if honoured { vec![Scheme::Grpcs] } else { vec![] });
        let accepted = policy(&translation, "tls").conditions.is_true(ConditionType::Accepted);
        assert_eq!(accepted, honoured);
        let planes = translation.data_planes.values();
        let routes = planes.flat_map(|plane| plane.config.routes());
        let aborts = routes.filter(|(_, route)| route.service_id.as_deref() == Some("status-503"));
        assert_eq!(aborts.count() > 0, !honoured);
    }
}
