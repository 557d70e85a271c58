//! The routes through which a policy concerns a Gateway.

use super::*;

#[test]
fn a_policy_no_attached_route_has_to_do_with_gets_no_verdict() {
    let mut objects = served();
    add_service(&mut objects, "unused");
    add_policy(
        &mut objects,
        "unused",
        0,
        &json!([{"group": "", "kind": "Service", "name": "unused"}]),
        &system(),
    );
    add_policy(
        &mut objects,
        "bucket",
        0,
        &json!([{"group": "", "kind": "Bucket", "name": "web"}]),
        &system(),
    );
    assert!(translated(&objects).verdicts.policies.is_empty());

    // A route that is not attached, and one that may not use the Service.
    let mut objects = world();
    add_service(&mut objects, "web");
    let spec = json!({
        "parentRefs": [{"name": "public", "sectionName": "none"}], "hostnames": [HOST],
        "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
    });
    add_route(&mut objects, "detached", &spec);
    add_policy(&mut objects, "tls", 0, &web(), &system());
    assert!(translated(&objects).verdicts.policies.is_empty());
}

#[test]
fn a_policy_reaches_references_from_another_namespace_only_if_granted() {
    let mut objects = gateway(&json!([{
        "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
    }]));
    add_service(&mut objects, "web");
    add_policy(&mut objects, "tls", 0, &web(), &system());
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "app", "name": "web"},
        "spec": {
            "parentRefs": [{"name": "public", "namespace": "infra"}], "hostnames": [HOST],
            "rules": [{"backendRefs": [{"name": "web", "namespace": "infra", "port": 80}]}],
        },
    }))));
    assert!(translated(&objects).verdicts.policies.is_empty());
    objects.insert(Object::ReferenceGrant(object(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant",
        "metadata": {"namespace": "infra", "name": "app"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "app"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    }))));
    let translation = translated(&objects);
    assert!(policy(&translation, "tls").conditions.is_true(ConditionType::Accepted));
    assert_eq!(upstreams(&translation)[0].scheme, Scheme::Https);
}
