//! TLS that the proxy terminates.

mod changes;
mod handshakes;
mod limits;
mod relay;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, HandshakeKind, SignatureScheme};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::certificates::{Authority, Client};
use crate::support::*;

pub(crate) const VERSIONS: [&rustls::SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A route that terminates TLS with these certificates.
pub(crate) fn terminate(port: u16, names: &[&str], certificates: &[&str], target: &str) -> (String, Value) {
    let (key, mut route) = tls(port, names, target);
    route["tls"] = json!("terminate");
    route["ssl_ids"] = json!(certificates);
    (key, route)
}

/// An authority, and the documents of a route for `a.test` on a port with the certificate `s`.
fn route_to(backend: SocketAddr) -> (Authority, u16, Vec<(String, Value)>) {
    let (authority, port) = (Authority::new(), free_port());
    let world = vec![
        upstream("a", &[backend]),
        authority.certificate(&["a.test"]).document("s"),
        terminate(port, &["a.test"], &["s"], "a"),
    ];
    (authority, port, world)
}

/// The same with a backend.
async fn one_route() -> (Backend, Authority, u16, Vec<(String, Value)>) {
    let backend = Backend::start(b'a').await;
    let (authority, port, world) = route_to(backend.address);
    (backend, authority, port, world)
}

/// The greeting of the backend that a client reaches.
async fn greeted(client: &Client, port: u16, name: &str) -> io::Result<u8> {
    client.open(port, name).await?.read_u8().await
}

/// Sends bytes and checks that they come back.
pub(crate) async fn echo(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) {
    let (mut input, mut output) = tokio::io::split(stream);
    let mut returned = vec![0; bytes.len()];
    let write = async {
        output.write_all(bytes).await?;
        output.flush().await
    };
    let (written, read) = tokio::join!(write, input.read_exact(&mut returned));
    written.unwrap();
    read.unwrap();
    assert!(returned == bytes, "{} bytes have changed", bytes.len());
}

/// The same in portions of random lengths.
pub(crate) async fn echo_in_portions(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    mut bytes: &[u8],
    seed: u64,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !bytes.is_empty() {
        let most = if random.bool() { 100 } else { 200_000 };
        let (now, later) = bytes.split_at(bytes.len().min(1 + random.usize(..most)));
        echo(stream, now).await;
        bytes = later;
    }
}

pub(crate) fn handshakes(proxy: &Proxy, port: u16, kind: &str) -> u64 {
    proxy.metric(&format!("stream_handshakes_total{{port=\"{port}\",kind=\"{kind}\"}}"))
}

pub(crate) fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

/// Sends bytes; all that comes back.
async fn answer_to(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port).await;
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer).await {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    answer
}

/// The `ClientHello` of a client.
fn hello_of(client: &Client, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::clone(&client.config), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    hello
}
