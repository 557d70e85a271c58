//! The limits of clients, and the consequences beyond them.

use std::time::{Duration, Instant};

use http::Method;
use pingsix_gateway_sidecar::responder::Options;
use pingsix_translate::responder::status_host;
use tokio::io::AsyncWriteExt;

use crate::client::{Client, RequestSpec, Running, connect, raw, read_to_end, read_until, within};

const SHORT_TIMEOUT: Duration = Duration::from_millis(200);

/// Small limits for the test of each limit, with the others far away.
fn patient() -> Options {
    let long = Duration::from_mins(1);
    Options { header_timeout: long, body_timeout: long, idle_timeout: long, ..Options::default() }
}

fn request(line: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", status_host(404))
}

#[tokio::test]
async fn pipelined_requests_with_bodies_are_answered_in_turn() {
    let running = Running::start(patient()).await;
    let mut requests = String::new();
    for _ in 0..20 {
        requests += &request("POST /a", "Content-Length: 5\r\n");
        requests += "GET /";
        requests += &request("POST /b", "Transfer-Encoding: chunked\r\n");
        requests += "3\r\nabc\r\n0\r\n\r\n";
        requests += &request("GET /c", "");
    }
    requests += &request("GET /last", "Connection: close\r\n");
    let reply = raw(running.address, requests.as_bytes()).await;
    assert_eq!(reply.matches("HTTP/1.1 404 ").count(), 61, "{reply}");
    assert_eq!(reply.matches("HTTP/1.1 ").count(), 61, "{reply}");
}

#[tokio::test]
async fn a_body_within_the_limit_keeps_the_connection() {
    let running = Running::start(Options { max_body_bytes: 1000, ..patient() }).await;
    let host = status_host(404);
    for mut client in Client::both(running.address).await {
        for _ in 0..3 {
            let ask = RequestSpec {
                method: Method::POST,
                body: vec![b'x'; 1000].into(),
                ..RequestSpec::get(&host)
            };
            let reply = client.send(ask).await.unwrap();
            assert_eq!(reply.status, 404);
            assert_eq!(reply.header("connection"), None);
        }
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_answered_and_costs_the_connection() {
    let running = Running::start(Options { max_body_bytes: 1024 * 1024, ..patient() }).await;
    // More than sockets buffer, so that it can be written only if it is read.
    let body = vec![b'x'; 12 * 1024 * 1024];
    let mut stated = request("POST /", &format!("Content-Length: {}\r\n", body.len())).into_bytes();
    stated.extend_from_slice(&body);
    let mut chunked = request("POST /", "Transfer-Encoding: chunked\r\n").into_bytes();
    chunked.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
    chunked.extend_from_slice(&body);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    for request in [stated, chunked] {
        for _ in 0..3 {
            let reply = raw(running.address, &request).await;
            assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
            assert!(reply.contains("connection: close\r\n"), "{reply}");
            assert!(reply.ends_with("404 Not Found\n"), "{reply}");
        }
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_costs_only_its_stream_on_http_2() {
    let running = Running::start(Options { max_body_bytes: 1000, ..patient() }).await;
    let mut client = Client::http2(running.address).await;
    let host = status_host(404);
    for _ in 0..20 {
        let ask = RequestSpec {
            method: Method::POST,
            body: vec![b'x'; 500 * 1024].into(),
            ..RequestSpec::get(&host)
        };
        assert_eq!(client.send(ask).await.unwrap().status, 404);
    }
    assert_eq!(client.get(&host).await.status, 404);
}

#[tokio::test]
async fn an_expectation_of_100_continue_is_answered_at_once() {
    let running = Running::start(patient()).await;
    let mut stream = connect(running.address).await;
    let head = request("PUT /", "Expect: 100-continue\r\nContent-Length: 10\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let reply = read_until(&mut stream, "404 Not Found\n").await;
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
    assert!(reply.contains("connection: close\r\n"), "{reply}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let running = Running::start(Options { body_timeout: SHORT_TIMEOUT, ..patient() }).await;
    let started = Instant::now();
    let reply = raw(running.address, request("POST /", "Content-Length: 10\r\n").as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
    assert!(reply.contains("connection: close\r\n"), "{reply}");
    assert!(started.elapsed() >= SHORT_TIMEOUT);
}

#[tokio::test]
async fn a_large_head_is_refused_and_a_smaller_one_is_not() {
    let options = Options { max_header_bytes: 16 * 1024, max_body_bytes: 1024 * 1024, ..patient() };
    let running = Running::start(options).await;
    let header = |bytes: usize| format!("X-Large: {}\r\n", "x".repeat(bytes));
    let fits =
        raw(running.address, request("GET /", &(header(12 * 1024) + "Connection: close\r\n")).as_bytes())
            .await;
    assert!(fits.starts_with("HTTP/1.1 404 "), "{fits}");
    for large in [request("GET /", &header(12 * 1024 * 1024)), request("GET /", &"a: b\r\n".repeat(300))] {
        for _ in 0..3 {
            let reply = raw(running.address, large.as_bytes()).await;
            assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
        }
    }
    let target =
        raw(running.address, request(&format!("GET /{}", "x".repeat(300 * 1024)), "").as_bytes()).await;
    assert!(target.starts_with("HTTP/1.1 414 ") || target.starts_with("HTTP/1.1 431 "), "{target}");
}

#[tokio::test]
async fn a_large_head_is_refused_on_http_2() {
    let running = Running::start(Options { max_header_bytes: 16 * 1024, ..patient() }).await;
    let mut client = Client::http2(running.address).await;
    let (host, large) = (status_host(404), "x".repeat(30 * 1024));
    let result =
        client.send(RequestSpec { headers: vec![("x-large", &large)], ..RequestSpec::get(&host) }).await;
    assert!(result.as_ref().map_or(true, |reply| reply.status == 431), "{result:?}");
    let mut client = Client::http2(running.address).await;
    let fits = "x".repeat(12 * 1024);
    let reply = client
        .send(RequestSpec { headers: vec![("x-large", &fits)], ..RequestSpec::get(&host) })
        .await
        .unwrap();
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn an_idle_connection_gives_way_to_a_new_one() {
    let running = Running::start(Options { max_connections: 2, ..patient() }).await;
    let host = status_host(404);
    let [mut first, mut second] = Client::both(running.address).await;
    assert_eq!(first.get(&host).await.status, 404);
    assert_eq!(second.get(&host).await.status, 404);
    for _ in 0..10 {
        assert_eq!(Client::http1(running.address).await.get(&host).await.status, 404);
        assert_eq!(Client::http2(running.address).await.get(&host).await.status, 404);
    }
    first.closed().await;
    second.closed().await;
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits_for_a_busy_one() {
    let running = Running::start(Options { max_connections: 1, ..patient() }).await;
    let mut busy = connect(running.address).await;
    busy.write_all(request("POST /", "Content-Length: 1\r\n").as_bytes()).await.unwrap();
    // The limit is not observable before the connection has its place.
    tokio::time::sleep(SHORT_TIMEOUT).await;
    let host = status_host(404);
    let mut waiting = Client::http1(running.address).await;
    let asked = waiting.send(RequestSpec::get(&host));
    tokio::pin!(asked);
    assert!(tokio::time::timeout(SHORT_TIMEOUT, &mut asked).await.is_err(), "there was no place");
    busy.write_all(b"x").await.unwrap();
    assert!(read_until(&mut busy, "404 Not Found\n").await.starts_with("HTTP/1.1 404 "));
    assert_eq!(asked.await.unwrap().status, 404);
    assert_eq!(read_to_end(&mut busy).await, "", "and gave way when it was idle");
}

#[tokio::test]
async fn many_connections_are_served_within_a_small_limit() {
    let running = Running::start(Options { max_connections: 4, ..patient() }).await;
    let mut tasks = tokio::task::JoinSet::new();
    let address = running.address;
    for index in 0..100 {
        tasks.spawn(async move {
            let host = status_host(404);
            let mut client =
                if index % 2 == 0 { Client::http1(address).await } else { Client::http2(address).await };
            // The client keeps the connection open: only the responder closes it.
            assert_eq!(client.get(&host).await.status, 404);
            client
        });
    }
    let mut open = Vec::new();
    while let Some(result) = within(tasks.join_next()).await {
        open.push(result.unwrap());
    }
    assert_eq!(open.len(), 100);
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut() {
    let running = Running::start(Options { header_timeout: SHORT_TIMEOUT, ..patient() }).await;
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for begin in ["", "G", "GET / HTTP/1.1\r\nHost: a", "PRI * HTT", preface] {
        let started = Instant::now();
        let mut stream = connect(running.address).await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        read_to_end(&mut stream).await;
        assert!(started.elapsed() >= SHORT_TIMEOUT, "{begin:?}");
    }
}

#[tokio::test]
async fn a_head_that_drips_is_cut_too() {
    let running = Running::start(Options { header_timeout: SHORT_TIMEOUT, ..patient() }).await;
    let mut stream = connect(running.address).await;
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let started = Instant::now();
    while stream.write_all(b"a: b\r\n").await.is_ok() {
        assert!(started.elapsed() < Duration::from_secs(5), "it is still read");
        tokio::time::sleep(SHORT_TIMEOUT / 10).await;
    }
}

#[tokio::test]
async fn the_next_head_has_the_same_time() {
    let running = Running::start(Options { header_timeout: SHORT_TIMEOUT, ..patient() }).await;
    let mut stream = connect(running.address).await;
    stream.write_all(request("GET /", "").as_bytes()).await.unwrap();
    read_until(&mut stream, "404 Not Found\n").await;
    // Without a byte the connection is idle, and may be.
    tokio::time::sleep(SHORT_TIMEOUT * 2).await;
    stream.write_all(request("GET /", "").as_bytes()).await.unwrap();
    read_until(&mut stream, "404 Not Found\n").await;
    let started = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(started.elapsed() >= SHORT_TIMEOUT);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let running = Running::start(Options { idle_timeout: SHORT_TIMEOUT, ..patient() }).await;
    let host = status_host(404);
    for mut client in Client::both(running.address).await {
        assert_eq!(client.get(&host).await.status, 404);
        client.closed().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let running = Running::start(Options { idle_timeout: SHORT_TIMEOUT, ..patient() }).await;
    let mut stream = connect(running.address).await;
    let request = request("GET /", "");
    // Writes fail in the end: first the peer takes no more data, then the connection is closed.
    within(async { while stream.write_all(request.as_bytes()).await.is_ok() {} }).await;
}
