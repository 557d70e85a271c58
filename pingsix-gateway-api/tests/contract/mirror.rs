//! A backend that reports the received request, over HTTP/1 and over HTTP/2 with prior knowledge.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::client::Reply;

/// The prefix of request headers that the backend returns without the prefix.
pub(crate) const REPLY: &str = "x-reply-";

/// The request header with the status of the response.
pub(crate) const STATUS: &str = "x-status";

/// A backend, stopped when it is dropped.
pub(crate) struct Mirror {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Mirror {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Over TLS only.
    pub(crate) async fn start_tls(acceptor: TlsAcceptor) -> Self {
        Self::start_with(Some(acceptor)).await
    }

    async fn start_with(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream).await,
                        // A client that does not like the certificate goes away.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, task }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let service = service_fn(|request| async move { Ok::<_, Infallible>(answer(&request)) });
    // A client that goes away in between is no matter of the backend.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// The head of the request as JSON; a header that is there once stands as text, others as a list.
fn answer(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut headers = serde_json::Map::new();
    for name in request.headers().keys() {
        let values = request.headers().get_all(name).iter();
        let mut values: Vec<Value> =
            values.map(|value| json!(String::from_utf8_lossy(value.as_bytes()))).collect();
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        headers.insert(name.to_string(), value);
    }
    let seen = json!({
        "method": request.method().as_str(),
        "target": request.uri().path_and_query().map(ToString::to_string),
        "authority": request.uri().authority().map(ToString::to_string),
        "http2": request.version() == http::Version::HTTP_2,
        "headers": headers,
    });
    let mut response = Response::new(Full::new(Bytes::from(seen.to_string())));
    if let Some(status) = request.headers().get(STATUS) {
        *response.status_mut() = http::StatusCode::from_bytes(status.as_bytes()).unwrap();
    }
    for (name, value) in request.headers() {
        if let Some(name) = name.as_str().strip_prefix(REPLY) {
            response.headers_mut().append(name.parse::<http::HeaderName>().unwrap(), value.clone());
        }
    }
    response
}

/// The request that reached the backend, by the answer.
pub(crate) fn seen(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}"))
}
