//! A backend that reports each request byte for byte, because a library would refuse or mend some of them.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::client::Reply;

/// The response header with the report, in JSON and hexadecimal.
const REPORT: &str = "x-report";

/// The head of a request as it arrived; bytes that are no UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Received {
    /// The Service of the backend.
    pub(super) service: String,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Received {
    /// The report in a response; `None` if no backend answered.
    pub(super) fn of(reply: &Reply) -> Option<Self> {
        let report = reply.header(REPORT)?;
        let bytes: Vec<u8> = report
            .as_bytes()
            .chunks(2)
            .map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap())
            .collect();
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    /// The first value of a header, its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(held, _)| held.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }
}

/// A backend, stopped when it is dropped.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Backend {
    pub(super) async fn start(service: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                // A connection that breaks is no matter of the backend.
                tokio::spawn(async move {
                    let _ = serve(stream, service).await;
                });
            }
        });
        Self { address, task }
    }
}

async fn serve(stream: TcpStream, service: &'static str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let line = read_line(&mut stream).await?;
        let (method, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let target = rest.rsplit_once(' ').map_or(rest, |(target, _)| target);
        let mut received = Received {
            service: service.to_owned(),
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
        };
        loop {
            let line = read_line(&mut stream).await?;
            let Some((name, value)) = line.split_once(':') else { break };
            received.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        // Chunked bodies come from HTTP/2 alone, and are empty.
        let length = received.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        stream.read_exact(&mut vec![0; length]).await?;
        if received.header("transfer-encoding").is_some() {
            while !read_line(&mut stream).await?.is_empty() {}
        }
        let mut report = String::new();
        for byte in serde_json::to_vec(&received).unwrap() {
            let _ = write!(report, "{byte:02x}");
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{REPORT}: {report}\r\n\r\n");
        stream.get_mut().write_all(answer.as_bytes()).await?;
    }
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}
