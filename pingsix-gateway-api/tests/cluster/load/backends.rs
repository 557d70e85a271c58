//! Backends that respond with their names.

use std::convert::Infallible;
use std::future::ready;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::namespace::ADDRESS;

/// The names.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The path of health checks.
pub(crate) const HEALTH: &str = "/healthz";

/// Backends that run until they are dropped.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) address: Ipv4Addr,
    pub(crate) ports: [u16; NAMES.len()],
    /// Whether health checks of a backend succeed.
    healthy: [Arc<AtomicBool>; NAMES.len()],
    _stop: DropGuard,
}

impl Backends {
    /// Starts them.
    pub(crate) async fn start() -> Self {
        let stop = CancellationToken::new();
        let mut ports = [0; NAMES.len()];
        let healthy = NAMES.map(|_| Arc::new(AtomicBool::new(true)));
        for ((name, port), healthy) in NAMES.into_iter().zip(&mut ports).zip(healthy.clone()) {
            let listener = TcpListener::bind((ADDRESS, 0)).await.unwrap();
            *port = listener.local_addr().unwrap().port();
            tokio::spawn(stop.clone().run_until_cancelled_owned(serve(name, listener, healthy)));
        }
        Self { address: ADDRESS, ports, healthy, _stop: stop.drop_guard() }
    }

    /// The port of the backend with this name.
    pub(crate) fn port(&self, name: &str) -> u16 {
        let index = NAMES.iter().position(|held| *held == name).unwrap();
        self.ports[index]
    }

    /// Makes health checks of the backend with this name fail.
    pub(crate) fn fail(&self, name: &str) {
        let index = NAMES.iter().position(|held| *held == name).unwrap();
        self.healthy[index].store(false, Ordering::Relaxed);
    }
}

async fn serve(name: &'static str, listener: TcpListener, healthy: Arc<AtomicBool>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let healthy = healthy.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let mut response = answer(name, &request);
            if request.uri().path() == HEALTH && !healthy.load(Ordering::Relaxed) {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            ready(Ok::<_, Infallible>(response))
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

/// The answering backend, the requested path, the header of a filter, and the key of the client if it came this far.
fn answer(name: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut text = format!("{name} {}", request.uri().path());
    if let Some(asked) = request.headers().get("x-asked") {
        text.push_str(" asked ");
        text.push_str(&String::from_utf8_lossy(asked.as_bytes()));
    }
    if let Some(key) = request.headers().get("apikey") {
        text.push_str(" key ");
        text.push_str(&String::from_utf8_lossy(key.as_bytes()));
    }
    let mut response = Response::new(Full::new(text.into()));
    // PingSIX compresses no answer without a type.
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
