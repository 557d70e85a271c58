//! TrafficPolicies, some of whose fields are not valid.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

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
    let mut spec = json!({});
    if one_in(rng, 3) {
        spec["rateLimit"] = json!({ "local": limit(rng) });
    }
    if one_in(rng, 3) {
        spec["compression"] = compression(rng);
    }
    if one_in(rng, 4) {
        let name = pick(rng, &["X-Request-Id", "X-Trace", "X-Trace", "X Trace", "Host", "Upgrade"]);
        spec["requestID"] = if one_in(rng, 2) { json!({}) } else { json!({ "headerName": name }) };
        if one_in(rng, 3) {
            spec["requestID"]["inResponse"] = json!(false);
        }
    }
    if one_in(rng, 5) {
        spec["faultInjection"] = fault_injection(rng);
    }
    if one_in(rng, 5) {
        spec["grpcWeb"] = json!({});
    }
    if one_in(rng, 4) {
        spec["responseHeaders"] = changes(rng);
    }
    if one_in(rng, 5) {
        spec["cache"] = json!({ "ttl": pick(rng, &["5s", "24h", "24h", "5s", "500ms", "25h"]) });
        if one_in(rng, 3) {
            spec["cache"]["methods"] = json!([pick(rng, &["GET", "HEAD", "GET", "POST"])]);
        }
        if one_in(rng, 3) {
            spec["cache"]["statuses"] =
                json!([200, *[404_u16, 301, 404, 206].get(rng.random_range(0..4)).unwrap()]);
        }
    }
    if one_in(rng, 30) {
        spec["mirror"] = json!({ "to": "one" });
    }
    let often = if is_wide { 3 } else { 40 };
    if one_in(rng, often) {
        spec["strategy"] = json!(if one_in(rng, 12) { "Merge" } else { "Overrides" });
    }
    spec
}

fn limit(rng: &mut SmallRng) -> Value {
    let requests = if one_in(rng, 20) { 0 } else { rng.random_range(1..9) };
    let unit = pick(rng, &["Second", "Minute", "Hour", "Day"]);
    let mut limit = json!({ "limit": { "requests": requests, "unit": unit } });
    if one_in(rng, 2) {
        let mut key = json!({ "type": pick(rng, &["Header", "Cookie", "QueryParam"]) });
        if !one_in(rng, 20) {
            key["name"] = json!(if one_in(rng, 20) { "a!b" } else { pick(rng, &["X-User", "user"]) });
        }
        limit["key"] = key;
    }
    if one_in(rng, 3) {
        limit["onMissingKey"] = json!(pick(rng, &["Share", "Deny"]));
    }
    if one_in(rng, 3) {
        limit["rejectCode"] = json!(503);
    }
    if one_in(rng, 3) {
        limit["quotaHeaders"] = json!(false);
    }
    if one_in(rng, 40) {
        limit["burst"] = json!(3);
    }
    limit
}

fn compression(rng: &mut SmallRng) -> Value {
    let mut list = Vec::new();
    for kind in [pick(rng, &["Gzip", "Brotli"]), pick(rng, &["Gzip", "Brotli"])] {
        let mut coding = json!({ "type": kind });
        if one_in(rng, 2) {
            coding["level"] = json!(*[1_u8, 6, 9, 11, 12, 0].get(rng.random_range(0..6)).unwrap());
        }
        list.push(coding);
        if one_in(rng, 2) {
            break;
        }
    }
    if one_in(rng, 20) {
        list = vec![json!({ "type": "Zstd" })];
    }
    Value::Array(list)
}

fn fault_injection(rng: &mut SmallRng) -> Value {
    let mut injected = json!({});
    if one_in(rng, 2) {
        injected["delay"] = json!({ "duration": pick(rng, &["250ms", "1m", "250ms", "61s"]) });
        if one_in(rng, 2) {
            injected["delay"]["percentage"] = json!(rng.random_range(0..=101));
        }
    }
    if one_in(rng, 2) {
        let status = *[503_u16, 418, 429, 503, 600].get(rng.random_range(0..5)).unwrap();
        injected["abort"] = json!({ "httpStatus": status });
        if !one_in(rng, 3) {
            injected["abort"]["percentage"] = json!(rng.random_range(0..=101));
        }
    }
    injected
}

fn changes(rng: &mut SmallRng) -> Value {
    let mut changes = json!({ "set": [{ "name": "X-Keep", "value": pick(rng, &["down", "out"]) }] });
    if one_in(rng, 2) {
        changes["add"] = json!([{ "name": "X-More", "value": "1" }]);
    }
    if one_in(rng, 2) {
        changes["remove"] = json!(["x-drop"]);
    }
    if one_in(rng, 12) {
        changes["set"] = json!([{ "name": "Upgrade", "value": "h2c" }]);
    }
    if one_in(rng, 12) {
        changes["add"] = json!([{ "name": "X-More", "value": "$request_id" }]);
    }
    changes
}
