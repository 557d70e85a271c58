//! Random objects of a small cluster, so small that they often refer to each other.

use kube_runtime::watcher;
use pingsix_translate::Kind;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use super::Event;

macro_rules! kinds {
    ($($kind:ident)+) => {
        pub(crate) const KINDS: &[Kind] = &[$(Kind::$kind,)+];

        /// An event of a kind, with objects as the API server would send them.
        pub(crate) fn event_of(kind: Kind, event: watcher::Event<Value>) -> Event {
            match kind {
                $(Kind::$kind => Event::$kind(match event {
                    watcher::Event::Init => watcher::Event::Init,
                    watcher::Event::InitDone => watcher::Event::InitDone,
                    watcher::Event::InitApply(object) => {
                        watcher::Event::InitApply(serde_json::from_value(object).unwrap())
                    }
                    watcher::Event::Apply(object) => watcher::Event::Apply(serde_json::from_value(object).unwrap()),
                    watcher::Event::Delete(object) => watcher::Event::Delete(serde_json::from_value(object).unwrap()),
                }),)+
            }
        }
    };
}

kinds! {
    GatewayClass Gateway ListenerSet HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute BackendTlsPolicy ReferenceGrant
    IngressClass Ingress Service EndpointSlice Secret ConfigMap Namespace
}

const NAMESPACES: [&str; 2] = ["infra", "shop"];

fn one(of: &[&'static str], random: &mut StdRng) -> &'static str {
    of.choose(random).unwrap()
}

fn metadata(kind: Kind, name: &str, version: u32, random: &mut StdRng) -> Value {
    let mut metadata = json!({
        "name": name, "resourceVersion": version.to_string(), "generation": version,
        "creationTimestamp": format!("2026-01-0{}T00:00:00Z", name.len().min(9)),
    });
    if kind.is_namespaced() {
        metadata["namespace"] = json!(one(&NAMESPACES, random));
    }
    metadata
}

fn parents(random: &mut StdRng) -> Value {
    (0..random.random_range(1..3))
        .map(|_| {
            let mut parent =
                json!({"name": one(&["one", "two"], random), "namespace": one(&NAMESPACES, random)});
            if random.random_bool(0.3) {
                parent = json!({"name": "more", "kind": "ListenerSet"});
            }
            parent
        })
        .collect()
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
    let allowed = json!({"namespaces": {"from": from, "selector": {"matchLabels": {"team": "a"}}}});
    let mut listeners = json!([{"name": "plain", "port": 80, "protocol": "HTTP", "allowedRoutes": allowed}]);
    if random.random_bool(0.6) {
        let mut reference = json!({"name": one(&["tls", "old"], random)});
        if random.random_bool(0.4) {
            reference["namespace"] = json!(one(&NAMESPACES, random));
        }
        listeners.as_array_mut().unwrap().push(json!({
            "name": "secure", "port": 443, "protocol": "HTTPS", "hostname": one(&["a.example", "*.example"], random),
            "tls": {"certificateRefs": [reference]}, "allowedRoutes": allowed,
        }));
    }
    if random.random_bool(0.3) {
        let (port, protocol) = *[(5432, "TCP"), (53, "UDP"), (8443, "TLS")].choose(random).unwrap();
        let mut listener =
            json!({"name": "stream", "port": port, "protocol": protocol, "allowedRoutes": allowed});
        if protocol == "TLS" {
            listener["tls"] = json!({"mode": "Passthrough"});
        }
        listeners.as_array_mut().unwrap().push(listener);
    }
    listeners
}

/// An object of a kind; the same name often means another content.
pub(crate) fn object(kind: Kind, version: u32, random: &mut StdRng) -> Value {
    let (name, mut object) = match kind {
        Kind::GatewayClass => (
            one(&["pingsix", "other"], random),
            json!({"spec": {"controllerName": "pingsix.io/gateway-controller"}}),
        ),
        Kind::Gateway => (
            one(&["one", "two"], random),
            json!({"spec": {
                "gatewayClassName": "pingsix", "listeners": listeners(random),
                "allowedListeners": {"namespaces": {"from": one(&["All", "Same", "None"], random)}},
                "tls": {"frontend": {"default": {"validation": {"caCertificateRefs": [{
                    "group": "", "kind": "ConfigMap", "name": "roots", "namespace": one(&NAMESPACES, random),
                }]}}}},
            }}),
        ),
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
                "rules": [{"backendRefs": [backend(random), backend(random)]}],
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
        Kind::BackendTlsPolicy => policy(random),
        Kind::ReferenceGrant => grant(random),
        Kind::IngressClass => (
            one(&["web", "intern"], random),
            json!({"spec": {"controller": one(&["pingsix.io/gateway-controller", "another.io/one"], random)}}),
        ),
        Kind::Ingress => ingress(random),
        Kind::Service => (
            one(&["cart", "pay"], random),
            json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{
                "name": "web", "port": one_of(&[80, 81], random), "targetPort": 8080,
            }]}}),
        ),
        Kind::EndpointSlice => (
            one(&["s1", "s2"], random),
            json!({
                "addressType": "IPv4", "ports": [{"name": "web", "port": 8080}],
                "endpoints": [{"addresses": [format!("127.0.0.{}", random.random_range(2..5))]}],
            }),
        ),
        Kind::Secret => (one(&["tls", "old"], random), json!({"type": "kubernetes.io/tls", "data": {}})),
        Kind::ConfigMap => ("roots", json!({"data": {"ca.crt": "none"}})),
        Kind::Namespace => (one(&NAMESPACES, random), json!({})),
    };
    object["metadata"] = metadata(kind, name, version, random);
    if kind == Kind::EndpointSlice {
        let service = one(&["cart", "pay"], random);
        object["metadata"]["labels"] = json!({"kubernetes.io/service-name": service});
    } else if kind == Kind::Namespace {
        object["metadata"]["labels"] = json!({"team": one(&["a", "b"], random)});
    } else if kind == Kind::IngressClass && random.random_bool(0.5) {
        object["metadata"]["annotations"] = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    }
    object
}

fn one_of(of: &[i32], random: &mut StdRng) -> i32 {
    *of.choose(random).unwrap()
}

fn policy(random: &mut StdRng) -> (&'static str, Value) {
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

fn grant(random: &mut StdRng) -> (&'static str, Value) {
    let group = "gateway.networking.k8s.io";
    let from = one(&["HTTPRoute", "GRPCRoute", "Gateway", "ListenerSet", "TCPRoute"], random);
    let to = one(&["Service", "Secret", "ConfigMap"], random);
    (
        one(&["a", "bb"], random),
        json!({"spec": {
            "from": [{"group": group, "kind": from, "namespace": one(&NAMESPACES, random)}],
            "to": [{"group": "", "kind": to}],
        }}),
    )
}

fn ingress(random: &mut StdRng) -> (&'static str, Value) {
    let service = json!({"service": {"name": one(&["cart", "pay"], random), "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": service});
    let mut spec = json!({
        "rules": [{"host": "a.example", "http": {"paths": [path]}}],
        "tls": [{"hosts": ["a.example"], "secretName": one(&["tls", "old"], random)}],
    });
    if random.random_bool(0.6) {
        spec["ingressClassName"] = json!(one(&["web", "intern"], random));
    }
    (one(&["a", "bb"], random), json!({"spec": spec}))
}
