//! Clients that send exactly what they are told.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pingsix_translate::pingsix::Request;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Far more than an answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The first value of a header, its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }
}

/// A connection that speaks HTTP/1, opened when it is needed.
pub(crate) struct Http1 {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Http1 {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Sends bytes and reads one answer. A connection that was kept and has been closed meanwhile is replaced.
    pub(crate) async fn send(&mut self, request: &[u8], head: bool) -> io::Result<Reply> {
        if self.stream.is_some() {
            if let Ok(reply) = self.exchange(request, head).await {
                return Ok(reply);
            }
            self.stream = None;
        }
        self.exchange(request, head).await
    }

    async fn exchange(&mut self, request: &[u8], head: bool) -> io::Result<Reply> {
        let mut stream = if let Some(stream) = self.stream.take() {
            stream
        } else {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            BufReader::new(stream)
        };
        stream.get_mut().write_all(request).await?;
        let (reply, reusable) = tokio::time::timeout(PATIENCE, read(&mut stream, head)).await??;
        if reusable {
            self.stream = Some(stream);
        }
        Ok(reply)
    }

    /// Sends a request of the model.
    pub(crate) async fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        self.send(&wire(request), request.method == "HEAD").await
    }
}

async fn read(stream: &mut BufReader<TcpStream>, head: bool) -> io::Result<(Reply, bool)> {
    let line = read_line(stream).await?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status line: {line}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut reply = Reply { status, headers, body: Vec::new() };
    let closes = line.starts_with("HTTP/1.0") || reply.header("connection") == Some("close");
    match reply.header("content-length").and_then(|length| length.parse().ok()) {
        _ if head || matches!(status, 204 | 304) => {}
        Some(length) => {
            reply.body = vec![0; length];
            stream.read_exact(&mut reply.body).await?;
        }
        None if closes => {
            stream.read_to_end(&mut reply.body).await?;
        }
        // PingSIX sends some empty answers without a length and yet keeps the connection.
        None => return Ok((reply, false)),
    }
    Ok((reply, !closes))
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}

/// The request of the model as HTTP/1.1, or as HTTP/1.0 when it has no host. A kept connection is asked for, so that
/// the length of a body decides where it ends.
fn wire(request: &Request) -> Vec<u8> {
    let version = if request.host.is_some() { "1.1" } else { "1.0" };
    let query = request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    // Where it offers HTTP/2, PingSIX waits for 24 bytes before it reads any request.
    let mut text =
        format!("{} {}{query} HTTP/{version}\r\nUser-Agent: contract\r\n", request.method, request.path);
    if let Some(host) = &request.host {
        text += &format!("Host: {host}\r\n");
    }
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\r\n");
    }
    // In HTTP/1.0 a body of unknown length lasts until the connection ends.
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        text += "Content-Length: 0\r\n";
    }
    text += "\r\n";
    text.into_bytes()
}

/// A connection that speaks HTTP/2 from its first byte.
pub(crate) struct Http2(http2::SendRequest<Empty<Bytes>>);

impl Http2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request of the model, which must be one that HTTP/2 can express.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Reply, String> {
        let host = request.host.as_deref().unwrap_or_default();
        let query = request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let mut builder = http::Request::builder()
            .version(http::Version::HTTP_2)
            .method(request.method.as_str())
            .uri(format!("http://{host}{}{query}", request.path));
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let sent = builder.body(Empty::new()).map_err(|error| error.to_string())?;
        let answer = tokio::time::timeout(PATIENCE, self.0.send_request(sent)).await;
        let (parts, body) =
            answer.map_err(|error| error.to_string())?.map_err(|e| e.to_string())?.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes().to_vec(),
            // PingSIX sends a body in answer to HEAD when a plugin answers, and the client's library refuses it.
            Err(_) if request.method == "HEAD" => Vec::new(),
            Err(error) => return Err(format!("{error:?}")),
        };
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers =
            parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok(Reply { status: parts.status.as_u16(), headers, body })
    }
}

/// How many connections ask at the same time.
const CONNECTIONS: usize = 4;

/// The answers to requests, in their order.
pub(crate) async fn ask_all(address: SocketAddr, requests: &[Request]) -> Vec<Reply> {
    let share = requests.len().div_ceil(CONNECTIONS).max(1);
    let asking = requests.chunks(share).map(|requests| {
        let requests = requests.to_vec();
        tokio::spawn(async move {
            let (mut http1, mut http2) = (Http1::new(address), None);
            let mut replies = Vec::with_capacity(requests.len());
            for request in &requests {
                let reply = if request.http2 {
                    if http2.is_none() {
                        http2 = Some(Http2::connect(address).await);
                    }
                    http2.as_mut().unwrap().ask(request).await
                } else {
                    http1.ask(request).await.map_err(|error| error.to_string())
                };
                replies.push(reply.unwrap_or_else(|error| panic!("{request:?}: {error}")));
            }
            replies
        })
    });
    let mut replies = Vec::with_capacity(requests.len());
    for task in asking.collect::<Vec<_>>() {
        replies.extend(task.await.unwrap());
    }
    replies
}

/// Whether the client can express a request in HTTP/2.
pub(crate) fn speaks_http2(request: &Request) -> bool {
    let Some(host) = &request.host else { return false };
    let sent = format!("http://{host}{}", request.path).parse::<http::Uri>();
    let arrives = |uri: http::Uri| {
        uri.path() == request.path && uri.authority().is_some_and(|held| held.as_str() == host)
    };
    sent.is_ok_and(arrives) && request.headers.iter().all(|(_, value)| value.is_ascii())
}
