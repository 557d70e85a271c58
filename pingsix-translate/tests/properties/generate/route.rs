//! HTTPRoutes.

use std::collections::BTreeSet;

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Map, Value, json};

use super::service::SERVICES;
use super::{HOSTNAMES, NAMESPACES, one_in, pick};

const NAMES: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];
const PREFIXES: [&str; 8] = ["/", "/", "/foo", "/foo/", "/foo/bar", "/foo/bar/", "/fo", "/foo/bar/baz"];
const EXACT: [&str; 6] = ["/", "/foo", "/foo/", "/foo/bar", "/foo/bar/", "/foo/x"];
pub(super) const AGES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-02-01T00:00:00Z"];

pub(super) fn route(rng: &mut SmallRng, index: usize) -> Value {
    let metadata = metadata(rng, index);
    let mut spec = parents_and_hostnames(rng, metadata["namespace"].as_str().unwrap_or_default());
    let rules = rng.random_range(1..=3);
    spec["rules"] = (0..rules).map(|_| rule(rng)).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": spec,
    })
}

/// Metadata of a route. No two of a table have one name, whatever their kinds.
pub(super) fn metadata(rng: &mut SmallRng, index: usize) -> Value {
    let namespace = pick(rng, &NAMESPACES);
    let mut metadata = json!({
        "namespace": namespace,
        "name": NAMES[index],
        "generation": rng.random_range(1..9),
    });
    if !one_in(rng, 12) {
        metadata["creationTimestamp"] = json!(pick(rng, &AGES));
    }
    metadata
}

/// The parts of a route's spec that all kinds have.
pub(super) fn parents_and_hostnames(rng: &mut SmallRng, namespace: &str) -> Value {
    let parents: Vec<Value> =
        (0..if one_in(rng, 4) { 2 } else { 1 }).map(|_| parent_ref(rng, namespace)).collect();
    let mut spec = json!({ "parentRefs": parents });
    let hostnames = if one_in(rng, 3) { 0 } else { rng.random_range(1..=3) };
    if hostnames > 0 {
        spec["hostnames"] = (0..hostnames).map(|_| pick(rng, &HOSTNAMES)).collect();
    }
    spec
}

/// Gives a route the hostnames, age and matches of another, so that finer criteria have to decide.
pub(super) fn imitate(rng: &mut SmallRng, route: &mut Value, model: &Value) {
    if let Some(hostnames) = model["spec"].get("hostnames").filter(|_| !one_in(rng, 3)) {
        route["spec"]["hostnames"] = hostnames.clone();
    }
    if let Some(age) = model["metadata"].get("creationTimestamp").filter(|_| !one_in(rng, 3)) {
        route["metadata"]["creationTimestamp"] = age.clone();
    }
    if route["kind"] != model["kind"] {
        return;
    }
    let rules = route["spec"]["rules"].as_array_mut().unwrap();
    for (rule, other) in rules.iter_mut().zip(model["spec"]["rules"].as_array().unwrap()) {
        if let Some(matches) = other.get("matches").filter(|_| !one_in(rng, 3)) {
            rule["matches"] = matches.clone();
            for one in rule["matches"].as_array_mut().unwrap() {
                // The order of conditions says nothing.
                for conditions in ["headers", "queryParams"] {
                    if let Some(conditions) = one.get_mut(conditions).and_then(Value::as_array_mut) {
                        let names: BTreeSet<_> = conditions.iter().map(name_of).collect();
                        if names.len() == conditions.len() {
                            conditions.reverse();
                        }
                    }
                }
            }
        }
    }
}

fn name_of(condition: &Value) -> String {
    condition["name"].as_str().unwrap().to_ascii_lowercase()
}

fn parent_ref(rng: &mut SmallRng, namespace: &str) -> Value {
    let mut parent = json!({ "name": "public" });
    if namespace != "infra" || one_in(rng, 4) {
        parent["namespace"] = json!("infra");
    }
    if one_in(rng, 6) {
        parent["sectionName"] = json!(format!("l{}", rng.random_range(0..4)));
    }
    if one_in(rng, 12) {
        parent["port"] = json!(pick(rng, &[&80, &8080, &443]));
    }
    match rng.random_range(0..30) {
        0 => parent["name"] = json!("private"),
        1 => parent["kind"] = json!("Gateway"),
        2 => {
            parent["group"] = json!("");
            parent["kind"] = json!("Service");
        }
        _ => {}
    }
    parent
}

fn rule(rng: &mut SmallRng) -> Value {
    let mut rule = Map::new();
    if !one_in(rng, 8) {
        let matches = rng.random_range(1..=3);
        rule.insert("matches".to_owned(), (0..matches).map(|_| one_match(rng)).collect());
    }
    filters(rng, &mut rule);
    backends(rng, &mut rule);
    Value::Object(rule)
}

/// Adds filters now and then.
pub(super) fn filters(rng: &mut SmallRng, rule: &mut Map<String, Value>) {
    if one_in(rng, 20) {
        let filter = json!({ "type": "ExtensionRef", "extensionRef": { "group": "example.com", "kind": "Wasm", "name": "x" } });
        rule.insert("filters".to_owned(), json!([filter]));
    }
}

/// Adds backendRefs, most of the time.
pub(super) fn backends(rng: &mut SmallRng, rule: &mut Map<String, Value>) {
    let backends = if one_in(rng, 12) { 0 } else { rng.random_range(1..=3) };
    if backends > 0 || one_in(rng, 2) {
        rule.insert("backendRefs".to_owned(), (0..backends).map(|_| backend(rng)).collect());
    }
}

fn one_match(rng: &mut SmallRng) -> Value {
    let mut one = Map::new();
    match rng.random_range(0..10) {
        0 => {}
        1 => {
            one.insert("path".to_owned(), json!({ "value": pick(rng, &PREFIXES) }));
        }
        2..5 => {
            one.insert("path".to_owned(), json!({ "type": "Exact", "value": pick(rng, &EXACT) }));
        }
        _ => {
            one.insert("path".to_owned(), json!({ "type": "PathPrefix", "value": pick(rng, &PREFIXES) }));
        }
    }
    if one_in(rng, 4) {
        one.insert("method".to_owned(), json!(pick(rng, &["GET", "POST", "OPTIONS"])));
    }
    headers(rng, &mut one);
    if one_in(rng, 4) {
        let mut queries = vec![condition(rng, "q")];
        if one_in(rng, 2) {
            queries.push(condition(rng, "Q"));
        }
        if one_in(rng, 2) {
            queries.reverse();
        }
        one.insert("queryParams".to_owned(), Value::Array(queries));
    }
    Value::Object(one)
}

/// Adds header conditions to a match, one time in three.
pub(super) fn headers(rng: &mut SmallRng, one: &mut Map<String, Value>) {
    if one_in(rng, 3) {
        let first = header(rng, &["X-Env", "x-env"]);
        let mut headers = vec![first];
        if one_in(rng, 2) {
            // The name may be the same in another case, which makes the second entry void.
            headers.push(header(rng, &["version", "X-ENV", "Version"]));
        }
        if one_in(rng, 2) {
            headers.reverse();
        }
        one.insert("headers".to_owned(), Value::Array(headers));
    }
}

fn header(rng: &mut SmallRng, names: &[&str]) -> Value {
    let name = pick(rng, names);
    condition(rng, name)
}

fn condition(rng: &mut SmallRng, name: &str) -> Value {
    let mut condition = json!({ "name": name, "value": pick(rng, &["one", "two"]) });
    match rng.random_range(0..24) {
        0 => {
            condition["type"] = json!("RegularExpression");
            condition["value"] = json!("o.*");
        }
        1..12 => condition["type"] = json!("Exact"),
        _ => {}
    }
    condition
}

pub(super) fn backend(rng: &mut SmallRng) -> Value {
    let service = if one_in(rng, 5) { pick(rng, &SERVICES) } else { pick(rng, &["one", "two"]) };
    let mut backend = json!({ "name": service, "port": if one_in(rng, 5) { 81 } else { 80 } });
    if one_in(rng, 4) {
        backend["namespace"] = json!(pick(rng, &NAMESPACES));
    }
    if one_in(rng, 2) {
        backend["weight"] = json!(pick(rng, &[&0, &1, &2, &3, &10, &1_000_000]));
    }
    match rng.random_range(0..40) {
        0 => backend["port"] = json!(9999),
        1 => {
            backend["group"] = json!("example.com");
            backend["kind"] = json!("Function");
        }
        2 => backend["kind"] = json!("Service"),
        _ => {}
    }
    backend
}
