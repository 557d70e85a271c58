//! HTTP/2, as far as a well-kept library lets it through.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pingsix_translate::pingsix::Request;

use super::connector::Connector;
use super::{Reply, WAIT_TIMEOUT};

/// A connection that speaks HTTP/2 from its first byte, with TLS below it or not; opened when it is needed.
pub(crate) struct Http2 {
    connector: Connector,
    /// The scheme and authority of its URLs.
    scheme: &'static str,
    sender: Option<http2::SendRequest<Empty<Bytes>>>,
    /// The certificate that was shown last.
    pub(super) certificate: Option<Vec<u8>>,
}

impl Http2 {
    pub(super) fn at(connector: Connector) -> Self {
        let scheme = if connector.tls.is_some() { "https" } else { "http" };
        Self { connector, scheme, sender: None, certificate: None }
    }

    /// Says another `:scheme` than that of the connection.
    pub(super) fn set_claimed_scheme(&mut self, scheme: &'static str) {
        self.scheme = scheme;
    }

    /// The connection that stands, or a new one. One that has been closed is replaced.
    async fn sender(&mut self) -> Result<&mut http2::SendRequest<Empty<Bytes>>, String> {
        if let Some(sender) = self.sender.take().filter(|sender| !sender.is_closed()) {
            return Ok(self.sender.insert(sender));
        }
        let opened = self.connector.open().await.map_err(|error| error.to_string())?;
        self.certificate = opened.certificate;
        let io = TokioIo::new(opened.stream);
        // The client must not be the first to find headers too long.
        let handshake =
            http2::Builder::new(TokioExecutor::new()).max_header_list_size(1 << 20).handshake(io).await;
        let (sender, connection) = handshake.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(self.sender.insert(sender))
    }

    /// Sends a request of the model, which must be one that HTTP/2 can express.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<Reply, String> {
        let scheme = self.scheme;
        let host = request.host.as_deref().unwrap_or_default();
        let query = request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let mut builder = http::Request::builder()
            .version(http::Version::HTTP_2)
            .method(request.method.as_str())
            .uri(format!("{scheme}://{host}{}{query}", request.path));
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let sent = builder.body(Empty::new()).map_err(|error| error.to_string())?;
        self.send(sent).await
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&mut self, request: http::Request<Empty<Bytes>>) -> Result<Reply, String> {
        let head = request.method() == http::Method::HEAD;
        let answer = tokio::time::timeout(WAIT_TIMEOUT, self.sender().await?.send_request(request)).await;
        let (parts, body) =
            answer.map_err(|error| error.to_string())?.map_err(|e| e.to_string())?.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes().to_vec(),
            // PingSIX sends a body in answer to HEAD when a plugin answers, and the client's library refuses it.
            Err(_) if head => Vec::new(),
            Err(error) => return Err(format!("{error:?}")),
        };
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers =
            parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok(Reply { status: parts.status.as_u16(), headers, body })
    }
}

/// Whether HTTP/2 can express the request.
pub(crate) fn speaks_http2(request: &Request) -> bool {
    let Some(host) = &request.host else { return false };
    let sent = format!("http://{host}{}", request.path).parse::<http::Uri>();
    let arrives = |uri: http::Uri| {
        uri.path() == request.path && uri.authority().is_some_and(|held| held.as_str() == host)
    };
    sent.is_ok_and(arrives) && request.headers.iter().all(|(_, value)| value.is_ascii())
}
