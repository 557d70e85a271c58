//! The HTTP server of probes, the status page and metrics.
//!
//! | path | answer |
//! |---|---|
//! | `/status/live` | 200 |
//! | `/status/ready` | 200, or 503 before all roles serve and after a stop signal |
//! | `/status/config` | the status as JSON, in the form of PingSIX's page; with a key, 403 without it |
//! | `/metrics` | the metrics, in the text format of `OpenMetrics` |
//!
//! The pages are served only under names that no stranger can have. Every wait has an end, and every buffer a limit
//! ([`http_server`]).

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use pingsix_sink::hosts::{ASK_LOCALLY, is_local};
use pingsix_sink::http_server::{self, Versions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::metrics::{self, Metrics};
use crate::status::Status;
use crate::status_key::StatusKey;

/// The sources of the pages.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pub(crate) status: Arc<Status>,
    pub(crate) metrics: Arc<Metrics>,
    /// The key of `/status/config`, if it needs one.
    pub(crate) key: Option<StatusKey>,
}

impl Pages {
    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !is_local(request) {
            return text(StatusCode::MISDIRECTED_REQUEST, ASK_LOCALLY);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
        }
        match request.uri().path() {
            "/status/live" => text(StatusCode::OK, "live\n"),
            "/status/ready" if self.status.is_ready() => text(StatusCode::OK, "ready\n"),
            "/status/ready" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            "/status/config" if self.key.as_ref().is_some_and(|key| !key.is_in(request.headers())) => {
                text(StatusCode::FORBIDDEN, "the page needs its key in X-API-KEY\n")
            }
            "/status/config" => match serde_json::to_vec(&self.status.page()) {
                Ok(page) => page_of("application/json", page),
                Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be written\n"),
            },
            "/metrics" => match self.metrics.encode() {
                Ok(page) => page_of(metrics::CONTENT_TYPE, page.into_bytes()),
                Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written\n"),
            },
            _ => text(
                StatusCode::NOT_FOUND,
                "the pages are /status/live, /status/ready, /status/config and /metrics\n",
            ),
        }
    }
}

fn text(status: StatusCode, line: &'static str) -> Response<Full<Bytes>> {
    let mut response = page_of("text/plain; charset=utf-8", line.into());
    *response.status_mut() = status;
    response
}

fn page_of(content_type: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Proxies must not cache the answer.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Answers requests until it is stopped; then lets those in progress end for a short while.
pub(crate) async fn serve(listener: TcpListener, pages: Pages, stop: CancellationToken) {
    let address = listener.local_addr().ok();
    info!(address = address.map(tracing::field::display), "serving status pages");
    let answer = service_fn(move |request| {
        let response = pages.answer(&request);
        async { Ok::<_, Infallible>(response) }
    });
    http_server::serve(listener, answer, Versions::Http1, stop).await;
}
