//! HTTP/1, written and read byte by byte, so that nothing is mended on the way.

use std::io;
use std::net::SocketAddr;

use pingsix_translate::pingsix::Request;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::connector::{Connector, Stream};
use super::{Reply, WAIT_TIMEOUT};

type Buffered = BufReader<Box<dyn Stream>>;

/// A connection that speaks HTTP/1, opened when it is needed.
pub(crate) struct Http1 {
    connector: Connector,
    stream: Option<Buffered>,
    /// The certificate that was shown last.
    pub(super) certificate: Option<Vec<u8>>,
}

impl Http1 {
    /// Without TLS.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::at(Connector { address, source: None, tls: None })
    }

    pub(super) fn at(connector: Connector) -> Self {
        Self { connector, stream: None, certificate: None }
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
            let opened = self.connector.open().await?;
            self.certificate = opened.certificate;
            BufReader::new(opened.stream)
        };
        stream.get_mut().write_all(request).await?;
        stream.get_mut().flush().await?;
        let (reply, reusable) = tokio::time::timeout(WAIT_TIMEOUT, read(&mut stream, head)).await??;
        if reusable {
            self.stream = Some(stream);
        }
        Ok(reply)
    }

    /// Sends a request of the model.
    pub(super) async fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        self.send(&wire(request), request.method == "HEAD").await
    }
}

async fn read(stream: &mut Buffered, head: bool) -> io::Result<(Reply, bool)> {
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

async fn read_line(stream: &mut Buffered) -> io::Result<String> {
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
    // With HTTP/2 on offer, PingSIX waits for 24 bytes before it reads any request.
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
