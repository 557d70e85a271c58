//! Policies of Services whose ConfigMaps and Secrets have no answer yet: PingSIX connects to no backend without them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::security::{Becomes, add_route, becomes, follower, named, plane};
use super::*;

/// BackendTLSPolicy `infra/verify` for these Services, with a ConfigMap of authorities, or with those of the system.
fn tls(version: u32, services: &[&str], config_map: Option<&str>) -> Value {
    let validation = config_map.map_or_else(
        || json!({"hostname": "a.test", "wellKnownCACertificates": "System"}),
        |name| {
            let reference = json!({"group": "", "kind": "ConfigMap", "name": name});
            json!({"hostname": "a.test", "caCertificateRefs": [reference]})
        },
    );
    named("verify", version, &json!({"spec": {"targetRefs": targets(services), "validation": validation}}))
}

/// BackendTrafficPolicy `infra/identity` for these Services, with the client certificate of a Secret.
fn identity(version: u32, services: &[&str], secret: Option<&str>) -> Value {
    let mut spec = json!({"targetRefs": targets(services), "timeout": {"read": "5s"}});
    if let Some(secret) = secret {
        spec["tls"] = json!({"clientCertificateRef": {"name": secret}});
    }
    named("identity", version, &json!({"spec": spec}))
}

fn targets(services: &[&str]) -> Vec<Value> {
    services.iter().map(|name| json!({"group": "", "kind": "Service", "name": name})).collect()
}

fn add_certificate(follower: &mut Follower, name: &str) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    let [certificate, key] = [certificate.pem(), key.serialize_pem()].map(|pem| BASE64_STANDARD.encode(pem));
    let data = json!({"tls.crt": certificate, "tls.key": key});
    let rest = json!({"type": "kubernetes.io/tls", "data": data});
    apply(follower, Kind::Secret, named(name, 1, &rest));
    let owners = follower.reconciler.answered(ObjectKey::new(Kind::Secret, "infra", name));
    follower.reconcile(owners);
}

/// The client certificates that PingSIX shows to backends.
fn shown(follower: &Follower) -> BTreeSet<String> {
    let documents = follower.held[&plane()].values().map(|text| serde_json::from_str::<Value>(text).unwrap());
    let certificates = documents.filter_map(|document| {
        let certificate = document.pointer("/tls/client_cert")?.as_str()?;
        Some(certificate.to_owned())
    });
    certificates.collect()
}

#[test]
fn a_service_with_a_new_policy_is_closed_until_its_authorities_are_known() {
    let mut follower = follower();
    apply(&mut follower, Kind::BackendTlsPolicy, tls(1, &["cart"], Some("authorities")));
    add_route(&mut follower, "pay");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Closed);
}

#[test]
fn a_policy_closes_a_service_it_gains_until_its_authorities_are_known() {
    let mut follower = follower();
    add_route(&mut follower, "pay");
    apply(&mut follower, Kind::BackendTlsPolicy, tls(1, &["other"], None));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Open);
    apply(&mut follower, Kind::BackendTlsPolicy, tls(2, &["other", "cart"], Some("authorities")));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Closed);
    // The Service keeps a version of the policy that protects it.
    apply(&mut follower, Kind::BackendTlsPolicy, tls(3, &["cart"], None));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Open);
    apply(&mut follower, Kind::BackendTlsPolicy, tls(4, &["cart"], Some("others")));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Open);
    let upstreams = follower.held[&plane()].iter().filter(|(key, _)| key.starts_with("upstreams/"));
    assert!(upstreams.map(|(_, text)| text).all(|text| text.contains("\"https\"")), "in plaintext");
}

#[test]
fn a_service_is_reached_with_a_client_certificate_or_not_at_all() {
    let mut follower = follower();
    add_route(&mut follower, "pay");
    apply(&mut follower, Kind::BackendTlsPolicy, tls(1, &["cart"], None));
    apply(&mut follower, Kind::BackendTrafficPolicy, identity(1, &["cart"], Some("old")));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Closed);
    add_certificate(&mut follower, "old");
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Open);
    let old = shown(&follower);
    assert_eq!(old.len(), 1);
    // The former certificate is shown until the next one is known.
    apply(&mut follower, Kind::BackendTrafficPolicy, identity(2, &["cart"], Some("new")));
    assert_eq!(shown(&follower), old);
    add_certificate(&mut follower, "new");
    assert!(shown(&follower).is_disjoint(&old) && shown(&follower).len() == 1);
    apply(&mut follower, Kind::BackendTrafficPolicy, identity(3, &["cart"], None));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Open);
    apply(&mut follower, Kind::BackendTrafficPolicy, identity(4, &["cart"], Some("third")));
    assert_eq!(becomes(&follower, &plane(), "pay"), Becomes::Closed);
}
