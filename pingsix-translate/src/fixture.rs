//! Objects for unit tests, written as JSON.

pub(crate) mod pem;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::model::{ObjectName, Options};
use crate::pipeline::{Translation, translate};
use crate::snapshot::{Object, Objects, Snapshot};

/// An object of the kind that the caller wants.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Gateway `infra/public`, generation 7, with these listeners.
pub(crate) fn gateway(listeners: &Value) -> Objects {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public", "generation": 7},
        "spec": {"gatewayClassName": "pingsix", "listeners": listeners},
    }))));
    objects
}

/// Lets ListenerSets of every namespace attach to Gateway `infra/public`.
pub(crate) fn allow_listener_sets(objects: &mut Objects) {
    let gateway = objects.gateways().next().unwrap().1;
    let mut allowing = serde_json::to_value(&**gateway).unwrap();
    allowing["spec"]["allowedListeners"] = json!({"namespaces": {"from": "All"}});
    objects.insert(Object::Gateway(object(allowing)));
}

/// Adds ListenerSet `<name>`, as namespace and name, generation 5, created on a day of January.
pub(crate) fn add_listener_set(objects: &mut Objects, name: (&str, &str), day: u8, listeners: &Value) {
    objects.insert(Object::ListenerSet(object(json!({
        "metadata": {
            "namespace": name.0, "name": name.1, "generation": 5,
            "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"),
        },
        "spec": {"parentRef": {"namespace": "infra", "name": "public"}, "listeners": listeners},
    }))));
}

/// A listener with protocol HTTPS and these Secrets.
pub(crate) fn https(name: &str, port: u16, hostname: Option<&str>, secrets: &[&str]) -> Value {
    let refs: Vec<Value> = secrets.iter().map(|secret| json!({"name": secret})).collect();
    json!({
        "name": name, "port": port, "protocol": "HTTPS", "hostname": hostname, "tls": {"certificateRefs": refs},
    })
}

/// Adds HTTPRoute `infra/<name>`, generation 3.
pub(crate) fn add_route(objects: &mut Objects, name: &str, spec: &Value) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"namespace": "infra", "name": name, "generation": 3},
        "spec": spec,
    }))));
}

/// Adds GRPCRoute `infra/<name>`, generation 3.
pub(crate) fn add_grpc_route(objects: &mut Objects, name: &str, spec: &Value) {
    objects.insert(Object::GrpcRoute(object(json!({
        "metadata": {"namespace": "infra", "name": name, "generation": 3},
        "spec": spec,
    }))));
}

/// Adds Service `infra/<name>` with port 80 and one endpoint.
pub(crate) fn add_service(objects: &mut Objects, name: &str) {
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": name}, "spec": {"ports": [{"port": 80}]},
    }))));
    add_endpoints(objects, name);
}

/// Adds one endpoint of Service `infra/<name>`.
pub(crate) fn add_endpoints(objects: &mut Objects, name: &str) {
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
}

/// Adds Secret `infra/<name>` of type `kubernetes.io/tls`.
pub(crate) fn add_certificate(objects: &mut Objects, name: &str, pair: &pem::Pair) {
    objects.insert(Object::Secret(object(json!({
        "metadata": {"namespace": "infra", "name": name}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": pair.cert, "tls.key": pair.key},
    }))));
}

/// The snapshot of Gateway `infra/public`.
pub(crate) fn snapshot(objects: &Objects) -> Snapshot {
    objects.snapshot(&ObjectName::new("infra", "public")).unwrap()
}

/// The translation of Gateway `infra/public`.
pub(crate) fn run(objects: &Objects, options: &Options) -> Translation {
    translate(&snapshot(objects), options)
}
