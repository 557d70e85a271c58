//! The objects of a hostile tenant, within the validation of the API server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::fixtures::{HOSTILE, OWN, PATHS, SHARED, VICTIM, created, route, rule};
use crate::generate::gateway::certificates;
use crate::generate::one_in;

/// The aim of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aim {
    /// Everything of it is younger than the victim.
    pub(crate) younger: bool,
    /// The tenant names no hostname of the victim, only wider and other hostnames.
    pub(crate) apart: bool,
    /// ListenerSets are admitted.
    pub(crate) listeners: bool,
}

/// Hostnames around those of the victim, all of which are wider or of another tenant.
const AROUND: [&str; 8] = [
    "",
    "*.example.com",
    "*.com",
    "*.test",
    "hostile.example.com",
    "*.shop.example.com",
    "x.hostile.test",
    "*.hostile.test",
];

type Attack = fn(&mut SmallRng, Aim, &str) -> Vec<Value>;

const ATTACKS: [Attack; 11] = [
    wide_routes,
    long_rule,
    many_names,
    many_rules,
    in_the_way,
    forbidden,
    filters,
    calls,
    listener_sets,
    oddities,
    certificates_beside,
];

/// Some attacks of each hostile namespace. No two objects of a kind have one name.
pub(crate) fn attacks(rng: &mut SmallRng, aim: Aim) -> Vec<Value> {
    let mut objects = Vec::new();
    for namespace in HOSTILE {
        for _ in 0..rng.random_range(1..4) {
            objects.extend(attack(rng, aim, namespace));
        }
    }
    named_apart(&mut objects, 0);
    objects
}

/// One attack of a namespace.
pub(crate) fn attack(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    ATTACKS.choose(rng).unwrap()(rng, aim, namespace)
}

/// Gives routes names of their own.
pub(crate) fn named_apart(objects: &mut [Value], from: usize) {
    for (index, object) in objects.iter_mut().enumerate() {
        if object["kind"].as_str().is_some_and(|kind| kind.ends_with("Route")) {
            object["metadata"]["name"] = json!(format!("h{}", from + index));
        }
    }
}

fn age(rng: &mut SmallRng, aim: Aim) -> String {
    let from = if aim.younger { 2024 } else { *[2010, 2020, 2024].choose(rng).unwrap() };
    created(rng, from)
}

fn names(rng: &mut SmallRng, aim: Aim) -> Vec<&'static str> {
    let mut known = AROUND.to_vec();
    if !aim.apart {
        known.extend(OWN);
        known.extend(SHARED);
        known.extend(SHARED);
    }
    let count = rng.random_range(1..4);
    let names: Vec<&str> = known.choose_multiple(rng, count).copied().collect();
    if names.contains(&"") { Vec::new() } else { names }
}

fn of(rng: &mut SmallRng, aim: Aim, namespace: &str, rules: &[Value]) -> Value {
    let names = names(rng, aim);
    route("", namespace, &age(rng, aim), &names, rules)
}

/// A route with one rule.
fn of_matches(rng: &mut SmallRng, aim: Aim, namespace: &str, matches: &[Value]) -> Value {
    of(rng, aim, namespace, &[json!({"matches": matches, "backendRefs": [{"name": "one", "port": 80}]})])
}

fn wide_routes(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let everything = json!({"backendRefs": [{"name": "one", "port": 80}]});
    vec![of(rng, aim, namespace, &[everything]), route("", namespace, &age(rng, aim), &[], &[rule(rng)])]
}

/// As many conditions as the API server lets pass, or a part of them.
fn long_rule(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    // The longest are rare, or a run would be.
    let most = if one_in(rng, 6) { (64, 16) } else { (12, 6) };
    let (matches, headers) = (rng.random_range(4..=most.0), rng.random_range(1..=most.1));
    let value = "v".repeat(*[1, 100, 4000].choose(rng).unwrap() / headers);
    let matches: Vec<Value> = (0..matches)
        .map(|number| {
            let headers: Vec<Value> = (0..headers)
                .map(|header| json!({"name": format!("x-{header}"), "value": format!("{number}{value}")}))
                .collect();
            json!({"path": {"type": "PathPrefix", "value": PATHS.choose(rng)}, "headers": headers})
        })
        .collect();
    vec![of_matches(rng, aim, namespace, &matches)]
}

fn many_names(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    (0..rng.random_range(1..3))
        .map(|index| {
            let names: Vec<String> = (0..16).map(|name| format!("n{index}-{name}.hostile.test")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            route("", namespace, &age(rng, aim), &names, &[rule(rng)])
        })
        .collect()
}

/// Lists that meet in many paths.
fn many_rules(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let rules: Vec<Value> = (0..rng.random_range(4..=16)).map(|_| rule(rng)).collect();
    vec![of(rng, aim, namespace, &rules)]
}

/// Rules for the victim's own paths, and deeper ones.
fn in_the_way(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let long = "x".repeat(1000);
    let matches: Vec<Value> = PATHS
        .iter()
        .map(|path| json!({"path": {"type": "Exact", "value": path}}))
        .chain([
            json!({"path": {"type": "PathPrefix", "value": format!("/{long}")}}),
            json!({"path": {"type": "PathPrefix", "value": "/{*p}"}}),
            json!({"path": {"type": "PathPrefix", "value": "/a/b/c/d/e/f/g/h/i/j/k/l/m/n"}}),
        ])
        .collect();
    vec![of_matches(rng, aim, namespace, &matches)]
}

/// A route at the victim's listeners, one to its Service, and one of a policy for it: none is permitted.
fn forbidden(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let mut at_own = route("", namespace, &age(rng, aim), &OWN, &[rule(rng)]);
    at_own["spec"]["parentRefs"] = ["own", "own-https"]
        .iter()
        .map(|section| json!({"namespace": "infra", "name": "public", "sectionName": section}))
        .collect();
    let to_victim = json!({"backendRefs": [{"namespace": VICTIM, "name": "one", "port": 80}]});
    vec![
        at_own,
        of(rng, aim, namespace, &[to_victim]),
        json!({"kind": "ReferenceGrant", "metadata": {"namespace": namespace, "name": "wrong-way"}, "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service"}]}}),
        json!({"kind": "BackendTLSPolicy", "metadata": {"namespace": namespace, "name": "tls", "generation": 1},
            "spec": {"targetRefs": [{"group": "", "kind": "Service", "name": "two"}],
                "validation": {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "absent"}],
                    "hostname": "a.test"}}}),
    ]
}

fn filters(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let headers: Vec<Value> =
        (0..16).map(|name| json!({"name": format!("x-{name}"), "value": "v".repeat(100)})).collect();
    let filter = match rng.random_range(0..4) {
        0 => {
            json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "hostname": "hostile.test"}})
        }
        1 => {
            json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": headers, "remove": ["server"]}})
        }
        2 => json!({"type": "URLRewrite", "urlRewrite": {"hostname": "hostile.test",
            "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}}}),
        _ => json!({"type": "ExtensionRef", "extensionRef": {"group": "x.test", "kind": "X", "name": "x"}}),
    };
    let mut filtered = rule(rng);
    filtered["filters"] = json!([filter]);
    if filtered["filters"][0]["type"] == "RequestRedirect" {
        filtered["backendRefs"] = json!([]);
    }
    let plain = rule(rng);
    vec![of(rng, aim, namespace, &[filtered, plain])]
}

/// A GRPCRoute for methods that are the victim's paths.
fn calls(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let method = json!({"service": "v1", "method": "items"});
    let mut route = of(
        rng,
        aim,
        namespace,
        &[json!({
            "matches": [{"method": method}, {"headers": [{"name": "x-user", "value": "one"}]}],
            "backendRefs": [{"name": "two", "port": 80}],
        })],
    );
    route["kind"] = json!("GRPCRoute");
    vec![route]
}

/// Listeners for every name there is, with certificates of others.
fn listener_sets(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    // An admitted listener may have every name, because admission permits that.
    let may_name_victim = !aim.listeners;
    let most = if one_in(rng, 6) { 64 } else { 8 };
    let listeners: Vec<Value> = (0..rng.random_range(1..=most))
        .map(|index| {
            let hostname = match rng.random_range(0..6) {
                0 | 1 if may_name_victim => (*OWN.choose(rng).unwrap()).to_owned(),
                2 if may_name_victim => (*SHARED.choose(rng).unwrap()).to_owned(),
                0 => "*.hostile.test".to_owned(),
                _ => format!("l{index}.hostile.test"),
            };
            let secret = *["certificate", "other", "absent", "odd"].choose(rng).unwrap();
            let mut reference = json!({"name": secret});
            if rng.random() {
                reference["namespace"] = json!("infra");
            }
            let name = format!("l{index}");
            if rng.random() {
                json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": hostname})
            } else {
                json!({"name": name, "port": 443, "protocol": "HTTPS", "hostname": hostname,
                    "tls": {"certificateRefs": [reference]}})
            }
        })
        .collect();
    let name = format!("set-{}", rng.random_range(0..3));
    let rules = [rule(rng)];
    let mut attached = of(rng, aim, namespace, &rules);
    attached["spec"]["parentRefs"] = json!([{"kind": "ListenerSet", "name": name}]);
    let mut objects = vec![
        attached,
        json!({"kind": "ListenerSet",
            "metadata": {"namespace": namespace, "name": name, "generation": 1, "creationTimestamp": age(rng, aim)},
            "spec": {"parentRef": {"namespace": "infra", "name": "public"}, "listeners": listeners}}),
    ];
    objects.extend(certificates_beside(rng, aim, namespace));
    objects
}

/// Objects that pass the schema and cannot be served.
fn oddities(rng: &mut SmallRng, aim: Aim, namespace: &str) -> Vec<Value> {
    let matches = [
        json!({"path": {"type": "RegularExpression", "value": "(((((.*)*)*)*)*)*"}}),
        json!({"headers": [{"type": "RegularExpression", "name": "x-user", "value": "(a+)+$"}]}),
        json!({"path": {"type": "PathPrefix", "value": "/%2e%2e/"}, "method": "CONNECT"}),
        json!({"path": {"type": "Exact", "value": "/cart?x=1"}}),
    ];
    let backends = [
        json!({"name": "one", "port": 80, "weight": 1_000_000}),
        json!({"name": "absent", "port": 80}),
        json!({"name": "one", "port": 65_535}),
        json!({"group": "x.test", "kind": "X", "name": "x"}),
    ];
    let rules: Vec<Value> = (0..rng.random_range(1..6))
        .map(|_| {
            let backends: Vec<&Value> = backends.choose_multiple(rng, 2).collect();
            json!({"matches": [matches.choose(rng)], "backendRefs": backends})
        })
        .collect();
    vec![of(rng, aim, namespace, &rules)]
}

/// Certificates that are sound, and one that is not.
fn certificates_beside(rng: &mut SmallRng, _: Aim, namespace: &str) -> Vec<Value> {
    let mut secrets = certificates(namespace);
    let mut odd = secrets[0].clone();
    odd["metadata"]["name"] = json!("odd");
    let text = |pem: &str| json!(BASE64_STANDARD.encode(pem));
    match rng.random_range(0..4) {
        0 => {
            odd["data"]["tls.key"] =
                text("-----BEGIN DSA PRIVATE KEY-----\nAAAA\n-----END DSA PRIVATE KEY-----\n");
        }
        1 => odd["data"]["tls.key"] = secrets[1]["data"]["tls.key"].clone(),
        2 => odd["data"]["tls.crt"] = text(&"comment\n".repeat(2000)),
        _ => odd["data"] = json!({}),
    }
    if one_in(rng, 2) {
        secrets.truncate(2);
    }
    secrets.push(odd);
    secrets
}
