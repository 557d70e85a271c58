//! The objects that are changed.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// The number of Services that the routes share.
pub(crate) const SERVICES: usize = 10;

/// The prefix of the documents.
pub(crate) const PREFIX: &str = "/pingsix/default/web";

/// The number of concurrent requests.
const CONCURRENT_REQUESTS: usize = 32;

/// Objects of one Gateway.
pub(crate) struct Subject {
    client: Client,
}

impl Subject {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        if kind == "GatewayClass" {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), "default", &resource)
        }
    }

    fn routes(&self) -> Api<DynamicObject> {
        self.api("gateway.networking.k8s.io", "HTTPRoute")
    }

    async fn post(api: &Api<DynamicObject>, group: &str, kind: &str, name: &str, content: Value) {
        let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let mut object = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name } });
        merge(&mut object, content);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a Gateway with so many routes.
    pub(crate) async fn create(&self, count: usize) {
        let gateway_api = "gateway.networking.k8s.io";
        let class = json!({ "spec": { "controllerName": "pingsix.io/gateway-controller" } });
        Self::post(&self.api(gateway_api, "GatewayClass"), gateway_api, "GatewayClass", "pingsix", class)
            .await;
        let listener = json!({ "name": "plain", "port": 80, "protocol": "HTTP" });
        let gateway = json!({ "spec": { "gatewayClassName": "pingsix", "listeners": [listener] } });
        Self::post(&self.api(gateway_api, "Gateway"), gateway_api, "Gateway", "web", gateway).await;
        for index in 0..SERVICES {
            let port = json!({ "name": "web", "port": 80, "targetPort": 8080 });
            let service = json!({ "spec": { "ports": [port] } });
            Self::post(&self.api("", "Service"), "", "Service", &format!("s{index}"), service).await;
            let slice = json!({
                "metadata": { "labels": { "kubernetes.io/service-name": format!("s{index}") } },
                "addressType": "IPv4", "ports": [{ "name": "web", "port": 8080, "protocol": "TCP" }],
                "endpoints": [{ "addresses": [format!("10.8.0.{}", index + 1)], "conditions": { "ready": true } }],
            });
            let group = "discovery.k8s.io";
            Self::post(
                &self.api(group, "EndpointSlice"),
                group,
                "EndpointSlice",
                &format!("s{index}"),
                slice,
            )
            .await;
        }
        let api = self.routes();
        stream::iter(0..count)
            .for_each_concurrent(CONCURRENT_REQUESTS, |index| {
                let api = api.clone();
                async move {
                    let spec = route(index, "/");
                    Self::post(&api, "gateway.networking.k8s.io", "HTTPRoute", &name(index), spec).await;
                }
            })
            .await;
    }

    /// The time in which the API server answers a list of all routes: from the request to the last byte, without
    /// decoding. The shorter of two, because the first may fill caches.
    pub(crate) async fn list_routes(&self) -> (Duration, usize) {
        let mut shortest: Option<(Duration, usize)> = None;
        for _ in 0..2 {
            let request =
                http::Request::get("/apis/gateway.networking.k8s.io/v1/httproutes").body(Vec::new());
            let started = Instant::now();
            let answer = self.client.request_text(request.unwrap()).await.unwrap();
            let sample = (started.elapsed(), answer.len());
            shortest = Some(shortest.map_or(sample, |other| other.min(sample)));
        }
        shortest.unwrap()
    }

    /// Creates a Gateway of a class with so many routes of its own, all of them on the first Service.
    pub(crate) async fn add_gateway(&self, name: &str, class: &str, routes: usize) {
        let gateway_api = "gateway.networking.k8s.io";
        let listener = json!({ "name": "plain", "port": 80, "protocol": "HTTP" });
        let gateway = json!({ "spec": { "gatewayClassName": class, "listeners": [listener] } });
        Self::post(&self.api(gateway_api, "Gateway"), gateway_api, "Gateway", name, gateway).await;
        let api = self.routes();
        stream::iter(0..routes)
            .for_each_concurrent(CONCURRENT_REQUESTS, |index| {
                let api = api.clone();
                async move {
                    let mut content = route(index * SERVICES, "/");
                    content["spec"]["parentRefs"] = json!([{ "name": name }]);
                    Self::post(&api, gateway_api, "HTTPRoute", &format!("{name}-{index}"), content).await;
                }
            })
            .await;
    }

    /// Gives a Gateway another port, so that all of it is translated.
    pub(crate) async fn change_gateway(&self, name: &str, port: usize) {
        let listener = json!({ "name": "plain", "port": port, "protocol": "HTTP" });
        let change = Patch::Merge(json!({ "spec": { "listeners": [listener] } }));
        let gateways = self.api("gateway.networking.k8s.io", "Gateway");
        gateways.patch(name, &PatchParams::default(), &change).await.unwrap();
    }

    /// Gives a route another path. Returns when the API server had answered.
    pub(crate) async fn change_route(&self, index: usize, path: &str) -> Instant {
        let change = Patch::Merge(route(index, path));
        self.routes().patch(&name(index), &PatchParams::default(), &change).await.unwrap();
        Instant::now()
    }

    /// Moves the endpoint of a Service. Returns when the API server had answered.
    pub(crate) async fn change_endpoint(&self, index: usize, address: &str) -> Instant {
        let patch = json!({ "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }] });
        let slices = self.api("discovery.k8s.io", "EndpointSlice");
        slices.patch(&format!("s{index}"), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        Instant::now()
    }

    /// Changes annotations of routes, which the controller ignores. Returns the number of changes.
    pub(crate) async fn annotate(&self, changes: usize, count: usize) -> usize {
        for change in 0..changes {
            let patch = json!({ "metadata": { "annotations": { "note": format!("{change}") } } });
            let name = name(change * 7 % count);
            self.routes().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
        changes
    }
}

fn name(index: usize) -> String {
    format!("r{index}")
}

fn route(index: usize, path: &str) -> Value {
    json!({ "spec": {
        "parentRefs": [{ "name": "web" }],
        "hostnames": [format!("h{index}.example")],
        "rules": [{
            "matches": [{ "path": { "type": "PathPrefix", "value": path } }],
            "backendRefs": [{ "name": format!("s{}", index % SERVICES), "port": 80 }],
        }],
    } })
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (field, value) in from {
                merge(into.entry(field).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
