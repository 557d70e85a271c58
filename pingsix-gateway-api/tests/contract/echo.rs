//! Small backends that say who they are.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::effect::backend_answer;

/// The response header that names the backend.
pub(crate) const BACKEND: &str = "x-backend";

/// The request header that the backend sends back under [`ROUTE_SEEN`].
pub(crate) const ROUTE: &str = "x-route";

/// The response header with the request header [`ROUTE`] that the backend received.
pub(crate) const ROUTE_SEEN: &str = "x-route-seen";

/// The response header with the request target the backend got.
pub(crate) const TARGET_SEEN: &str = "x-target-seen";

/// The prefix of response headers with the headers that the backend received. The values of a repeated one are joined.
pub(crate) const HEADER_SEEN: &str = "x-seen-";

/// A backend, stopped when it is dropped.
pub(crate) struct Echo {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Echo {
    pub(crate) async fn start(name: &str) -> Self {
        Self::start_at(name, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap()
    }

    /// Binds this address unless it is taken.
    pub(crate) async fn start_at(name: &str, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr().unwrap();
        let identity = name.to_owned();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let identity = identity.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| {
                        let answer = answer(&identity, &request);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    // A client that goes away in between is no matter of the backend.
                    let connection = auto::Builder::new(TokioExecutor::new());
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { name: name.to_owned(), address, task })
    }
}

/// The head of a request: path and query, host, and the values of each header in order.
fn head(request: &Request<Incoming>) -> Value {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut headers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in request.headers() {
        headers.entry(name.as_str()).or_default().push(text(value));
    }
    // In HTTP/2 the authority is the host.
    let authority = request.uri().authority().map(ToString::to_string);
    json!({
        "target": request.uri().path_and_query().map_or("*", |target| target.as_str()),
        "host": authority.or_else(|| request.headers().get(HOST).map(text)),
        "headers": headers,
    })
}

fn answer(identity: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(head(request).to_string())));
    let headers = response.headers_mut();
    for (name, values) in backend_answer() {
        for value in values {
            headers.append(HeaderName::try_from(&name).unwrap(), value.parse().unwrap());
        }
    }
    headers.insert(BACKEND, identity.parse().unwrap());
    if let Some(route) = request.headers().get(ROUTE) {
        headers.insert(ROUTE_SEEN, route.clone());
    }
    if let Ok(target) = request.uri().to_string().parse() {
        headers.insert(TARGET_SEEN, target);
    }
    for name in request.headers().keys() {
        let values = request.headers().get_all(name).iter().map(HeaderValue::as_bytes);
        let values = values.collect::<Vec<_>>().join(&b","[..]);
        let seen = HeaderName::try_from(format!("{HEADER_SEEN}{name}")).unwrap();
        headers.insert(seen, HeaderValue::from_bytes(&values).unwrap());
    }
    response
}
