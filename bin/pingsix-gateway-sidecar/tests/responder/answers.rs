//! The answers, on both protocols.

use http::Method;
use pingsix_gateway_sidecar::responder::Options;
use pingsix_translate::responder::{REDIRECT_HEADER, status_host};

use crate::client::{Client, RequestSpec, Running, raw};

#[tokio::test]
async fn every_status_is_answered_on_both_protocols_over_one_connection_each() {
    let running = Running::start(Options::default()).await;
    for mut client in Client::both(running.address).await {
        for status in 200..=599 {
            let reply = client.get(&status_host(status)).await;
            assert_eq!(reply.status.as_u16(), status);
            match status {
                204 | 304 => {
                    assert_eq!(reply.header("content-length"), None, "{status}");
                    assert!(reply.body.is_empty(), "{status}");
                }
                205 => {
                    assert_eq!(reply.header("content-length"), Some("0"));
                    assert!(reply.body.is_empty());
                }
                _ => {
                    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
                    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
                    let line = String::from_utf8(reply.body.to_vec()).unwrap();
                    assert!(line.starts_with(&status.to_string()), "{line:?}");
                    assert_eq!(line.find('\n'), Some(line.len() - 1), "{line:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn head_is_answered_like_get_without_the_body() {
    let running = Running::start(Options::default()).await;
    for mut client in Client::both(running.address).await {
        for host in [status_host(404), status_host(200), status_host(204), "unknown.example".to_owned()] {
            let head =
                client.send(RequestSpec { method: Method::HEAD, ..RequestSpec::get(&host) }).await.unwrap();
            let get = client.get(&host).await;
            assert_eq!(head.status, get.status);
            assert_eq!(head.header("content-length"), get.header("content-length"));
            assert!(head.body.is_empty());
        }
    }
}

#[tokio::test]
async fn every_method_and_path_is_answered() {
    let running = Running::start(Options::default()).await;
    let host = status_host(503);
    for mut client in Client::both(running.address).await {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            for path in ["/", "/a/b?c=d", "//x/%2F?"] {
                let ask = RequestSpec { method: method.parse().unwrap(), path, ..RequestSpec::get(&host) };
                assert_eq!(client.send(ask).await.unwrap().status, 503, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn a_grpc_request_gets_the_http_status() {
    let running = Running::start(Options::default()).await;
    let mut client = Client::http2(running.address).await;
    let host = status_host(503);
    let ask = RequestSpec {
        method: Method::POST,
        path: "/shop.Cart/Add",
        headers: vec![("content-type", "application/grpc+proto"), ("te", "trailers")],
        body: vec![0; 5].into(),
        ..RequestSpec::get(&host)
    };
    assert_eq!(client.send(ask).await.unwrap().status, 503);
}

#[tokio::test]
async fn a_redirect_keeps_host_path_and_query_on_both_protocols() {
    let running = Running::start(Options::default()).await;
    for mut client in Client::both(running.address).await {
        let ask = RequestSpec {
            path: "/old/x%20y?a=b&a=c",
            headers: vec![(REDIRECT_HEADER, "v1 308 http:80 https - 8443 prefix:/old:/new")],
            ..RequestSpec::get("shop.example:8080")
        };
        let reply = client.send(ask.clone()).await.unwrap();
        assert_eq!(reply.status, 308);
        assert_eq!(reply.header("location"), Some("https://shop.example:8443/new/x%20y?a=b&a=c"));
        let head = client.send(RequestSpec { method: Method::HEAD, ..ask }).await.unwrap();
        assert_eq!(head.header("location"), reply.header("location"));
        assert_eq!(head.header("content-length"), reply.header("content-length"));
    }
}

#[tokio::test]
async fn an_invalid_name_is_misdirected() {
    let running = Running::start(Options::default()).await;
    let own = running.address.to_string();
    for mut client in Client::both(running.address).await {
        for host in ["unknown.example", &own, "status-100.responder.pingsix.internal"] {
            let reply =
                client.send(RequestSpec { path: "/healthz", ..RequestSpec::get(host) }).await.unwrap();
            assert_eq!(reply.status, 421, "{host}");
            assert!(reply.body.starts_with(b"421 Misdirected Request: "));
        }
    }
}

#[tokio::test]
async fn an_instruction_that_cannot_be_read_redirects_nowhere() {
    let running = Running::start(Options::default()).await;
    let keep = "v1 302 http:80 - - - keep";
    for mut client in Client::both(running.address).await {
        for values in [vec![""], vec!["v1 302"], vec![keep, keep], vec![keep, "x"]] {
            let headers = values.iter().map(|value| (REDIRECT_HEADER, *value)).collect();
            let reply =
                client.send(RequestSpec { headers, ..RequestSpec::get("shop.example") }).await.unwrap();
            assert_eq!(reply.status, 500, "{values:?}");
            assert_eq!(reply.header("location"), None);
        }
        let host = status_host(404);
        let reply = client
            .send(RequestSpec { headers: vec![(REDIRECT_HEADER, keep)], ..RequestSpec::get(&host) })
            .await
            .unwrap();
        assert_eq!(reply.status, 404, "the Host comes first");
    }
}

/// PingSIX passes on which headers a client names in `Connection` (CVE-2026-105299).
#[tokio::test]
async fn a_header_named_in_connection_counts_and_its_absence_redirects_nowhere() {
    let running = Running::start(Options::default()).await;
    let redirect = "v1 302 http:80 - new.test - keep";
    for named in
        [REDIRECT_HEADER, "X-Pingsix-Redirect", "host", "content-length", "close, x-pingsix-redirect", "*"]
    {
        let ask = |host: &str, instruction: &str| {
            format!(
                "GET /a HTTP/1.1\r\nHost: {host}\r\n{instruction}Connection: {named}\r\nConnection: close\r\n\r\n"
            )
        };
        let instruction = format!("{REDIRECT_HEADER}: {redirect}\r\n");
        let reply = raw(running.address, ask("shop.example", &instruction).as_bytes()).await;
        assert!(
            reply.starts_with("HTTP/1.1 302 ") && reply.contains("http://new.test/a\r\n"),
            "{named}: {reply}"
        );
        let reply = raw(running.address, ask(&status_host(404), &instruction).as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 404 "), "{named}: {reply}");
        // As if a proxy in between had removed the header.
        let reply = raw(running.address, ask("shop.example", "").as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 421 ") && !reply.contains("ocation"), "{named}: {reply}");
    }
}

#[tokio::test]
async fn a_request_without_exactly_one_host_is_refused() {
    let running = Running::start(Options::default()).await;
    for headers in ["", "Host: a.example\r\nHost: a.example\r\n", "Host: \r\n", "Host: a b\r\n"] {
        let request = format!("GET / HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        let reply = raw(running.address, request.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 400 "), "{headers:?}: {reply}");
    }
}

#[tokio::test]
async fn the_host_outranks_an_absolute_target() {
    let running = Running::start(Options::default()).await;
    let request = format!(
        "GET http://{}/ HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        status_host(200),
        status_host(404)
    );
    let reply = raw(running.address, request.as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let running = Running::start(Options::default()).await;
    let reply =
        raw(running.address, format!("GET / HTTP/1.0\r\nHost: {}\r\n\r\n", status_host(404)).as_bytes())
            .await;
    assert!(reply.starts_with("HTTP/1.0 404 "), "{reply}");
    assert!(reply.ends_with("\r\n\r\n404 Not Found\n"), "{reply}");
}

#[tokio::test]
async fn invalid_http_is_refused() {
    let running = Running::start(Options::default()).await;
    // An invalid HTTP/1 request line, a TLS hello, and an invalid end of an HTTP/2 preface.
    for bytes in [
        &b"nonsense\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let reply = raw(running.address, bytes).await;
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 400 "), "{reply}");
    }
    assert_eq!(Client::http1(running.address).await.get(&status_host(404)).await.status, 404);
}

#[tokio::test]
async fn streams_of_one_connection_are_independent() {
    let running = Running::start(Options::default()).await;
    let Client::Http2(sender) = Client::http2(running.address).await else { unreachable!() };
    let mut tasks = tokio::task::JoinSet::new();
    for status in 200..400 {
        let sender = sender.clone();
        tasks.spawn(async move {
            let reply = Client::Http2(sender).get(&status_host(status)).await;
            assert_eq!(reply.status.as_u16(), status);
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}
