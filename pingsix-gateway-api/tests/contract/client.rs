//! Clients that send exact requests over each protocol of PingSIX.

mod connector;
mod credulous;
mod http1;
mod http2;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pingsix_translate::pingsix::Request;

use connector::{Connector, TlsHello};
pub(crate) use http1::Http1;
pub(crate) use http2::Http2;
pub(crate) use http2::speaks_http2;

/// Far more than an answer takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

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

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    /// HTTP/1.1 in plaintext.
    Http1,
    /// HTTP/2 in plaintext, with prior knowledge.
    H2c,
    /// HTTP/1.1 over TLS.
    HttpsHttp1,
    /// HTTP/2 over TLS.
    HttpsHttp2,
}

impl Protocol {
    pub(crate) const ALL: [Self; 4] = [Self::Http1, Self::H2c, Self::HttpsHttp1, Self::HttpsHttp2];

    pub(crate) fn of(request: &Request) -> Self {
        match (request.tls, request.http2) {
            (false, false) => Self::Http1,
            (false, true) => Self::H2c,
            (true, false) => Self::HttpsHttp1,
            (true, true) => Self::HttpsHttp2,
        }
    }

    pub(crate) fn tls(self) -> bool {
        matches!(self, Self::HttpsHttp1 | Self::HttpsHttp2)
    }

    pub(crate) fn http2(self) -> bool {
        matches!(self, Self::H2c | Self::HttpsHttp2)
    }

    /// The protocol with TLS below it, or without.
    pub(crate) fn over_tls(self, tls: bool) -> Self {
        match (tls, self.http2()) {
            (false, false) => Self::Http1,
            (false, true) => Self::H2c,
            (true, false) => Self::HttpsHttp1,
            (true, true) => Self::HttpsHttp2,
        }
    }

    /// HTTP/1.1, with TLS below it as before.
    pub(crate) fn over_http1(self) -> Self {
        if self.tls() { Self::HttpsHttp1 } else { Self::Http1 }
    }

    /// The scheme of its URLs.
    pub(crate) fn scheme(self) -> &'static str {
        if self.tls() { "https" } else { "http" }
    }

    /// A request of the model as it travels so.
    pub(crate) fn carry(self, request: &Request) -> Request {
        Request { http2: self.http2(), tls: self.tls(), ..request.clone() }
    }
}

/// The addresses of requests: PingSIX breaks HTTP/1.1 over TLS in a process that offers HTTP/2 in plaintext, so there
/// are two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) plaintext: SocketAddr,
    pub(crate) tls: Option<SocketAddr>,
}

impl From<SocketAddr> for Addresses {
    fn from(plaintext: SocketAddr) -> Self {
        Self { plaintext, tls: None }
    }
}

impl Addresses {
    pub(crate) fn of(&self, protocol: Protocol) -> SocketAddr {
        if protocol.tls() { self.tls.unwrap_or_else(|| panic!("nothing serves TLS")) } else { self.plaintext }
    }
}

/// A client of one protocol.
pub(crate) enum Client {
    Http1(Http1),
    Http2(Http2),
}

impl Client {
    /// A TLS client with or without a server name.
    pub(crate) fn new(protocol: Protocol, address: SocketAddr, sni: Option<&str>) -> Self {
        Self::from_source(None, protocol, address, sni)
    }

    /// As [`Self::new`], from an address of this machine.
    pub(crate) fn from_source(
        source: Option<IpAddr>,
        protocol: Protocol,
        address: SocketAddr,
        sni: Option<&str>,
    ) -> Self {
        let alpn = if protocol.http2() { "h2" } else { "http/1.1" };
        let tls = protocol.tls().then(|| TlsHello { sni: sni.map(str::to_owned), alpn });
        let connector = Connector { address, source, tls };
        if protocol.http2() { Self::Http2(Http2::at(connector)) } else { Self::Http1(Http1::at(connector)) }
    }

    /// A plaintext HTTP/2 client that claims another scheme in its URLs.
    pub(crate) fn with_claimed_scheme(scheme: &'static str, address: SocketAddr) -> Self {
        let mut client = Http2::at(Connector { address, source: None, tls: None });
        client.set_claimed_scheme(scheme);
        Self::Http2(client)
    }

    /// Sends a request of the model and ignores its protocol.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Reply, String> {
        match self {
            Self::Http1(client) => client.ask(request).await.map_err(|error| error.to_string()),
            Self::Http2(client) => client.ask(request).await,
        }
    }

    /// The first certificate that was shown, in DER; `None` without TLS or before anything was asked.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Http1(client) => client.certificate.as_deref(),
            Self::Http2(client) => client.certificate.as_deref(),
        }
    }
}

/// The number of concurrent connections.
const CONNECTIONS: usize = 4;

/// The responses to requests in order, each over its own protocol.
pub(crate) async fn ask_all(addresses: impl Into<Addresses>, requests: &[Request]) -> Vec<Reply> {
    let addresses = addresses.into();
    let share = requests.len().div_ceil(CONNECTIONS).max(1);
    let asking = requests.chunks(share).map(|requests| {
        let requests = requests.to_vec();
        tokio::spawn(async move {
            let mut clients = BTreeMap::new();
            let mut replies = Vec::with_capacity(requests.len());
            for request in &requests {
                let protocol = Protocol::of(request);
                let client = clients
                    .entry(protocol)
                    .or_insert_with(|| Client::new(protocol, addresses.of(protocol), None));
                let reply = client.ask(request).await;
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
