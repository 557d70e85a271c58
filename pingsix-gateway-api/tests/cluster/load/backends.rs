//! Backends that say who they are.
//!
//! An API server takes no address of loopback as an endpoint, so they have an address of this machine, and answer nobody
//! but this machine. What is sent there does not leave it.

use std::convert::Infallible;
use std::future::ready;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lab::pingsix::say;

/// What they are called.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// Backends that run until they are dropped.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) address: Ipv4Addr,
    pub(crate) ports: [u16; NAMES.len()],
    _stop: DropGuard,
}

impl Backends {
    /// Starts them, or says why a test does not run.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        let Some(address) = own_address() else {
            say(&format!("{test}: NOT RUN: the machine has no IPv4 address that can be an endpoint"));
            return None;
        };
        let stop = CancellationToken::new();
        let mut ports = [0; NAMES.len()];
        for (name, port) in NAMES.into_iter().zip(&mut ports) {
            let listener = TcpListener::bind((address, 0)).await.unwrap();
            *port = listener.local_addr().unwrap().port();
            tokio::spawn(stop.clone().run_until_cancelled_owned(serve(name, listener)));
        }
        Some(Self { address, ports, _stop: stop.drop_guard() })
    }

    /// The port of the backend with this name.
    pub(crate) fn port(&self, name: &str) -> u16 {
        let index = NAMES.iter().position(|held| *held == name).unwrap();
        self.ports[index]
    }
}

/// The address that this machine would send from. Nothing is sent to find it.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // One of those that are for documents: nobody has it.
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(address) if !address.ip().is_loopback() && !address.ip().is_link_local() => {
            Some(*address.ip())
        }
        SocketAddr::V4(_) | SocketAddr::V6(_) => None,
    }
}

async fn serve(name: &'static str, listener: TcpListener) {
    let own = listener.local_addr().unwrap().ip();
    loop {
        let (stream, peer) = listener.accept().await.unwrap();
        if peer.ip() != own {
            continue;
        }
        stream.set_nodelay(true).unwrap();
        let answer = service_fn(move |request| ready(Ok::<_, Infallible>(answer(name, &request))));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

/// Who answers, the path that was asked for, and what a filter has added.
fn answer(name: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut said = format!("{name} {}", request.uri().path());
    if let Some(asked) = request.headers().get("x-asked") {
        said.push_str(" asked ");
        said.push_str(&String::from_utf8_lossy(asked.as_bytes()));
    }
    Response::new(Full::new(said.into()))
}
