//! `cors`: each field with nothing, with one star and with two; origins by pattern; credentials.

use pingsix_translate::pingsix::{Outcome, Request};
use serde_json::{Value, json};

use super::SCOPES;
use crate::client::{Protocol, Reply};
use crate::harness::{Harness, get};
use crate::mirror::REPLY;
use crate::run::{binary, print_message};

const ORIGIN: &str = "https://a.test";

/// The status and the CORS headers without their common prefix, sorted.
fn summary(reply: &Reply) -> String {
    let mut headers: Vec<String> = reply
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.strip_prefix("access-control-").or((name == "vary").then_some(name))?;
            Some(format!("{name}: {value}"))
        })
        .collect();
    headers.sort();
    headers.insert(0, reply.status.to_string());
    headers.join(" | ")
}

fn plain(origin: &str) -> Request {
    get("/a").header("Origin", origin)
}

fn preflight(origin: &str, method: &str) -> Request {
    plain(origin).method("OPTIONS").header("Access-Control-Request-Method", method)
}

fn with_headers(origin: &str, method: &str, headers: &str) -> Request {
    preflight(origin, method).header("Access-Control-Request-Headers", headers)
}

/// A configuration, and requests with the summaries of their answers.
type Case = (Value, Vec<(Request, &'static str)>);

/// No value, one star and two stars in each field.
fn fields() -> Vec<Case> {
    vec![
        // Without methods no preflight passes; the other answers say so with an empty header.
        (
            json!({ "allow_origins": ORIGIN, "allow_methods": "" }),
            vec![
                (
                    plain(ORIGIN),
                    "200 | allow-headers: * | allow-methods:  | allow-origin: https://a.test | max-age: 5 | vary: Origin",
                ),
                (preflight(ORIGIN, "GET"), "403"),
                (preflight(ORIGIN, ""), "403"),
            ],
        ),
        // Without headers a preflight passes only when it asks for none, and then the answer has an empty header.
        (
            json!({ "allow_origins": ORIGIN, "allow_headers": "" }),
            vec![
                (
                    preflight(ORIGIN, "GET"),
                    "204 | allow-headers:  | allow-methods: * | allow-origin: https://a.test | max-age: 5 | vary: Origin",
                ),
                (with_headers(ORIGIN, "GET", "x-a"), "403"),
                (with_headers(ORIGIN, "GET", ""), "403"),
            ],
        ),
        (
            json!({ "allow_origins": ORIGIN, "allow_headers": "x-a, X-B", "allow_methods": "GET, POST" }),
            vec![
                (
                    with_headers(ORIGIN, "POST", "X-A,x-b"),
                    "204 | allow-headers: x-a, X-B | allow-methods: GET, POST | allow-origin: https://a.test | max-age: 5 | vary: Origin",
                ),
                (with_headers(ORIGIN, "GET", "x-c"), "403"),
                (with_headers(ORIGIN, "GET", ""), "403"),
                (preflight(ORIGIN, "PUT"), "403"),
                // A preflight for the method counts whatever its case, an origin must be equal.
                (
                    preflight(ORIGIN, "get"),
                    "204 | allow-headers: x-a, X-B | allow-methods: GET, POST | allow-origin: https://a.test | max-age: 5 | vary: Origin",
                ),
                (preflight("https://A.test", "GET"), "403"),
                (preflight("https://a.test:443", "GET"), "403"),
                (plain("https://b.test"), "200"),
            ],
        ),
        // Stars alone are given back as they are; two for origins are one.
        (
            json!({}),
            vec![
                (plain(ORIGIN), "200 | allow-headers: * | allow-methods: * | allow-origin: * | max-age: 5"),
                (
                    with_headers("null", "PATCH", "x-a"),
                    "204 | allow-headers: * | allow-methods: * | allow-origin: * | max-age: 5",
                ),
                // There are seven methods, whatever is allowed.
                (preflight(ORIGIN, "PURGE"), "403"),
                (preflight(ORIGIN, "TRACE"), "403"),
            ],
        ),
        (
            json!({ "allow_origins": "**" }),
            vec![(plain(ORIGIN), "200 | allow-headers: * | allow-methods: * | allow-origin: * | max-age: 5")],
        ),
        (
            json!({ "allow_origins": ORIGIN, "allow_methods": "GET,PURGE" }),
            vec![(preflight(ORIGIN, "PURGE"), "403")],
        ),
        // Two stars for methods are the seven, for headers those asked for.
        (
            json!({ "allow_origins": ORIGIN, "allow_methods": "**", "allow_headers": "**" }),
            vec![
                (
                    with_headers(ORIGIN, "PATCH", "x-a,  X-B"),
                    "204 | allow-headers: x-a,  X-B | allow-methods: GET,POST,PUT,DELETE,PATCH,OPTIONS,HEAD | allow-origin: https://a.test | max-age: 5 | vary: Origin, Access-Control-Request-Headers",
                ),
                (
                    preflight(ORIGIN, "PATCH"),
                    "204 | allow-headers:  | allow-methods: GET,POST,PUT,DELETE,PATCH,OPTIONS,HEAD | allow-origin: https://a.test | max-age: 5 | vary: Origin, Access-Control-Request-Headers",
                ),
                (preflight(ORIGIN, "PURGE"), "403"),
            ],
        ),
        // An empty list of exposed headers is an empty header; the age may be anything.
        (
            json!({ "allow_origins": ORIGIN, "expose_headers": "", "max_age": -1 }),
            vec![(
                plain(ORIGIN),
                "200 | allow-headers: * | allow-methods: * | allow-origin: https://a.test | expose-headers:  | max-age: -1 | vary: Origin",
            )],
        ),
    ]
}

/// Origins by pattern, credentials, and requests that are no preflight.
fn origins() -> Vec<Case> {
    const PATTERN: &str = r"^https://[^/]+\.w\.test$";
    let reply = |request: Request, name: &str, value: &str| request.header(&format!("{REPLY}{name}"), value);
    vec![
        // Patterns count beside a list that is not empty, so that one is needed that no client sends.
        (
            json!({ "allow_origins": "-", "allow_origins_by_regex": [PATTERN] }),
            vec![
                (plain(ORIGIN), "200"),
                (plain("https://x.w.test:8443"), "200"),
                (
                    plain("https://x.y.w.test"),
                    "200 | allow-headers: * | allow-methods: * | allow-origin: https://x.y.w.test | max-age: 5 | vary: Origin",
                ),
                (
                    with_headers("https://x.w.test", "GET", "x-a"),
                    "204 | allow-headers: * | allow-methods: * | allow-origin: https://x.w.test | max-age: 5 | vary: Origin",
                ),
                (preflight(ORIGIN, "GET"), "403"),
            ],
        ),
        (
            json!({ "allow_origins": "", "allow_origins_by_regex": [PATTERN] }),
            vec![(plain("https://x.w.test"), "200"), (preflight("https://x.w.test", "GET"), "403")],
        ),
        // Without a list any origin is allowed, and the patterns say nothing.
        (
            json!({ "allow_origins_by_regex": [PATTERN] }),
            vec![(plain(ORIGIN), "200 | allow-headers: * | allow-methods: * | allow-origin: * | max-age: 5")],
        ),
        // With credentials the origin is given back, a star for methods as well, which a browser then takes literally.
        (
            json!({ "allow_origins": ORIGIN, "allow_headers": "x-a", "allow_credential": true }),
            vec![(
                preflight(ORIGIN, "PATCH"),
                "204 | allow-credentials: true | allow-headers: x-a | allow-methods: * | allow-origin: https://a.test | max-age: 5 | vary: Origin",
            )],
        ),
        (
            json!({
                "allow_origins": "-",
                "allow_origins_by_regex": [PATTERN, "^https?://.*$"],
                "allow_methods": "**",
                "allow_headers": "**",
                "expose_headers": "x-e",
                "allow_credential": true,
            }),
            vec![
                (
                    with_headers("http://any.test:81", "PUT", "x-a"),
                    "204 | allow-credentials: true | allow-headers: x-a | allow-methods: GET,POST,PUT,DELETE,PATCH,OPTIONS,HEAD | allow-origin: http://any.test:81 | expose-headers: x-e | max-age: 5 | vary: Origin, Access-Control-Request-Headers",
                ),
                (
                    plain("https://x.w.test"),
                    "200 | allow-credentials: true | allow-headers:  | allow-methods: GET,POST,PUT,DELETE,PATCH,OPTIONS,HEAD | allow-origin: https://x.w.test | expose-headers: x-e | max-age: 5 | vary: Origin, Access-Control-Request-Headers",
                ),
                (plain("null"), "200"),
            ],
        ),
        // The plugin replaces the backend's headers for allowed origins, and passes them to all others.
        (
            json!({ "allow_origins": ORIGIN, "allow_methods": "GET", "allow_headers": "x-a" }),
            vec![
                (
                    reply(
                        reply(plain(ORIGIN), "access-control-allow-origin", "https://up.test"),
                        "vary",
                        "Accept",
                    ),
                    "200 | allow-headers: x-a | allow-methods: GET | allow-origin: https://a.test | max-age: 5 | vary: Accept, Origin",
                ),
                (
                    reply(plain("https://b.test"), "access-control-allow-origin", "https://up.test"),
                    "200 | allow-origin: https://up.test",
                ),
                (reply(get("/a"), "access-control-allow-origin", "*"), "200 | allow-origin: *"),
                // Without a method asked for it is no preflight, and the backend gets it.
                (
                    plain(ORIGIN).method("OPTIONS"),
                    "200 | allow-headers: x-a | allow-methods: GET | allow-origin: https://a.test | max-age: 5 | vary: Origin",
                ),
                (get("/a").method("OPTIONS").header("Access-Control-Request-Method", "GET"), "403"),
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_cors_as_translation_expects() {
    const TEST: &str = "cors";
    let Some(binary) = binary(TEST) else { return };
    let mut cases = fields();
    cases.extend(origins());
    let plugins: Vec<Value> = cases.iter().map(|(config, _)| json!({ "cors": config })).collect();
    let upstream = json!({});
    let routes = plugins.iter().map(|plugins| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/cors"), routes).await;
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for (route, (_, asked)) in cases.iter().enumerate() {
        for (request, summary) in asked {
            for protocol in Protocol::ALL {
                requests.push((protocol, route, request.clone()));
                expected.push(*summary);
            }
        }
    }
    let replies = harness.ask_all(&requests).await;
    for (((protocol, route, request), reply), expected) in requests.iter().zip(&replies).zip(expected) {
        assert_eq!(summary(reply), expected, "{} {protocol:?} {request:?}", plugins[*route]);
        let modelled = match harness.outcome(*protocol, *route, request) {
            Outcome::Preflight { allowed: true, .. } => Some(204),
            Outcome::Preflight { allowed: false, .. } => Some(403),
            Outcome::Forward { .. } => Some(200),
            Outcome::NotFound | Outcome::Static { .. } | Outcome::Redirect { .. } => None,
        };
        assert_eq!(modelled, Some(reply.status), "the model: {} {protocol:?} {request:?}", plugins[*route]);
    }
    print_message(&format!(
        "{TEST}: {} answers of {} configurations over four protocols",
        replies.len(),
        cases.len()
    ));
}
