//! Stream documents on random Gateways, against an independent reading of Gateway API.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_translate::stream::{Arrival, Destination, Rejection, StreamConfig, validate};
use pingsix_translate::{Object, ObjectName, Objects, Options, StreamPlane, Translation, translate};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const CASES: u64 = 400;

const HOSTNAMES: [&str; 9] =
    ["*.test", "*.a.test", "a.test", "b.a.test", "*.b.a.test", "c.b.a.test", "b.test", "*.b.test", "other"];
const NAMES: [&str; 10] = [
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "d.c.b.a.test",
    "x.a.test",
    "b.test",
    "c.b.test",
    "x.test",
    "test",
    "other",
];
const AGES: [&str; 2] = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"];
/// Services with one endpoint each; `idle` has none, `missing` does not exist.
const SERVICES: [&str; 4] = ["one", "two", "idle", "missing"];

struct Listener {
    name: String,
    port: u16,
    protocol: &'static str,
    hostname: Option<&'static str>,
}

struct Route {
    kind: &'static str,
    namespace: &'static str,
    name: String,
    age: Option<&'static str>,
    hostnames: Vec<&'static str>,
    /// Section and port of each parentRef.
    parents: Vec<(Option<String>, Option<u16>)>,
    /// Service and weight.
    backends: Vec<(&'static str, u32)>,
}

struct World {
    listeners: Vec<Listener>,
    routes: Vec<Route>,
}

fn pick<T: Copy>(rng: &mut SmallRng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

impl World {
    fn random(rng: &mut SmallRng) -> Self {
        let mut listeners: Vec<Listener> = Vec::new();
        for port in [443, 444] {
            for _ in 0..rng.random_range(0..4) {
                let hostname = rng.random_bool(0.7).then(|| pick(rng, &HOSTNAMES[..6]));
                let taken = |other: &Listener| other.port == port && other.hostname == hostname;
                if !listeners.iter().any(taken) {
                    let name = format!("l{}", listeners.len());
                    listeners.push(Listener { name, port, protocol: "TLS", hostname });
                }
            }
        }
        for (port, protocol) in [(5432, "TCP"), (5433, "TCP"), (53, "UDP")] {
            if rng.random_bool(0.8) {
                let name = format!("l{}", listeners.len());
                listeners.push(Listener { name, port, protocol, hostname: None });
            }
        }
        let routes = (0..rng.random_range(1..8)).map(|index| Self::route(rng, index, &listeners)).collect();
        Self { listeners, routes }
    }

    fn route(rng: &mut SmallRng, index: usize, listeners: &[Listener]) -> Route {
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

    fn objects(&mut self) -> Objects {
        let mut objects = Objects::default();
        let listeners: Value = self.listeners.iter().map(|listener| {
            let mut value = json!({"name": listener.name, "port": listener.port, "protocol": listener.protocol,
                "allowedRoutes": {"namespaces": {"from": "All"}}});
            if let Some(hostname) = listener.hostname {
                value["hostname"] = json!(hostname);
            }
            if listener.protocol == "TLS" {
                value["tls"] = json!({"mode": "Passthrough"});
            }
            value
        }).collect();
        objects.insert(Object::Gateway(object(json!({
            "metadata": {"namespace": "infra", "name": "web"},
            "spec": {"gatewayClassName": "pingsix", "listeners": listeners}}))));
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

    fn is_attached_to(&self, listener: &Listener) -> bool {
        self.kind == format!("{}Route", listener.protocol)
            && self.parents.iter().any(|(section, port)| {
                section.as_ref().is_none_or(|section| *section == listener.name)
                    && port.is_none_or(|port| port == listener.port)
            })
            && (self.kind != "TLSRoute" || self.hostnames.iter().any(|name| meets(listener.hostname, name)))
    }

    /// The shares of the connections, by the service they end at or the reason why they do not.
    fn shares(&self) -> BTreeMap<&'static str, u32> {
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

/// Whether a pattern stands for a name; none stands for all.
fn stands_for(pattern: Option<&str>, name: &str) -> bool {
    match pattern.map(|pattern| (pattern, pattern.strip_prefix("*."))) {
        None => true,
        Some((_, Some(domain))) => {
            name.strip_suffix(domain).is_some_and(|label| label.len() > 1 && label.ends_with('.'))
        }
        Some((exact, None)) => exact == name,
    }
}

/// Whether some name is one of both. It is enough to try the patterns' own, with something for the star.
fn meets(listener: Option<&str>, hostname: &str) -> bool {
    let example = |pattern: &str| pattern.replace('*', "deep.fresh");
    let both = |name: &str| stands_for(listener, name) && stands_for(Some(hostname), name);
    both(&example(hostname)) || listener.is_some_and(|listener| both(&example(listener)))
}

/// Exact before wildcard, longer before shorter, anything before nothing.
fn specificity(pattern: Option<&str>) -> (bool, usize) {
    pattern.map_or((false, 0), |pattern| (!pattern.starts_with('*'), pattern.len()))
}

fn reduced(mut shares: BTreeMap<&'static str, u32>) -> BTreeMap<&'static str, u32> {
    let divisor = (1..=shares.values().copied().min().unwrap_or(1))
        .rev()
        .find(|divisor| shares.values().all(|weight| weight % divisor == 0))
        .unwrap_or(1);
    for weight in shares.values_mut() {
        *weight /= divisor;
    }
    shares
}

/// What the specification says of a connection; nothing when it is to be closed for want of a route.
fn oracle(world: &World, port: u16, arrival: Arrival<'_>) -> Option<BTreeMap<&'static str, u32>> {
    let (protocol, name) = match arrival {
        Arrival::Tcp => ("TCP", None),
        Arrival::Udp => ("UDP", None),
        Arrival::Tls(name) => ("TLS", Some(name)),
    };
    let listener = world
        .listeners
        .iter()
        .filter(|listener| listener.protocol == protocol && listener.port == port)
        .filter(|listener| name.is_none_or(|name| stands_for(listener.hostname, name)))
        .max_by_key(|listener| specificity(listener.hostname))?;
    let mut candidates = Vec::new();
    for route in world.routes.iter().filter(|route| route.is_attached_to(listener)) {
        let hostnames: Vec<Option<&str>> = match name {
            None => vec![None],
            Some(name) => {
                let own = route.hostnames.iter().copied().map(Some);
                own.filter(|pattern| stands_for(*pattern, name)).collect()
            }
        };
        for original in hostnames {
            let served = specificity(original).max(specificity(listener.hostname));
            let age = route.age.unwrap_or("9999");
            let slashed = format!("{}/{}", route.namespace, route.name);
            candidates.push((Reverse(served), Reverse(specificity(original)), age, slashed, route));
        }
    }
    candidates.sort_by(|left, right| {
        (&left.0, &left.1, left.2, &left.3).cmp(&(&right.0, &right.1, right.2, &right.3))
    });
    candidates.first().map(|(.., route)| route.shares())
}

/// What the documents say of it; nothing when no route takes it, or one that stands for no route.
fn documents(config: &StreamConfig, port: u16, arrival: Arrival<'_>) -> Option<BTreeMap<&'static str, u32>> {
    let (_, route) = config.route_for(port, arrival)?;
    let mut shares = BTreeMap::new();
    for target in &route.targets {
        let end = match &target.to {
            Destination::Reject(Rejection::NoRoute) => return None,
            Destination::Reject(Rejection::Invalid) => "invalid",
            Destination::Reject(Rejection::NoEndpoints) => "no_endpoints",
            Destination::Upstream(id) => {
                let nodes = &config.upstream(id).unwrap().nodes;
                let port = if arrival == Arrival::Udp { 91 } else { 90 };
                let at = (1..=2).find(|index| nodes.contains_key(&format!("10.0.0.{index}:{port}"))).unwrap();
                assert_eq!(nodes.len(), 1);
                SERVICES[at - 1]
            }
        };
        assert!(shares.insert(end, target.weight).is_none(), "{end} twice");
    }
    Some(shares)
}

fn run(objects: &Objects) -> (Translation, StreamPlane) {
    let snapshot = objects.snapshot(&ObjectName::new("infra", "web")).unwrap();
    let translation = translate(&snapshot, &Options { stream: true, ..Options::default() });
    let plane = translation.stream_planes.values().next().unwrap().clone();
    (translation, plane)
}

#[test]
fn every_connection_goes_where_the_specification_says() {
    let (mut taken, mut closed, mut split) = (0, 0, 0);
    for seed in 0..CASES {
        let mut world = World::random(&mut SmallRng::seed_from_u64(seed));
        let objects = world.objects();
        let (translation, plane) = run(&objects);
        assert_eq!(validate(&plane.config), [], "seed {seed}");
        let names = [443, 444].into_iter().flat_map(|port| NAMES.map(|name| (port, Arrival::Tls(name))));
        let plain = [(5432, Arrival::Tcp), (5433, Arrival::Tcp), (53, Arrival::Udp), (443, Arrival::Tcp)];
        for (port, arrival) in names.chain(plain) {
            let expected = oracle(&world, port, arrival);
            let found = documents(&plane.config, port, arrival);
            assert_eq!(found, expected, "seed {seed}, {arrival:?} at port {port}: {:#?}", plane.config);
            match expected {
                None => closed += 1,
                Some(shares) if shares.len() > 1 => split += 1,
                Some(_) => taken += 1,
            }
        }
        let gateway = translation.verdicts.gateway.unwrap();
        for (listener, verdict) in world.listeners.iter().zip(&gateway.listeners) {
            let attached = world.routes.iter().filter(|route| route.is_attached_to(listener)).count();
            assert_eq!(
                verdict.attached_routes,
                i32::try_from(attached).unwrap(),
                "seed {seed} {}",
                listener.name
            );
        }
    }
    // A generator that hardly ever gets somewhere would make all this pass.
    assert!([taken, closed, split].iter().all(|count| *count > 500), "{taken} {closed} {split}");
}

#[test]
fn one_route_more_changes_only_the_documents_of_its_own_places() {
    for seed in 0..CASES / 4 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut world = World::random(&mut rng);
        let before = run(&world.objects()).1.config;
        let mut added = World::route(&mut rng, 99, &world.listeners);
        added.name = "new".to_owned();
        let own: Vec<(u16, Option<String>)> = world
            .listeners
            .iter()
            .filter(|listener| added.is_attached_to(listener))
            .flat_map(|listener| {
                let names = added.hostnames.iter().map(|name| {
                    let narrower = specificity(listener.hostname) > specificity(Some(name));
                    (listener.port, listener.hostname.filter(|_| narrower).or(Some(name)).map(str::to_owned))
                });
                let plain = (listener.protocol != "TLS").then_some((listener.port, None));
                names.chain(plain).collect::<Vec<_>>()
            })
            .collect();
        world.routes.push(added);
        let after = run(&world.objects()).1.config;
        for (key, route) in before.routes() {
            let place = (route.server_port, route.snis.first().cloned());
            assert!(own.contains(&place) || after.route(&key.id) == Some(route), "seed {seed}: {key}");
        }
        let new = after.routes().filter(|(key, _)| before.get(key).is_none());
        for (key, route) in new {
            assert!(own.contains(&(route.server_port, route.snis.first().cloned())), "seed {seed}: {key}");
        }
    }
}
