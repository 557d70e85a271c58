//! Specs of BackendTrafficPolicies, some of whose fields PingSIX cannot honour.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::schema::Specs;
use super::{one_in, pick};

/// The spec of a policy without its targets.
pub(crate) fn settings(rng: &mut SmallRng) -> Value {
    SPECS.draw(rng)
}

const SPECS: Specs = Specs {
    kind: "BackendTrafficPolicy",
    own: &[
        ("targetRefs", |_| Value::Null),
        ("loadBalancer", |rng| {
            let header = json!({ "type": "Header", "name": "x-user" });
            let hashes = [json!({ "type": "SourceIP" }), json!({ "type": "URI" }), header];
            match pick(rng, &["RoundRobin", "Random", "ConsistentHash", "LeastRequest"]) {
                "ConsistentHash" => json!({ "type": "ConsistentHash", "consistentHash": hashes.choose(rng) }),
                other => json!({ "type": other }),
            }
        }),
        ("healthCheck.active.interval", |rng| json!(pick(rng, &["5s", "5s", "1m", "500ms"]))),
        ("healthCheck.active.http.path", |_| json!("/healthz")),
        ("healthCheck.active.http.hostname", |_| json!("probe.example")),
        ("healthCheck.active.http.expectedStatuses[]", |rng| json!([200, 204, 99].choose(rng))),
        ("healthCheck.passive", |_| Value::Null),
        ("timeout.connect", seconds),
        ("timeout.send", seconds),
        ("timeout.read", seconds),
        ("retry.numRetries", |rng| json!([0, 2, 3, 17].choose(rng))),
        ("retry.timeout", seconds),
        ("retry.statusCodes", |_| Value::Null),
        ("tls", |rng| {
            let certificate = json!({ "name": pick(rng, &["certificate", "one", "missing"]) });
            if one_in(rng, 3) { json!({ "clientCertificateRef": certificate }) } else { Value::Null }
        }),
        ("sessionPersistence", |_| Value::Null),
    ],
    mistakes: None,
};

fn seconds(rng: &mut SmallRng) -> Value {
    json!(pick(rng, &["2s", "2s", "2s", "1m", "1m", "1m", "500ms"]))
}
