//! SecurityPolicies of Gateways and routes, and the Secrets to which they refer.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::{AnyRoute, HttpRoute, Secret, SecurityPolicy};
use pingsix_translate::{ObjectName, Snapshot, Translation, TranslationMode};
use serde_json::json;

use super::{ROUTES_PER_TEAM, TEAMS, WarmTranslator, object, part, put_policy};

/// SecurityPolicy `<namespace>/keys` for an object of its namespace, with the keys of a Secret there.
fn put_security_policy(world: &mut Snapshot, (namespace, kind, target): (&str, &str, &str), header: &str) {
    let policy: Arc<SecurityPolicy> = object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"namespace": namespace, "name": "keys", "generation": 1},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": kind, "name": target}],
            "apiKeyAuth": {"credentialRefs": [{"name": "keys"}], "extractFrom": {"headers": [header]}},
        },
    }));
    put_policy(&mut world.policies, policy);
}

fn put_key(world: &mut Snapshot, namespace: &str, key: &str) {
    let secret: Arc<Secret> =
        object(json!({"metadata": {"namespace": namespace, "name": "keys"}, "stringData": {"alice": key}}));
    world.referents.secrets.insert(ObjectName::new(namespace, "keys"), secret);
}

const GATEWAY: (&str, &str, &str) = ("infra", "Gateway", "public");
const ROUTE: (&str, &str, &str) = ("team-3", "HTTPRoute", "route-3");

/// A world with the policy and its Secret.
fn protected(target: (&str, &str, &str)) -> WarmTranslator {
    let mut warm = WarmTranslator::new();
    put_security_policy(&mut warm.world, target, "X-Key");
    put_key(&mut warm.world, target.0, "k1");
    warm.change(|_| {});
    warm
}

#[test]
fn a_rotated_key_is_one_document_for_policies_of_routes_and_gateways() {
    for target in [ROUTE, GATEWAY] {
        let rotated = protected(target).change(|world| put_key(world, target.0, "k2"));
        assert_eq!(rotated, (part(0), 1), "{target:?}");
    }
}

#[test]
fn another_field_of_a_policy_is_one_document() {
    for target in [ROUTE, GATEWAY] {
        let changed = protected(target).change(|world| put_security_policy(world, target, "X-Other-Key"));
        assert_eq!(changed, (part(0), 1), "{target:?}");
    }
}

#[test]
fn a_policy_that_comes_is_the_rules_of_its_target_and_one_service() {
    // A second policy: the other hosts of the shared Service are fixed already.
    let mut warm = protected(ROUTE);
    let came = warm.change(|world| {
        put_security_policy(world, ("team-4", "HTTPRoute", "route-4"), "X-Key");
        put_key(world, "team-4", "k1");
    });
    // Two Routes, and the service; the Routes of the other hosts of Service `team-4/own`; and the first protected host.
    assert_eq!(came, (part(1), 3 + (ROUTES_PER_TEAM - 1) + 1));
    // The first policy has all other hosts of the shared Service fixed, and those of the team's own one.
    let mut warm = WarmTranslator::new();
    let before = pairs(&warm.before);
    put_security_policy(&mut warm.world, ROUTE, "X-Key");
    put_key(&mut warm.world, ROUTE.0, "k1");
    assert_eq!(warm.change(|_| {}).0, TranslationMode::Full);
    let changed = pairs(&warm.before).difference(&before).count();
    assert_eq!(changed, 3 + (TEAMS * ROUTES_PER_TEAM - 1) + (ROUTES_PER_TEAM - 1));
    // Under a policy of the Gateway, each Route has another service, so a full translation is cheaper than one Route after
    // the other. Documents of full translations are equal by their contents alone.
    let mut warm = WarmTranslator::new();
    let before = pairs(&warm.before);
    put_security_policy(&mut warm.world, GATEWAY, "X-Key");
    put_key(&mut warm.world, GATEWAY.0, "k1");
    assert_eq!(warm.change(|_| {}).0, TranslationMode::Full);
    let changed = pairs(&warm.before).difference(&before).count();
    assert_eq!(changed, 2 * TEAMS * ROUTES_PER_TEAM + 1);
}

/// Every document with its key.
fn pairs(translation: &Translation) -> BTreeSet<(String, String)> {
    let planes = translation.data_planes.iter();
    planes.flat_map(|(key, plane)| plane.config.to_pairs(&key.to_string()).collect::<Vec<_>>()).collect()
}

/// A route of namespace `team-3` for a path of a host, or of every host.
fn put_route(world: &mut Snapshot, (name, hostname): (&str, Option<&str>), path: &str) {
    let hostnames: Vec<&str> = hostname.into_iter().collect();
    let route: Arc<HttpRoute> = object(json!({
        "metadata": {"namespace": "team-3", "name": name, "generation": 1},
        "spec": {
            "parentRefs": [{"name": "public", "namespace": "infra"}], "hostnames": hostnames,
            "rules": [{"matches": [{"path": {"value": path}}], "backendRefs": [{"name": "own", "port": 80}]}],
        },
    }));
    let route = AnyRoute::HttpRoute(route);
    world.routes.insert(route.key(), route);
}

#[test]
fn an_open_rule_for_any_host_concerns_spellings_of_protected_paths_alone() {
    let mut warm = WarmTranslator::new();
    put_route(&mut warm.world, ("admin", Some("admin.example.com")), "/admin");
    put_security_policy(&mut warm.world, ("team-3", "HTTPRoute", "admin"), "X-Key");
    put_key(&mut warm.world, "team-3", "k1");
    warm.change(|_| {});
    // Its own Route, and the one for the spellings of the path with the upstream that nobody reaches.
    assert_eq!(warm.change(|world| put_route(world, ("open", None), "/")), (part(1), 3));
    assert_eq!(warm.change(|world| put_route(world, ("open", None), "/other")), (part(1), 1));
}
