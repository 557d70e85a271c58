//! Protocols of listeners.

use crate::model::{Kind, Options};

/// Protocols that can be served: HTTP and HTTPS by PingSIX, the others by what reads the stream documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Http,
    Https,
    Tls,
    Tcp,
    Udp,
}

/// What happens to TLS at a listener with protocol TLS: `tls.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    /// The listener decrypts.
    Terminate,
    /// The backend does.
    Passthrough,
}

impl Protocol {
    /// Reads `listeners[].protocol`; `None` for one that the data planes do not speak.
    pub(crate) fn parse(text: &str, options: &Options) -> Option<Self> {
        Self::known(text).filter(|protocol| protocol.is_http() || options.stream)
    }

    /// Reads the name of a protocol of Gateway API, whether or not anything serves it here.
    pub(super) fn known(text: &str) -> Option<Self> {
        match text {
            "HTTP" => Some(Self::Http),
            "HTTPS" => Some(Self::Https),
            "TLS" => Some(Self::Tls),
            "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            _ => None,
        }
    }

    /// Whether PingSIX serves it.
    pub(crate) const fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// The kinds of routes it can carry (Gateway API, `ProtocolType`).
    pub(crate) const fn route_kinds(self) -> &'static [Kind] {
        match self {
            Self::Http | Self::Https => &[Kind::HttpRoute, Kind::GrpcRoute],
            Self::Tls => &[Kind::TlsRoute],
            Self::Tcp => &[Kind::TcpRoute],
            Self::Udp => &[Kind::UdpRoute],
        }
    }
}
