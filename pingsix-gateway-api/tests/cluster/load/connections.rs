//! Connections to PingSIX that are kept, and one request at a time on each.

#[path = "../../contract/client/credulous.rs"]
mod credulous;

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::subjects::Probe;

/// A client that takes any certificate.
pub(super) fn connector(alpn: &str) -> TlsConnector {
    TlsConnector::from(Arc::new(credulous::client(alpn)))
}

/// The time limit of an answer, on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The answer.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u16,
    location: Option<String>,
    marked: Option<String>,
    body: String,
    /// The certificate that the connection showed, in DER.
    pub(crate) certificate: Option<Vec<u8>>,
}

impl Reply {
    /// The checked parts in one line: the backend's text, the redirect's target, and headers of filters.
    pub(crate) fn answer(&self) -> String {
        let mut answer = self.status.to_string();
        let body = (self.status == 200).then_some(self.body.as_str());
        for text in [body, self.location.as_deref()].into_iter().flatten() {
            answer = format!("{answer} {text}");
        }
        if let Some(marked) = &self.marked {
            answer = format!("{answer} marked {marked}");
        }
        answer
    }
}

/// The cause of a missing response.
#[derive(Debug)]
struct Failure {
    what: String,
    /// Whether PingSIX has not read the request: it closed a kept connection without a byte.
    is_unread: bool,
}

impl Failure {
    fn of(error: impl std::fmt::Debug) -> Self {
        Self { what: format!("{error:?}"), is_unread: false }
    }
}

/// A connection, which is opened when it is needed.
pub(crate) struct Connection {
    address: SocketAddr,
    tls: bool,
    http2: bool,
    open: Option<Open>,
    /// The number of repeated requests after the end of a kept connection.
    pub(crate) retried: usize,
}

struct Open {
    /// The user of the connection: over TLS, requests of other subjects need other connections.
    host: String,
    certificate: Option<Vec<u8>>,
    http: HttpConnection,
}

enum HttpConnection {
    Http1(BufReader<Box<dyn Stream>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    pub(crate) fn new(address: SocketAddr, tls: bool, http2: bool) -> Self {
        Self { address, tls, http2, open: None, retried: 0 }
    }

    /// Closes the connection, so that the next request has another.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Sends a request; a request that a closed connection did not take is sent again on another.
    pub(crate) async fn ask(&mut self, probe: &Probe) -> Result<Reply, String> {
        if self.tls && self.open.as_ref().is_some_and(|open| open.host != probe.host) {
            self.open = None;
        }
        let is_kept = self.open.is_some();
        match self.ask_once(probe).await {
            Ok(reply) => Ok(reply),
            Err(failure) if is_kept && failure.is_unread => {
                self.retried += 1;
                self.ask_once(probe).await.map_err(|failure| failure.what)
            }
            Err(failure) => Err(failure.what),
        }
    }

    async fn ask_once(&mut self, probe: &Probe) -> Result<Reply, Failure> {
        let asking = async {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open(&probe.host).await?,
            };
            let (mut reply, keep) = match &mut open.http {
                HttpConnection::Http1(stream) => ask_http1(stream, probe).await?,
                HttpConnection::Http2(sender) => (ask_http2(sender, probe, self.tls).await?, true),
            };
            reply.certificate.clone_from(&open.certificate);
            if keep {
                self.open = Some(open);
            }
            Ok(reply)
        };
        timeout(RESPONSE_TIMEOUT, asking)
            .await
            .map_err(|_| Failure::of(format!("no answer within {RESPONSE_TIMEOUT:?}")))?
    }

    async fn open(&mut self, host: &str) -> Result<Open, Failure> {
        let stream = TcpStream::connect(self.address).await.map_err(Failure::of)?;
        stream.set_nodelay(true).map_err(Failure::of)?;
        let (stream, certificate): (Box<dyn Stream>, _) = if self.tls {
            let alpn = if self.http2 { "h2" } else { "http/1.1" };
            let connector = connector(alpn);
            let name = ServerName::try_from(host.to_owned()).map_err(Failure::of)?;
            let stream = connector.connect(name, stream).await.map_err(Failure::of)?;
            let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            let shown = shown.map(|certificate| certificate.as_ref().to_vec());
            (Box::new(stream), shown)
        } else {
            (Box::new(stream), None)
        };
        let http = if self.http2 {
            let io = TokioIo::new(stream);
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.map_err(Failure::of)?;
            tokio::spawn(connection);
            HttpConnection::Http2(sender)
        } else {
            HttpConnection::Http1(BufReader::new(stream))
        };
        Ok(Open { host: host.to_owned(), certificate, http })
    }
}

/// The answer, and whether the connection can be kept.
async fn ask_http1(stream: &mut BufReader<Box<dyn Stream>>, probe: &Probe) -> Result<(Reply, bool), Failure> {
    let user = if probe.is_user { "x-user: one\r\n" } else { "" };
    let request =
        format!("GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: load\r\n{user}\r\n", probe.path, probe.host);
    let unread = |error: io::Error| Failure { what: format!("{error:?}"), is_unread: true };
    stream.get_mut().write_all(request.as_bytes()).await.map_err(unread)?;
    stream.get_mut().flush().await.map_err(unread)?;
    // No data, or the end of the connection.
    if stream.fill_buf().await.map_err(unread)?.is_empty() {
        return Err(Failure { what: "closed without an answer".to_owned(), is_unread: true });
    }
    let line = read_line(stream).await?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| Failure::of(format!("no status line: {line}")))?;
    let mut reply = Reply { status, location: None, marked: None, body: String::new(), certificate: None };
    let (mut length, mut keep) = (None, true);
    loop {
        let line = read_line(stream).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse::<usize>().ok(),
            "connection" => keep &= !value.eq_ignore_ascii_case("close"),
            "location" => reply.location = Some(value.to_owned()),
            "x-marked" => reply.marked = Some(value.to_owned()),
            _ => {}
        }
    }
    // PingSIX sends some empty answers without a length and yet keeps the connection.
    let Some(length) = length else { return Ok((reply, false)) };
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.map_err(Failure::of)?;
    reply.body = String::from_utf8_lossy(&body).into_owned();
    Ok((reply, keep))
}

async fn read_line(stream: &mut BufReader<Box<dyn Stream>>) -> Result<String, Failure> {
    let mut line = String::new();
    stream.read_line(&mut line).await.map_err(Failure::of)?;
    if line.ends_with('\n') { Ok(line) } else { Err(Failure::of("an answer that breaks off")) }
}

async fn ask_http2(
    sender: &mut http2::SendRequest<Empty<Bytes>>,
    probe: &Probe,
    tls: bool,
) -> Result<Reply, Failure> {
    let scheme = if tls { "https" } else { "http" };
    let mut request = http::Request::builder()
        .version(http::Version::HTTP_2)
        .uri(format!("{scheme}://{}{}", probe.host, probe.path));
    if probe.is_user {
        request = request.header("x-user", "one");
    }
    let request = request.body(Empty::new()).map_err(Failure::of)?;
    let not_sent = |error: hyper::Error| Failure {
        is_unread: error.is_canceled() || error.is_closed() || is_turned_away(&error) || is_cut_off(&error),
        ..Failure::of(error)
    };
    sender.ready().await.map_err(not_sent)?;
    let (parts, body) = sender.send_request(request).await.map_err(not_sent)?.into_parts();
    let body = body.collect().await.map_err(Failure::of)?.to_bytes();
    let header = |name: &str| {
        let value = parts.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Ok(Reply {
        status: parts.status.as_u16(),
        location: header("location"),
        marked: header("x-marked"),
        body: String::from_utf8_lossy(&body).into_owned(),
        certificate: None,
    })
}

/// Whether the connection was closed before the request or before the first byte of its response, which [`ask_http1`]
/// counts as unread too. On a busy machine, a request may be written before the client has read that the server is
/// about to close, when the server has closed already.
fn is_cut_off(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    let Some(cause) = error.source() else { return false };
    let of_h2 = cause.downcast_ref::<h2::Error>().and_then(h2::Error::get_io);
    let cause = of_h2.or_else(|| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
        )
    })
}

/// Whether a closing server has not processed a request (RFC 9113, section 6.8): it answers processed ones after its
/// GOAWAY.
fn is_turned_away(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        cause.is_go_away() && cause.is_remote() && cause.reason() == Some(h2::Reason::NO_ERROR)
    })
}
