//! Clients from sockets and hyper's low-level connections, and a responder for them.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pingsix_gateway_sidecar::responder::{Options, Reach, Responder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Timeout of all waits, far longer than any of them takes.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(WAIT_TIMEOUT, future).await.expect("it hangs")
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Running {
    pub(crate) async fn start(options: Options) -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let responder = Responder::bind(loopback, Reach::Loopback, options).await.unwrap();
        let address = responder.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(responder.run(async {
            let _ = stopped.await;
        }));
        Self { address, task, stop: Some(stop) }
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    within(TcpStream::connect(address)).await.unwrap()
}

/// A connection that speaks one of the two protocols.
pub(crate) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) async fn http1(address: SocketAddr) -> Self {
        let io = TokioIo::new(connect(address).await);
        let (sender, connection) = within(http1::handshake(io)).await.unwrap();
        tokio::spawn(connection);
        Self::Http1(sender)
    }

    pub(crate) async fn http2(address: SocketAddr) -> Self {
        let io = TokioIo::new(connect(address).await);
        let (sender, connection) = within(http2::handshake(TokioExecutor::new(), io)).await.unwrap();
        tokio::spawn(connection);
        Self::Http2(sender)
    }

    pub(crate) async fn both(address: SocketAddr) -> [Self; 2] {
        [Self::http1(address).await, Self::http2(address).await]
    }

    pub(crate) async fn send(&mut self, request: RequestSpec<'_>) -> hyper::Result<Reply> {
        let response = match self {
            Self::Http1(sender) => {
                within(sender.ready()).await?;
                within(sender.send_request(request.http1())).await?
            }
            Self::Http2(sender) => {
                within(sender.ready()).await?;
                within(sender.send_request(request.http2())).await?
            }
        };
        Reply::read(response).await
    }

    pub(crate) async fn get(&mut self, host: &str) -> Reply {
        self.send(RequestSpec::get(host)).await.unwrap()
    }

    /// Waits until the peer has closed the connection.
    pub(crate) async fn closed(&mut self) {
        within(async {
            loop {
                let closed = match self {
                    Self::Http1(sender) => sender.is_closed(),
                    Self::Http2(sender) => sender.is_closed(),
                };
                if closed {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

#[derive(Clone)]
pub(crate) struct RequestSpec<'a> {
    pub(crate) method: Method,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    pub(crate) body: Bytes,
}

impl<'a> RequestSpec<'a> {
    pub(crate) fn get(host: &'a str) -> Self {
        Self { method: Method::GET, host, path: "/", headers: Vec::new(), body: Bytes::new() }
    }

    fn build(self, uri: &str) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = uri.parse().unwrap();
        for (name, value) in self.headers {
            let name = http::HeaderName::try_from(name).unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        request
    }

    fn http1(self) -> Request<Full<Bytes>> {
        let (host, path) = (self.host.parse().unwrap(), self.path);
        let mut request = self.build(path);
        request.headers_mut().insert(http::header::HOST, host);
        request
    }

    fn http2(self) -> Request<Full<Bytes>> {
        let uri = format!("http://{}{}", self.host, self.path);
        self.build(&uri)
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    async fn read(response: Response<Incoming>) -> hyper::Result<Self> {
        let (head, body) = response.into_parts();
        let body = within(body.collect()).await?.to_bytes();
        Ok(Self { status: head.status, headers: head.headers, body })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Writes all of `request` and then reads until the peer closes.
///
/// A reset connection in either direction may have lost a response, and fails.
pub(crate) async fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address).await;
    within(stream.write_all(request)).await.expect("the connection is reset while the request is written");
    let mut bytes = Vec::new();
    within(stream.read_to_end(&mut bytes)).await.expect("the connection is reset after the request");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the peer closes or resets the connection.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match within(stream.read(&mut buffer)).await {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&bytes).into_owned(),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Reads until `text` has arrived, so that it is known how far the peer is.
pub(crate) async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = within(stream.read(&mut buffer)).await.unwrap();
        assert_ne!(count, 0, "closed after {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..count]);
        let read = String::from_utf8_lossy(&bytes);
        if read.contains(text) {
            return read.into_owned();
        }
    }
}
