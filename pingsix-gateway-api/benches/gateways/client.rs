//! A client of a data plane.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::sleep;

/// The interval of the public benchmark between two requests for a new route.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time limit of a change.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// Sends requests over connections that stay open.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    client: hyper_util::client::legacy::Client<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
}

/// The outcome of waiting for a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// When the awaited response was there.
    pub(crate) at: Instant,
    /// The number of responses before it with another status than 404, and of requests without a response.
    pub(crate) errors: usize,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Self { client, address }
    }

    /// The response with its body, or nothing without one.
    pub(crate) async fn get(&self, host: &str, path: &str) -> Option<Response<Bytes>> {
        let request = Request::get(format!("http://{}{path}", self.address))
            .header(http::header::HOST, host)
            .body(Empty::new())
            .unwrap();
        let (head, body) = self.client.request(request).await.ok()?.into_parts();
        Some(Response::from_parts(head, body.collect().await.ok()?.to_bytes()))
    }

    /// Polls until a response is as wanted.
    pub(crate) async fn wait_for(
        &self,
        host: &str,
        path: &str,
        is_wanted: impl Fn(&Response<Bytes>) -> bool,
    ) -> Awaited {
        let (started, mut errors) = (Instant::now(), 0);
        loop {
            let response = self.get(host, path).await;
            match &response {
                Some(response) if is_wanted(response) => return Awaited { at: Instant::now(), errors },
                Some(response) if response.status() == StatusCode::NOT_FOUND => {}
                _ => errors += 1,
            }
            let status = response.map(|response| response.status());
            assert!(started.elapsed() < WAIT_TIMEOUT, "{host}{path} is answered {status:?}");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Polls until the response is 200.
    pub(crate) async fn wait_for_ok(&self, host: &str, path: &str) -> Awaited {
        self.wait_for(host, path, |response| response.status() == StatusCode::OK).await
    }
}

/// Waits until PingSIX has published a revision.
pub(crate) async fn wait_for_publication(status: SocketAddr, revision: i64) -> Instant {
    let (client, started) = (Client::new(status), Instant::now());
    loop {
        if let Some(page) = client.get("localhost", "/status/config").await {
            let page: serde_json::Value = serde_json::from_slice(page.body()).unwrap_or_default();
            if page["published_revision"].as_i64() >= Some(revision) {
                return Instant::now();
            }
            assert!(started.elapsed() < WAIT_TIMEOUT, "{revision} is not published: {page}");
        }
        sleep(Duration::from_millis(1)).await;
    }
}
