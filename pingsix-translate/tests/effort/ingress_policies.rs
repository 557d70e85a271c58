//! Policies of Ingresses.

use std::sync::Arc;

use pingsix_translate::snapshot::{BackendTrafficPolicy, Secret, SecurityPolicy, TrafficPolicy};
use pingsix_translate::{IngressSnapshot, Kind, ObjectKey, ObjectName};
use serde_json::json;

use super::ingress::{WarmTranslator, ingress, put};
use super::{ROUTES_PER_TEAM, object, part, put_policy, with};

/// SecurityPolicy `team-3/keys` for an Ingress, with the keys of Secret `team-3/keys`.
fn policy(ingress: &str) -> Arc<SecurityPolicy> {
    object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"namespace": "team-3", "name": "keys"},
        "spec": {
            "targetRefs": [{"group": "networking.k8s.io", "kind": "Ingress", "name": ingress}],
            "apiKeyAuth": {"credentialRefs": [{"name": "keys"}]},
        },
    }))
}

fn keys(key: &str) -> Arc<Secret> {
    object(json!({"metadata": {"namespace": "team-3", "name": "keys"}, "stringData": {"alice": key}}))
}

fn name() -> ObjectName {
    ObjectName::new("team-3", "keys")
}

fn key(kind: Kind) -> ObjectKey {
    ObjectKey { kind, name: name() }
}

/// A world with the policy and its Secret.
fn protected(mut warm: WarmTranslator) -> WarmTranslator {
    put_policy(&mut warm.world.policies, policy("route-3"));
    warm.world.referents.secrets.insert(name(), keys("k1"));
    warm.change(|_| {});
    warm
}

#[test]
fn a_policy_that_comes_or_goes_is_its_ingress_and_one_service() {
    for mut warm in [WarmTranslator::new(), WarmTranslator::owned()] {
        let change = warm.change(|world| {
            put_policy(&mut world.policies, policy("route-3"));
            world.referents.secrets.insert(name(), keys("k1"));
        });
        // Two Routes, and the service; and two Routes of each other host of the Service, which fix their hosts.
        assert_eq!(change, (part(1), 3 + 2 * (ROUTES_PER_TEAM - 1)));
        let mut warm = protected(warm);
        let gone = warm.change(|world| assert!(world.policies.remove(&key(Kind::SecurityPolicy))));
        assert_eq!(gone, (part(1), 3 + 2 * (ROUTES_PER_TEAM - 1)));
        // Two Routes each.
        let moved = warm.change(|world| put_policy(&mut world.policies, policy("route-4")));
        assert_eq!(moved, (part(2), 4));
    }
}

#[test]
fn a_rotated_key_is_one_document_and_a_removed_secret_closes_the_ingress() {
    let mut warm = protected(WarmTranslator::new());
    let rotated = warm.change(|world| {
        world.referents.secrets.insert(name(), keys("k2"));
    });
    assert_eq!(rotated, (part(0), 1));
    let gone = warm.change(|world| assert!(world.referents.secrets.remove(&name())));
    // Two Routes answer themselves, the service goes, and the upstream for nothing comes.
    assert_eq!(gone, (part(1), 4));
    // The Secret of nobody is nobody's.
    let other = ObjectName::new("team-3", "other");
    let change = warm.change(|world| {
        world.referents.secrets.insert(other, keys("k2"));
    });
    assert_eq!(change, (part(0), 0));
}

#[test]
fn a_default_backend_policy_concerns_all_owned_hosts_of_its_namespace() {
    let mut warm = WarmTranslator::owned();
    let backend = json!({"service": {"name": "own", "port": {"number": 80}}});
    let mut written = serde_json::to_value(&*ingress("team-3", "default", "default.team-3.test")).unwrap();
    written["spec"] = json!({"ingressClassName": "pingsix", "defaultBackend": backend});
    // A path that leaves something to the default backend.
    let leaving = with(
        &*ingress("team-3", "route-3", "route-3.team-3.test"),
        "/spec/rules/0/http/paths/0/path",
        json!("/a"),
    );
    put(&mut warm.world, "team-3", "default", object(written));
    put(&mut warm.world, "team-3", "route-3", leaving);
    warm.world.referents.secrets.insert(name(), keys("k1"));
    warm.change(|_| {});
    let (last_mode, documents) = warm.change(|world| put_policy(&mut world.policies, policy("default")));
    // The default backend and the rest of one host: each other host of the team has a path for everything. Two Routes of
    // each host fix it, because they have the Service of the default backend.
    assert_eq!((last_mode, documents), (part(2), 3 + 2 * ROUTES_PER_TEAM));
}

/// TrafficPolicy `team-3/keys` for Ingress `team-3/route-3`, with a limit.
fn limit(requests: u32) -> Arc<TrafficPolicy> {
    object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "TrafficPolicy",
        "metadata": {"namespace": "team-3", "name": "keys"},
        "spec": {
            "targetRefs": [{"group": "networking.k8s.io", "kind": "Ingress", "name": "route-3"}],
            "rateLimit": {"local": {"limit": {"requests": requests, "unit": "Minute"}}},
        },
    }))
}

#[test]
fn a_new_limit_touches_its_ingress_and_a_changed_one_a_single_document() {
    let mut warm = WarmTranslator::new();
    let put_limit = |world: &mut IngressSnapshot, requests| {
        put_policy(&mut world.policies, limit(requests));
    };
    // Two Routes, and the service.
    assert_eq!(warm.change(|world| put_limit(world, 3)), (part(1), 3));
    put_limit(&mut warm.world, 3);
    warm.change(|_| {});
    assert_eq!(warm.change(|world| put_limit(world, 4)), (part(0), 1));
    // Two Routes answer themselves, the service goes, and the upstream for nothing comes.
    assert_eq!(warm.change(|world| put_limit(world, 0)), (part(1), 4));
    assert_eq!(warm.change(|world| assert!(world.policies.remove(&key(Kind::TrafficPolicy)))), (part(1), 3));
}

#[test]
fn settings_of_a_service_concern_the_ingresses_that_refer_to_it() {
    let policy: Arc<BackendTrafficPolicy> = object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "BackendTrafficPolicy",
        "metadata": {"namespace": "team-3", "name": "keys"},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "own"}],
            "retry": {"numRetries": 2},
        },
    }));
    // Two Routes each, the upstream that goes, and the one that comes.
    let change = WarmTranslator::new().change(|world| {
        put_policy(&mut world.policies, policy);
    });
    assert_eq!(change, (part(ROUTES_PER_TEAM), 2 * ROUTES_PER_TEAM + 2));
}
