//! TrafficPolicies, translated and served: each field on the real PingSIX.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use pingsix_translate::pingsix::Request;
use pingsix_translate::{Kind, Object, Objects};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::client::Reply;
use crate::echo::{BACKEND, HEADER_SEEN};
use crate::expectations::{
    HOST, Inheritance, KEY, LIMIT, SHARED_COUNT, SIGNING, get, gzip, inheritance, three_a_minute, zipped,
};
use crate::objects::object;
use crate::policy_env::{PolicyEnv, add_policy, add_secret, world};
use crate::run::{binary, print_message};

const ORDERS: [&str; 2] = ["HTTPRoute", "orders"];
const HELP: [&str; 2] = ["HTTPRoute", "help"];
const GATEWAY: [&str; 2] = ["Gateway", "public"];

/// Adds TrafficPolicy `infra/<name>`.
fn add(objects: &mut Objects, name: &str, targets: &[[&str; 2]], fields: &Value) {
    add_policy(objects, (Kind::TrafficPolicy, name), targets, fields);
}

/// The world with one policy of its route `/orders`.
fn under(fields: &Value) -> Objects {
    let mut objects = world();
    add(&mut objects, "policy", &[ORDERS], fields);
    objects
}

/// Whether an answer says that it is compressed. The client leaves out bodies in chunks.
fn is_gzip(reply: &Reply) -> bool {
    reply.header("content-encoding") == Some("gzip")
}

/// The raw answer to a request from 127.0.0.2. All other clients have the address 127.0.0.1.
async fn ask_from_elsewhere(address: SocketAddr, path: &str, header: &str) -> Vec<u8> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{header}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_shares_counts_between_two_routes_until_an_endpoint_changes() {
    const TEST: &str = "rate limit";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-limit").await;
    let mut objects = world();
    add(&mut objects, "limit", &[ORDERS, HELP], &three_a_minute());
    env.publish(&objects).await;
    for (path, status, remaining) in SHARED_COUNT {
        let reply = env.expect(&get(path), status).await;
        assert_eq!(reply.header("x-rate-limit-limit"), Some(LIMIT), "{reply:?}");
        assert_eq!(reply.header("x-rate-limit-remaining"), Some(remaining), "{reply:?}");
        assert_eq!(reply.header("retry-after"), (status == 429).then_some("60"), "{reply:?}");
    }
    let answer = ask_from_elsewhere(env.pingsix.address, "/orders", "Accept: */*").await;
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    // A Route that comes leaves the counts alone, and PingSIX forgets them with an endpoint that comes.
    crate::policy_env::add_route(
        &mut objects,
        "new",
        "2026-01-01T00:00:00Z",
        &json!({ "path": { "value": "/new" } }),
    );
    env.publish(&objects).await;
    env.expect(&get("/new"), 200).await;
    env.expect(&get("/orders"), 429).await;
    env.scale().await;
    env.publish(&objects).await;
    let reply = env.expect(&get("/help"), 200).await;
    assert_eq!(reply.header("x-rate-limit-remaining"), Some("2"), "{reply:?}");
    print_message(&format!("{TEST}: one count for two routes"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_lets_no_request_without_the_key_of_a_limit_pass_uncounted() {
    const TEST: &str = "rate limit by header";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-header").await;
    for (key, with_key) in [
        (json!({ "type": "Header", "name": "X-User" }), get("/orders").header("x-user", "alice")),
        (json!({ "type": "Cookie", "name": "user" }), get("/orders").header("cookie", "a=b; user=alice")),
        (
            json!({ "type": "QueryParam", "name": "user" }),
            Request { query: Some("user=alice".to_owned()), ..get("/orders") },
        ),
    ] {
        let mut limit = three_a_minute();
        limit["rateLimit"]["local"]["key"] = key.clone();
        env.publish(&under(&limit)).await;
        for request in [&get("/orders"), &with_key] {
            for status in [200, 200, 200, 429] {
                env.expect(request, status).await;
            }
        }
        limit["rateLimit"]["local"]["onMissingKey"] = json!("Deny");
        env.publish(&under(&limit)).await;
        env.expect(&get("/orders"), 400).await;
        env.expect(&with_key, 200).await;
        env.expect(&get("/help"), 200).await;
    }
    print_message(&format!("{TEST}: no request passes uncounted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_serves_the_neighbour_of_a_route_with_a_bad_limit() {
    const TEST: &str = "bad rate limit";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-bad").await;
    let mut limit = three_a_minute();
    limit["rateLimit"]["local"]["limit"]["requests"] = json!(0);
    env.publish(&under(&limit)).await;
    env.expect(&get("/orders"), 500).await;
    env.expect(&get("/help"), 200).await;
    env.publish(&under(&json!({ "compression": [{ "type": "Gzip", "level": 10 }] }))).await;
    let reply = env.expect(&get("/orders").header("accept-encoding", "gzip"), 200).await;
    assert_eq!(reply.header("content-encoding"), None);
    print_message(&format!("{TEST}: closed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_asks_for_the_token_of_a_gateway_and_compresses_for_a_route() {
    const TEST: &str = "inheritance of both kinds";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-both").await;
    let mut objects = world();
    add_secret(&mut objects, ["infra", "tokens"], "key", SIGNING);
    add_secret(&mut objects, ["infra", "keys"], "alice", KEY);
    add(&mut objects, "gzip", &[ORDERS], &gzip());
    for Inheritance { of_gateway, of_route, expected } in inheritance() {
        add_policy(&mut objects, (Kind::SecurityPolicy, "tokens"), &[GATEWAY], &of_gateway);
        if let Some(fields) = of_route {
            add_policy(&mut objects, (Kind::SecurityPolicy, "keys"), &[ORDERS], &fields);
        }
        env.publish(&objects).await;
        for (request, status) in expected {
            let reply = env.expect(&zipped(request), status).await;
            assert!(status != 200 || is_gzip(&reply), "{reply:?}");
        }
    }
    print_message(&format!("{TEST}: one service"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_compresses_by_the_first_coding_of_a_client() {
    const TEST: &str = "compression";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-compression").await;
    let coding = async |env: &PolicyEnv, accepted: &str| {
        let reply = env.expect(&get("/orders").header("accept-encoding", accepted), 200).await;
        reply.header("content-encoding").unwrap_or_default().to_owned()
    };
    env.publish(&under(&json!({ "compression": [{ "type": "Brotli", "level": 11 }] }))).await;
    assert_eq!(coding(&env, "br").await, "br");
    assert_eq!(coding(&env, "gzip, br").await, "");
    let both = json!({ "compression": [{ "type": "Brotli" }, { "type": "Gzip", "level": 9 }] });
    env.publish(&under(&both)).await;
    assert_eq!(coding(&env, "br, gzip").await, "br");
    assert_eq!(coding(&env, "deflate, gzip, br").await, "gzip");
    let answer = ask_from_elsewhere(env.pingsix.address, "/orders", "Accept-Encoding: gzip").await;
    // The first bytes of RFC 1952. The text of a backend has no such bytes.
    assert!(answer.windows(2).any(|bytes| bytes == [0x1f, 0x8b]), "{}", String::from_utf8_lossy(&answer));
    print_message(&format!("{TEST}: the first coding decides"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_gives_each_other_field_its_effect() {
    const TEST: &str = "fields of TrafficPolicies";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-fields").await;

    env.publish(&under(&json!({ "requestID": { "headerName": "X-Trace" } }))).await;
    let reply = env.expect(&get("/orders"), 200).await;
    let id = reply.header("x-trace").unwrap().to_owned();
    assert_eq!(reply.header(&format!("{HEADER_SEEN}x-trace")), Some(&*id));
    let reply = env.expect(&get("/orders").header("x-trace", "mine"), 200).await;
    assert_eq!(reply.header("x-trace"), Some("mine"));

    env.publish(&under(&json!({ "faultInjection": { "abort": { "httpStatus": 418 } } }))).await;
    env.expect(&get("/orders"), 418).await;
    env.expect(&get("/help"), 200).await;
    env.publish(&under(&json!({ "faultInjection": { "abort": { "httpStatus": 418, "percentage": 0 } } })))
        .await;
    env.expect(&get("/orders"), 200).await;
    env.publish(&under(&json!({ "faultInjection": { "delay": { "duration": "300ms" } } }))).await;
    let start = Instant::now();
    env.expect(&get("/orders"), 200).await;
    assert!(start.elapsed() >= Duration::from_millis(300));

    let headers = json!({
        "set": [{ "name": "X-Keep", "value": "down" }], "add": [{ "name": "X-Drop", "value": "3" }], "remove": [BACKEND],
    });
    env.publish(&under(&json!({ "responseHeaders": headers }))).await;
    let reply = env.ask(&get("/orders")).await;
    assert_eq!((reply.status, reply.header("x-keep"), reply.header(BACKEND)), (200, Some("down"), None));
    let values: Vec<&str> =
        reply.headers.iter().filter(|(name, _)| name == "x-drop").map(|(_, value)| &**value).collect();
    assert_eq!(values, ["1", "2", "3"]);

    env.publish(&under(&json!({ "grpcWeb": {} }))).await;
    let call = get("/orders").header("content-type", "application/grpc-web");
    let reply = env.ask(&call).await;
    assert!(reply.status == 200, "{reply:?}");
    assert!(
        String::from_utf8_lossy(&reply.body).contains("\"content-type\":[\"application/grpc\"]"),
        "{reply:?}"
    );
    print_message(&format!("{TEST}: every one"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_from_a_cache_unless_a_client_goes_past_it() {
    const TEST: &str = "cache";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/traffic-cache").await;
    let mut objects = under(&json!({ "cache": { "ttl": "60s", "methods": ["GET"] } }));
    // Responses are kept for exact hostnames alone.
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": { "namespace": "infra", "name": "orders", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "parentRefs": [{ "name": "public" }],
            "hostnames": [HOST],
            "rules": [{ "backendRefs": [{ "name": "shop", "port": 80 }] }],
        },
    }))));
    env.publish(&objects).await;
    let first = env.expect(&get("/orders").header("x-n", "1"), 200).await;
    assert_eq!(first.header("x-cache-status"), Some("MISS"), "{first:?}");
    let second = env.expect(&get("/orders").header("x-n", "2"), 200).await;
    assert_eq!(second.header("x-cache-status"), Some("HIT"), "{second:?}");
    assert_eq!(second.body, first.body);
    for (name, value) in [
        ("x-bypass-cache", "1"),
        ("cache-control", "no-cache"),
        ("cookie", "session=1"),
        ("authorization", "Basic eDp5"),
    ] {
        let past = env.expect(&get("/orders").header(name, value).header("x-n", "3"), 200).await;
        assert_ne!(past.header("x-cache-status"), Some("HIT"), "{name}: {past:?}");
        assert_ne!(past.body, first.body, "{name}");
    }
    print_message(&format!("{TEST}: one answer of the backend"));
}
