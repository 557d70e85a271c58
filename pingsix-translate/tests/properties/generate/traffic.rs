//! TrafficPolicies, some of whose fields are not valid.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::schema::Specs;
use super::security::{self, attached, targets_of};
use super::{Taste, one_in, pick};

const NAMES: [&str; 5] = ["t0", "t1", "t2", "t3", "t4"];

/// A random table with TrafficPolicies, half of the time beside SecurityPolicies.
pub(crate) fn table_of_traffic(rng: &mut SmallRng, taste: Taste) -> Vec<Value> {
    let mut objects = if rng.random() {
        security::table_of_policies(rng, taste)
    } else {
        security::table_with_backends(rng, taste)
    };
    add(rng, &mut objects);
    objects
}

/// Adds policies for objects of a table.
pub(crate) fn add(rng: &mut SmallRng, objects: &mut Vec<Value>) {
    let targets = targets_of(objects);
    for name in &NAMES[..rng.random_range(1..=NAMES.len())] {
        objects.push(attached(rng, ("TrafficPolicy", *name), &targets, settings));
    }
}

/// The spec of a policy without its targets.
pub(crate) fn settings(rng: &mut SmallRng, is_wide: bool) -> Value {
    let mut spec = SPECS.draw(rng);
    let often = if is_wide { 3 } else { 40 };
    if one_in(rng, often) {
        spec["strategy"] = json!(if one_in(rng, 12) { "Merge" } else { "Overrides" });
    }
    spec
}

const SPECS: Specs = Specs {
    kind: "TrafficPolicy",
    own: &[
        ("targetRefs", |_| Value::Null),
        ("strategy", |_| Value::Null),
        ("rateLimit.local.key", |rng| {
            let mut key = json!({ "type": pick(rng, &["Header", "Cookie", "QueryParam"]) });
            if !one_in(rng, 20) {
                key["name"] = json!(if one_in(rng, 20) { "a!b" } else { pick(rng, &["X-User", "user"]) });
            }
            key
        }),
        ("requestID.headerName", |rng| {
            json!(pick(rng, &["X-Request-Id", "X-Trace", "X-Trace", "X Trace", "Host", "Upgrade"]))
        }),
        ("faultInjection.delay.duration", |rng| json!(pick(rng, &["250ms", "1m", "250ms", "61s"]))),
        ("responseHeaders.set", |rng| {
            let name = if one_in(rng, 12) { "Upgrade" } else { "X-Keep" };
            json!([{ "name": name, "value": pick(rng, &["down", "out"]) }])
        }),
        ("responseHeaders.add", |rng| {
            let value = if one_in(rng, 12) { "$request_id" } else { "1" };
            json!([{ "name": "X-More", "value": value }])
        }),
        ("responseHeaders.remove", |_| json!(["x-drop"])),
        ("cache.ttl", |rng| json!(pick(rng, &["5s", "24h", "24h", "5s", "500ms", "25h"]))),
    ],
    mistakes: Some(120),
};
