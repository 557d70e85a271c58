//! Requests, each on a connection of its own.

use std::net::Ipv4Addr;
use std::time::Duration;

use pingsix_translate::pingsix::Request;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use super::super::connections::connector;
use super::super::environment::Environment;
use super::super::subjects::Listener;
use super::super::traffic::Addresses;

pub(in super::super) use super::super::expectations::HOST;

/// The time limit of an answer, on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The usual address of clients.
pub(in super::super) const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A request with at most one header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    pub(super) listener: Listener,
    pub(super) path: &'a str,
    pub(super) header: Option<(&'a str, &'a str)>,
}

/// An answer.
#[derive(Debug)]
pub(in super::super) struct Answer {
    pub(in super::super) status: u16,
    /// In lower case.
    pub(in super::super) head: String,
    pub(in super::super) body: String,
}

impl Answer {
    /// The value of a header.
    pub(in super::super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(held, _)| *held == name).map(|(_, value)| value)
    }
}

/// The answer to a request in plaintext from this address.
pub(in super::super) async fn ask_from(
    client: Ipv4Addr,
    addresses: &Addresses,
    request: &Request,
) -> Result<Answer, String> {
    let exchange = async {
        let socket = TcpSocket::new_v4().map_err(|error| error.to_string())?;
        socket.bind((client, 0).into()).map_err(|error| error.to_string())?;
        let stream = socket.connect(addresses.plain).await.map_err(|error| error.to_string())?;
        let headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        send(stream, &request.path, &headers).await
    };
    timeout(ANSWER_TIMEOUT, exchange).await.map_err(|_| format!("no answer within {ANSWER_TIMEOUT:?}"))?
}

/// Sends a request, and reads the answer until the connection ends.
async fn send(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Answer, String> {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    // A server may end a TLS connection without a word; a head that is complete counts.
    let ended = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Err(format!("{answer:?} is no answer: {ended:?}"));
    };
    let head = head.to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| format!("{head:?} has no status"))?;
    Ok(Answer { status, head, body: body.to_owned() })
}

impl Client<'_> {
    pub(super) async fn ask(&self, environment: &Environment) -> Result<Answer, String> {
        self.ask_at(&environment.addresses()).await
    }

    pub(super) async fn ask_at(&self, addresses: &Addresses) -> Result<Answer, String> {
        timeout(ANSWER_TIMEOUT, self.exchange(addresses))
            .await
            .map_err(|_| format!("no answer within {ANSWER_TIMEOUT:?}"))?
    }

    async fn exchange(&self, addresses: &Addresses) -> Result<Answer, String> {
        let address = match self.listener {
            Listener::Plain => addresses.plain,
            Listener::Secure => addresses.behind_tls,
        };
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        match self.listener {
            Listener::Plain => self.send(stream).await,
            Listener::Secure => {
                let connector = connector("http/1.1");
                let name = ServerName::try_from(HOST).map_err(|error| error.to_string())?;
                self.send(connector.connect(name, stream).await.map_err(|error| error.to_string())?).await
            }
        }
    }

    async fn send(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<Answer, String> {
        send(stream, self.path, self.header.as_slice()).await
    }
}
