//! Random Gateways with routes for connections.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::{Object, Objects};
use rand::Rng;
use rand::rngs::SmallRng;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::oracle::{overlaps, reduced};

/// A chain and its key, as a Secret holds them.
static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let pair = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    (BASE64_STANDARD.encode(pair.cert.pem()), BASE64_STANDARD.encode(pair.signing_key.serialize_pem()))
});

const HOSTNAMES: [&str; 9] =
    ["*.test", "*.a.test", "a.test", "b.a.test", "*.b.a.test", "c.b.a.test", "b.test", "*.b.test", "other"];
const AGES: [&str; 2] = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"];
/// Services with one endpoint each; `idle` has none, `missing` does not exist.
pub(crate) const SERVICES: [&str; 4] = ["one", "two", "idle", "missing"];

pub(crate) struct Listener {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) protocol: &'static str,
    pub(crate) hostname: Option<&'static str>,
    tls: Tls,
    pub(crate) is_served: bool,
}

/// The TLS mode of a listener.
#[derive(Clone, Copy)]
enum Tls {
    None,
    Passthrough,
    Terminate,
}

pub(crate) struct Route {
    pub(crate) kind: &'static str,
    pub(crate) namespace: &'static str,
    pub(crate) name: String,
    pub(crate) age: Option<&'static str>,
    pub(crate) hostnames: Vec<&'static str>,
    /// Section and port of each parentRef.
    pub(crate) parents: Vec<(Option<String>, Option<u16>)>,
    /// Service and weight.
    backends: Vec<(&'static str, u32)>,
}

pub(crate) struct World {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) routes: Vec<Route>,
}

fn pick<T: Copy>(rng: &mut SmallRng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

impl World {
    pub(crate) fn random(rng: &mut SmallRng) -> Self {
        let mut listeners: Vec<Listener> = Vec::new();
        for port in [443, 444] {
            for _ in 0..rng.random_range(0..4) {
                let tls = pick(rng, &[Tls::Passthrough, Tls::Terminate]);
                let hostname = rng.random_bool(0.7).then(|| pick(rng, &HOSTNAMES[..6]));
                let taken = |other: &Listener| other.port == port && other.hostname == hostname;
                if !listeners.iter().any(taken) {
                    let name = format!("l{}", listeners.len());
                    let is_served = rng.random_bool(0.8);
                    listeners.push(Listener { name, port, protocol: "TLS", hostname, tls, is_served });
                }
            }
        }
        for (port, protocol) in [(5432, "TCP"), (5433, "TCP"), (53, "UDP")] {
            if rng.random_bool(0.8) {
                let name = format!("l{}", listeners.len());
                let is_served = rng.random_bool(0.9);
                listeners.push(Listener { name, port, protocol, hostname: None, tls: Tls::None, is_served });
            }
        }
        let routes = (0..rng.random_range(1..8)).map(|index| Self::route(rng, index, &listeners)).collect();
        Self { listeners, routes }
    }

    pub(crate) fn route(rng: &mut SmallRng, index: usize, listeners: &[Listener]) -> Route {
        let kind = pick(rng, &["TLSRoute", "TLSRoute", "TLSRoute", "TCPRoute", "UDPRoute"]);
        let hostnames = match kind {
            "TLSRoute" => (0..rng.random_range(1..4)).map(|_| pick(rng, &HOSTNAMES)).collect(),
            _ => Vec::new(),
        };
        let parents = (0..rng.random_range(1..3))
            .map(|_| {
                let listener = (!listeners.is_empty()).then(|| rng.random_range(0..listeners.len()));
                let section = listener.filter(|_| rng.random_bool(0.4)).map(|at| listeners[at].name.clone());
                let port = rng.random_bool(0.2).then(|| pick(rng, &[443, 444, 5432, 53]));
                (section, port)
            })
            .collect();
        let backends =
            (0..rng.random_range(0..4)).map(|_| (pick(rng, &SERVICES), rng.random_range(0..4))).collect();
        Route {
            kind,
            namespace: pick(rng, &["infra", "infra-x", "b"]),
            name: format!("r{}", (index * 7) % 5),
            age: rng.random_bool(0.8).then(|| pick(rng, &AGES)),
            hostnames,
            parents,
            backends,
        }
    }

    pub(crate) fn objects(&mut self) -> Objects {
        let mut objects = Objects::default();
        let listeners: Value = self.listeners.iter().map(|listener| {
            let mut value = json!({"name": listener.name, "port": listener.port, "protocol": listener.protocol,
                "allowedRoutes": {"namespaces": {"from": "All"}}});
            if let Some(hostname) = listener.hostname {
                value["hostname"] = json!(hostname);
            }
            match listener.tls {
                Tls::None => {}
                Tls::Passthrough => value["tls"] = json!({"mode": "Passthrough"}),
                Tls::Terminate => {
                    let secret = if listener.is_served { "certificate" } else { "missing" };
                    value["tls"] = json!({"mode": "Terminate", "certificateRefs": [{"name": secret}]});
                }
            }
            // A protocol that no data plane has leaves any listener unserved.
            if !listener.is_served && !matches!(listener.tls, Tls::Terminate) {
                value["filters"] = json!({"requests": [{"type": "ExternalAuth"}]});
            }
            value
        }).collect();
        objects.insert(Object::Gateway(object(json!({
            "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"gatewayClassName": "pingsix", "listeners": listeners}}))));
        objects.insert(Object::Secret(object(json!({
            "metadata": {"namespace": "infra", "name": "certificate"}, "type": "kubernetes.io/tls",
            "data": {"tls.crt": CERTIFICATE.0, "tls.key": CERTIFICATE.1}}))));
        objects.insert(Object::ReferenceGrant(object(json!({
            "metadata": {"namespace": "infra", "name": "all"},
            "spec": {"to": [{"group": "", "kind": "Service"}], "from": self.routes.iter().map(|route| json!({
                "group": "gateway.networking.k8s.io", "kind": route.kind, "namespace": route.namespace,
            })).collect::<Value>()}}))));
        for (index, name) in SERVICES[..3].iter().enumerate() {
            let ports = json!([{"name": "t", "port": 9, "protocol": "TCP"}, {"name": "u", "port": 9, "protocol": "UDP"}]);
            objects.insert(Object::Service(object(json!({
                "metadata": {"namespace": "infra", "name": name}, "spec": {"ports": ports}}))));
            if *name != "idle" {
                objects.insert(Object::EndpointSlice(object(json!({
                    "metadata": {"namespace": "infra", "name": name, "labels": {"kubernetes.io/service-name": name}},
                    "addressType": "IPv4", "endpoints": [{"addresses": [format!("10.0.0.{}", index + 1)]}],
                    "ports": [{"name": "t", "port": 90}, {"name": "u", "port": 91, "protocol": "UDP"}]}))));
            }
        }
        // Of two routes with one name, the later one counts.
        let mut seen = BTreeMap::new();
        for (index, route) in self.routes.iter().enumerate() {
            seen.insert((route.kind, route.namespace, route.name.clone()), index);
        }
        let mut index = 0;
        self.routes.retain(|route| {
            index += 1;
            seen[&(route.kind, route.namespace, route.name.clone())] == index - 1
        });
        for route in &self.routes {
            objects.insert(route.object());
        }
        objects
    }
}

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

impl Route {
    fn object(&self) -> Object {
        let parents = self.parents.iter().map(|(section, port)| {
            let mut parent = json!({"name": "web", "namespace": "infra"});
            if let Some(section) = section {
                parent["sectionName"] = json!(section);
            }
            if let Some(port) = port {
                parent["port"] = json!(port);
            }
            parent
        });
        let backends = self.backends.iter().map(
            |(service, weight)| json!({"name": service, "namespace": "infra", "port": 9, "weight": weight}),
        );
        let mut value = json!({
            "metadata": {"namespace": self.namespace, "name": self.name},
            "spec": {"parentRefs": parents.collect::<Value>(), "hostnames": self.hostnames,
                "rules": [{"backendRefs": backends.collect::<Value>()}]},
        });
        if let Some(age) = self.age {
            value["metadata"]["creationTimestamp"] = json!(age);
        }
        match self.kind {
            "TLSRoute" => Object::TlsRoute(object(value)),
            "TCPRoute" => Object::TcpRoute(object(value)),
            _ => Object::UdpRoute(object(value)),
        }
    }

    pub(crate) fn is_attached_to(&self, listener: &Listener) -> bool {
        (0..self.parents.len()).any(|parent| self.attaches(parent, listener))
    }

    /// Whether it is attached by this one of its parentRefs.
    pub(crate) fn attaches(&self, parent: usize, listener: &Listener) -> bool {
        let (section, port) = &self.parents[parent];
        self.kind == format!("{}Route", listener.protocol)
            && section.as_ref().is_none_or(|section| *section == listener.name)
            && port.is_none_or(|port| port == listener.port)
            && (self.kind != "TLSRoute"
                || self.hostnames.iter().any(|name| overlaps(listener.hostname, name)))
    }

    /// The shares of the connections, by the service they end at or the reason why they do not.
    pub(crate) fn shares(&self) -> BTreeMap<&'static str, u32> {
        let mut shares = BTreeMap::new();
        for (service, weight) in &self.backends {
            let end = match *service {
                "idle" => "no_endpoints",
                "missing" => "invalid",
                other => other,
            };
            if *weight > 0 {
                *shares.entry(end).or_default() += weight;
            }
        }
        if shares.is_empty() { BTreeMap::from([("invalid", 1)]) } else { reduced(shares) }
    }
}
