//! Random objects of a small cluster, so small that they often refer to each other, as its API server takes them.

use pingsix_translate::{Kind, ObjectKey};
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

/// Every kind that is watched.
pub(super) const KINDS: &[Kind] = Kind::ALL;

pub(super) const NAMESPACES: [&str; 2] = ["infra", "shop"];

/// Certificates with their keys, and texts that are none.
pub(super) struct Pairs(Vec<(String, String)>);

impl Pairs {
    pub(super) fn new() -> Self {
        let pair = |name: &str| {
            let pair = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            (pair.cert.pem(), pair.signing_key.serialize_pem())
        };
        let (one, other) = (pair("a.example"), pair("*.example"));
        let mixed = (one.0.clone(), other.1.clone());
        Self(vec![one, other, mixed, ("no certificate".to_owned(), "no key".to_owned())])
    }
}

fn one<'a>(of: &[&'a str], random: &mut StdRng) -> &'a str {
    of.choose(random).unwrap()
}

fn parents(random: &mut StdRng) -> Value {
    let gateway =
        |name: &str, random: &mut StdRng| json!({"name": name, "namespace": one(&NAMESPACES, random)});
    match random.random_range(0..4) {
        0 => json!([{"kind": "ListenerSet", "group": "gateway.networking.k8s.io", "name": "more"}]),
        1 => json!([gateway("one", random), gateway("two", random)]),
        _ => json!([gateway(one(&["one", "two"], random), random)]),
    }
}

fn backend(random: &mut StdRng) -> Value {
    let mut backend = json!({"name": one(&["cart", "pay"], random), "port": 80});
    if random.random_bool(0.4) {
        backend["namespace"] = json!(one(&NAMESPACES, random));
    }
    backend
}

fn listeners(random: &mut StdRng) -> Value {
    let from = one(&["Same", "All", "Selector"], random);
    let mut allowed = json!({"namespaces": {"from": from}});
    if from == "Selector" {
        allowed["namespaces"]["selector"] = json!({"matchLabels": {"team": "a"}});
    }
    let mut listeners =
        vec![json!({"name": "plain", "port": 80, "protocol": "HTTP", "allowedRoutes": allowed})];
    if random.random_bool(0.6) {
        let mut reference = json!({"name": one(&["tls", "old"], random)});
        if random.random_bool(0.4) {
            reference["namespace"] = json!(one(&NAMESPACES, random));
        }
        listeners.push(json!({
            "name": "secure", "port": 443, "protocol": "HTTPS", "hostname": one(&["a.example", "*.example"], random),
            "tls": {"certificateRefs": [reference]}, "allowedRoutes": allowed,
        }));
    }
    if random.random_bool(0.5) {
        let (port, protocol) = *[(5432, "TCP"), (53, "UDP"), (8443, "TLS")].choose(random).unwrap();
        let mut listener =
            json!({"name": "stream", "port": port, "protocol": protocol, "allowedRoutes": allowed});
        if protocol == "TLS" {
            listener["tls"] = json!({"mode": "Passthrough"});
        }
        listeners.push(listener);
    }
    Value::Array(listeners)
}

/// An object of a kind; the same name often means another content.
#[allow(clippy::too_many_lines, reason = "one arm for each kind")]
pub(super) fn object(kind: Kind, random: &mut StdRng, pairs: &Pairs) -> (ObjectKey, Value) {
    let (name, mut object) = match kind {
        Kind::GatewayClass => {
            let controller = one(&["pingsix.io/gateway-controller", "another.example/one"], random);
            let name = one(&["pingsix", "other"], random);
            // Mostly there is one of ours.
            let controller = if name == "pingsix" { "pingsix.io/gateway-controller" } else { controller };
            (name, json!({"spec": {"controllerName": controller}}))
        }
        Kind::Gateway => {
            let mut spec = json!({
                "gatewayClassName": one(&["pingsix", "pingsix", "pingsix", "other"], random),
                "listeners": listeners(random),
                "allowedListeners": {"namespaces": {"from": one(&["All", "Same", "None"], random)}},
            });
            if random.random_bool(0.2) {
                let reference = json!({
                    "group": "", "kind": "ConfigMap", "name": "roots", "namespace": one(&NAMESPACES, random),
                });
                spec["tls"] =
                    json!({"frontend": {"default": {"validation": {"caCertificateRefs": [reference]}}}});
            }
            (one(&["one", "two"], random), json!({"spec": spec}))
        }
        Kind::ListenerSet => (
            "more",
            json!({"spec": {
                "parentRef": {"name": one(&["one", "two"], random), "namespace": one(&NAMESPACES, random)},
                "listeners": listeners(random),
            }}),
        ),
        Kind::HttpRoute => (
            one(&["a", "bb", "ccc"], random),
            json!({"spec": {
                "parentRefs": parents(random),
                "hostnames": [one(&["a.example", "b.example"], random)],
                "rules": [{
                    "matches": [{"path": {"type": "PathPrefix", "value": one(&["/", "/cart"], random)}}],
                    "backendRefs": [backend(random), backend(random)],
                }],
            }}),
        ),
        Kind::GrpcRoute => (
            one(&["a", "bb"], random),
            json!({"spec": {"parentRefs": parents(random), "rules": [{"backendRefs": [backend(random)]}]}}),
        ),
        Kind::TlsRoute => (
            "a",
            json!({"spec": {
                "parentRefs": parents(random), "hostnames": ["a.example"], "rules": [{"backendRefs": [backend(random)]}],
            }}),
        ),
        Kind::TcpRoute | Kind::UdpRoute => (
            "a",
            json!({"spec": {"parentRefs": parents(random), "rules": [{"backendRefs": [backend(random)]}]}}),
        ),
        Kind::BackendTlsPolicy => {
            let mut validation = json!({"hostname": "a.example", "wellKnownCACertificates": "System"});
            if random.random_bool(0.5) {
                validation = json!({
                    "hostname": "a.example",
                    "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "roots"}],
                });
            }
            let target = json!({"group": "", "kind": "Service", "name": one(&["cart", "pay"], random)});
            (one(&["a", "bb"], random), json!({"spec": {"targetRefs": [target], "validation": validation}}))
        }
        Kind::ReferenceGrant => {
            let from = one(&["HTTPRoute", "GRPCRoute", "Gateway", "ListenerSet", "TCPRoute"], random);
            let from = json!({
                "group": "gateway.networking.k8s.io", "kind": from, "namespace": one(&NAMESPACES, random),
            });
            let to = one(&["Service", "Secret", "ConfigMap"], random);
            (
                one(&["a", "bb", "ccc", "dddd"], random),
                json!({"spec": {"from": [from], "to": [{"group": "", "kind": to}]}}),
            )
        }
        Kind::IngressClass => {
            let name = one(&["web", "intern"], random);
            let controller =
                if name == "web" { "pingsix.io/gateway-controller" } else { "another.example/one" };
            (name, json!({"spec": {"controller": controller}}))
        }
        Kind::Ingress => {
            let service = json!({"service": {"name": one(&["cart", "pay"], random), "port": {"number": 80}}});
            let path = json!({"path": "/", "pathType": "Prefix", "backend": service});
            let mut spec = json!({
                "rules": [{"host": "a.example", "http": {"paths": [path]}}],
                "tls": [{"hosts": ["a.example"], "secretName": one(&["tls", "old"], random)}],
            });
            if random.random_bool(0.7) {
                spec["ingressClassName"] = json!(one(&["web", "web", "intern"], random));
            }
            (one(&["a", "bb"], random), json!({"spec": spec}))
        }
        Kind::Service => {
            let port = *[80, 80, 81].choose(random).unwrap();
            (
                one(&["cart", "pay"], random),
                json!({"spec": {"ports": [{"name": "web", "port": port, "targetPort": 8080}]}}),
            )
        }
        Kind::EndpointSlice => (
            one(&["s1", "s2"], random),
            json!({
                "addressType": "IPv4", "ports": [{"name": "web", "port": 8080, "protocol": "TCP"}],
                "endpoints": [{"addresses": [format!("10.1.2.{}", random.random_range(2..5))]}],
            }),
        ),
        Kind::Secret => {
            let (certificate, key) = pairs.0.choose(random).unwrap();
            (
                one(&["tls", "old"], random),
                json!({"type": "kubernetes.io/tls", "stringData": {"tls.crt": certificate, "tls.key": key}}),
            )
        }
        Kind::ConfigMap => ("roots", json!({"data": {"ca.crt": pairs.0.choose(random).unwrap().0}})),
        Kind::Namespace => (one(&NAMESPACES, random), json!({})),
    };
    let namespace = if kind.is_namespaced() { one(&NAMESPACES, random) } else { "" };
    let group = kind.group();
    object["apiVersion"] = json!(if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") });
    object["kind"] = json!(kind.as_str());
    object["metadata"] = json!({"name": name});
    if kind.is_namespaced() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if kind == Kind::EndpointSlice {
        object["metadata"]["labels"] = json!({"kubernetes.io/service-name": one(&["cart", "pay"], random)});
    } else if kind == Kind::Namespace {
        object["metadata"]["labels"] = json!({"team": one(&["a", "b"], random)});
    } else if kind == Kind::IngressClass && random.random_bool(0.5) {
        object["metadata"]["annotations"] = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    }
    (ObjectKey::new(kind, namespace, name), object)
}
