//! The objects of the cluster.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::backends::Backends;
use super::fixtures::{LISTENERS, SUBJECTS_PER_SORT};

/// The namespace of Services that take a grant.
pub(crate) const ABSENT: &str = "away";

pub(super) fn prefix(path: &str) -> Value {
    json!({"path": {"type": "PathPrefix", "value": path}})
}

pub(super) fn backend_ref(service: &str) -> Value {
    json!({"name": service, "port": 80})
}

pub(super) fn route(name: &str, host: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"parentRefs": [{"name": "web"}], "hostnames": [host], "rules": rules},
    })
}

pub(super) fn service(namespace: &str, name: &str, port: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": port, "port": 80}]},
    })
}

/// The endpoints of a Service, whose named ports are those of backends.
pub(super) fn slice(namespace: &str, service: &str, backends: &Backends, ports: &[(&str, &str)]) -> Value {
    let ports = ports.iter().map(|(name, backend)| json!({"name": name, "port": backends.port(backend)}));
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": ports.collect::<Vec<_>>(),
        "endpoints": [{"addresses": [backends.address.to_string()], "conditions": {"ready": true}}],
    })
}

pub(super) fn secret(name: &str, certificate: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": "default"},
        "data": certificate_data(certificate, key),
    })
}

pub(super) fn certificate_data(certificate: &str, key: &str) -> Value {
    json!({"tls.crt": BASE64_STANDARD.encode(certificate), "tls.key": BASE64_STANDARD.encode(key)})
}

/// The text of a certificate between its first and last line.
pub(super) fn der(pem: &str) -> Vec<u8> {
    let lines: String = pem.lines().filter(|line| !line.starts_with("---")).collect();
    BASE64_STANDARD.decode(lines).unwrap()
}

/// All listeners of the Gateway. The digit of a changing one selects absent, the hostname of its route, or another
/// hostname.
pub(super) fn listeners(digits: &[usize; LISTENERS]) -> Value {
    let behind_tls = |name: &str| {
        json!({
            "name": name, "port": 443, "protocol": "HTTPS", "hostname": format!("{name}.example"),
            "tls": {"certificateRefs": [{"name": name}]},
        })
    };
    let mut listeners = vec![json!({"name": "plain", "port": 80, "protocol": "HTTP"}), behind_tls("safe")];
    listeners.extend((0..SUBJECTS_PER_SORT).map(|index| behind_tls(&format!("certificate-{index}"))));
    for (index, digit) in digits.iter().enumerate().filter(|(_, digit)| **digit > 0) {
        let host =
            if *digit == 1 { format!("listener-{index}.example") } else { format!("other-{index}.example") };
        listeners.push(
            json!({"name": format!("listener-{index}"), "port": 80, "protocol": "HTTP", "hostname": host}),
        );
    }
    listeners.into()
}

/// The Gateway of all routes.
pub(super) fn gateway(digits: &[usize; LISTENERS]) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"gatewayClassName": "pingsix", "listeners": listeners(digits)},
    })
}

/// A grant for routes to a Service of the other namespace.
pub(super) fn grant(service: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ReferenceGrant",
        "metadata": {"name": service, "namespace": ABSENT},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}],
            "to": [{"group": "", "kind": "Service", "name": service}],
        },
    })
}
