//! A Gateway with Services, for tests.

#[cfg(feature = "controller")]
pub(crate) mod api_server;
#[cfg(feature = "controller")]
pub(crate) mod generate;
#[cfg(feature = "controller")]
pub(crate) mod objects;

use std::sync::Arc;

use pingsix_translate::snapshot::{Object, Objects, Snapshot};
use pingsix_translate::{DataPlane, DataPlaneKey, ObjectName, Options, Translation, translate};
use serde_json::{Value, json};

/// Gateway `infra/web` on port 80 with listeners for any host and for `*.example.com`, Services `infra/a` to `infra/e`
/// with one endpoint each, Service `infra/empty` without, and these routes, given as name and spec without parentRefs.
pub(crate) fn objects(routes: &[(&str, Value)]) -> Objects {
    let mut objects = Objects::default();
    let from = |value: Value| value;
    let gateway = from(json!({
        "metadata": { "namespace": "infra", "name": "web" },
        "spec": { "gatewayClassName": "pingsix", "listeners": [
            { "name": "any", "port": 80, "protocol": "HTTP" },
            { "name": "example", "port": 80, "protocol": "HTTP", "hostname": "*.example.com" },
        ] },
    }));
    objects.insert(Object::Gateway(Arc::new(serde_json::from_value(gateway).unwrap())));
    for (index, name) in ["a", "b", "c", "d", "e", "empty"].into_iter().enumerate() {
        let service = json!({
            "metadata": { "namespace": "infra", "name": name }, "spec": { "ports": [{ "port": 80 }] },
        });
        objects.insert(Object::Service(Arc::new(serde_json::from_value(service).unwrap())));
        let slice = json!({
            "metadata": { "namespace": "infra", "name": name, "labels": { "kubernetes.io/service-name": name } },
            "addressType": "IPv4", "ports": [{ "port": 8080 }],
            "endpoints": if name == "empty" { json!([]) } else { json!([{ "addresses": [format!("10.0.0.{}", index + 1)] }]) },
        });
        objects.insert(Object::EndpointSlice(Arc::new(serde_json::from_value(slice).unwrap())));
    }
    for (name, spec) in routes {
        let mut spec = spec.clone();
        if spec.get("parentRefs").is_none() {
            spec["parentRefs"] = json!([{ "name": "web" }]);
        }
        let route = json!({ "metadata": { "namespace": "infra", "name": name }, "spec": spec });
        objects.insert(Object::HttpRoute(Arc::new(serde_json::from_value(route).unwrap())));
    }
    objects
}

/// A rule that sends a path prefix to a Service of `infra`.
pub(crate) fn rule(prefix: &str, service: &str) -> Value {
    json!({
        "matches": [{ "path": { "type": "PathPrefix", "value": prefix } }],
        "backendRefs": [{ "name": service, "port": 80 }],
    })
}

pub(crate) fn options() -> Options {
    Options { responder: Some("127.0.0.1:8089".parse().unwrap()), ..Options::default() }
}

pub(crate) fn snapshot(routes: &[(&str, Value)]) -> Snapshot {
    objects(routes).snapshot(&ObjectName::new("infra", "web")).unwrap()
}

pub(crate) fn translation(routes: &[(&str, Value)]) -> Translation {
    translate(&snapshot(routes), &options())
}

/// The one data plane of the Gateway.
pub(crate) fn plane(routes: &[(&str, Value)]) -> (DataPlaneKey, DataPlane) {
    translation(routes).data_planes.into_iter().next().unwrap()
}
