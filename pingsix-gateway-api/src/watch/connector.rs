//! The way to the API server that one watch takes.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use tokio::sync::watch;
use tokio::time::Instant;
use tower_service::Service;

use super::options::WatchOptions;

/// A client below a client, which sees what kube-runtime's watcher does not tell or leaves to chance:
///
/// - when a watch is open; the watcher is silent until the first event, which may be never;
/// - that an API server does not answer at all: there is no time limit of its own for opening a watch;
/// - what an HTTP error says: to the watcher, the body of a refusal is a stream of events none of which can be decoded;
/// - that something in between ends every watch at once: the watcher would open the next without a pause;
/// - that nothing comes any more through a connection that nobody has closed: the watcher waits for longer than a watch may
///   last, because it does not see bookmarks.
pub(super) struct WatchConnector {
    client: Client,
    timeout: Duration,
    silence: Duration,
    /// The shortest time between the starts of two watches.
    pace: Duration,
    opened: watch::Sender<Option<Instant>>,
}

impl WatchConnector {
    /// A client for one watch, and when it was opened last.
    pub(super) fn client(
        client: &Client,
        WatchOptions { request_timeout, silence, backoff, .. }: &WatchOptions,
    ) -> (Client, watch::Receiver<Option<Instant>>) {
        let (opened, when) = watch::channel(None);
        let namespace = client.default_namespace().to_owned();
        let (timeout, silence, pace) = (*request_timeout, *silence, backoff.min);
        (Client::new(Self { client: client.clone(), timeout, silence, pace, opened }, namespace), when)
    }
}

/// The body of a response.
type Passed = UnsyncBoxBody<Bytes, kube::Error>;

impl Service<Request<Body>> for WatchConnector {
    type Response = Response<Passed>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Passed>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        if !is_watch(&request) {
            return async move { Ok(client.send(request).await?.map(BodyExt::boxed_unsync)) }.boxed();
        }
        let (timeout, silence, pace, opened) = (self.timeout, self.silence, self.pace, self.opened.clone());
        async move {
            let last = *opened.borrow();
            if let Some(last) = last {
                tokio::time::sleep_until(last + pace).await;
            }
            let response = tokio::time::timeout(timeout, open(&client, request)).await;
            let response = response.map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
            opened.send_replace(Some(Instant::now()));
            Ok(response.map(|body| until_silent(body, silence)))
        }
        .boxed()
    }
}

/// The body until nothing comes of it for so long. Then it ends as if the API server had ended it, and the connection with
/// it, for it is of HTTP/1; so the next watch has a new one.
fn until_silent(body: Body, silence: Duration) -> Passed {
    let frames = futures::stream::unfold(BodyStream::new(body), move |mut frames| async move {
        let Ok(frame) = tokio::time::timeout(silence, frames.next()).await else {
            tracing::debug!(?silence, "watch is silent; reopening");
            return None;
        };
        Some((frame?, frames))
    });
    StreamBody::new(frames).boxed_unsync()
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
    // A proxy answered in place of the API server, and its status is the only information.
    let status = status.unwrap_or_else(|| Status::failure("", "").with_code(code.as_u16()));
    Err(kube::Error::Api(status.boxed()))
}
