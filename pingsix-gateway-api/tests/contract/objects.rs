//! Gateway `infra/public` and Service `infra/shop`, on which tests of policies and telemetry build.

use std::sync::Arc;

use pingsix_translate::pingsix::Config;
use pingsix_translate::{Object, Objects};
use serde_json::{Value, json};

use crate::nodes::with_upstreams;

/// The one endpoint of the Service.
const ENDPOINT: &str = "10.0.0.7";

pub(crate) fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// The Gateway, and the Service with this port and this port of its endpoint.
pub(crate) fn gateway_and_service(service_port: &Value, endpoint_port: u16) -> Objects {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": { "namespace": "infra", "name": "public" },
        "spec": {
            "gatewayClassName": "pingsix",
            "listeners": [{ "name": "http", "port": 80, "protocol": "HTTP" }],
        },
    }))));
    objects.insert(Object::Service(object(json!({
        "metadata": { "namespace": "infra", "name": "shop" }, "spec": { "ports": [service_port] },
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {
            "namespace": "infra", "name": "shop", "labels": { "kubernetes.io/service-name": "shop" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [ENDPOINT] }],
        "ports": [{ "port": endpoint_port }],
    }))));
    objects
}

/// The configuration with these nodes for the endpoint of the Service.
pub(crate) async fn with_nodes(config: &Config, nodes: &[String]) -> Config {
    with_upstreams(config, async |upstream| {
        if upstream.nodes.keys().any(|node| node.starts_with(ENDPOINT)) {
            upstream.nodes = nodes.iter().map(|node| (node.clone(), 1)).collect();
        }
    })
    .await
}
