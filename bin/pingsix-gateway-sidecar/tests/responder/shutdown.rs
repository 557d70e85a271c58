//! The shutdown.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::responder::{BindError, Options, Reach, Responder};
use pingsix_translate::responder::status_host;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, Running, WAIT_TIMEOUT, connect, read_to_end, within};

fn half_a_request() -> String {
    format!("POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 1\r\n\r\n", status_host(404))
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_end() {
    let mut running =
        Running::start(Options { shutdown_grace: WAIT_TIMEOUT * 10, ..Options::default() }).await;
    let silent = connect(running.address).await;
    let mut clients = Client::both(running.address).await;
    for client in &mut clients {
        assert_eq!(client.get(&status_host(404)).await.status, 404);
    }
    running.stop();
    within(running.task).await.unwrap();
    for client in &mut clients {
        client.closed().await;
    }
    assert!(TcpStream::connect(running.address).await.is_err());
    drop(silent);
}

#[tokio::test]
async fn a_request_in_flight_is_answered() {
    let mut running = Running::start(Options::default()).await;
    let mut stream = connect(running.address).await;
    stream.write_all(half_a_request().as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.stop();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(TcpStream::connect(running.address).await.is_err(), "new connections are refused");
    stream.write_all(b"x").await.unwrap();
    let reply = read_to_end(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
    within(running.task).await.unwrap();
}

#[tokio::test]
async fn unfinished_requests_are_closed_at_the_end() {
    let grace = Duration::from_millis(300);
    let options =
        Options { body_timeout: Duration::from_mins(1), shutdown_grace: grace, ..Options::default() };
    let mut running = Running::start(options).await;
    let mut stream = connect(running.address).await;
    stream.write_all(half_a_request().as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let started = Instant::now();
    running.stop();
    within(running.task).await.unwrap();
    assert!(started.elapsed() >= grace);
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn connections_end_with_the_future() {
    let running = Running::start(Options::default()).await;
    let mut clients = Client::both(running.address).await;
    for client in &mut clients {
        assert_eq!(client.get(&status_host(404)).await.status, 404);
    }
    running.task.abort();
    for client in &mut clients {
        client.closed().await;
    }
}

#[tokio::test]
async fn an_address_beyond_loopback_has_to_be_asked_for() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let address: SocketAddr = address.parse().unwrap();
        let refused = Responder::bind(address, Reach::Loopback, Options::default()).await;
        assert!(matches!(refused, Err(BindError::NotLoopback(refused)) if refused == address));
    }
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    assert!(Responder::bind(anywhere, Reach::Anywhere, Options::default()).await.is_ok());
    let taken = Running::start(Options::default()).await;
    let refused = Responder::bind(taken.address, Reach::Loopback, Options::default()).await;
    assert!(matches!(refused, Err(BindError::Listen { .. })));
}
