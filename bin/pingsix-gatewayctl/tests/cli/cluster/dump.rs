//! Objects of a cluster as files, in the form of `kubectl get -o yaml`.

use std::fs;

use pingsix_test_cluster::TestCluster;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The lists, and the kinds of their objects.
pub(super) const LISTS: [(&str, &str); 25] = [
    ("/apis/gateway.networking.k8s.io/v1/gatewayclasses", "GatewayClass"),
    ("/apis/gateway.networking.k8s.io/v1/gateways", "Gateway"),
    ("/apis/gateway.networking.k8s.io/v1/listenersets", "ListenerSet"),
    ("/apis/gateway.networking.k8s.io/v1/httproutes", "HTTPRoute"),
    ("/apis/gateway.networking.k8s.io/v1/grpcroutes", "GRPCRoute"),
    ("/apis/gateway.networking.k8s.io/v1/tlsroutes", "TLSRoute"),
    ("/apis/gateway.networking.k8s.io/v1alpha2/tcproutes", "TCPRoute"),
    ("/apis/gateway.networking.k8s.io/v1alpha2/udproutes", "UDPRoute"),
    ("/apis/gateway.networking.k8s.io/v1/backendtlspolicies", "BackendTLSPolicy"),
    ("/apis/gateway.networking.k8s.io/v1beta1/referencegrants", "ReferenceGrant"),
    ("/apis/pingsix.io/v1alpha1/securitypolicies", "SecurityPolicy"),
    ("/apis/pingsix.io/v1alpha1/trafficpolicies", "TrafficPolicy"),
    ("/apis/pingsix.io/v1alpha1/backendtrafficpolicies", "BackendTrafficPolicy"),
    ("/apis/pingsix.io/v1alpha1/httproutefilters", "HTTPRouteFilter"),
    ("/apis/pingsix.io/v1alpha1/pingsixproxies", "PingsixProxy"),
    ("/apis/networking.k8s.io/v1/ingressclasses", "IngressClass"),
    ("/apis/networking.k8s.io/v1/ingresses", "Ingress"),
    ("/apis/discovery.k8s.io/v1/endpointslices", "EndpointSlice"),
    ("/api/v1/services", "Service"),
    ("/api/v1/secrets", "Secret"),
    ("/api/v1/configmaps", "ConfigMap"),
    ("/api/v1/namespaces", "Namespace"),
    ("/apis/apisix.apache.org/v2/apisixroutes", "ApisixRoute"),
    ("/apis/apisix.apache.org/v2/apisixconsumers", "ApisixConsumer"),
    ("/apis/apisix.apache.org/v2/apisixtlses", "ApisixTls"),
];

/// A file with objects.
pub(super) struct Dump {
    objects: Vec<Value>,
    path: String,
    _directory: TempDir,
}

impl Dump {
    /// The objects of a cluster for which the predicate holds. A missing kind has none.
    pub(super) async fn of(cluster: &TestCluster, is_part: impl Fn(&Value) -> bool) -> Self {
        let client = cluster.admin();
        let mut objects = Vec::new();
        for (path, kind) in LISTS {
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            let Ok(list) = client.request::<Value>(request).await else { continue };
            for item in list["items"].as_array().unwrap() {
                let mut object = item.clone();
                object["apiVersion"] = list["apiVersion"].clone();
                object["kind"] = json!(kind);
                objects.push(object);
            }
        }
        assert!(objects.iter().any(|object| object["metadata"].get("managedFields").is_some()));
        objects.retain(&is_part);
        Self::new(objects)
    }

    pub(super) fn filtered(&self, is_part: impl Fn(&Value) -> bool) -> Self {
        Self::new(self.objects.iter().filter(|object| is_part(object)).cloned().collect())
    }

    fn new(objects: Vec<Value>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump.yaml");
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        fs::write(&path, serde_saphyr::to_string(&list).unwrap()).unwrap();
        Self { objects, path: path.to_str().unwrap().to_owned(), _directory: directory }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// An output without places and notes, and with the findings in an order that does not depend on places.
pub(super) fn normal(output: &str, path: &str) -> String {
    if let Ok(mut value) = serde_json::from_str::<Value>(output)
        && let Some(findings) = value.get_mut("findings").and_then(Value::as_array_mut)
    {
        for finding in findings.iter_mut().filter_map(Value::as_object_mut) {
            for place in ["file", "document", "line"] {
                finding.remove(place);
            }
        }
        findings.sort_by_key(Value::to_string);
        return value.to_string();
    }
    let mut groups: Vec<String> = Vec::new();
    let mut is_finding = false;
    for line in output.lines().filter(|line| !line.starts_with("note: ")) {
        let place =
            line.split_once(' ').filter(|(place, _)| place.starts_with(path) || *place == "<cluster>");
        // Findings follow the line of their object, indented.
        is_finding = place.is_some() || (is_finding && line.starts_with("  "));
        match (place, groups.last_mut()) {
            (Some((_, object)), _) => groups.push(format!("finding about {object}")),
            (None, Some(group)) if is_finding => group.extend(["\n", line]),
            (None, _) => groups.push(line.to_owned()),
        }
    }
    // Only runs of findings are sorted.
    for run in groups.chunk_by_mut(|one, other| one.starts_with("finding") == other.starts_with("finding")) {
        if run[0].starts_with("finding") {
            run.sort();
        }
    }
    groups.join("\n")
}
