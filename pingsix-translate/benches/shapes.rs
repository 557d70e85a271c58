//! Object sets of the shapes that benchmarks and growth tables share.

use std::sync::Arc;

use pingsix_translate::snapshot::{AnyPolicy, AnyRoute, Referents, Secret, SecurityPolicy};
use pingsix_translate::{IngressSnapshot, Object, ObjectName, Objects, Snapshot};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The distribution of hostnames and paths over routes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A hostname per route, three path prefixes each.
    FlatHosts,
    /// One hostname for all rules; every rule has a prefix of its own.
    SharedHost,
    /// A hostname per ten routes; prefixes nest three deep.
    NestedPrefixes,
    /// A hostname and a path prefix of its own per rule, beside one route for a wildcard over all of them.
    Wildcard,
}

impl Shape {
    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FlatHosts => "flat hosts",
            Self::SharedHost => "shared host",
            Self::NestedPrefixes => "nested prefixes",
            Self::Wildcard => "wildcard",
        }
    }
}

const RULES: usize = 3;
const SERVICES: usize = 100;

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).expect("the shape is well-formed"))
}

/// A Gateway with `routes` HTTPRoutes of three rules each, on a hundred Services.
pub(crate) fn snapshot(shape: Shape, routes: usize) -> Snapshot {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"name": "gateway", "namespace": "bench", "generation": 1},
        "spec": {"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }))));
    insert_services(&mut objects);
    for route in 0..routes {
        let (hostname, paths) = place(shape, route);
        let rules: Vec<Value> = paths
            .iter()
            .enumerate()
            .map(|(rule, path)| {
                json!({
                    "matches": [{"path": {"type": "PathPrefix", "value": path}}],
                    "backendRefs": [{"name": format!("service-{}", (route * RULES + rule) % SERVICES), "port": 80}],
                })
            })
            .collect();
        insert_route(&mut objects, &format!("route-{route}"), &hostname, &rules);
    }
    if matches!(shape, Shape::Wildcard) {
        let everything = json!({"backendRefs": [{"name": "service-0", "port": 80}]});
        insert_route(&mut objects, "wildcard", "*.example.com", &[everything]);
    }
    objects.snapshot(&ObjectName::new("bench", "gateway")).expect("the Gateway is there")
}

fn insert_services(objects: &mut Objects) {
    for service in 0..SERVICES {
        let name = format!("service-{service}");
        objects.insert(Object::Service(object(json!({
            "metadata": {"name": name, "namespace": "bench"}, "spec": {"ports": [{"port": 80}]},
        }))));
        let endpoints: Vec<Value> =
            (1..=3).map(|host| json!({"addresses": [format!("10.1.{service}.{host}")]})).collect();
        objects.insert(Object::EndpointSlice(object(json!({
            "metadata": {"name": name, "namespace": "bench", "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": endpoints,
        }))));
    }
}

fn place(shape: Shape, route: usize) -> (String, [String; RULES]) {
    match shape {
        Shape::FlatHosts => {
            (format!("host-{route}.example.com"), ["/".to_owned(), "/api".to_owned(), "/static".to_owned()])
        }
        Shape::SharedHost => {
            ("shop.example.com".to_owned(), [0, 1, 2].map(|rule| format!("/route-{route}/rule-{rule}")))
        }
        Shape::NestedPrefixes => (
            format!("host-{}.example.com", route / 10),
            [format!("/{route}"), format!("/{route}/api"), format!("/{route}/api/v1")],
        ),
        Shape::Wildcard => {
            (format!("host-{route}.example.com"), [0, 1, 2].map(|rule| format!("/route-{route}/rule-{rule}")))
        }
    }
}

/// A Gateway with `listeners` HTTPS listeners, each with a hostname and a certificate of its own.
pub(crate) fn certified(listeners: usize) -> Snapshot {
    let mut objects = Objects::default();
    let written: Vec<Value> = (0..listeners)
        .map(|index| {
            let (secret, hostname) = (format!("secret-{index}"), format!("host-{index}.example.com"));
            objects.insert(Object::Secret(secret_for(&secret, &hostname)));
            json!({
                "name": format!("https-{index}"), "port": 443, "protocol": "HTTPS", "hostname": hostname,
                "tls": {"certificateRefs": [{"name": secret}]},
            })
        })
        .collect();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"name": "gateway", "namespace": "bench", "generation": 1},
        "spec": {"gatewayClassName": "pingsix", "listeners": written},
    }))));
    objects.snapshot(&ObjectName::new("bench", "gateway")).expect("the Gateway is there")
}

fn secret_for(name: &str, hostname: &str) -> Arc<Secret> {
    let pair = rcgen::generate_simple_self_signed([hostname.to_owned()]).expect("the name is one of DNS");
    object(json!({
        "metadata": {"name": name, "namespace": "bench"},
        "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()},
    }))
}

/// The same, but for one certificate.
pub(crate) fn with_other_certificate(snapshot: &Snapshot) -> Snapshot {
    let mut other = snapshot.clone();
    let rotated = secret_for("secret-0", "host-0.example.com");
    other.referents.secrets.insert(ObjectName::new("bench", "secret-0"), rotated);
    other
}

fn insert_route(objects: &mut Objects, name: &str, hostname: &str, rules: &[Value]) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": name, "namespace": "bench", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"parentRefs": [{"name": "gateway"}], "hostnames": [hostname], "rules": rules},
    }))));
}

/// An IngressClass with this many Ingresses of three paths each, on a hundred Services.
pub(crate) fn ingress_snapshot(shape: Shape, ingresses: usize) -> IngressSnapshot {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "class"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    insert_services(&mut objects);
    for ingress in 0..ingresses {
        let (host, paths) = place(shape, ingress);
        let paths: Vec<Value> = paths
            .iter()
            .enumerate()
            .map(|(path, text)| {
                let name = format!("service-{}", (ingress * RULES + path) % SERVICES);
                json!({
                    "path": text, "pathType": "Prefix",
                    "backend": {"service": {"name": name, "port": {"number": 80}}},
                })
            })
            .collect();
        objects.insert(Object::Ingress(object(json!({
            "metadata": {
                "name": format!("ingress-{ingress}"), "namespace": "bench",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"ingressClassName": "class", "rules": [{"host": host, "http": {"paths": paths}}]},
        }))));
    }
    objects.ingress_snapshot("class").expect("the class is there")
}

/// The same, but for one path.
pub(crate) fn with_other_ingress(snapshot: &IngressSnapshot) -> IngressSnapshot {
    let mut other = snapshot.clone();
    if let Some((name, ingress)) = snapshot.ingresses.iter().nth(snapshot.ingresses.len() / 2) {
        let mut value = serde_json::to_value(&**ingress).expect("Ingresses can be written");
        value["spec"]["rules"][0]["http"]["paths"][0]["path"] = json!("/another/path");
        other.ingresses.insert(name.clone(), object(value));
    }
    other
}

/// The same, but for the address of one endpoint.
pub(crate) fn with_other_endpoint_of_ingress(snapshot: &IngressSnapshot) -> IngressSnapshot {
    let mut other = snapshot.clone();
    change_endpoint(&mut other.referents);
    other
}

/// The same, but for the path of one rule.
pub(crate) fn with_other_route(snapshot: &Snapshot) -> Snapshot {
    let mut other = snapshot.clone();
    if let Some((key, AnyRoute::HttpRoute(route))) = snapshot.routes.iter().nth(snapshot.routes.len() / 2) {
        let mut value = serde_json::to_value(&**route).expect("routes can be written");
        value["spec"]["rules"][0]["matches"][0]["path"]["value"] = json!("/another/path");
        other.routes.insert(key.clone(), AnyRoute::HttpRoute(object(value)));
    }
    other
}

/// The same, but for the address of one endpoint.
pub(crate) fn with_other_endpoint(snapshot: &Snapshot) -> Snapshot {
    let mut other = snapshot.clone();
    change_endpoint(&mut other.referents);
    other
}

fn change_endpoint(referents: &mut Referents) {
    if let Some((service, slices)) = referents.endpoint_slices.clone().iter().nth(SERVICES / 2) {
        let mut value = serde_json::to_value(&*slices[0]).expect("slices can be written");
        value["endpoints"][0]["addresses"][0] = json!("10.2.3.4");
        referents.endpoint_slices.insert(service.clone(), vec![object(value)]);
    }
}

/// The snapshot with SecurityPolicy `bench/keys` for the Gateway, and the Secret of the policy.
pub(crate) fn with_policy(snapshot: &Snapshot) -> Snapshot {
    with_policy_of(snapshot, "X-Key")
}

/// The snapshot with another value in one field of the policy of [`with_policy`].
pub(crate) fn with_other_policy(snapshot: &Snapshot) -> Snapshot {
    with_policy_of(snapshot, "X-Other-Key")
}

fn with_policy_of(snapshot: &Snapshot, header: &str) -> Snapshot {
    let mut other = with_key(snapshot, "first");
    let policy: Arc<SecurityPolicy> = object(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"name": "keys", "namespace": "bench"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway"}],
            "apiKeyAuth": {"credentialRefs": [{"name": "keys"}], "extractFrom": {"headers": [header]}},
        },
    }));
    let policy = AnyPolicy::from(policy);
    other.policies.insert(policy.key(), policy);
    other
}

/// The snapshot with the policy and another API key.
pub(crate) fn with_other_key(snapshot: &Snapshot) -> Snapshot {
    with_key(&with_policy(snapshot), "second")
}

fn with_key(snapshot: &Snapshot, key: &str) -> Snapshot {
    let mut other = snapshot.clone();
    let secret: Arc<Secret> =
        object(json!({"metadata": {"name": "keys", "namespace": "bench"}, "stringData": {"alice": key}}));
    other.referents.secrets.insert(ObjectName::new("bench", "keys"), secret);
    other
}

/// The snapshot with another name of a listener. A translation of the difference is a full one and changes no document.
pub(crate) fn with_other_listener(snapshot: &Snapshot) -> Snapshot {
    let mut other = snapshot.clone();
    let mut value = serde_json::to_value(&*snapshot.gateway).expect("Gateways can be written");
    value["spec"]["listeners"][0]["name"] = json!("other");
    other.gateway = object(value);
    other
}
