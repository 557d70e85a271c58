//! The output of a migration on a real API server and the real PingSIX.

use std::path::Path;

use pingsix_translate::Kind;
use serde_json::Value;

use super::annotations::Proxy;
use super::backends::Backends;
use super::expectations::{HOST, get};
use super::namespace;
use super::objects::slice;
use super::security::client::HERE;
use crate::test_env::pingsix::{self, Ports};
use crate::test_env::{TestEnv, options};

/// The output of `migrate`, which the tests of the program compare: two consumers with keys, and a route that asks for one.
const OUTPUT: &str = "testdata/migrations/keys/output.yaml";

/// The namespaces of the output.
const NAMESPACES: [&str; 2] = ["shop", "partners"];

/// The host of the output.
const ORIGINAL_HOST: &str = "shop.example.com";

/// The output with the host of the clients, and without the endpoints, which a backend of the test replaces.
fn output() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(OUTPUT);
    let text = std::fs::read_to_string(path).unwrap().replace(ORIGINAL_HOST, HOST);
    let documents = text.split("\n---\n").filter(|document| !document.contains("kind: EndpointSlice"));
    documents.collect::<Vec<_>>().join("\n---\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_output_of_a_migration_applies_and_admits_every_key() {
    const TEST: &str = "migration::the_output_of_a_migration_applies_and_admits_every_key";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some(env) = TestEnv::start().await else { return };
    let backends = Backends::start().await;
    for name in NAMESPACES {
        env.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")).await;
    }
    env.apply(&output()).await;
    env.apply(&slice("shop", "orders", &backends, &[("http", "a")]).to_string()).await;

    let (feed, _stop) = env.serve_feed().await;
    let ports = Ports::of_plane(&env.cluster, feed, "/pingsix/shop/pingsix");
    let running = env.ready(options()).await;
    let process = ports.run(&env.cluster, binary).await;
    let proxy = Proxy::new(&ports, &process);

    proxy.until(HERE, "/orders/1", 401).await;
    for key in ["alices-key", "bobs-key"] {
        let answer = proxy.ask(HERE, &get("/orders/1").header("apikey", key)).await;
        // The original passes the key on to the backend, which shows it.
        assert_eq!((answer.status, answer.body), (200, format!("a /orders/1 key {key}")), "{key}");
    }
    let other = proxy.ask(HERE, &get("/orders/1").header("apikey", "another-key")).await;
    assert_eq!(other.status, 401, "{other:?}");
    for (kind, name) in [(Kind::HttpRoute, "orders"), (Kind::SecurityPolicy, "orders")] {
        let object: Value = env.object(kind, "shop", name).await;
        assert!(!object.to_string().contains("-key\""), "{object}");
    }
    running.stop().await;
    process.kill().await.unwrap();
}
