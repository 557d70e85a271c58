//! Random specs of policies, with the edges of each field.

use std::sync::LazyLock;

use rcgen::KeyPair;
use serde_json::{Map, Value, json};

use crate::rng::SeededRng;

/// A public key of ES256, as PEM.
pub(super) fn public_key() -> &'static str {
    static KEY: LazyLock<String> = LazyLock::new(|| KeyPair::generate().unwrap().public_key_pem());
    &KEY
}

const NETWORKS: [&str; 8] = [
    "0.0.0.0/0",
    "::/0",
    "127.0.0.0/8",
    "10.0.0.0/8",
    "192.0.2.1/32",
    "2001:db8::/32",
    "::1/128",
    "255.255.255.255/32",
];
const HEADERS: [&str; 5] = ["X-A", "x-b", "Authorization", "a", "X_Under-Score.1"];
const TEXTS: [&str; 5] =
    ["a", "https://login.example/", "with \"quotes\" and \\", "ünïcode", "{{ $x }} ${y}"];

/// Sets some of these fields, each with its value.
fn fields(rng: &mut SeededRng, share: usize, of: Vec<(&str, Value)>) -> Value {
    let chosen = of.into_iter().filter(|_| rng.percent(share));
    Value::Object(chosen.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// A number of values from some texts, at least one.
fn some(rng: &mut SeededRng, of: &[&str]) -> Vec<String> {
    let count = 1 + rng.below(of.len());
    rng.some(count, of)
}

fn one<'a>(rng: &mut SeededRng, of: &[&'a str]) -> &'a str {
    rng.one(of)
}

fn number(rng: &mut SeededRng, of: &[u32]) -> u32 {
    of[rng.below(of.len())]
}

fn extract(rng: &mut SeededRng) -> Value {
    let header = json!([one(rng, &HEADERS)]);
    match rng.below(3) {
        0 => json!({ "headers": header }),
        1 => json!({ "params": ["key"] }),
        _ => json!({ "headers": header, "params": ["a_b"] }),
    }
}

fn authentication(rng: &mut SeededRng) -> Option<(&'static str, Value)> {
    let sanitize = rng.percent(50);
    Some(match rng.below(5) {
        0 => return None,
        1 => {
            let names = some(rng, &["keys", "more-keys"]);
            let references: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
            let mut auth = json!({ "credentialRefs": references, "sanitize": sanitize });
            if rng.percent(50) {
                auth["extractFrom"] = extract(rng);
            }
            ("apiKeyAuth", auth)
        }
        2 => ("basicAuth", json!({ "secretRef": { "name": "user" }, "sanitize": sanitize })),
        3 => {
            let issuer = json!(one(rng, &TEXTS));
            let audience = json!(one(rng, &TEXTS).repeat(if rng.percent(10) { 80 } else { 1 }));
            let claims = json!(some(rng, &["aud", "iss", "nbf", "sub"]));
            let (skew, extract) = (json!(number(rng, &[0, 1, 3600])), extract(rng));
            let mut jwt = fields(
                rng,
                50,
                vec![
                    ("issuer", issuer),
                    ("audience", audience),
                    ("requiredClaims", claims),
                    ("clockSkew", skew),
                    ("extractFrom", extract),
                ],
            );
            if rng.percent(30) {
                jwt["algorithm"] = json!("ES256");
                jwt["publicKeyRef"] = json!({ "kind": "ConfigMap", "name": "public-key" });
            } else {
                jwt["algorithm"] = json!(one(rng, &["HS256", "HS512"]));
                jwt["secretRef"] = json!({ "name": "tokens" });
            }
            jwt["sanitize"] = json!(sanitize);
            ("jwt", jwt)
        }
        _ => ("anonymous", json!({})),
    })
}

pub(super) fn security(rng: &mut SeededRng) -> Value {
    let networks = |rng: &mut SeededRng| json!(some(rng, &NETWORKS));
    let (allow, deny) = (networks(rng), networks(rng));
    let authorization = match rng.below(3) {
        0 => json!({ "allow": allow }),
        1 => json!({ "deny": deny }),
        _ => json!({ "allow": allow, "deny": deny }),
    };
    let client_ip = json!({ "trustedProxies": networks(rng) });
    let origins = some(rng, &["https://a.example", "http://b.example:8080", "https://*.c.example"]);
    let origins = if rng.percent(30) { vec!["*".to_owned()] } else { origins };
    let methods = some(rng, &["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]);
    let (headers, exposed) = (some(rng, &HEADERS), some(rng, &HEADERS));
    let age = number(rng, &[1, 5, 86_400, 2_147_483_647]);
    let has_credentials = rng.percent(30) && origins != ["*"];
    let mut cors = fields(
        rng,
        60,
        vec![
            ("allowMethods", json!(methods)),
            ("allowHeaders", json!(headers)),
            ("exposeHeaders", json!(exposed)),
            ("maxAge", json!(age)),
        ],
    );
    cors["allowOrigins"] = json!(origins);
    if has_credentials {
        cors["allowCredentials"] = json!(true);
    }
    let csrf = json!({ "secretRef": { "name": "csrf" } });
    let authentication = authentication(rng);
    let mut spec = fields(
        rng,
        25,
        vec![("authorization", authorization), ("clientIP", client_ip), ("cors", cors), ("csrf", csrf)],
    );
    if let Some((name, auth)) = authentication {
        spec[name] = auth;
    } else if spec == json!({}) {
        spec["anonymous"] = json!({});
    }
    spec
}

pub(super) fn traffic(rng: &mut SeededRng) -> Value {
    let name = one(rng, &["x-user", "a", "A.b_c-d"]);
    let key = match one(rng, &["RemoteAddress", "Header", "Cookie", "QueryParam"]) {
        "RemoteAddress" => json!({ "type": "RemoteAddress" }),
        kind => json!({ "type": kind, "name": name }),
    };
    let requests = number(rng, &[1, 2, 1_000, 1_000_000_000]);
    let limit = json!({ "requests": requests, "unit": one(rng, &["Second", "Minute", "Hour", "Day"]) });
    let (missing, code) = (one(rng, &["Share", "Deny"]), number(rng, &[400, 429, 503, 599]));
    let (quota, in_response) = (rng.percent(50), rng.percent(50));
    let mut local = fields(
        rng,
        50,
        vec![
            ("key", key),
            ("onMissingKey", json!(missing)),
            ("rejectCode", json!(code)),
            ("quotaHeaders", json!(quota)),
        ],
    );
    local["limit"] = limit;
    let (gzip, brotli) = (number(rng, &[1, 6, 9]), number(rng, &[1, 11]));
    let mut compression =
        vec![json!({ "type": "Gzip", "level": gzip }), json!({ "type": "Brotli", "level": brotli })];
    compression.truncate(1 + rng.below(2));
    let header = one(rng, &["X-Request-Id", "a", "X-Trace_1"]);
    let request_id = fields(rng, 50, vec![("headerName", json!(header)), ("inResponse", json!(in_response))]);
    let (duration, share) = (one(rng, &["1ms", "20ms", "0s"]), number(rng, &[0, 1, 100]));
    let (status, of_all) = (number(rng, &[200, 404, 418, 500, 599]), number(rng, &[0, 1, 100]));
    let mut injected = fields(rng, 50, vec![("delay", json!({ "duration": duration, "percentage": share }))]);
    if injected == json!({}) || rng.percent(30) {
        injected["abort"] = json!({ "httpStatus": status, "percentage": of_all });
    }
    let value = one(rng, &["1", "", "a b; c=\"d\""]);
    let headers = json!({ "set": [{ "name": "x-set", "value": value }], "remove": [one(rng, &HEADERS)] });
    let ttl = json!({ "ttl": one(rng, &["1s", "60s", "86400s", "24h"]), "statuses": [200, 404] });
    let mut spec = fields(
        rng,
        25,
        vec![
            ("rateLimit", json!({ "local": local })),
            ("compression", json!(compression)),
            ("requestID", request_id),
            ("faultInjection", injected),
            ("grpcWeb", json!({})),
            ("responseHeaders", headers),
            ("cache", ttl),
        ],
    );
    if spec == json!({}) {
        spec["grpcWeb"] = json!({});
    }
    spec
}

pub(super) fn backend_traffic(rng: &mut SeededRng) -> Value {
    let balancer = match rng.below(3) {
        0 => json!({ "type": "RoundRobin" }),
        1 => json!({ "type": "Random" }),
        _ => {
            let hash = match one(rng, &["SourceIP", "URI", "Header", "Cookie", "QueryParam"]) {
                kind @ ("SourceIP" | "URI") => json!({ "type": kind }),
                kind => json!({ "type": kind, "name": "x-user" }),
            };
            json!({ "type": "ConsistentHash", "consistentHash": hash })
        }
    };
    let seconds = |rng: &mut SeededRng| one(rng, &["1s", "60s", "86400s", "1m"]);
    let timeout = json!({ "connect": seconds(rng), "send": seconds(rng), "read": seconds(rng) });
    let retry = json!({ "numRetries": number(rng, &[0, 1, 16]), "timeout": seconds(rng) });
    let check = json!({ "active": { "type": "TCP", "interval": seconds(rng), "unhealthyThreshold": 100 } });
    let mut spec = fields(
        rng,
        60,
        vec![("loadBalancer", balancer), ("timeout", timeout), ("retry", retry), ("healthCheck", check)],
    );
    spec["targetRefs"] = json!([{ "group": "", "kind": "Service", "name": "shop" }]);
    spec
}
