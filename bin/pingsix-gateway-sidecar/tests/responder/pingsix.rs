//! The protocol through the real PingSIX, when `PINGSIX_BIN` names it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::Method;
use pingsix_gateway_sidecar::responder::Options;
use pingsix_test_programs::free_address;
use pingsix_translate::responder::{REDIRECT_HEADER, status_host};

use crate::client::{Client, Reply, RequestSpec, Running, WAIT_TIMEOUT, raw};
use crate::process::PingSix;

/// The mark that distinguishes the responder's 404 from PingSIX's own.
const NOT_FOUND: &str = "404 Not Found\n";

/// A decision list that ends in 404 beside a proxy-rewrite, the same list with gRPC upstreams, and redirects.
fn documents(responder: SocketAddr) -> String {
    let mut yaml = format!(
        r#"upstreams:
  - {{ id: redirect, nodes: {{ "{responder}": 1 }}, type: roundrobin, pass_host: pass }}
"#
    );
    for (scheme, prefix) in [("http", ""), ("grpc", "grpc-")] {
        for status in [200, 404, 500, 503] {
            let host = status_host(status);
            yaml += &format!(
                r#"  - {{ id: "{prefix}{status}", nodes: {{ "{responder}": 1 }}, type: roundrobin, scheme: {scheme}, pass_host: rewrite, upstream_host: "{host}" }}
"#
            );
        }
    }
    yaml += "routes:\n";
    for (host, prefix) in [("mixed.example", ""), ("grpc.example", "grpc-")] {
        yaml += &format!(
            r#"  - id: "{host}"
    uri: "/{{*p}}"
    host: "{host}"
    priority: 1
    upstream_id: "{prefix}404"
    plugins:
      proxy-rewrite: {{ headers: {{ set: [ {{ name: x-added, value: "1" }} ] }} }}
      traffic-split:
        rules:
          - vars: [ [ "http_x-version", "==", "two" ] ]
            weighted_upstreams: [ {{ upstream_id: "{prefix}200", weight: 3 }}, {{ upstream_id: "{prefix}500", weight: 1 }} ]
          - vars: [ [ "http_x-version", "==", "none" ] ]
            weighted_upstreams: [ {{ upstream_id: "{prefix}503", weight: 1 }} ]
"#
        );
        yaml +=
            &format!(r#"  - {{ id: "{host}-root", uri: "/", host: "{host}", upstream_id: "{prefix}404" }}"#);
        yaml += "\n";
    }
    yaml += &format!(
        r#"  - id: redirect
    uri: "/old/{{*p}}"
    hosts: [ "*.moved.example" ]
    upstream_id: redirect
    plugins:
      proxy-rewrite: {{ headers: {{ set: [ {{ name: {REDIRECT_HEADER}, value: "v1 301 http:80 https - - prefix:/old:/new" }} ] }} }}
"#
    );
    yaml
}

async fn ask(client: &mut Client, host: &str, version: &str) -> Reply {
    let ask = RequestSpec { path: "/a?b=c", headers: vec![("x-version", version)], ..RequestSpec::get(host) };
    client.send(ask).await.unwrap()
}

/// Visible also for passing tests, unlike `eprintln!`.
fn print_message(text: &str) {
    let _ = writeln!(std::io::stderr(), "pingsix: {text}");
}

#[tokio::test]
async fn pingsix_and_the_responder_understand_each_other() {
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    let running = Running::start(Options::default()).await;
    // PingSIX cannot report its port.
    let address = free_address();
    let _pingsix = PingSix::start(&binary, &[address], &documents(running.address)).await;
    let started = Instant::now();
    while Client::http1(address).await.get("mixed.example").await.body != NOT_FOUND {
        assert!(started.elapsed() < WAIT_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    for mut client in Client::both(address).await {
        decision_list(&mut client, "mixed.example").await;
        redirects(&mut client).await;
    }
    decision_list(&mut Client::http2(address).await, "grpc.example").await;
    for bytes in [1, 1000, 60 * 1024, 900 * 1024, 8 * 1024 * 1024] {
        for _ in 0..5 {
            // PingSIX closes the connection of an HTTP/1 client that is still writing after the answer.
            if bytes < 1024 * 1024 {
                upload(Client::http1(address).await, "mixed.example", bytes).await;
            }
            upload(Client::http2(address).await, "mixed.example", bytes).await;
            upload(Client::http2(address).await, "grpc.example", bytes).await;
        }
    }
    absolute_targets(address).await;
    print_message(&format!("RUN with {}", binary.display()));
}

async fn decision_list(client: &mut Client, host: &str) {
    const REQUESTS: usize = 200;
    let (mut served, mut failed) = (0, 0);
    for _ in 0..REQUESTS {
        match ask(client, host, "two").await.status.as_u16() {
            200 => served += 1,
            500 => failed += 1,
            other => panic!("{host}: {other}"),
        }
    }
    // 150 and 50 are expected; the test is about the share, and its exact distribution is random.
    assert!((120..=180).contains(&served), "{host}: {served} of {REQUESTS} served, {failed} failed");
    for _ in 0..20 {
        assert_eq!(ask(client, host, "none").await.status, 503);
        let reply = ask(client, host, "three").await;
        assert_eq!(reply.status, 404);
        assert_eq!(reply.body, NOT_FOUND);
    }
    // The status is not for the client to choose.
    let mine = [(REDIRECT_HEADER, "v1 302 http:80 - evil.example - keep")];
    let reply = client
        .send(RequestSpec { path: "/a", headers: mine.to_vec(), ..RequestSpec::get(host) })
        .await
        .unwrap();
    assert_eq!(reply.status, 404);
    let reply = client
        .send(RequestSpec { method: Method::HEAD, path: "/a", ..RequestSpec::get(host) })
        .await
        .unwrap();
    assert_eq!((reply.status.as_u16(), reply.body.len()), (404, 0));
}

async fn redirects(client: &mut Client) {
    let mine = "v1 302 http:80 - evil.example - keep";
    for headers in
        [vec![], vec![(REDIRECT_HEADER, mine)], vec![(REDIRECT_HEADER, mine), ("X-PingSIX-Redirect", mine)]]
    {
        let ask =
            RequestSpec { path: "/old/x%20y?a=b", headers, ..RequestSpec::get("shop.moved.example:8080") };
        let reply = client.send(ask).await.unwrap();
        assert_eq!(reply.status, 301);
        assert_eq!(reply.header("location"), Some("https://shop.moved.example/new/x%20y?a=b"));
    }
}

/// An upload towards a response that does not depend on it: a small body, and one far above the read limit.
async fn upload(mut client: Client, host: &str, bytes: usize) {
    let body = vec![b'x'; bytes].into();
    let ask = RequestSpec { method: Method::POST, path: "/upload", body, ..RequestSpec::get(host) };
    let reply = client.send(ask).await.unwrap_or_else(|error| panic!("{host} {bytes}: {error:?}"));
    assert_eq!((reply.status.as_u16(), reply.body.as_ref()), (404, NOT_FOUND.as_bytes()), "{host} {bytes}");
}

/// An absolute target does not select the status: PingSIX treats it as an unknown path.
async fn absolute_targets(address: SocketAddr) {
    for host in [status_host(200), "mixed.example".to_owned()] {
        let request =
            format!("GET http://{host}/a HTTP/1.1\r\nHost: mixed.example\r\nConnection: close\r\n\r\n");
        let reply = raw(address, request.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
    }
}
