//! Services, their endpoints, and grants to use them.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::{NAMESPACES, one_in, pick};

/// Names of Services; there is never one of the last name.
pub(crate) const SERVICES: [&str; 5] = ["one", "two", "idle", "outside", "missing"];

/// Values of `appProtocol`; the last one is unknown.
const PROTOCOLS: [&str; 4] = ["http", "kubernetes.io/h2c", "kubernetes.io/ws", "example.com/bespoke"];

pub(crate) fn services(rng: &mut SmallRng) -> Vec<Value> {
    let mut objects = Vec::new();
    for (x, namespace) in NAMESPACES.into_iter().enumerate() {
        for (y, name) in ["one", "two", "idle"].into_iter().enumerate() {
            let metadata = json!({ "namespace": namespace, "name": name });
            let mut ports = json!([
                { "name": "http", "port": 80, "targetPort": 8080 },
                { "name": "admin", "port": 81, "targetPort": 8081 },
            ]);
            if one_in(rng, 2) {
                let port = rng.random_range(0..2);
                ports[port]["appProtocol"] = json!(pick(rng, &PROTOCOLS));
            }
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": { "type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": ports },
            }));
            let ready = if name == "idle" { Some(json!(false)) } else { None };
            objects.extend(slices(rng, namespace, name, &format!("10.{x}.{y}"), ready.as_ref()));
        }
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "namespace": namespace, "name": "outside" },
            "spec": { "type": "ExternalName", "externalName": "example.org", "ports": [{ "name": "http", "port": 80 }] },
        }));
    }
    objects
}

fn slices(
    rng: &mut SmallRng,
    namespace: &str,
    service: &str,
    network: &str,
    ready: Option<&Value>,
) -> Vec<Value> {
    let six = namespace == "app-b";
    let address = |last: usize| {
        if six { format!("fd00::{}:{last}", network.replace('.', ":")) } else { format!("{network}.{last}") }
    };
    let count = rng.random_range(1..=2);
    let slice = |index: usize| {
        let mut endpoints: Vec<Value> = (0..2)
            .map(|endpoint| {
                let ready = ready.cloned().unwrap_or(if endpoint == 0 { Value::Null } else { json!(true) });
                json!({ "addresses": [address(2 * index + endpoint + 1)], "conditions": { "ready": ready } })
            })
            .collect();
        // One that is on its way out, and a last resort for the Service that has no ready one in this namespace.
        let serving = service != "idle" || namespace == "app";
        let conditions = json!({ "ready": false, "serving": serving, "terminating": true });
        endpoints.push(json!({ "addresses": [address(100 + index)], "conditions": conditions }));
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": namespace,
                "name": format!("{service}-{index}"),
                "labels": { "kubernetes.io/service-name": service },
            },
            "addressType": if six { "IPv6" } else { "IPv4" },
            "endpoints": endpoints,
            "ports": [{ "name": "http", "port": 8080 }, { "name": "admin", "port": 8081 }],
        })
    };
    (0..count).map(slice).collect()
}

pub(super) fn grants(rng: &mut SmallRng) -> Vec<Value> {
    let mut grants = Vec::new();
    for namespace in NAMESPACES {
        if one_in(rng, 2) {
            continue;
        }
        let from = pick(rng, &NAMESPACES);
        let kind = if one_in(rng, 3) { "GRPCRoute" } else { "HTTPRoute" };
        let mut to = json!({ "group": "", "kind": "Service" });
        if one_in(rng, 2) {
            to["name"] = json!(pick(rng, &["one", "two"]));
        }
        grants.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1beta1",
            "kind": "ReferenceGrant",
            "metadata": { "namespace": namespace, "name": "grant" },
            "spec": {
                "from": [{ "group": "gateway.networking.k8s.io", "kind": kind, "namespace": from }],
                "to": [to],
            },
        }));
    }
    grants
}
