//! `response-rewrite` and `proxy-rewrite`: texts with special characters, and the host.

use pingsix_translate::pingsix::Request;
use serde_json::{Value, json};

use super::SCOPES;
use crate::client::{Protocol, Reply};
use crate::harness::{Harness, get, host};
use crate::mirror::{REPLY, STATUS, seen};
use crate::run::{binary, print_message};

/// The headers that the test speaks of, in the order of their names.
fn marked(reply: &Reply) -> Vec<(&str, &str)> {
    let marked = reply.headers.iter().filter(|(name, _)| name.starts_with("x-"));
    let mut marked: Vec<_> = marked.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // The order of values of one name stays.
    marked.sort_by_key(|(name, _)| *name);
    marked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_rewrites_response_headers_and_replaces_some_texts_in_them() {
    const TEST: &str = "response-rewrite";
    let Some(binary) = binary(TEST) else { return };
    let cases: [(Value, &[(&str, &str)]); 4] = [
        // Three names are replaced wherever they stand, also within longer words; there is no escape.
        (
            json!({ "set": {
                "x-a": "$remote_addr",
                "x-b": "a$remote_address $$remote_addr",
                "x-c": "<$upstream_addr|$request_id>",
                "x-d": "$remote_port $host $uri ${remote_addr} $1",
            } }),
            &[
                ("x-a", "127.0.0.1"),
                ("x-b", "a127.0.0.1ess $127.0.0.1"),
                ("x-c", "<|>"),
                ("x-d", "$remote_port $host $uri ${remote_addr} $1"),
                ("x-up", "1"),
                ("x-up", "2"),
            ],
        ),
        // First remove, then set, then add, which splits at the first colon and trims.
        (
            json!({
                "add": ["x-up: b: c", "x-up:  d  ", "x-e:", "x-f:$remote_addr"],
                "set": { "X-Up": "a", "x-g": "" },
                "remove": ["x-up"],
            }),
            &[("x-e", ""), ("x-f", "127.0.0.1"), ("x-g", ""), ("x-up", "a"), ("x-up", "b: c"), ("x-up", "d")],
        ),
        (json!({ "add": ["X-UP: 3"] }), &[("x-up", "1"), ("x-up", "2"), ("x-up", "3")]),
        (json!({ "remove": ["X-Up"] }), &[]),
    ];
    let plugins = cases.each_ref().map(|(headers, _)| json!({ "response-rewrite": { "headers": headers } }));
    let upstream = json!({});
    let routes = plugins.iter().map(|plugins| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/response-rewrite"), routes).await;
    let up = format!("{REPLY}x-up");
    let request = get("/a").header(&up, "1").header(&up, "2");
    for (route, (config, expected)) in cases.iter().enumerate() {
        for protocol in Protocol::ALL {
            let reply = harness.ask(protocol, route, &request).await;
            assert_eq!(marked(&reply), *expected, "{config} {protocol:?}");
        }
    }
    print_message(&format!("{TEST}: {} configurations over four protocols", cases.len()));
}

/// For any answer of a backend, the client gets the other status, and the connection serves the next request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_replaces_the_status_of_every_response_of_a_backend() {
    const TEST: &str = "status of responses";
    const STATUSES: [u16; 7] = [200, 202, 204, 205, 304, 410, 598];
    const OWN: [&str; 5] = ["200", "204", "301", "304", "503"];
    let Some(binary) = binary(TEST) else { return };
    let plugins = STATUSES.map(|status| json!({ "response-rewrite": { "status_code": status } }));
    let upstream = json!({});
    let routes = plugins.iter().map(|plugins| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/status"), routes).await;
    let mut requests = Vec::new();
    for protocol in Protocol::ALL {
        for route in 0..STATUSES.len() {
            for own in OWN {
                for method in ["GET", "HEAD"] {
                    requests.push((protocol, route, get("/a").method(method).header(STATUS, own)));
                }
            }
        }
    }
    let replies = harness.ask_all(&requests).await;
    for ((protocol, route, request), reply) in requests.iter().zip(&replies) {
        assert_eq!(reply.status, STATUSES[*route], "{protocol:?} {request:?}");
    }
    print_message(&format!("{TEST}: {} requests over four protocols", replies.len()));
}

/// The target and the host that reached the backend, as far as a case names them.
fn arrived(reply: &Reply) -> String {
    if reply.status != 200 {
        return reply.status.to_string();
    }
    let seen = seen(reply);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // In HTTP/2 the authority is the host; PingSIX sends no Host header beside it.
    let authority = if seen["authority"].is_null() { &seen["headers"]["host"] } else { &seen["authority"] };
    assert!(
        seen["authority"].is_null() || seen["headers"].get("host").is_none(),
        "both an authority and a host: {seen}"
    );
    format!("{} {}", text(&seen["target"]), text(authority))
}

/// A configuration, fields of the upstream, a target, and the received request for clients of HTTP/1 and of HTTP/2.
/// `HOST` is the route's, with the client's port.
type Case = (Value, Value, &'static str, [&'static str; 2]);

/// A Host that is set as a header, and one that is set as the field.
fn hosts() -> Vec<Case> {
    let set = || json!({ "headers": { "set": [{ "name": "Host", "value": "set.test" }] } });
    let both = |case: (Value, Value, &'static str, &'static str)| -> Case {
        (case.0, case.1, case.2, [case.3, case.3])
    };
    let mut cases = vec![
        (set(), json!({}), "/a?b", "/a?b set.test"),
        (set(), json!({ "pass_host": "rewrite", "upstream_host": "up.test" }), "/a", "/a up.test"),
        (set(), json!({ "pass_host": "node" }), "/a", "/a 127.0.0.1"),
        (json!({ "host": "field.test:99" }), json!({}), "/a", "/a field.test:99"),
        (
            json!({ "host": "field.test" }),
            json!({ "pass_host": "rewrite", "upstream_host": "up.test" }),
            "/a",
            "/a up.test",
        ),
        // A header is set after the field.
        (json!({ "host": "field.test", "headers": set()["headers"] }), json!({}), "/a", "/a set.test"),
    ];
    // The same towards a backend that speaks HTTP/2.
    for index in 0..cases.len() {
        let (config, mut upstream, target, arrived) = cases[index].clone();
        upstream["scheme"] = json!("grpc");
        cases.push((config, upstream, target, arrived));
    }
    let add = json!({ "headers": { "add": [{ "name": "Host", "value": "add.test" }] } });
    cases.push((add, json!({}), "/a", r#"/a ["HOST","add.test"]"#));
    cases.push((json!({ "headers": { "remove": ["host"] } }), json!({}), "/a", "/a null"));
    cases.into_iter().map(both).collect()
}

/// Paths. A request over HTTP/2 to an HTTP/2 backend loses its authority when the plugin has a path, matching or not,
/// unless another field sets the host.
fn paths() -> Vec<Case> {
    let regex = || json!(["^/a(/.*)?$", "/new$1"]);
    let grpc = |pass_host: &str| match pass_host {
        "rewrite" => json!({ "scheme": "grpc", "pass_host": "rewrite", "upstream_host": "up.test" }),
        _ => json!({ "scheme": "grpc", "pass_host": pass_host }),
    };
    vec![
        (json!({ "uri": "/new" }), json!({}), "/a?b=c&b=c", ["/new?b=c&b=c HOST"; 2]),
        (json!({ "uri": "/new" }), json!({}), "/a?", ["/new HOST"; 2]),
        (json!({ "uri": "/new?x=1" }), json!({}), "/a?b", ["/new?x=1?b HOST"; 2]),
        (json!({ "uri": "/$1/%2F" }), json!({}), "/a", ["/$1/%2F HOST"; 2]),
        (json!({ "regex_uri": regex() }), json!({}), "/a/%2F//x?b", ["/new/%2F//x?b HOST"; 2]),
        (json!({ "regex_uri": regex() }), json!({}), "/other?b", ["/other?b HOST"; 2]),
        (
            json!({ "regex_uri": ["^/a(?:/(.*))?$", "/$1"] }),
            json!({}),
            "/a//x.test/y?b",
            ["//x.test/y?b HOST"; 2],
        ),
        (json!({}), json!({}), "//x/y?", ["//x/y? HOST"; 2]),
        (json!({}), grpc("pass"), "/a?", ["/a? HOST"; 2]),
        (json!({ "uri": "/new" }), grpc("pass"), "/a?b", ["/new?b HOST", "502"]),
        (json!({ "regex_uri": regex() }), grpc("pass"), "/a/%2F?b", ["/new/%2F?b HOST", "502"]),
        (json!({ "regex_uri": regex() }), grpc("pass"), "/other", ["/other HOST", "502"]),
        (json!({ "uri": "/new" }), grpc("rewrite"), "/a?b", ["/new?b up.test"; 2]),
        (json!({ "regex_uri": regex() }), grpc("rewrite"), "/a/%2F?b", ["/new/%2F?b up.test"; 2]),
        (json!({ "regex_uri": regex() }), grpc("node"), "/a/x", ["/new/x 127.0.0.1"; 2]),
        (json!({ "uri": "/new", "host": "field.test" }), grpc("pass"), "/a?b", ["/new?b field.test"; 2]),
        (
            json!({ "uri": "/new", "headers": { "set": [{ "name": "Host", "value": "set.test" }] } }),
            grpc("pass"),
            "/a?b",
            ["/new?b set.test"; 2],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_rewrites_hosts_and_paths() {
    const TEST: &str = "proxy-rewrite";
    let Some(binary) = binary(TEST) else { return };
    let mut cases = hosts();
    cases.extend(paths());
    let plugins: Vec<Value> = cases.iter().map(|(config, ..)| json!({ "proxy-rewrite": config })).collect();
    let routes = plugins.iter().zip(cases.iter().map(|(_, upstream, ..)| upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/proxy-rewrite"), routes).await;
    for (route, (config, upstream, target, expected)) in cases.iter().enumerate() {
        for protocol in Protocol::ALL {
            let reply = harness.ask(protocol, route, &Request::get(":81", target)).await;
            let expected =
                expected[usize::from(protocol.http2())].replace("HOST", &format!("{}:81", host(route)));
            assert_eq!(arrived(&reply), expected, "{config} {upstream} {protocol:?}");
        }
    }
    print_message(&format!("{TEST}: {} configurations over four protocols", cases.len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_rewrites_request_headers_as_they_are_written() {
    const TEST: &str = "request headers";
    let Some(binary) = binary(TEST) else { return };
    let set = |name: &str, value: &str| json!({ "name": name, "value": value });
    let plugins = json!({ "proxy-rewrite": { "headers": {
        "set": [set("X-A", "$remote_addr $host ${1}"), set("x-b", ""), set("x-c", " c "), set("x-d", "ä")],
        "add": [set("x-e", "2"), set("X-F", "1")],
        "remove": ["X-G", "x-none"],
    } } });
    let (http1, http2) = (json!({}), json!({ "scheme": "grpc" }));
    let routes = [(&plugins, &http1), (&plugins, &http2)];
    let harness = Harness::start(&binary, &format!("{SCOPES}/request-headers"), routes).await;
    let request = get("/a").header("x-a", "1").header("x-a", "2").header("x-e", "1").header("x-g", "1");
    for protocol in Protocol::ALL {
        for (route, padded) in [(0, "c"), (1, " c ")] {
            let reply = harness.ask(protocol, route, &request).await;
            let mut headers = seen(&reply)["headers"].clone();
            let object = headers.as_object_mut().unwrap();
            object.retain(|name, _| name.starts_with("x-"));
            // No text has a special meaning; HTTP/1 drops the blanks around a value.
            let expected = json!({
                "x-a": "$remote_addr $host ${1}", "x-b": "", "x-c": padded, "x-d": "ä", "x-e": ["1", "2"], "x-f": "1",
            });
            assert_eq!(headers, expected, "{protocol:?} {route}");
        }
    }
    print_message(&format!("{TEST}: compared over four protocols"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_holds_conditions_on_the_host_header_over_http1_alone() {
    const TEST: &str = "conditions on the host";
    let Some(binary) = binary(TEST) else { return };
    // The mark shows whether the condition held.
    let plugins = json!({ "response-rewrite": {
        "vars": [["http_Host", "==", host(0)]],
        "headers": { "set": { "x-held": "1" } },
    } });
    let upstream = json!({});
    let harness = Harness::start(&binary, &format!("{SCOPES}/host"), [(&plugins, &upstream)]).await;
    for protocol in Protocol::ALL {
        let reply = harness.ask(protocol, 0, &get("/a")).await;
        assert_eq!(reply.header("x-held").is_some(), !protocol.http2(), "{protocol:?}");
    }
    print_message(&format!("{TEST}: compared over four protocols"));
}
