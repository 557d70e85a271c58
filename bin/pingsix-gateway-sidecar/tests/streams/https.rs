//! HTTPS: TLS in front of HTTP servers beside the proxy.

mod clients;
mod names;
mod pingsix;
mod requests;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;
use rustls::version::TLS13;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::certificates::{Authority, Client};
use crate::support::*;
use crate::terminate::{VERSIONS, echo, echo_in_portions, handshakes, random_bytes, terminate};

/// The beginning of a request: as many bytes as the preface of HTTP/2.
const BEGINNING: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// An upstream of processes of this machine.
fn local(id: &str, nodes: &[SocketAddr]) -> (String, Value) {
    let (key, mut value) = upstream(id, nodes);
    value["local"] = json!(true);
    (key, value)
}

/// A route of HTTPS with the certificate `s`.
fn https(port: u16, names: &[&str], target: &str) -> (String, Value) {
    let (key, mut route) = terminate(port, names, &["s"], target);
    route["alpn"] = json!(["h2", "http/1.1"]);
    (key, route)
}

/// A backend, an authority, a port, and the documents of a route for `a.test` on it: upstream, certificate, route.
async fn one_route() -> (Backend, Authority, u16, Vec<(String, Value)>) {
    let (backend, authority, port) = (Backend::start(b'a').await, Authority::new(), free_port());
    let world = vec![
        local("a", &[backend.address]),
        authority.certificate(&["a.test"]).document("s"),
        https(port, &["a.test"], "a"),
    ];
    (backend, authority, port, world)
}

/// A proxy that takes nodes of this machine from upstreams that say so, and no others.
async fn serving(documents: &[(String, Value)]) -> Proxy {
    let proxy = Proxy::start(StreamOptions { local_nodes: false, ..options() });
    proxy.apply(documents).await;
    proxy
}

/// A connection that has reached its backend: it has sent [`BEGINNING`], and got the greeting and the same bytes.
async fn ask(client: &Client, port: u16, name: &str) -> io::Result<(u8, TlsStream<TcpStream>)> {
    let mut stream = client.open(port, name).await?;
    stream.write_all(BEGINNING).await?;
    stream.flush().await?;
    let greeting = stream.read_u8().await?;
    let mut returned = [0; BEGINNING.len()];
    stream.read_exact(&mut returned).await?;
    assert_eq!(&returned, BEGINNING);
    Ok((greeting, stream))
}

/// The name of the backend that a client reaches.
async fn greeted(client: &Client, port: u16, name: &str) -> io::Result<u8> {
    ask(client, port, name).await.map(|(greeting, _)| greeting)
}
