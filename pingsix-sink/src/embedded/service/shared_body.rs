//! Responses with bodies of shared bytes.
//!
//! A generated server decodes requests and encodes refusals. The body that it makes has a copy
//! of every byte of a response, so this layer replaces that body by the handler's, which consists of shared bytes.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::future::BoxFuture;
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;
use prost::Message;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::{Response, Status};

/// Length of gRPC's prefix of a message: compression flag and length.
pub(super) const GRPC_PREFIX_LEN: usize = 5;

/// A generated server whose handlers may supply bodies.
#[derive(Clone, Debug)]
pub(in crate::embedded) struct WithSharedBodies<S>(pub(super) S);

/// A body on its way from the handler through the generated server to the response.
#[derive(Clone)]
struct ReplacementBody(Arc<Mutex<Option<Body>>>);

/// A response with `body` instead of the encoded `answer`.
pub(super) fn with_body<T>(answer: T, body: Body) -> Response<T> {
    let mut response = Response::new(answer);
    response.extensions_mut().insert(ReplacementBody(Arc::new(Mutex::new(Some(body)))));
    response
}

/// The beginning of a message before `rest`: the gRPC prefix and the fields of `own`.
pub(super) fn head(own: &impl Message, rest: usize) -> Bytes {
    let own = own.encode_to_vec();
    let mut head = BytesMut::with_capacity(GRPC_PREFIX_LEN + own.len());
    head.put_u8(0);
    head.put_u32(u32::try_from(own.len() + rest).unwrap_or(u32::MAX));
    head.put_slice(&own);
    head.freeze()
}

/// The trailers of a stream of messages. A status with a text that is no valid header has none, which clients treat
/// as a failure.
pub(super) fn trailers(status: &Status) -> Option<Frame<Bytes>> {
    let mut trailers = http::HeaderMap::new();
    status.add_header(&mut trailers).ok().map(|()| Frame::trailers(trailers))
}

/// The body of one message in pieces.
pub(super) fn message(pieces: impl IntoIterator<Item = Bytes>) -> Body {
    let mut frames: Vec<_> = pieces.into_iter().map(|piece| Some(Frame::data(piece))).collect();
    frames.push(trailers(&Status::ok("")));
    Body::new(StreamBody::new(futures::stream::iter(frames.into_iter().flatten().map(Ok::<_, Infallible>))))
}

impl<S: NamedService> NamedService for WithSharedBodies<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for WithSharedBodies<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answering = self.0.call(request);
        Box::pin(async move {
            let mut response = answering.await?;
            let replacement = response.extensions_mut().remove::<ReplacementBody>();
            if let Some(body) = replacement.and_then(|ReplacementBody(body)| body.lock().take()) {
                *response.body_mut() = body;
            }
            Ok(response)
        })
    }
}
