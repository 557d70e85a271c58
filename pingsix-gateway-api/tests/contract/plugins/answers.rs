//! The effect of each plugin that the other files leave out.

use std::collections::BTreeSet;

use pingsix_translate::pingsix::Request;
use pingsix_translate::pingsix::plugin::PLUGIN_NAMES;
use serde_json::{Value, json};

use super::SCOPES;
use super::late::{BARE, FORGED, FULL, OTHER, bearer};
use crate::client::{Protocol, Reply};
use crate::harness::{Harness, get};
use crate::mirror::REPLY;
use crate::run::{binary, print_message};

/// Plugins with tests of their own.
const ELSEWHERE: [&str; 4] = ["cors", "proxy-rewrite", "redirect", "response-rewrite"];

/// A set of plugins, and requests in order with the status and one header of each answer.
type Case = (Value, Vec<(Request, u16, Option<(&'static str, &'static str)>)>);

fn reply(request: Request, name: &str, value: &str) -> Request {
    request.header(&format!("{REPLY}{name}"), value)
}

fn post() -> Request {
    get("/a").method("POST")
}

/// Plugins that let requests in or keep them out.
fn access() -> Vec<Case> {
    let key = |key: &str| get("/a").header("apikey", key);
    let basic = |credentials: &str| get("/a").header("Authorization", credentials);
    let challenge = |scheme: &'static str| Some(("www-authenticate", scheme));
    vec![
        (
            json!({ "key-auth": { "keys": ["k1", "k2"], "query": "q" } }),
            vec![
                (get("/a"), 401, challenge("ApiKey error=\"invalid_key\"")),
                (key("k3"), 401, None),
                (key(""), 401, None),
                (key("k2"), 200, None),
                (get("/a?q=k1"), 200, None),
            ],
        ),
        // Of `key` and `keys`, only the latter count.
        (
            json!({ "key-auth": { "key": "k1", "keys": ["k2"] } }),
            vec![(key("k1"), 401, None), (key("k2"), 200, None)],
        ),
        (
            json!({ "basic-auth": { "username": "u", "password": "p" } }),
            vec![
                (get("/a"), 401, challenge("Basic realm=\"pingsix\"")),
                (basic("Basic dTpx"), 401, None),
                (basic("basic dTpw"), 200, None),
            ],
        ),
        // The user name ends at the first colon: no user is a:b.
        (
            json!({ "basic-auth": { "username": "a:b", "password": "p" } }),
            vec![(basic("Basic YTpiOnA="), 401, None)],
        ),
        (
            json!({ "jwt-auth": { "secret": "s", "iss": "i", "aud": "a", "required_claims": ["iss", "aud"] } }),
            vec![
                (get("/a"), 401, None),
                (bearer(FULL), 200, None),
                (bearer(BARE), 401, None),
                (bearer(OTHER), 401, None),
                (bearer(FORGED), 401, None),
            ],
        ),
        // Without an audience, tokens for one are refused.
        (
            json!({ "jwt-auth": { "secret": "s" } }),
            vec![(bearer(BARE), 200, None), (bearer(FULL), 401, None)],
        ),
        (json!({ "ip-restriction": { "blacklist": ["127.0.0.0/8"] } }), vec![(get("/a"), 403, None)]),
        (json!({ "ip-restriction": { "whitelist": ["10.0.0.0/8"] } }), vec![(get("/a"), 403, None)]),
        (json!({ "ip-restriction": { "whitelist": ["127.0.0.1"] } }), vec![(get("/a"), 200, None)]),
        (json!({ "csrf": { "key": "k" } }), vec![(get("/a"), 200, None), (post(), 401, None)]),
        (
            json!({ "limit-count": { "time_window": 3600, "count": 2, "rejected_code": 429 } }),
            vec![
                (get("/a"), 200, Some(("x-rate-limit-remaining", "1"))),
                (get("/b"), 200, Some(("x-rate-limit-remaining", "0"))),
                (get("/a"), 429, Some(("x-rate-limit-limit", "2"))),
            ],
        ),
        // Requests without the key share one counter.
        (
            json!({ "limit-count": {
                "time_window": 3600, "count": 1, "key_type": "head", "key": "x-a", "key_missing_policy": "default",
            } }),
            vec![(get("/a"), 200, None), (get("/a"), 503, None), (get("/a").header("x-a", "1"), 200, None)],
        ),
        (
            json!({ "limit-count": {
                "time_window": 3600, "count": 1, "key_type": "cookie", "key": "u", "key_missing_policy": "deny",
            } }),
            vec![(get("/a"), 400, None), (get("/a").header("Cookie", "u=1"), 200, None)],
        ),
    ]
}

/// Plugins that answer, or change or watch answers.
fn effects() -> Vec<Case> {
    let text =
        |accepted: &str| reply(get("/a"), "content-type", "text/plain").header("Accept-Encoding", accepted);
    let nowhere = json!({ "nodes": { "127.0.0.1:9": 1 } });
    vec![
        (
            json!({ "gzip": { "comp_level": 1 } }),
            vec![(text("gzip"), 200, Some(("content-encoding", "gzip"))), (text("br"), 200, None)],
        ),
        // Only the client's first coding counts.
        (
            json!({ "brotli": {} }),
            vec![(text("br"), 200, Some(("content-encoding", "br"))), (text("gzip, br"), 200, None)],
        ),
        // The second answer is the first.
        (
            json!({ "cache": { "ttl": 3600 } }),
            vec![
                (reply(get("/a"), "x-n", "1"), 200, Some(("x-n", "1"))),
                (reply(get("/a"), "x-n", "2"), 200, Some(("x-n", "1"))),
                (reply(get("/b"), "x-n", "3"), 200, Some(("x-n", "3"))),
            ],
        ),
        (
            json!({ "request-id": {} }),
            vec![(get("/a").header("X-Request-Id", "mine"), 200, Some(("x-request-id", "mine")))],
        ),
        (
            json!({ "request-id": { "algorithm": "range_id", "range_id": { "char_set": "a", "length": 3 } } }),
            vec![(get("/a"), 200, Some(("x-request-id", "aaa")))],
        ),
        (
            json!({ "request-id": { "algorithm": "range_id" } }),
            vec![(get("/a"), 200, Some(("x-request-id", "")))],
        ),
        (
            json!({ "echo": { "body": "b", "headers": { "x-a": "b" } } }),
            vec![(get("/a"), 200, Some(("x-a", "b")))],
        ),
        (
            json!({ "fault-injection": { "abort": { "http_status": 418, "headers": { "x-a": 1 } } } }),
            vec![(get("/a"), 418, Some(("x-a", "1")))],
        ),
        (
            json!({ "fault-injection": { "abort": { "http_status": 418, "percentage": 0 } } }),
            vec![(get("/a"), 200, None)],
        ),
        (
            json!({ "traffic-split": { "rules": [
                { "vars": [["http_x-a", "==", "b"]], "weighted_upstreams": [{ "upstream": nowhere, "weight": 1 }] },
            ] } }),
            vec![(get("/a"), 200, None), (get("/a").header("x-a", "b"), 502, None)],
        ),
        (json!({ "prometheus": { "max_unique_paths": 0 } }), vec![(get("/a"), 200, None)]),
        (json!({ "file-logger": { "log_format": "$host $var_x $" } }), vec![(get("/a"), 200, None)]),
        (json!({ "grpc-web": {} }), vec![(get("/a"), 200, None)]),
    ]
}

fn describe(reply: &Reply, header: Option<(&'static str, &str)>) -> (u16, Option<String>) {
    (reply.status, header.map(|(name, _)| reply.header(name).unwrap_or("<absent>").to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_plugin_answers_requests_as_the_rules_expect() {
    const TEST: &str = "answers";
    let cases = [access(), effects()].concat();
    let mut covered: BTreeSet<&str> = ELSEWHERE.into();
    covered.extend(
        cases.iter().flat_map(|(plugins, _)| plugins.as_object().unwrap().keys().map(String::as_str)),
    );
    assert_eq!(covered, PLUGIN_NAMES.into());
    let Some(binary) = binary(TEST) else { return };
    let upstream = json!({});
    let routes = cases.iter().map(|(plugins, _)| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/answers"), routes).await;
    let mut asked = 0;
    for (route, (plugins, requests)) in cases.iter().enumerate() {
        for (request, status, header) in requests {
            let reply = harness.ask(Protocol::Http1, route, request).await;
            let expected = (*status, header.map(|(_, value)| value.to_owned()));
            assert_eq!(describe(&reply, *header), expected, "{plugins} {request:?}");
            asked += 1;
        }
    }
    print_message(&format!("{TEST}: {asked} answers of {} configurations", cases.len()));
}
