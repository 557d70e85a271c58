//! From policies to upstreams, answers and verdicts.

mod combination;
mod honoured;
mod host;
mod reach;
mod target;
mod traffic;
mod validation;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{add_grpc_route, add_route, add_service, gateway, object, run};
use crate::model::{ConditionType, Kind, ObjectKey, Options, Reason};
use crate::pingsix::{PassHost, Scheme, Upstream};
use crate::pipeline::Translation;
use crate::snapshot::{Object, Objects};
use crate::status::{ConditionContent, ConditionStatus, Conditions, PolicyVerdict};

const HOST: &str = "backend.test";

/// Gateway `infra/public` with one listener for every host.
fn world() -> Objects {
    gateway(&json!([{"name": "http", "port": 80, "protocol": "HTTP"}]))
}

/// [`world`] with Service `infra/web`, and HTTPRoute `infra/web` that serves it as [`HOST`].
fn served() -> Objects {
    let mut objects = world();
    add_service(&mut objects, "web");
    route_to(&mut objects, "web", &[HOST], &json!([{"name": "web", "port": 80}]));
    objects
}

fn route_to(objects: &mut Objects, name: &str, hostnames: &[&str], backends: &Value) {
    let spec = json!({
        "parentRefs": [{"name": "public"}], "hostnames": hostnames, "rules": [{"backendRefs": backends}],
    });
    add_route(objects, name, &spec);
}

fn web() -> Value {
    json!([{"group": "", "kind": "Service", "name": "web"}])
}

fn web_port(port: &str) -> Value {
    json!([{"group": "", "kind": "Service", "name": "web", "sectionName": port}])
}

/// A policy that has [`HOST`] verified with the authorities every system knows.
fn system() -> Value {
    named(HOST)
}

/// The same, with this name.
fn named(hostname: &str) -> Value {
    json!({"wellKnownCACertificates": "System", "hostname": hostname})
}

/// A policy that names this ConfigMap for its CA.
fn custom(config_map: &str) -> Value {
    json!({
        "hostname": HOST, "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": config_map}],
    })
}

/// Adds BackendTLSPolicy `infra/<name>`, generation 5, created in this second of a minute.
fn add_policy(objects: &mut Objects, name: &str, second: u32, targets: &Value, validation: &Value) {
    add_policy_spec(objects, name, second, &json!({"targetRefs": targets, "validation": validation}));
}

fn add_policy_spec(objects: &mut Objects, name: &str, second: u32, spec: &Value) {
    objects.insert(Object::BackendTlsPolicy(object(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "BackendTLSPolicy",
        "metadata": {
            "namespace": "infra", "name": name, "generation": 5,
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": spec,
    }))));
}

/// Adds Service `infra/web` with port 80, named `main`, and one endpoint.
fn add_named_port(objects: &mut Objects, app_protocol: Option<&str>) {
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"port": 80, "name": "main", "appProtocol": app_protocol}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 8080, "name": "main"}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
}

/// Adds ConfigMap `infra/<name>` with this entry `ca.crt`.
fn add_config_map(objects: &mut Objects, name: &str, data: &Value) {
    objects.insert(Object::ConfigMap(object(json!({
        "metadata": {"namespace": "infra", "name": name}, "data": data,
    }))));
}

fn certificate() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(vec!["ca.test".to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}

fn translated(objects: &Objects) -> Translation {
    let options = Options { responder: Some(([127, 0, 0, 1], 9000).into()), ..Options::default() };
    run(objects, &options)
}

/// The upstreams with the endpoint of Service `web`.
fn upstreams(translation: &Translation) -> Vec<Upstream> {
    let planes = translation.data_planes.values();
    let upstreams = planes.flat_map(|plane| plane.config.upstreams().map(|(_, upstream)| upstream));
    upstreams.filter(|upstream| upstream.nodes.contains_key("10.0.0.1:8080")).cloned().collect()
}

fn policy<'t>(translation: &'t Translation, name: &str) -> &'t PolicyVerdict {
    &translation.verdicts.policies[&ObjectKey::new(Kind::BackendTlsPolicy, "infra", name)]
}

fn route<'t>(translation: &'t Translation, name: &str) -> &'t Conditions {
    &translation.verdicts.routes[&ObjectKey::new(Kind::HttpRoute, "infra", name)].parents[0].conditions
}

/// Status, reason and message of a condition.
fn condition(conditions: &Conditions, kind: ConditionType) -> ConditionContent {
    let condition = conditions.get(kind).unwrap();
    (condition.status, condition.reason, condition.message.clone())
}

/// The conditions that are `False`, with their reasons.
fn refused(conditions: &Conditions) -> Vec<(ConditionType, Reason)> {
    let refused = conditions.iter().filter(|condition| condition.status == ConditionStatus::False);
    refused.map(|condition| (condition.kind, condition.reason)).collect()
}

/// That policy `infra/tls` is refused for these reasons, that no connection is made, and that the route of
/// [`served`] says so without being refused.
fn assert_denied(objects: &Objects, reasons: &[(ConditionType, Reason)], field: &str) {
    let translation = translated(objects);
    let verdict = policy(&translation, "tls");
    assert_eq!(refused(&verdict.conditions), reasons);
    let (.., message) = condition(&verdict.conditions, ConditionType::Accepted);
    assert!(message.contains(field), "{message}");
    assert_eq!(upstreams(&translation), []);
    let conditions = route(&translation, "web");
    assert_eq!(refused(conditions), []);
    assert_eq!(conditions.get(ConditionType::PartiallyInvalid), None);
    let (.., message) = condition(conditions, ConditionType::Accepted);
    assert!(message.starts_with("The route is accepted. spec.rules[0].backendRefs[0]: "), "{message}");
    assert!(message.contains("BackendTLSPolicy infra/tls") && message.contains(field), "{message}");
}
