//! Backends, each at an address of its own, as Pods are.

use std::future::ready;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::network::ADDRESSES;

/// The port of every backend.
const PORT: u16 = 8080;

/// A backend for each address. Their bodies are their addresses.
#[derive(Debug)]
pub(crate) struct Backends {
    /// Whether a backend resets each connection.
    broken: [Arc<AtomicBool>; ADDRESSES.len()],
    _stop: DropGuard,
}

impl Backends {
    pub(crate) async fn start() -> Self {
        let stop = CancellationToken::new();
        let broken = ADDRESSES.map(|_| Arc::new(AtomicBool::new(false)));
        for (address, broken) in ADDRESSES.into_iter().zip(broken.clone()) {
            let listener = TcpListener::bind((address, PORT)).await.unwrap();
            tokio::spawn(stop.clone().run_until_cancelled_owned(serve(address, listener, broken)));
        }
        Self { broken, _stop: stop.drop_guard() }
    }

    /// Whether one backend resets connections from now on, also those that are open.
    pub(crate) fn set_broken(&self, index: usize, is_broken: bool) {
        self.broken[index].store(is_broken, Ordering::Relaxed);
    }
}

/// The content of an EndpointSlice with these backends.
pub(crate) fn endpoints(indices: &[usize]) -> Value {
    let endpoint = |index: &usize| json!({"addresses": [ADDRESSES[*index]], "conditions": {"ready": true}});
    json!({
        "endpoints": indices.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": [{"name": "web", "port": PORT, "protocol": "TCP"}],
    })
}

async fn serve(address: Ipv4Addr, listener: TcpListener, broken: Arc<AtomicBool>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        if broken.load(Ordering::Relaxed) {
            // The peer sees a reset.
            let _ = stream.set_zero_linger();
            continue;
        }
        stream.set_nodelay(true).unwrap();
        let is_broken = broken.clone();
        let answer = service_fn(move |_| {
            // An error closes the connection without a response.
            let error =
                is_broken.load(Ordering::Relaxed).then(|| io::Error::from(io::ErrorKind::ConnectionReset));
            ready(error.map_or_else(|| Ok(Response::new(Full::new(Bytes::from(address.to_string())))), Err))
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}
