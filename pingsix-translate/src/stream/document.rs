//! The stream documents, field by field.

mod rules;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StreamKey, StreamKind};
use crate::pingsix::{REDACTED, Redacted, json_len};

/// The destination of the connections of a port, or of some server names on it.
///
/// At most one route matches a connection, independent of order: a port has one `tcp` route, one `udp` route, or any
/// number of `tls` routes without a common server name, of which the most specific server name decides. A connection
/// without a route is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct StreamRoute {
    /// The port clients connect to, from 1.
    #[garde(range(min = 1))]
    pub server_port: u16,
    /// The protocol of clients.
    pub protocol: StreamProtocol,
    /// For [`StreamProtocol::Tls`], the server names (SNI) of the connections: at least one, in lower case, each a
    /// DNS name or `*.` and one, which matches one label or more before the name. With [`TlsMode::Terminate`], also
    /// [`ANY_NAME`]. No other route of the port has any of them. Empty for the other protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(custom(rules::snis(self.protocol, self.tls)))]
    pub snis: Vec<String>,
    /// The TLS endpoint for the client; present exactly for [`StreamProtocol::Tls`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(custom(rules::tls(self.protocol)))]
    pub tls: Option<TlsMode>,
    /// For [`TlsMode::Terminate`], ids of the certificates, in order of preference: the first that is valid for the
    /// server name, and whose key can sign for the client, is shown, and the first of all if none is. At least one; none
    /// for [`TlsMode::Passthrough`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(custom(rules::ssl_ids(self.tls)))]
    pub ssl_ids: Vec<String>,
    /// For [`TlsMode::Terminate`], the versions of HTTP that are offered (ALPN), in order of the server's preference: `h2`,
    /// `http/1.1` or both; empty for none, and for backends of other protocols. The client speaks first, so the target is
    /// connected to when the client has sent as many bytes as a server needs to tell the versions apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(custom(rules::alpn(self.tls)))]
    pub alpn: Vec<String>,
    /// For [`TlsMode::Terminate`], the demand on clients for a certificate, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(custom(rules::client_auth(self.tls)))]
    pub client_auth: Option<ClientAuth>,
    /// The targets: at least one, none twice, each connection to one of them by weight.
    #[garde(custom(rules::targets))]
    pub targets: Vec<StreamTarget>,
}

/// The protocol of clients on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamProtocol {
    /// TCP; the bytes mean nothing to the proxy.
    Tcp,
    /// UDP; the datagrams between one client address and the port are one connection.
    Udp,
    /// TLS over TCP; the server name in the `ClientHello` chooses the route.
    Tls,
}

impl StreamProtocol {
    /// The word in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Tls => "tls",
        }
    }
}

/// The TLS endpoint for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// The backend: the proxy reads the `ClientHello` and passes everything on, from the first byte.
    Passthrough,
    /// The proxy, with the certificates of the route; the backend receives plain TCP.
    Terminate,
}

/// The server name of [`StreamRoute::snis`] for all connections of a port that no other route takes, also for those
/// without a server name.
pub const ANY_NAME: &str = "*";

/// The protocols that [`StreamRoute::alpn`] may have, in the order in which HTTPS listeners offer them.
pub const HTTP_PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];

/// The demand on clients for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientAuth {
    /// The treatment of certificates.
    pub mode: ClientAuthMode,
    /// Ids of the authorities of valid certificates: at least one for [`ClientAuthMode::RequireAndVerify`], none twice.
    /// For [`ClientAuthMode::Request`], a hint for clients that choose among several certificates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ca_ids: Vec<String>,
}

/// The treatment of the certificates of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthMode {
    /// The handshake fails without a certificate that one of the authorities has signed.
    RequireAndVerify,
    /// A certificate is requested; any is taken, and none is needed.
    Request,
}

/// One target: `{"upstream_id":"u","weight":3}` or `{"reject":"invalid","weight":1}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WrittenTarget", try_from = "WrittenTarget")]
pub struct StreamTarget {
    /// The place.
    pub to: Destination,
    /// The share of the connections, from 1, out of the sum over all targets, which can exceed 32 bits.
    pub weight: u32,
}

/// The destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// At a node of the upstream with this id. If it cannot be reached, another node may be tried.
    Upstream(String),
    /// Nowhere: the connection is closed, the datagram dropped. With [`StreamProtocol::Tls`], before any handshake.
    Reject(RejectReason),
}

/// Reason of rejected connections; for logs and metrics, because clients see no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// A reference leads nowhere, the route cannot be honoured, or the listener that has these server names cannot be
    /// served.
    Invalid,
    /// The Service has no endpoint that takes traffic.
    NoEndpoints,
    /// The listener that serves these server names has no route for them; a wider one must not take them.
    NoRoute,
}

/// [`StreamTarget`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTarget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reject: Option<RejectReason>,
    weight: u32,
}

impl From<StreamTarget> for WrittenTarget {
    fn from(StreamTarget { to, weight }: StreamTarget) -> Self {
        match to {
            Destination::Upstream(id) => Self { upstream_id: Some(id), reject: None, weight },
            Destination::Reject(why) => Self { upstream_id: None, reject: Some(why), weight },
        }
    }
}

impl TryFrom<WrittenTarget> for StreamTarget {
    type Error = &'static str;

    fn try_from(WrittenTarget { upstream_id, reject, weight }: WrittenTarget) -> Result<Self, Self::Error> {
        let to = match (upstream_id, reject) {
            (Some(id), None) => Destination::Upstream(id),
            (None, Some(why)) => Destination::Reject(why),
            (None, None) | (Some(_), Some(_)) => return Err("a target has one of upstream_id and reject"),
        };
        Ok(Self { to, weight })
    }
}

/// A set of backend nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct StreamUpstream {
    /// Weight by `address:port`, IPv6 addresses in brackets. At least one node; ports and weights from 1. Addresses
    /// only, so that the proxy need not resolve names.
    #[garde(custom(rules::nodes))]
    pub nodes: BTreeMap<String, u32>,
    /// Whether nodes may be on loopback: processes of the same Pod. A proxy refuses such nodes otherwise, because authors
    /// of EndpointSlices could reach processes that listen for their machine alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// A certificate with its key. `Debug` hides the key.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct StreamSsl {
    /// The certificate chain in PEM, leaf first. All of it is for the client.
    pub cert: String,
    /// The private key of the leaf in PEM.
    #[garde(custom(rules::key(&self.cert)))]
    pub key: String,
}

impl std::fmt::Debug for StreamSsl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamSsl").field("cert", &self.cert).field("key", &Redacted).finish()
    }
}

/// Authorities of client certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[serde(deny_unknown_fields)]
pub struct StreamCa {
    /// Their certificates in PEM, at least one.
    #[garde(custom(rules::certs))]
    pub certs: String,
}

/// The value of one key: a stream document of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum StreamDocument {
    /// A named upstream.
    Upstream(StreamUpstream),
    /// A certificate.
    Ssl(StreamSsl),
    /// Authorities of client certificates.
    Ca(StreamCa),
    /// A route.
    StreamRoute(StreamRoute),
}

impl StreamDocument {
    /// The kind, which is also that of the document's key.
    pub const fn kind(&self) -> StreamKind {
        match self {
            Self::Upstream(_) => StreamKind::Upstream,
            Self::Ssl(_) => StreamKind::Ssl,
            Self::Ca(_) => StreamKind::Ca,
            Self::StreamRoute(_) => StreamKind::StreamRoute,
        }
    }

    /// The canonical compact JSON, as in [`crate::pingsix::Document::to_json`]: no blanks, no default values, fields
    /// in the order of their declaration, maps sorted, no id. Equal documents give equal bytes.
    pub fn to_json(&self) -> String {
        // Encoding these types cannot fail: all map keys are strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The length of [`to_json`](Self::to_json) in bytes, without keeping it.
    pub fn json_len(&self) -> usize {
        json_len(self)
    }

    /// The document as it may be shown to people: `<redacted>` stands for a private key.
    pub fn to_shown_value(&self) -> Value {
        let mut value = self.to_value();
        if matches!(self, Self::Ssl(_))
            && let Some(key) = value.get_mut("key")
        {
            *key = REDACTED.into();
        }
        value
    }

    /// The document as a JSON value.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Decodes the value of a key. Unknown fields are refused, because they may be essential.
    ///
    /// # Errors
    /// The decoder's. Its text can quote the value.
    pub fn decode(key: &StreamKey, value: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match key.kind {
            StreamKind::Upstream => Self::Upstream(serde_json::from_slice(value)?),
            StreamKind::Ssl => Self::Ssl(serde_json::from_slice(value)?),
            StreamKind::Ca => Self::Ca(serde_json::from_slice(value)?),
            StreamKind::StreamRoute => Self::StreamRoute(serde_json::from_slice(value)?),
        })
    }
}

impl From<StreamUpstream> for StreamDocument {
    fn from(upstream: StreamUpstream) -> Self {
        Self::Upstream(upstream)
    }
}

impl From<StreamSsl> for StreamDocument {
    fn from(ssl: StreamSsl) -> Self {
        Self::Ssl(ssl)
    }
}

impl From<StreamCa> for StreamDocument {
    fn from(ca: StreamCa) -> Self {
        Self::Ca(ca)
    }
}

impl From<StreamRoute> for StreamDocument {
    fn from(route: StreamRoute) -> Self {
        Self::StreamRoute(route)
    }
}
