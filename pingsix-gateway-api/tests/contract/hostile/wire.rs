//! Requests on the wire: HTTP/1.1 as bytes, HTTP/2 as far as a library lets it through.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Version};
use http_body_util::Empty;

use super::attack::Draft;
use crate::client::{Addresses, Client, Protocol, Reply};

/// Far more than an answer takes; PingSIX leaves some requests without one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// More connections are closed, the oldest first.
const MAX_CONNECTIONS: usize = 32;

/// The header that numbers requests.
pub(super) const NUMBER: &str = "x-probe";

/// A request for a protocol.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Http1 { bytes: Vec<u8>, head: bool },
    Http2(http::Request<Empty<Bytes>>),
}

impl Message {
    /// As text for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Http1 { bytes, .. } => bytes.escape_ascii().to_string().replace("\\r\\n", "\r\n  "),
            Self::Http2(request) => {
                let mut text = format!(
                    ":method {}\n  :authority {:?}\n  :path {:?}\n",
                    request.method(),
                    request.uri().authority().map(ToString::to_string),
                    request.uri().path_and_query().map(ToString::to_string),
                );
                for (name, value) in request.headers() {
                    text += &format!("  {name}: {}\n", value.as_bytes().escape_ascii());
                }
                text
            }
        }
    }

    /// The draft for its protocol; `None` if the protocol cannot carry it.
    pub(super) fn of(draft: &Draft, number: usize) -> Option<Self> {
        if draft.protocol.http2() { Self::http2(draft, number) } else { Some(Self::http1(draft, number)) }
    }

    fn http1(draft: &Draft, number: usize) -> Self {
        let origin = draft.origin.as_deref().unwrap_or_default();
        let mut bytes = format!("{} {origin}{} HTTP/1.1\r\n", draft.method, draft.target()).into_bytes();
        let mut add = |name: &str, value: &[u8]| {
            bytes.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
        };
        // The server reads 24 bytes before it decides about the protocol.
        add("User-Agent", b"hostile");
        for host in &draft.hosts {
            add("Host", host.as_bytes());
        }
        for (name, value) in &draft.headers {
            add(name, value);
        }
        add(NUMBER, number.to_string().as_bytes());
        if !matches!(draft.method.to_uppercase().as_str(), "GET" | "HEAD") {
            add("Content-Length", b"0");
        }
        bytes.extend_from_slice(b"\r\n");
        Self::Http1 { bytes, head: draft.method == "HEAD" }
    }

    fn http2(draft: &Draft, number: usize) -> Option<Self> {
        let target = draft.target();
        let (authority, lines) = match draft.hosts.split_first() {
            Some((first, rest)) if !draft.without_authority => (Some(first), rest),
            _ => (None, &draft.hosts[..]),
        };
        let mut builder = http::Request::builder().method(Method::from_bytes(draft.method.as_bytes()).ok()?);
        let uri = match authority {
            Some(authority) => format!("{}://{authority}{target}", draft.protocol.scheme()),
            None => target.clone(),
        };
        let uri: http::Uri = uri.parse().ok()?;
        let arrives = uri.path_and_query().is_some_and(|sent| sent.as_str() == target)
            && uri.authority().map(http::uri::Authority::as_str) == authority.map(String::as_str);
        if draft.origin.is_some() || !arrives {
            return None;
        }
        // The library demands an authority of HTTP/2, and none of what it takes for a request to be passed on.
        builder =
            builder.version(if authority.is_some() { Version::HTTP_2 } else { Version::HTTP_11 }).uri(uri);
        for line in lines {
            builder = builder.header("host", HeaderValue::from_bytes(line.as_bytes()).ok()?);
        }
        // The library would act on it.
        if draft.headers.iter().any(|(name, _)| name == "Connection") {
            return None;
        }
        for (name, value) in &draft.headers {
            let name = HeaderName::from_bytes(name.to_lowercase().as_bytes()).ok()?;
            builder = builder.header(name, HeaderValue::from_bytes(value).ok()?);
        }
        Some(Self::Http2(builder.header(NUMBER, number).body(Empty::new()).ok()?))
    }
}

/// Connections by protocol, name and addresses.
pub(super) struct Connections {
    addresses: Addresses,
    mapped: SocketAddr,
    open: BTreeMap<(Protocol, String, Ipv4Addr, bool), Client>,
}

impl Connections {
    pub(super) fn new(addresses: Addresses, mapped: SocketAddr) -> Self {
        Self { addresses, mapped, open: BTreeMap::new() }
    }

    /// Sends a message over the connection of its draft.
    ///
    /// # Errors
    ///
    /// The reason for which there is no answer.
    pub(super) async fn send(&mut self, draft: &Draft, message: &Message) -> Result<Reply, String> {
        let sni = if draft.protocol.tls() { draft.sni.clone() } else { String::new() };
        let key = (draft.protocol, sni, draft.peer, draft.mapped);
        if self.open.len() >= MAX_CONNECTIONS {
            self.open.pop_first();
        }
        let mut client = self.open.remove(&key).unwrap_or_else(|| {
            let address = if draft.mapped { self.mapped } else { self.addresses.of(draft.protocol) };
            let sni = (!key.1.is_empty()).then_some(key.1.as_str());
            Client::from_source(Some(IpAddr::V4(draft.peer)), draft.protocol, address, sni)
        });
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, async {
            match (&mut client, message) {
                (Client::Http1(client), Message::Http1 { bytes, head }) => {
                    client.send(bytes, *head).await.map_err(|error| error.to_string())
                }
                (Client::Http2(client), Message::Http2(request)) => client.send(request.clone()).await,
                _ => Err("the message is of another protocol".to_owned()),
            }
        });
        let answer = answer.await.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        if answer.is_ok() {
            self.open.insert(key, client);
        }
        answer
    }
}
