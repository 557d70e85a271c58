//! The way to the API server that one watch takes.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use tokio::sync::watch;
use tokio::time::Instant;
use tower_service::Service;

/// A client below a client, which sees what kube-runtime's watcher does not tell or leaves to chance:
///
/// - when a watch is open; the watcher is silent until the first event, which may be never;
/// - that an API server does not answer at all: there is no time limit of its own for opening a watch;
/// - what an HTTP error says: to the watcher, the body of a refusal is a stream of events none of which can be decoded;
/// - that something in between ends every watch at once: the watcher would open the next without a pause.
pub(super) struct Door {
    client: Client,
    timeout: Duration,
    /// How soon after each other watches are opened at most.
    pace: Duration,
    opened: watch::Sender<Option<Instant>>,
}

impl Door {
    /// A client for one watch, and when it was opened last.
    pub(super) fn client(
        client: &Client,
        timeout: Duration,
        pace: Duration,
    ) -> (Client, watch::Receiver<Option<Instant>>) {
        let (opened, when) = watch::channel(None);
        let namespace = client.default_namespace().to_owned();
        (Client::new(Self { client: client.clone(), timeout, pace, opened }, namespace), when)
    }
}

impl Service<Request<Body>> for Door {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        if !is_watch(&request) {
            return async move { client.send(request).await }.boxed();
        }
        let (timeout, pace, opened) = (self.timeout, self.pace, self.opened.clone());
        async move {
            let last = *opened.borrow();
            if let Some(last) = last {
                tokio::time::sleep_until(last + pace).await;
            }
            let response = tokio::time::timeout(timeout, open(&client, request)).await;
            let response = response.map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
            opened.send_replace(Some(Instant::now()));
            Ok(response)
        }
        .boxed()
    }
}

fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"))
}

async fn open(client: &Client, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
    let response = client.send(request).await?;
    let code = response.status();
    if code.is_success() {
        return Ok(response);
    }
    let body = response.into_body().collect_bytes().await?;
    let status = serde_json::from_slice::<Status>(&body).ok().filter(|status| status.code == code.as_u16());
    // Whoever answered, it was not the API server: its status is all there is to know.
    let status = status.unwrap_or_else(|| Status::failure("", "").with_code(code.as_u16()));
    Err(kube::Error::Api(status.boxed()))
}
