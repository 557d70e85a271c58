//! Stream documents.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::certificate::Certificate;

/// The upstream `id` of one node.
pub(crate) fn upstream(id: &str, node: SocketAddr) -> (String, Value) {
    (format!("upstreams/{id}"), json!({"nodes": {node.to_string(): 1}}))
}

/// The certificate `id`.
pub(crate) fn certificate(id: &str, certificate: &Certificate) -> (String, Value) {
    (format!("ssls/{id}"), json!({"cert": certificate.chain, "key": certificate.key}))
}

/// The route of a port for `tcp` or `udp`.
pub(crate) fn route(protocol: &str, port: u16, upstream: &str) -> (String, Value) {
    let route = json!({"server_port": port, "protocol": protocol, "targets": [{"upstream_id": upstream, "weight": 1}]});
    (format!("stream_routes/{protocol}-{port}"), route)
}

/// The route of a server name, which terminates TLS with the certificate of an id if there is one.
pub(crate) fn named(port: u16, name: &str, certificate: Option<&str>, upstream: &str) -> (String, Value) {
    let (_, mut route) = route("tls", port, upstream);
    route["snis"] = json!([name]);
    route["tls"] = json!(if certificate.is_some() { "terminate" } else { "passthrough" });
    if let Some(certificate) = certificate {
        route["ssl_ids"] = json!([certificate]);
    }
    (format!("stream_routes/{name}"), route)
}
