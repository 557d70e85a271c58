//! The Gateway, its namespaces and its certificates.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::{HOSTNAMES, Taste, one_in, pick};

/// Secrets with certificates, and the names those are for.
pub(crate) const CERTIFICATES: [(&str, &[&str]); 5] = [
    ("certificate", &["example.com", "*.example.com"]),
    ("nested", &["*.a.example.com", "b.a.example.com", "a.example.com"]),
    ("other", &["other.test", "a.example.com", "sub.other.test"]),
    ("sibling", &["x.b.example.com", "b.example.com"]),
    ("nameless", &[]),
];

/// The certificates and keys of [`CERTIFICATES`]. Their bytes never reach an assertion, so they may differ from run to
/// run.
static MATERIAL: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let certify = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let key = rcgen::KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    CERTIFICATES.iter().map(|(_, names)| certify(names)).collect()
});

/// The Secret a certificate is from.
pub(crate) fn secret_of(certificate: &str) -> Option<&'static str> {
    let index = MATERIAL.iter().position(|(known, _)| known == certificate)?;
    Some(CERTIFICATES[index].0)
}

pub(crate) fn namespaces() -> Vec<Value> {
    let namespace = |name: &str, team: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": { "kubernetes.io/metadata.name": name, "team": team },
            },
        })
    };
    vec![namespace("infra", "platform"), namespace("app", "shop"), namespace("app-b", "shop")]
}

/// Gateway `infra/<name>`.
pub(super) fn gateway(rng: &mut SmallRng, taste: Taste, name: &str) -> Value {
    let count = rng.random_range(1..=4);
    let listeners: Vec<Value> = (0..count).map(|index| listener(rng, taste, index)).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": { "namespace": "infra", "name": name, "generation": rng.random_range(1..5) },
        "spec": { "gatewayClassName": "pingsix", "listeners": listeners },
    })
}

/// The Secrets that HTTPS listeners refer to, in one namespace.
pub(crate) fn certificates(namespace: &str) -> Vec<Value> {
    let secret = |name: &str, certificate: &str, key: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": namespace, "name": name },
            "type": "kubernetes.io/tls",
            "data": { "tls.crt": BASE64_STANDARD.encode(certificate), "tls.key": BASE64_STANDARD.encode(key) },
        })
    };
    CERTIFICATES
        .iter()
        .zip(&*MATERIAL)
        .map(|((name, _), (certificate, key))| secret(name, certificate, key))
        .collect()
}

pub(super) fn listener(rng: &mut SmallRng, taste: Taste, index: usize) -> Value {
    let https = taste.https && one_in(rng, 3);
    let mut port = if one_in(rng, 4) { 8080 } else { 80 };
    if https && !one_in(rng, 12) {
        port = 443;
    }
    let protocol = match rng.random_range(0..40) {
        0 => "TCP",
        1 => "example.com/bespoke",
        _ if https => "HTTPS",
        _ => "HTTP",
    };
    let mut listener = json!({
        "name": format!("l{index}"),
        "port": port,
        "protocol": protocol,
        "allowedRoutes": { "namespaces": allowed_namespaces(rng) },
    });
    if protocol == "HTTPS" {
        let mut refs = Vec::new();
        for _ in 0..if one_in(rng, 2) { 1 } else { rng.random_range(1..=4) } {
            let (secret, _) = CERTIFICATES[rng.random_range(0..CERTIFICATES.len())];
            refs.push(json!({ "name": if one_in(rng, 8) { "absent" } else { secret } }));
        }
        listener["tls"] = json!({ "mode": "Terminate", "certificateRefs": refs });
    }
    if !one_in(rng, 4) {
        listener["hostname"] = json!(pick(rng, &HOSTNAMES));
    }
    if one_in(rng, 12) {
        let kind = pick(rng, &["HTTPRoute", "GRPCRoute", "TCPRoute"]);
        listener["allowedRoutes"]["kinds"] = json!([{ "kind": kind }]);
    }
    listener
}

pub(super) fn allowed_namespaces(rng: &mut SmallRng) -> Value {
    match rng.random_range(0..16) {
        0 => json!({ "from": "Same" }),
        1 => json!({}),
        2 => json!({ "from": "Selector", "selector": { "matchLabels": { "team": "shop" } } }),
        3 => {
            json!({ "from": "Selector", "selector": { "matchLabels": { "kubernetes.io/metadata.name": "app" } } })
        }
        4 => {
            let operator = pick(rng, &["In", "NotIn"]);
            let requirement = json!({ "key": "team", "operator": operator, "values": ["shop", "other"] });
            json!({ "from": "Selector", "selector": { "matchExpressions": [requirement] } })
        }
        5 => {
            let operator = pick(rng, &["Exists", "DoesNotExist"]);
            json!({ "from": "Selector", "selector": { "matchExpressions": [{ "key": "team", "operator": operator }] } })
        }
        _ => json!({ "from": "All" }),
    }
}
