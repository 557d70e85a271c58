//! Telemetry of PingsixProxy: PingSIX counts and logs each request of a route, and adds the headers.

use std::collections::BTreeMap;
use std::time::Duration;

use pingsix_translate::pingsix::{Config, Request};
use pingsix_translate::status::Problems;
use pingsix_translate::{Object, ObjectName, Options, translate};
use serde_json::json;

use crate::client::{Client, Protocol, Reply};
use crate::etcd::Etcd;
use crate::mirror::{Mirror, seen};
use crate::objects::{gateway_and_service, object, with_nodes};
use crate::process::{PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

const SCOPE: &str = "/contract/telemetry";

/// A Gateway whose class has telemetry, with two routes to this backend.
async fn config(backend: &Mirror) -> Config {
    let mut objects = gateway_and_service(&json!({ "port": 80 }), 8080);
    objects.insert(Object::GatewayClass(object(json!({
        "metadata": { "name": "pingsix" },
        "spec": {
            "controllerName": "pingsix.io/gateway-controller",
            "parametersRef": {
                "group": "pingsix.io", "kind": "PingsixProxy", "namespace": "infra", "name": "all",
            },
        },
    }))));
    objects.insert(Object::PingsixProxy(object(json!({
        "metadata": { "namespace": "infra", "name": "all" },
        "spec": {
            "attached": {},
            "telemetry": {
                "metrics": {},
                "accessLog": {
                    "format": "logged $request_method $uri?$query_string $status id=$request_id",
                    "redactQueryParams": ["token"],
                },
                "requestId": {},
                "responseHeaders": [{ "name": "Server", "value": "edge" }],
            },
        },
    }))));
    for name in ["one", "two"] {
        objects.insert(Object::HttpRoute(object(json!({
            "metadata": { "namespace": "infra", "name": name },
            "spec": {
                "parentRefs": [{ "name": "public" }],
                "hostnames": [format!("{name}.example.com")],
                "rules": [{ "backendRefs": [{ "name": "shop", "port": 80 }] }],
            },
        }))));
    }
    let snapshot = objects.snapshot(&ObjectName::new("infra", "public")).unwrap();
    let translation = translate(&snapshot, &Options { route_names: true, ..Options::default() });
    assert_eq!(translation.verdicts.problems, Problems::new());
    let config = translation.data_planes.into_values().next().unwrap().config;
    with_nodes(&config, &[backend.address.to_string()]).await
}

/// The counts of requests by the label `route`, and all paths that occur as labels.
fn counts(metrics: &str) -> (BTreeMap<&str, u64>, Vec<&str>) {
    let (mut counts, mut paths) = (BTreeMap::new(), Vec::new());
    for line in metrics.lines().filter(|line| line.starts_with("http_status{")) {
        let label = |name: &str| line.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap();
        *counts.entry(label("route")).or_default() +=
            line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        paths.push(label("path_template"));
    }
    paths.sort_unstable();
    paths.dedup();
    (counts, paths)
}

/// Waits for a line in the log: PingSIX writes it after the response.
async fn logs(pingsix: &PingSix, line: &str) {
    for _ in 0..500 {
        if pingsix.log().contains(line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{line} is not logged: {}", pingsix.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_counts_and_logs_each_request_of_a_route() {
    const TEST: &str = "telemetry";
    let Some(binary) = binary(TEST) else { return };
    let (backend, etcd) = (Mirror::start().await, Etcd::start(&[SCOPE.to_owned()]).await);
    let pingsix = PingSix::start(&binary, etcd.address, SCOPE).await;
    let revision = etcd.publish(SCOPE, &config(&backend).await, 1).await;
    assert_eq!(pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
    let mut client = Client::new(Protocol::Http1, pingsix.address, None);
    for number in 0..6 {
        let host = if number % 3 == 0 { "one.example.com" } else { "two.example.com" };
        let mut request = Request::get(host, &format!("/path/{number}/of-{number}"));
        request.query = Some(format!("token=secret-{number}&page={number}"));
        let reply: Reply = client.ask(&request).await.unwrap();
        assert_eq!((reply.status, reply.header("server")), (200, Some("edge")));
        let id = reply.header("x-request-id").unwrap().to_owned();
        assert_eq!(seen(&reply)["headers"]["x-request-id"], json!(id), "the backend sees the id");
        let line = format!("logged GET /path/{number}/of-{number}?token=***&page={number} 200 id={id}");
        logs(&pingsix, &line).await;
    }
    assert!(!pingsix.log().contains("secret-"));
    let metrics = pingsix.metrics().await;
    let (counts, paths) = counts(&metrics);
    assert_eq!(counts, [("HTTPRoute/infra/one/0", 2), ("HTTPRoute/infra/two/0", 4)].into(), "{metrics}");
    assert_eq!(paths.len(), 1, "{paths:?}");
    print_message(&format!("{TEST}: 6 requests, counters equal 6"));
}
