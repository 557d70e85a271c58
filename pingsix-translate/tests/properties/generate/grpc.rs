//! GRPCRoutes, among HTTPRoutes whose paths look like calls.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Map, Value, json};

use super::route::{backends, filters, headers, metadata, parents_and_hostnames};
use super::{one_in, pick};

/// Services: two of them are first elements of paths that HTTPRoutes have.
const SERVICES: [&str; 5] = ["foo", "foo", "fo", "shop.v1.Cart", "shop.v1.Carts"];

/// Methods: two of them are second elements of such paths.
const METHODS: [&str; 4] = ["bar", "x", "Add", "AddAll"];

/// Paths of calls, and of what is nearly one.
pub(super) const PATHS: [&str; 9] = [
    "/foo/bar",
    "/foo/x",
    "/fo/Add",
    "/shop.v1.Cart/Add",
    "/shop.v1.Cart/AddAll",
    "/shop.v1.Cart/Remove",
    "/shop.v1.Carts/Add",
    "/shop.v1.Cart",
    "/shop.v1.Cart/Add/",
];

pub(super) fn route(rng: &mut SmallRng, index: usize) -> Value {
    let metadata = metadata(rng, index);
    let mut spec = parents_and_hostnames(rng, metadata["namespace"].as_str().unwrap_or_default());
    let rules = rng.random_range(1..=3);
    spec["rules"] = (0..rules).map(|_| rule(rng)).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GRPCRoute",
        "metadata": metadata,
        "spec": spec,
    })
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

fn one_match(rng: &mut SmallRng) -> Value {
    let mut one = Map::new();
    let (service, method) = (pick(rng, &SERVICES), pick(rng, &METHODS));
    match rng.random_range(0..20) {
        0..4 => {}
        4..9 => {
            one.insert("method".to_owned(), json!({ "service": service }));
        }
        9..18 => {
            let mut call = json!({ "service": service, "method": method });
            if one_in(rng, 2) {
                call["type"] = json!("Exact");
            }
            one.insert("method".to_owned(), call);
        }
        18 => {
            one.insert("method".to_owned(), json!({ "method": method }));
        }
        _ => {
            one.insert("method".to_owned(), json!({ "type": "RegularExpression", "service": "fo+" }));
        }
    }
    headers(rng, &mut one);
    Value::Object(one)
}
