//! The Watch service with bodies of our own.
//!
//! The generated server reads requests and answers refusals. The body of an answer that it makes from a stream of
//! messages is replaced by the [`WatchBody`] that comes with the answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tonic::Response;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;

use super::Watch;
use super::outlet::WatchBody;
use crate::proto::etcdserverpb::watch_server::WatchServer;

/// The service, as the router takes it.
#[derive(Clone, Debug)]
pub(in crate::embedded) struct WatchRpc(WatchServer<Watch>);

/// A body on its way from the handler, through the generated server, to the response.
#[derive(Clone)]
struct Replacement(Arc<Mutex<Option<WatchBody>>>);

/// An answer without messages, whose body will be `body`.
pub(super) fn answer<S>(body: WatchBody, messages: S) -> Response<S> {
    let mut response = Response::new(messages);
    response.extensions_mut().insert(Replacement(Arc::new(Mutex::new(Some(body)))));
    response
}

impl WatchRpc {
    pub(super) fn new(watch: Watch) -> Self {
        Self(WatchServer::new(watch))
    }
}

impl NamedService for WatchRpc {
    const NAME: &'static str = <WatchServer<Watch> as NamedService>::NAME;
}

impl Service<http::Request<Body>> for WatchRpc {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answering = self.0.call(request);
        Box::pin(async move {
            let mut response = answering.await?;
            let replacement = response.extensions_mut().remove::<Replacement>();
            if let Some(body) = replacement.and_then(|Replacement(body)| body.lock().take()) {
                *response.body_mut() = Body::new(body);
            }
            Ok(response)
        })
    }
}
