//! A client for one watch.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use tokio::sync::watch;
use tokio::time::Instant;
use tower_service::Service;

use super::options::WatchOptions;
use super::pages::Pages;

/// A service below kube-runtime's watcher, which adds:
///
/// - The time at which a watch opens. The watcher emits its first item with the first event, which may never come.
/// - A timeout for opening a watch. The watcher has none.
/// - The message of an HTTP error. The watcher decodes the body of an error response as events, and fails.
/// - A minimum interval between two watches. When a proxy closes every watch at once, the watcher reopens it without
///   delay.
/// - The next page of a list while the last one is decoded ([`Pages`]).
/// - An idle timeout for a broken connection. The watcher does not see bookmarks, so it waits for longer than the
///   lifetime of a watch.
pub(super) struct WatchConnector {
    client: Client,
    timeout: Duration,
    silence: Duration,
    /// The shortest time between the starts of two watches.
    min_interval: Duration,
    opened: watch::Sender<Option<Instant>>,
    pages: Pages,
}

impl WatchConnector {
    /// A client for one watch, and the time of its last opening.
    pub(super) fn client(
        client: &Client,
        WatchOptions { request_timeout, silence, backoff, .. }: &WatchOptions,
    ) -> (Client, watch::Receiver<Option<Instant>>) {
        let (opened, last_opened) = watch::channel(None);
        let namespace = client.default_namespace().to_owned();
        let (timeout, silence, min_interval) = (*request_timeout, *silence, backoff.min);
        let (client, pages) = (client.clone(), Pages::new(client.clone()));
        let connector = Self { client, timeout, silence, min_interval, opened, pages };
        (Client::new(connector, namespace), last_opened)
    }
}

/// The body of a response.
type ResponseBody = UnsyncBoxBody<Bytes, kube::Error>;

impl Service<Request<Body>> for WatchConnector {
    type Response = Response<ResponseBody>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !is_watch(&request) {
            let pages = self.pages.clone();
            return async move { Ok(pages.get(request).await?.map(whole)) }.boxed();
        }
        let client = self.client.clone();
        let (timeout, silence, min_interval, opened) =
            (self.timeout, self.silence, self.min_interval, self.opened.clone());
        async move {
            let last = *opened.borrow();
            if let Some(last) = last {
                tokio::time::sleep_until(last + min_interval).await;
            }
            let response = tokio::time::timeout(timeout, open(&client, request)).await;
            let response = response.map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
            opened.send_replace(Some(Instant::now()));
            Ok(response.map(|body| with_idle_timeout(body, silence)))
        }
        .boxed()
    }
}

/// Ends a body after a silence, as if the API server had ended it. The end of an HTTP/1 body closes its connection, so
/// the next watch gets a new connection.
fn with_idle_timeout(body: Body, silence: Duration) -> ResponseBody {
    let frames = futures::stream::unfold(BodyStream::new(body), move |mut frames| async move {
        let Ok(frame) = tokio::time::timeout(silence, frames.next()).await else {
            tracing::debug!(?silence, "watch is silent; reopening");
            return None;
        };
        Some((frame?, frames))
    });
    StreamBody::new(frames).boxed_unsync()
}

fn whole(body: Bytes) -> ResponseBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
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
    // The response of a proxy carries no Status object.
    let status = status.unwrap_or_else(|| Status::failure("", "").with_code(code.as_u16()));
    Err(kube::Error::Api(status.boxed()))
}
