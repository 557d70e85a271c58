//! Configurations that PingSIX builds, and that then fail requests or do not protect: the rules call them harmful.

use pingsix_translate::pingsix::Request;
use pingsix_translate::pingsix::validate::{ValidateOptions, is_refused, is_unfit, validate_pairs};
use serde_json::{Value, json};

use super::SCOPES;
use crate::client::Protocol;
use crate::harness::{Harness, get};
use crate::run::{binary, print_message};

/// Tokens of HS256 that expire in 2100: signed with `s` without issuer and audience, with the issuer `i` and the
/// audience `a`, with another issuer; and one that is signed with nothing.
pub(super) const BARE: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDB9.Xjjh3T-U1q8V_pc4wNRCRwjmXkBbCZcXWilVNG--7HI";
pub(super) const FULL: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDAsImlzcyI6ImkiLCJhdWQiOiJhIn0.yU9lvqcHZD9iptRF2qvgbhgj15U_7k1Bf2a_arO9EsA";
pub(super) const OTHER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDAsImlzcyI6IngiLCJhdWQiOiJhIn0.4mNgQR4AHN-WvhFtg_9yEl3mMH7LRJiM1-8XPOWMHYo";
pub(super) const FORGED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDB9.aUO430L9o1XDpUHF_ajUnWcVGBQaDQuurY8nFCQXjrk";

pub(super) fn bearer(token: &str) -> Request {
    get("/a").header("Authorization", &format!("Bearer {token}"))
}

/// A plugin and its configuration, a request, and the statuses of the answers if the request is sent again and again.
type Case = (&'static str, Value, Request, &'static [u16]);

fn cases() -> Vec<Case> {
    let request_id = |field: &str, value: Value| {
        ("request-id", json!({ "algorithm": "range_id", field: value }), get("/a"), &[500][..])
    };
    let abort = |abort: Value| ("fault-injection", json!({ "abort": abort }), get("/a"), &[500][..]);
    let rewrite = |config: Value| ("proxy-rewrite", config, get("/a"), &[500][..]);
    let header =
        |name: &str, value: &str| json!({ "headers": { "set": [{ "name": name, "value": value }] } });
    let response =
        |headers: Value| ("response-rewrite", json!({ "headers": headers }), get("/a"), &[500][..]);
    let limit = |key_type: &str, policy: &str| {
        let key = "x-a";
        let limit = json!({ "time_window": 3600, "count": 1, "key_type": key_type, "key": key, "key_missing_policy": policy });
        ("limit-count", limit, get("/a"))
    };
    let with = |(name, config, request), statuses: &'static [u16]| (name, config, request, statuses);
    vec![
        request_id("header_name", json!("a b")),
        request_id("range_id", json!({ "char_set": "\n", "length": 8 })),
        abort(json!({ "http_status": 1000 })),
        abort(json!({ "http_status": 200, "headers": { "a b": "c" } })),
        abort(json!({ "http_status": 200, "headers": { "a": "b\nc" } })),
        rewrite(json!({ "method": "G T" })),
        rewrite(json!({ "host": "a\nb" })),
        rewrite(header("a b", "c")),
        rewrite(header("a", "b\nc")),
        response(json!({ "a b": "c" })),
        response(json!({ "set": { "a": "b\nc" } })),
        response(json!({ "add": ["a b: c"] })),
        ("echo", json!({ "body": "", "headers": { "a b": "c" } }), get("/a"), &[500]),
        ("cors", json!({ "expose_headers": "a\nb" }), get("/a").header("Origin", "https://a.test"), &[500]),
        ("csrf", json!({ "key": "k", "name": "a\nb" }), get("/a"), &[500]),
        (
            "redirect",
            json!({ "regex_uri": [], "http_to_https": true, "redirect_host": "a b" }),
            get("/a"),
            &[500],
        ),
        // These admit requests that they seem to refuse.
        ("jwt-auth", json!({ "secret": "s", "iss": "i" }), bearer(BARE), &[200]),
        ("jwt-auth", json!({ "secret": "s", "aud": "a" }), bearer(BARE), &[200]),
        ("jwt-auth", json!({ "secret": "s", "required_claims": ["scope"] }), bearer(BARE), &[200]),
        ("jwt-auth", json!({ "secret": "" }), bearer(FORGED), &[200]),
        with(limit("head", "allow"), &[200, 200, 200]),
        with(limit("cookie", "allow"), &[200, 200, 200]),
        with(limit("vars", "allow"), &[200, 200, 200]),
        with(limit("vars", "deny"), &[400, 400]),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_builds_what_the_rules_call_harmful_and_then_fails() {
    const TEST: &str = "late failures";
    let cases = cases();
    for (name, config, ..) in &cases {
        let upstream = json!({ "nodes": { "127.0.0.1:9": 1 } });
        let route = json!({ "uri": "/", "upstream": upstream, "plugins": { *name: config } });
        let violations =
            validate_pairs([("/pingsix/routes/r", route.to_string())], &ValidateOptions::default());
        assert!(is_unfit(&violations) && !is_refused(&violations), "{name} {config}: {violations:?}");
    }
    let Some(binary) = binary(TEST) else { return };
    let plugins: Vec<Value> = cases.iter().map(|(name, config, ..)| json!({ *name: config })).collect();
    let upstream = json!({});
    let routes = plugins.iter().map(|plugins| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/late"), routes).await;
    for (route, (name, config, request, expected)) in cases.iter().enumerate() {
        let mut statuses = Vec::new();
        for _ in *expected {
            statuses.push(harness.ask(Protocol::Http1, route, request).await.status);
        }
        assert_eq!(statuses, *expected, "{name} {config}");
    }
    print_message(&format!("{TEST}: {} configurations", cases.len()));
}
