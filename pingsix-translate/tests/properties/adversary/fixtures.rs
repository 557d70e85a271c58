//! A victim, the objects that it shares with others, and requests to it.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use crate::generate::gateway::certificates;
use crate::generate::{one_in, pick};
use crate::probe::Probe;

pub(crate) const VICTIM: &str = "victim";

/// Two of them, because guards are charged to namespaces.
pub(crate) const HOSTILE: [&str; 2] = ["hostile", "hostile-2"];

/// Hostnames of the listeners that admit the victim alone.
pub(crate) const OWN: [&str; 3] = ["shop.victim.test", "api.victim.test", "*.victim.test"];

/// The victim's hostnames at the listeners that admit all namespaces.
pub(crate) const SHARED: [&str; 2] = ["shop.example.com", "api.example.com"];

pub(crate) const PATHS: [&str; 6] = ["/", "/cart", "/cart/", "/cart/items", "/v1", "/v1/items"];

/// The objects of the platform and of both tenants: the Gateway, namespaces, certificates and Services.
pub(crate) fn infrastructure(rng: &mut SmallRng, https: bool, admits_listeners: bool) -> Vec<Value> {
    let all = json!({"namespaces": {"from": "All"}});
    let alone = json!({"namespaces": {"from": "Selector",
        "selector": {"matchLabels": {"kubernetes.io/metadata.name": VICTIM}}}});
    let mut listeners = vec![
        json!({"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": all}),
        json!({"name": "own", "port": 80, "protocol": "HTTP", "hostname": "*.victim.test", "allowedRoutes": alone}),
    ];
    if https {
        let tls = |secret: &str| json!({"certificateRefs": [{"name": secret}]});
        listeners.push(json!({"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls("certificate"),
            "allowedRoutes": all}));
        listeners
            .push(json!({"name": "own-https", "port": 443, "protocol": "HTTPS", "hostname": "*.victim.test",
            "tls": tls("other"), "allowedRoutes": alone}));
    }
    let mut gateway = json!({
        "kind": "Gateway",
        "metadata": {"namespace": "infra", "name": "public", "generation": 1, "creationTimestamp": "2000-01-01T00:00:00Z"},
        "spec": {"gatewayClassName": "pingsix", "listeners": listeners},
    });
    if admits_listeners {
        gateway["spec"]["allowedListeners"] = json!({"namespaces": {"from": "All"}});
    }
    let mut objects = vec![gateway];
    objects.extend(certificates("infra"));
    for (index, namespace) in ["infra", VICTIM, HOSTILE[0], HOSTILE[1]].into_iter().enumerate() {
        objects.push(json!({"kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"kubernetes.io/metadata.name": namespace}}}));
        objects.extend(services(rng, index, namespace));
    }
    objects
}

fn services(rng: &mut SmallRng, index: usize, namespace: &str) -> Vec<Value> {
    let each = ["one", "two"].into_iter().enumerate().flat_map(|(number, name)| {
        let endpoints: Vec<Value> = (0..rng.random_range(1..4))
            .map(|last| json!({"addresses": [format!("10.{index}.{number}.{}", last + 1)]}))
            .collect();
        [
            json!({"kind": "Service", "metadata": {"namespace": namespace, "name": name},
                "spec": {"clusterIP": "10.200.0.1", "ports": [{"port": 80, "targetPort": 8080}]}}),
            json!({"kind": "EndpointSlice", "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": endpoints,
                "metadata": {"namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": name}}}),
        ]
    });
    each.collect()
}

/// The victim's routes: each for hostnames of its own listeners or for ones that it alone names.
pub(crate) fn victim(rng: &mut SmallRng) -> Vec<Value> {
    (0..rng.random_range(2..5))
        .map(|index| {
            let hostnames: Vec<&str> = if index % 2 == 0 { some(rng, &OWN) } else { some(rng, &SHARED) };
            let rules: Vec<Value> = (0..rng.random_range(1..3)).map(|_| rule(rng)).collect();
            route(&format!("victim-{index}"), VICTIM, &created(rng, 2020), &hostnames, &rules)
        })
        .collect()
}

fn some<'n>(rng: &mut SmallRng, names: &[&'n str]) -> Vec<&'n str> {
    let count = rng.random_range(1..=names.len());
    names.choose_multiple(rng, count).copied().collect()
}

/// A moment of three years.
pub(crate) fn created(rng: &mut SmallRng, from: u32) -> String {
    format!("{}-01-01T00:00:{:02}Z", from + rng.random_range(0..3), rng.random_range(0..3))
}

pub(crate) fn route(
    name: &str,
    namespace: &str,
    created: &str,
    hostnames: &[&str],
    rules: &[Value],
) -> Value {
    let mut route = json!({
        "kind": "HTTPRoute",
        "metadata": {"namespace": namespace, "name": name, "generation": 1, "creationTimestamp": created},
        "spec": {"parentRefs": [{"namespace": "infra", "name": "public"}], "rules": rules},
    });
    if !hostnames.is_empty() {
        route["spec"]["hostnames"] = json!(hostnames);
    }
    route
}

pub(crate) fn rule(rng: &mut SmallRng) -> Value {
    let matches: Vec<Value> = (0..rng.random_range(1..3))
        .map(|_| {
            let kind = if one_in(rng, 3) { "Exact" } else { "PathPrefix" };
            let mut matched = json!({"path": {"type": kind, "value": PATHS.choose(rng)}});
            if one_in(rng, 5) {
                matched["method"] = json!(["GET", "POST"].choose(rng));
            }
            if one_in(rng, 3) {
                let value = pick(rng, &["one", "two"]);
                matched["headers"] = json!([{"name": "x-user", "value": value}]);
            }
            if one_in(rng, 8) {
                matched["queryParams"] = json!([{"name": "q", "value": "one"}]);
            }
            matched
        })
        .collect();
    let backends: Vec<Value> = some(rng, &["one", "two"])
        .into_iter()
        .map(|name| json!({"name": name, "port": 80, "weight": rng.random_range(1..5)}))
        .collect();
    let mut rule = json!({"matches": matches, "backendRefs": backends});
    if one_in(rng, 4) {
        let value = pick(rng, &["one", "two"]);
        rule["filters"] = json!([{"type": "ResponseHeaderModifier",
            "responseHeaderModifier": {"set": [{"name": "x-from", "value": value}]}}]);
    }
    rule
}

/// A host that only listeners of the victim take.
pub(crate) fn is_own(host: &str) -> bool {
    host.ends_with(".victim.test")
}

/// Requests to the victim, and to others near it.
pub(crate) fn probes(rng: &mut SmallRng, count: usize) -> Vec<Probe> {
    const HOSTS: [&str; 10] = [
        "shop.victim.test",
        "api.victim.test",
        "x.victim.test",
        "x.shop.victim.test",
        "shop.example.com",
        "api.example.com",
        "shop.example.com",
        "hostile.example.com",
        "x.hostile.test",
        "nobody.test",
    ];
    (0..count)
        .map(|_| {
            let path = format!("{}{}", PATHS.choose(rng).unwrap(), ["", "/tail", "s"].choose(rng).unwrap());
            let mut probe = Probe {
                host: HOSTS.choose(rng).map(|host| (*host).to_owned()),
                path: path.replace("//", "/"),
                method: (*["GET", "POST"].choose(rng).unwrap()).to_owned(),
                http2: rng.random(),
                ..Probe::default()
            };
            if rng.random() {
                let value = *["one", "two"].choose(rng).unwrap();
                probe.headers.push(("x-user".to_owned(), value.to_owned()));
            }
            if one_in(rng, 4) {
                probe.queries.push(("q".to_owned(), "one".to_owned()));
            }
            probe
        })
        .collect()
}
