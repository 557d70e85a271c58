//! Protocols of listeners.

use crate::infrastructure::PortProtocol;
use crate::model::{Capability, Executors, Kind};

/// Supported protocols. PingSIX serves HTTP and HTTPS, and the reader of stream documents serves the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Http,
    Https,
    Tls,
    Tcp,
    Udp,
}

/// `tls.mode` of a listener with protocol TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    /// The listener terminates TLS.
    Terminate,
    /// The backend terminates TLS.
    Passthrough,
}

impl From<PortProtocol> for Protocol {
    fn from(protocol: PortProtocol) -> Self {
        match protocol {
            PortProtocol::Plaintext => Self::Http,
            PortProtocol::Tls | PortProtocol::Fronted => Self::Https,
        }
    }
}

impl Protocol {
    /// Reads `listeners[].protocol`; `None` is a protocol that data planes with these executors do not support.
    pub(crate) fn parse(text: &str, executors: Executors) -> Option<Self> {
        let streams = Capability::StreamProtocol.is_served(executors);
        Self::known(text).filter(|protocol| protocol.is_http() || streams)
    }

    /// Reads the name of a protocol of Gateway API, supported or not.
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

    /// The kinds of routes for the protocol (Gateway API, `ProtocolType`).
    pub(crate) const fn route_kinds(self) -> &'static [Kind] {
        match self {
            Self::Http | Self::Https => &[Kind::HttpRoute, Kind::GrpcRoute],
            Self::Tls => &[Kind::TlsRoute],
            Self::Tcp => &[Kind::TcpRoute],
            Self::Udp => &[Kind::UdpRoute],
        }
    }
}
