//! The objects of the tests.

use std::time::Instant;

use futures::{StreamExt as _, stream};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use serde_json::{Value, json};

pub(crate) const OUR_CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: pingsix}
spec: {controllerName: pingsix.io/gateway-controller}
";

/// The number of Services that routes share.
pub(crate) const SERVICES: usize = 10;

/// The number of concurrent requests for objects that nothing measures one by one.
const CONCURRENT_REQUESTS: usize = 32;

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

pub(crate) fn service_name(index: usize) -> String {
    format!("backend-{index}")
}

/// The API of the kind of an object, in its namespace.
fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates an object, and returns the time of the answer.
pub(crate) async fn create(client: &Client, object: Value) -> Instant {
    let api = api(client, &object);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    Instant::now()
}

pub(crate) async fn create_all(client: &Client, objects: impl IntoIterator<Item = Value>) -> Instant {
    stream::iter(objects)
        .for_each_concurrent(CONCURRENT_REQUESTS, |object| async move {
            create(client, object).await;
        })
        .await;
    Instant::now()
}

/// Deletes objects, and returns the time of the last answer.
pub(crate) async fn delete_all(client: &Client, objects: impl IntoIterator<Item = Value>) -> Instant {
    stream::iter(objects)
        .for_each_concurrent(CONCURRENT_REQUESTS, |object| async move {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            api(client, &object).delete(&name, &DeleteParams::default()).await.unwrap();
        })
        .await;
    Instant::now()
}

/// Merges fields into an object that exists, and returns the time of the answer.
pub(crate) async fn merge(client: &Client, object: &Value) -> Instant {
    let name = object["metadata"]["name"].as_str().unwrap();
    api(client, object).patch(name, &PatchParams::default(), &Patch::Merge(object)).await.unwrap();
    Instant::now()
}

pub(crate) fn gateway(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": GATEWAY_API, "kind": "Gateway",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "gatewayClassName": class,
            "listeners": [{
                "name": "http", "port": 80, "protocol": "HTTP",
                "allowedRoutes": {"namespaces": {"from": "All"}},
            }],
            "allowedListeners": {"namespaces": {"from": "All"}},
        },
    })
}

/// A Service with its endpoints.
pub(crate) fn service(namespace: &str, name: &str, endpoints: &Value) -> [Value; 2] {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": "web", "port": 80, "targetPort": 8080}]},
    });
    [service, slice(namespace, name, endpoints)]
}

/// The EndpointSlice of a Service.
pub(crate) fn slice(namespace: &str, name: &str, endpoints: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "endpoints": endpoints["endpoints"], "ports": endpoints["ports"],
    })
}

/// The shape of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One rule.
    Simple,
    /// The route of the public benchmark: two rules with filters, the second one with a Service that does not exist.
    Benchmark,
}

/// The host of a route.
pub(crate) fn host(index: usize) -> String {
    format!("{index}-route.example.com")
}

/// A route of Gateways in the namespace `default`. It answers `/{index}`.
pub(crate) fn route(gateways: &[String], namespace: &str, index: usize, shape: Shape) -> Value {
    let service = if namespace == "default" { service_name(index % SERVICES) } else { service_name(index) };
    let path = |path: String| json!([{"path": {"type": "PathPrefix", "value": path}}]);
    let mut rules = vec![json!({
        "matches": path(format!("/{index}")),
        "backendRefs": [{"name": service, "port": 80}],
    })];
    if shape == Shape::Benchmark {
        rules.push(json!({
            "matches": path("/".to_owned()),
            "backendRefs": [{"name": "invalid-backend", "port": 80}],
        }));
        for rule in &mut rules {
            let add = |name: &str, value: &str| json!({"add": [{"name": name, "value": value}]});
            rule["filters"] = json!([
                {"type": "RequestHeaderModifier", "requestHeaderModifier": add("added-header", "added-value")},
                {"type": "ResponseHeaderModifier", "responseHeaderModifier": add("added-resp-header", "added-resp-value")},
            ]);
        }
    }
    let parents: Vec<Value> =
        gateways.iter().map(|name| json!({"name": name, "namespace": "default"})).collect();
    json!({
        "apiVersion": GATEWAY_API, "kind": "HTTPRoute",
        "metadata": {"name": format!("{index}-route"), "namespace": namespace},
        "spec": {"parentRefs": parents, "hostnames": [host(index)], "rules": rules},
    })
}
