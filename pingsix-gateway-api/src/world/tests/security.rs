//! Inherited policies: which owners they concern, and which Secrets and ConfigMaps are watched for them.

use std::collections::BTreeSet;

use pingsix_translate::selection::{Changed, Extract};
use pingsix_translate::snapshot::{
    BackendTrafficPolicy, ConfigMap, Gateway, HttpRoute, Ingress, IngressClass, OwnerSnapshot,
    ReferenceGrant, Secret, SecurityPolicy, TrafficPolicy,
};
use pingsix_translate::{Kind, ObjectKey};
use serde_json::{Value, json};

use super::{applied, gateway, owners, route};
use crate::world::{Effects, World};

/// SecurityPolicy `shop/tokens` for HTTPRoute `shop/cart`, with a public key in this ConfigMap.
fn with_public_key(config_map: &str, namespace: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": "tokens", "namespace": "shop", "resourceVersion": version.to_string()},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}],
            "jwt": {
                "algorithm": "ES256",
                "publicKeyRef": {"kind": "ConfigMap", "name": config_map, "namespace": namespace},
            },
        },
    })
}

/// SecurityPolicy `shop/keys` for Ingress `shop/<ingress>`, with keys in this Secret.
fn of_ingress(ingress: &str, secret: &str, namespace: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": "keys", "namespace": "shop", "resourceVersion": version.to_string()},
        "spec": {
            "targetRefs": [{"group": "networking.k8s.io", "kind": "Ingress", "name": ingress}],
            "apiKeyAuth": {"credentialRefs": [{"name": secret, "namespace": namespace}]},
        },
    })
}

fn named(namespace: &str, name: &str, version: u32) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace, "resourceVersion": version.to_string()}})
}

/// Lets SecurityPolicies of namespace `shop` refer to objects of a kind in namespace `vault`.
fn grant(kind: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": "grant", "namespace": "vault", "resourceVersion": version.to_string()},
        "spec": {
            "from": [{"group": "pingsix.io", "kind": "SecurityPolicy", "namespace": "shop"}],
            "to": [{"group": "", "kind": kind}],
        },
    })
}

fn owner() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "one")
}

fn class() -> ObjectKey {
    ObjectKey::new(Kind::IngressClass, "", "pingsix")
}

fn referenced(extract: &Extract) -> Vec<String> {
    extract.referenced.iter().map(ToString::to_string).collect()
}

/// Whether an extract can be updated after an event.
fn is_refreshed(world: &World, extract: &mut Extract, effects: &Effects) -> bool {
    let objects = effects.touched.iter().chain(&effects.removed).cloned().collect();
    extract.refresh(world, &Changed { objects, ..Changed::default() })
}

/// Gateway `infra/one` with HTTPRoute `shop/cart`.
fn world() -> World {
    let mut world = World::default();
    world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
    world.apply(applied::<HttpRoute>(route("one", "cart", 1)));
    world
}

#[test]
fn a_public_key_in_a_config_map_concerns_the_gateway_of_the_policy() {
    let mut world = world();
    let effects = world.apply(applied::<SecurityPolicy>(with_public_key("key", "shop", 1)));
    assert_eq!(owners(&effects), ["Gateway infra/one"]);
    let mut extract = Extract::new(&world, &owner()).unwrap();
    assert_eq!(referenced(&extract), ["ConfigMap shop/key"]);
    // The ConfigMap comes, changes and goes, each time without a new extract.
    let key = ObjectKey::new(Kind::ConfigMap, "shop", "key");
    for (version, is_there) in [(1, true), (2, true), (3, false)] {
        let effects = if is_there {
            let mut config_map = named("shop", "key", version);
            config_map["data"] = json!({"key": version.to_string()});
            world.apply(applied::<ConfigMap>(config_map))
        } else {
            world.remove(&key)
        };
        assert_eq!(owners(&effects), ["Gateway infra/one"], "version {version}");
        assert!(is_refreshed(&world, &mut extract, &effects), "version {version}");
        let OwnerSnapshot::Gateway(snapshot) = &extract.snapshot else { panic!("a Gateway's") };
        let held = snapshot.referents.config_maps.get(&key.name);
        let held = held.and_then(|held| held.data.as_ref()?.get("key").cloned());
        assert_eq!(held, is_there.then(|| version.to_string()));
    }
    let policy = ObjectKey::new(Kind::SecurityPolicy, "shop", "tokens");
    assert_eq!(world.referrers(&extract.snapshot, &[key.clone()].into()), BTreeSet::from([policy.clone()]));
    // Another ConfigMap, and none.
    world.apply(applied::<SecurityPolicy>(with_public_key("other", "shop", 2)));
    assert!(owners(&world.apply(applied::<ConfigMap>(named("shop", "key", 4)))).is_empty());
    assert_eq!(referenced(&Extract::new(&world, &owner()).unwrap()), ["ConfigMap shop/other"]);
    assert_eq!(owners(&world.remove(&policy)), ["Gateway infra/one"]);
    assert_eq!(referenced(&Extract::new(&world, &owner()).unwrap()), [""; 0]);
    assert!(owners(&world.apply(applied::<ConfigMap>(named("shop", "other", 1)))).is_empty());
}

#[test]
fn a_foreign_public_key_is_watched_with_a_grant_for_config_maps_alone() {
    let mut world = world();
    world.apply(applied::<SecurityPolicy>(with_public_key("key", "vault", 1)));
    let mut extract = Extract::new(&world, &owner()).unwrap();
    assert_eq!(referenced(&extract), [""; 0]);
    // A grant for Secrets concerns the Gateway, and permits no ConfigMap.
    for (version, (kind, expected)) in
        [("Secret", vec![]), ("ConfigMap", vec!["ConfigMap vault/key"])].into_iter().enumerate()
    {
        let version = u32::try_from(version).unwrap();
        let effects = world.apply(applied::<ReferenceGrant>(grant(kind, version)));
        assert_eq!(owners(&effects), ["Gateway infra/one"], "{kind}");
        assert!(!is_refreshed(&world, &mut extract, &effects), "an extract that is kept would not tell");
        extract = Extract::new(&world, &owner()).unwrap();
        assert_eq!(referenced(&extract), expected);
    }
    let effects = world.apply(applied::<ConfigMap>(named("vault", "key", 1)));
    assert_eq!(owners(&effects), ["Gateway infra/one"]);
    assert!(is_refreshed(&world, &mut extract, &effects));
    // A ConfigMap that may not be used any more is not held.
    world.remove(&ObjectKey::new(Kind::ReferenceGrant, "vault", "grant"));
    let extract = Extract::new(&world, &owner()).unwrap();
    let OwnerSnapshot::Gateway(snapshot) = &extract.snapshot else { panic!("a Gateway's") };
    assert_eq!((referenced(&extract).len(), snapshot.referents.config_maps.len()), (0, 0));
}

fn ingress(name: &str, secret: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": version.to_string()},
        "spec": {
            "ingressClassName": "pingsix",
            "defaultBackend": {"service": {"name": "cart", "port": {"number": 80}}},
            "tls": [{"secretName": secret}],
        },
    })
}

/// An IngressClass with Ingress `shop/cart`.
fn world_of_ingresses() -> World {
    let mut world = World::default();
    world.apply(applied::<IngressClass>(json!({
        "metadata": {"name": "pingsix", "resourceVersion": "1"},
        "spec": {"controller": "pingsix.io/gateway-controller"},
    })));
    world.apply(applied::<Ingress>(ingress("cart", "tls", 1)));
    world
}

#[test]
fn a_policy_of_an_ingress_concerns_its_class_and_brings_its_secrets() {
    let mut world = world_of_ingresses();
    let mut extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(referenced(&extract), ["Secret shop/tls"]);
    let effects = world.apply(applied::<SecurityPolicy>(of_ingress("cart", "keys", "vault", 1)));
    assert_eq!(owners(&effects), ["IngressClass pingsix"]);
    assert!(!is_refreshed(&world, &mut extract, &effects), "a new policy takes a new extract");
    extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(referenced(&extract), ["Secret shop/tls"], "no grant");
    let effects = world.apply(applied::<ReferenceGrant>(grant("Secret", 1)));
    assert_eq!(owners(&effects), ["IngressClass pingsix"]);
    assert!(!is_refreshed(&world, &mut extract, &effects), "a grant takes a new extract");
    extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(referenced(&extract), ["Secret shop/tls", "Secret vault/keys"]);
    let effects = world.apply(applied::<Secret>(named("vault", "keys", 1)));
    assert_eq!(owners(&effects), ["IngressClass pingsix"]);
    assert!(is_refreshed(&world, &mut extract, &effects));
    let OwnerSnapshot::Ingress(snapshot) = &extract.snapshot else { panic!("an IngressClass's") };
    assert_eq!((snapshot.policies.len(), snapshot.referents.secrets.len()), (1, 1));
    let key = ObjectKey::new(Kind::Secret, "vault", "keys");
    let policy = ObjectKey::new(Kind::SecurityPolicy, "shop", "keys");
    assert_eq!(world.referrers(&extract.snapshot, &[key].into()), BTreeSet::from([policy.clone()]));
    // The policy of an Ingress of no class concerns nobody.
    world.remove(&policy);
    assert!(
        owners(&world.apply(applied::<SecurityPolicy>(of_ingress("other", "keys", "shop", 2)))).is_empty()
    );
}

#[test]
fn a_secret_of_an_ingress_stays_for_the_policy_that_names_it_too() {
    let mut world = world_of_ingresses();
    world.apply(applied::<SecurityPolicy>(of_ingress("cart", "tls", "shop", 1)));
    world.apply(applied::<Secret>(named("shop", "tls", 1)));
    let mut extract = Extract::new(&world, &class()).unwrap();
    let effects = world.apply(applied::<Ingress>(ingress("cart", "other", 2)));
    assert!(is_refreshed(&world, &mut extract, &effects));
    assert_eq!(referenced(&extract), ["Secret shop/other", "Secret shop/tls"]);
    let OwnerSnapshot::Ingress(snapshot) = &extract.snapshot else { panic!("an IngressClass's") };
    assert_eq!(snapshot.referents.secrets.len(), 1);
}

#[test]
fn an_ingress_that_comes_or_goes_with_its_policy_takes_a_new_extract() {
    let mut world = world_of_ingresses();
    world.apply(applied::<SecurityPolicy>(of_ingress("pay", "keys", "shop", 1)));
    let mut extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(referenced(&extract), ["Secret shop/tls"]);
    let effects = world.apply(applied::<Ingress>(ingress("pay", "tls", 1)));
    assert!(!is_refreshed(&world, &mut extract, &effects));
    extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(referenced(&extract), ["Secret shop/keys", "Secret shop/tls"]);
    let effects = world.remove(&ObjectKey::new(Kind::Ingress, "shop", "pay"));
    assert!(!is_refreshed(&world, &mut extract, &effects));
    assert_eq!(referenced(&Extract::new(&world, &class()).unwrap()), ["Secret shop/tls"]);
}

#[test]
fn a_traffic_policy_concerns_the_class_of_its_ingress_while_that_exists() {
    let mut world = world_of_ingresses();
    let mut extract = Extract::new(&world, &class()).unwrap();
    let policy = |version: u32| {
        json!({
            "metadata": {"name": "limit", "namespace": "shop", "resourceVersion": version.to_string()},
            "spec": {
                "targetRefs": [{"group": "networking.k8s.io", "kind": "Ingress", "name": "pay"}],
                "requestID": {"headerName": format!("x-id-{version}")},
            },
        })
    };
    assert!(owners(&world.apply(applied::<TrafficPolicy>(policy(1)))).is_empty(), "no such Ingress");
    let policies = |extract: &Extract| {
        let OwnerSnapshot::Ingress(snapshot) = &extract.snapshot else { panic!("an IngressClass's") };
        snapshot.policies.len()
    };
    let effects = world.apply(applied::<Ingress>(ingress("pay", "tls", 1)));
    assert!(!is_refreshed(&world, &mut extract, &effects));
    extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(policies(&extract), 1);
    let effects = world.apply(applied::<TrafficPolicy>(policy(2)));
    assert_eq!(owners(&effects), ["IngressClass pingsix"]);
    assert!(!is_refreshed(&world, &mut extract, &effects), "a policy takes a new extract");
    let effects = world.remove(&ObjectKey::new(Kind::Ingress, "shop", "pay"));
    assert!(!is_refreshed(&world, &mut extract, &effects));
    assert_eq!(policies(&Extract::new(&world, &class()).unwrap()), 0);
}

#[test]
fn a_policy_of_a_service_concerns_the_class_of_the_ingresses_before_it() {
    let mut world = world_of_ingresses();
    let mut extract = Extract::new(&world, &class()).unwrap();
    let effects = world.apply(applied::<BackendTrafficPolicy>(json!({
        "metadata": {"name": "client", "namespace": "shop", "resourceVersion": "1"},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "cart"}],
            "tls": {"clientCertificateRef": {"name": "client"}},
        },
    })));
    assert_eq!(owners(&effects), ["IngressClass pingsix"]);
    assert!(!is_refreshed(&world, &mut extract, &effects), "a policy takes a new extract");
    extract = Extract::new(&world, &class()).unwrap();
    assert_eq!(referenced(&extract), ["Secret shop/client", "Secret shop/tls"]);
    let key = ObjectKey::new(Kind::Secret, "shop", "client");
    let policy = ObjectKey::new(Kind::BackendTrafficPolicy, "shop", "client");
    assert_eq!(world.referrers(&extract.snapshot, &[key].into()), BTreeSet::from([policy]));
    // The Ingress refers to another Service.
    let mut other = ingress("cart", "tls", 2);
    other["spec"]["defaultBackend"]["service"]["name"] = json!("other");
    let effects = world.apply(applied::<Ingress>(other));
    assert!(!is_refreshed(&world, &mut extract, &effects));
    assert_eq!(referenced(&Extract::new(&world, &class()).unwrap()), ["Secret shop/tls"]);
}
