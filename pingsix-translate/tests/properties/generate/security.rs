//! SecurityPolicies, their Secrets and grants, some of which lead to policies that cannot be honoured.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::route::AGES;
use super::schema::Specs;
use super::{NAMESPACES, Taste, filter, one_in, pick, table, table_of_sets};

/// Names of Secrets with credentials.
pub(crate) const SECRETS: [&str; 4] = ["keys", "user", "hmac", "empty"];
/// The last one has bits of a host behind its prefix.
const NETWORKS: [&str; 4] = ["10.0.0.0/8", "192.168.0.0/16", "2001:db8::/32", "10.0.0.1/8"];
const NAMES: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];

/// A random table with SecurityPolicies, half of the time beside ListenerSets.
pub(crate) fn table_of_policies(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = table_with_backends(rng, taste);
    add(rng, &mut objects);
    objects
}

/// A random table without policies, whose requests often reach backends.
pub(crate) fn table_with_backends(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = if rng.random() { table(rng, taste) } else { table_of_sets(rng, taste) };
    lead_to_backends(rng, &mut objects);
    name_rules(&mut objects);
    objects
}

/// Lets more requests reach backends, where policies matter.
fn lead_to_backends(rng: &mut SmallRng, objects: &mut [Value]) {
    for object in objects {
        if object["kind"] == "Gateway" {
            let listener = json!({
                "name": "l0", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "All" } },
            });
            object["spec"]["listeners"][0] = listener;
        }
        if !is_route(object) {
            continue;
        }
        if !one_in(rng, 3) {
            object["spec"]["parentRefs"] = json!([{ "name": "public", "namespace": "infra" }]);
        }
        if one_in(rng, 2) {
            object["spec"]["hostnames"] = json!([]);
        }
        for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
            if one_in(rng, 2) {
                rule["filters"] = json!([]);
            }
            if one_in(rng, 2) {
                rule["backendRefs"] = json!([{ "name": pick(rng, &["one", "two"]), "port": 80 }]);
            }
        }
    }
}

/// Adds policies for objects of a table, with Secrets and grants, and gives rules names.
pub(crate) fn add(rng: &mut SmallRng, objects: &mut Vec<Value>) {
    name_rules(objects);
    let targets = targets_of(objects);
    objects.extend(credentials(rng));
    objects.extend(grants(rng));
    for name in &NAMES[..rng.random_range(1..=NAMES.len())] {
        objects.push(policy(rng, name, &targets));
    }
}

/// Gives each rule of a route a name of its own.
fn name_rules(objects: &mut [Value]) {
    for object in objects.iter_mut().filter(|object| is_route(object)) {
        for (index, rule) in object["spec"]["rules"].as_array_mut().into_iter().flatten().enumerate() {
            rule["name"] = json!(format!("n{index}"));
        }
    }
}

/// The objects that policies may target.
pub(crate) fn targets_of(objects: &[Value]) -> Vec<Value> {
    objects.iter().filter(|object| is_target(object)).cloned().collect()
}

fn is_route(object: &Value) -> bool {
    object["kind"] == "HTTPRoute" || object["kind"] == "GRPCRoute"
}

fn is_target(object: &Value) -> bool {
    is_route(object) || object["kind"] == "Gateway" || object["kind"] == "ListenerSet"
}

/// Secrets of every namespace, of which some are missing.
pub(crate) fn credentials(rng: &mut SmallRng) -> Vec<Value> {
    let names = NAMESPACES.iter().flat_map(|namespace| SECRETS.iter().map(move |name| (*namespace, *name)));
    let present: Vec<(&str, &str)> = names.filter(|_| !one_in(rng, 24)).collect();
    present.into_iter().map(|(namespace, name)| credential(rng, namespace, name)).collect()
}

/// A Secret with random contents.
pub(crate) fn credential(rng: &mut SmallRng, namespace: &str, name: &str) -> Value {
    let value = BASE64_STANDARD.encode(pick(rng, &["k1", "k2", "k3"]));
    let other = BASE64_STANDARD.encode(pick(rng, &["k1", "k4"]));
    let data = match name {
        "keys" => json!({ "alice": value, "bob": other }),
        "user" => json!({ "username": value, "password": other }),
        "hmac" => json!({ "key": value }),
        _ => json!({}),
    };
    let kind = if name == "user" { "kubernetes.io/basic-auth" } else { "Opaque" };
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": namespace, "name": name },
        "type": kind,
        "data": data,
    })
}

pub(crate) fn grants(rng: &mut SmallRng) -> Vec<Value> {
    let namespaces: Vec<&str> = NAMESPACES.into_iter().filter(|_| !one_in(rng, 3)).collect();
    namespaces.into_iter().map(|namespace| grant(rng, namespace)).collect()
}

/// A grant for policies of another namespace.
pub(crate) fn grant(rng: &mut SmallRng, namespace: &str) -> Value {
    let mut to = json!({ "group": "", "kind": "Secret" });
    if one_in(rng, 2) {
        to["name"] = json!(pick(rng, &SECRETS));
    }
    let from = pick(rng, &NAMESPACES);
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1",
        "kind": "ReferenceGrant",
        "metadata": { "namespace": namespace, "name": "secrets" },
        "spec": {
            "from": [{ "group": "pingsix.io", "kind": "SecurityPolicy", "namespace": from }],
            "to": [to],
        },
    })
}

/// A policy of this name with some of the objects as its targets.
pub(crate) fn policy(rng: &mut SmallRng, name: &str, targets: &[Value]) -> Value {
    attached(rng, ("SecurityPolicy", name), targets, settings)
}

/// A policy of this kind and name with some of the objects as its targets. The settings depend on whether these are
/// Gateways or ListenerSets.
pub(crate) fn attached(
    rng: &mut SmallRng,
    (kind, name): (&str, &str),
    targets: &[Value],
    settings: fn(&mut SmallRng, bool) -> Value,
) -> Value {
    // Of the many routes each counts for little.
    let is_for_routes: bool = rng.random();
    let of_class: Vec<&Value> = targets.iter().filter(|object| is_route(object) == is_for_routes).collect();
    let Some(first) = of_class.choose(rng).copied().or(targets.first()) else {
        panic!("a table has a Gateway");
    };
    let namespace = first["metadata"]["namespace"].as_str().unwrap();
    let beside = of_class.into_iter().filter(|object| object["metadata"]["namespace"] == namespace);
    let beside: Vec<&Value> = beside.collect();
    let mut refs = vec![target_ref(rng, first)];
    for _ in 0..if one_in(rng, 3) { rng.random_range(1..3) } else { 0 } {
        let other = if one_in(rng, 20) { targets.choose(rng) } else { beside.choose(rng).copied() };
        refs.extend(other.map(|other| target_ref(rng, other)));
    }
    let mut spec = settings(rng, first["kind"] == "Gateway" || first["kind"] == "ListenerSet");
    spec["targetRefs"] = Value::Array(refs);
    let mut metadata = json!({ "namespace": namespace, "name": name, "generation": rng.random_range(1..9) });
    if !one_in(rng, 12) {
        metadata["creationTimestamp"] = json!(pick(rng, &AGES));
    }
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    })
}

fn target_ref(rng: &mut SmallRng, object: &Value) -> Value {
    let mut target = json!({
        "group": "gateway.networking.k8s.io",
        "kind": object["kind"],
        "name": object["metadata"]["name"],
    });
    let sections = match object["spec"]["listeners"].as_array() {
        Some(listeners) => listeners.iter().map(|listener| listener["name"].clone()).collect(),
        None => vec![json!("n0"), json!("n1"), json!("n7")],
    };
    if one_in(rng, 3) {
        target["sectionName"] = json!(sections.choose(rng));
    }
    target
}

/// The spec of a policy without its targets.
pub(crate) fn settings(rng: &mut SmallRng, is_wide: bool) -> Value {
    const AUTHENTICATIONS: [&str; 4] = ["apiKeyAuth", "basicAuth", "jwt", "anonymous"];
    let mut spec = SPECS.draw(rng);
    let fields = spec.as_object_mut().unwrap();
    if !one_in(rng, 40) {
        // A policy has one authentication.
        let set: Vec<&str> = AUTHENTICATIONS.into_iter().filter(|name| fields.contains_key(*name)).collect();
        let kept = set.choose(rng).copied();
        fields.retain(|field, _| Some(field.as_str()) == kept || !AUTHENTICATIONS.contains(&field.as_str()));
    }
    if let Some(jwt) = fields.get_mut("jwt").filter(|_| !one_in(rng, 24)) {
        // The algorithm needs the field.
        jwt["secretRef"] = reference(rng, "hmac");
    }
    let often = if is_wide { 3 } else { 40 };
    if one_in(rng, often) {
        spec["strategy"] = json!("Overrides");
    }
    spec
}

const SPECS: Specs = Specs {
    kind: "SecurityPolicy",
    own: &[
        ("targetRefs", |_| Value::Null),
        ("strategy", |_| Value::Null),
        ("apiKeyAuth.credentialRefs[]", |rng| {
            let name = pick(rng, &["keys", "keys", "hmac"]);
            reference(rng, name)
        }),
        ("apiKeyAuth.extractFrom", extraction),
        ("basicAuth.secretRef", |rng| reference(rng, "user")),
        ("jwt.algorithm", |rng| {
            json!(if one_in(rng, 24) { "HS384" } else { pick(rng, &["HS256", "HS512"]) })
        }),
        ("jwt.secretRef", |rng| reference(rng, "hmac")),
        ("jwt.publicKeyRef", |_| Value::Null),
        ("jwt.extractFrom", extraction),
        ("jwt.issuer", |rng| json!(pick(rng, &["us", "them"]))),
        ("jwt.audience", |_| json!("shop")),
        ("jwt.requiredClaims[]", |rng| json!(pick(rng, &["sub", "nbf", "iss", "sub", "nbf", "iss", "role"]))),
        ("authorization.allow[]", |rng| json!(network(rng))),
        ("authorization.deny[]", |rng| json!(network(rng))),
        ("clientIP.trustedProxies[]", |rng| json!(network(rng))),
        ("cors", filter::cors),
        ("csrf.secretRef", |rng| reference(rng, "hmac")),
    ],
    mistakes: Some(160),
};

fn extraction(rng: &mut SmallRng) -> Value {
    match rng.random_range(0..3) {
        0 => json!({ "headers": ["x-credential"] }),
        1 => json!({ "params": ["credential"] }),
        _ => json!({ "headers": ["x-credential"], "params": ["credential"] }),
    }
}

fn reference(rng: &mut SmallRng, right: &str) -> Value {
    let name = if one_in(rng, 24) { pick(rng, &["keys", "user", "hmac", "empty", "missing"]) } else { right };
    let mut reference = json!({ "name": name });
    if one_in(rng, 10) {
        reference["namespace"] = json!(pick(rng, &NAMESPACES));
    }
    reference
}

fn network(rng: &mut SmallRng) -> &'static str {
    let known = if one_in(rng, 60) { &NETWORKS[..] } else { &NETWORKS[..3] };
    known.choose(rng).unwrap()
}
