//! Requests with at most one header, each on a connection of its own.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use super::super::connections::connector;
use super::super::environment::Environment;
use super::super::subjects::Listener;
use super::super::traffic::Addresses;

/// The host of all requests.
pub(super) const HOST: &str = "shop.example";

/// The time limit of an answer, on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    pub(super) listener: Listener,
    pub(super) path: &'a str,
    pub(super) header: Option<(&'a str, &'a str)>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// In lower case.
    pub(super) head: String,
    pub(super) body: String,
}

impl Client<'_> {
    pub(super) async fn ask(&self, environment: &Environment) -> Result<Answer, String> {
        self.ask_at(&environment.addresses()).await
    }

    pub(super) async fn ask_at(&self, addresses: &Addresses) -> Result<Answer, String> {
        timeout(LONGEST, self.exchange(addresses))
            .await
            .map_err(|_| format!("no answer within {LONGEST:?}"))?
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

    async fn send(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<Answer, String> {
        let header = self.header.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        let request =
            format!("GET {} HTTP/1.1\r\nHost: {HOST}\r\n{header}Connection: close\r\n\r\n", self.path);
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
}
