//! Headers that a client names in `Connection`. PingSIX passes both on (CVE-2026-105299), so the next hop may remove them.

use std::collections::BTreeSet;

use pingsix_translate::Object;
use serde_json::{Value, json};

use crate::client::{Client, Protocol};
use crate::echo::HEADER_SEEN;
use crate::expectations::get;
use crate::objects::object;
use crate::policy_env::{PolicyEnv, world};
use crate::run::{binary, print_message};

/// Headers that no document sets, and on which a next hop may rely.
const OF_REQUESTS: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
    "authorization",
    "cookie",
];

/// The names of all headers that documents set or ask for.
fn names(document: &Value, found: &mut BTreeSet<String>) {
    match document {
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        Value::Object(fields) => {
            let name = fields.get("name").filter(|_| fields.contains_key("value")).and_then(Value::as_str);
            let id = fields.get("header_name").and_then(Value::as_str);
            found.extend(name.into_iter().chain(id).map(str::to_ascii_lowercase));
            fields.values().for_each(|value| names(value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_a_client_has_removed_changes_no_answer_of_the_responder() {
    const TEST: &str = "headers named in Connection";
    let Some(binary) = binary(TEST) else { return };
    let mut env = PolicyEnv::start(&binary, "/contract/connection").await;
    let mut objects = world();
    let backend = json!([{ "name": "shop", "port": 80 }]);
    let redirect =
        json!([{ "type": "RequestRedirect", "requestRedirect": { "hostname": "new.test", "port": 8443 } }]);
    let set = json!([{ "type": "RequestHeaderModifier", "requestHeaderModifier": {
        "set": [{ "name": "X-Env", "value": "prod" }], "add": [{ "name": "X-More", "value": "a" }],
    } }]);
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": { "namespace": "infra", "name": "headers" },
        "spec": { "parentRefs": [{ "name": "public" }], "rules": [
            { "matches": [{ "path": { "value": "/moved" } }], "filters": redirect },
            { "matches": [{ "path": { "value": "/set" } }], "filters": set, "backendRefs": backend },
            // Requests without the header get 404 from the responder.
            {
                "matches": [{ "path": { "value": "/listed" }, "headers": [{ "name": "x-tenant", "value": "a" }] }],
                "backendRefs": backend,
            },
        ] },
    }))));
    let (translation, _) = env.publish(&objects).await;
    let config = &translation.data_planes.values().next().unwrap().config;
    let mut listed: BTreeSet<String> = OF_REQUESTS.map(str::to_owned).into();
    for (_, document) in config.to_pairs("") {
        names(&serde_json::from_str(&document).unwrap(), &mut listed);
    }
    assert!(listed.contains("x-pingsix-redirect") && listed.contains("x-env"), "{listed:?}");
    for protocol in [Protocol::Http1, Protocol::H2c] {
        let mut client = Client::new(protocol, env.pingsix.address, None);
        for name in listed.iter().chain([&listed.iter().cloned().collect::<Vec<_>>().join(", ")]) {
            // HTTP/2 has no such header.
            let ask = |path| {
                if protocol == Protocol::Http1 { get(path).header("connection", name) } else { get(path) }
            };
            let reply = client.ask(&ask("/moved")).await.unwrap();
            assert_eq!(
                (reply.status, reply.header("location")),
                (302, Some("http://new.test:8443/moved")),
                "{name}"
            );
            assert_eq!(client.ask(&ask("/listed")).await.unwrap().status, 404, "{name}");
            let reply = client.ask(&ask("/set").header("x-env", "mine")).await.unwrap();
            assert_eq!(reply.header(&format!("{HEADER_SEEN}x-env")), Some("prod"), "{name}: {reply:?}");
        }
        // A client that writes the instruction itself reaches a backend, or the same redirect.
        let own = "v1 302 http:80 https evil.test - keep";
        let reply = client.ask(&get("/moved").header("x-pingsix-redirect", own)).await.unwrap();
        assert_eq!(reply.header("location"), Some("http://new.test:8443/moved"));
    }
    print_message(&format!("{TEST}: {listed:?}"));
}
