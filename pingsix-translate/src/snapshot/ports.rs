//! The ports of Services and EndpointSlices, with the fields that translation reads.

use std::num::NonZeroU16;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ServicePort as WireServicePort;
use k8s_openapi::api::discovery::v1::EndpointPort as WireEndpointPort;

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServicePort {
    /// The name, if it has one.
    pub name: Option<Arc<str>>,
    /// The number.
    pub port: i32,
    /// The protocol.
    pub protocol: Protocol,
    /// `appProtocol`, if it is set.
    pub app_protocol: Option<Arc<str>>,
}

/// The protocol of a port of a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, the default.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// A protocol that Kubernetes does not have.
    Unknown,
}

impl Protocol {
    /// The spelling of Kubernetes; empty for a protocol that it does not have.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
            Self::Unknown => "",
        }
    }

    fn read(written: Option<&str>) -> Self {
        match written {
            None | Some("TCP") => Self::Tcp,
            Some("UDP") => Self::Udp,
            Some("SCTP") => Self::Sctp,
            Some(_) => Self::Unknown,
        }
    }
}

impl From<&WireServicePort> for ServicePort {
    fn from(port: &WireServicePort) -> Self {
        Self {
            name: port.name.as_deref().map(Arc::from),
            port: port.port,
            protocol: Protocol::read(port.protocol.as_deref()),
            app_protocol: port.app_protocol.as_deref().map(Arc::from),
        }
    }
}

/// A port of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPort {
    /// The name of the port of the Service, if it has one.
    pub name: Option<Arc<str>>,
    /// The port number; `None` if the number is missing or not a valid port.
    pub port: Option<NonZeroU16>,
}

impl From<&WireEndpointPort> for EndpointPort {
    fn from(port: &WireEndpointPort) -> Self {
        let number = port.port.and_then(|port| u16::try_from(port).ok());
        Self { name: port.name.as_deref().map(Arc::from), port: number.and_then(NonZeroU16::new) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_carries_tcp_unless_it_says_otherwise() {
        let protocol = |written| {
            ServicePort::from(&WireServicePort { protocol: written, ..WireServicePort::default() }).protocol
        };
        assert_eq!(protocol(None), Protocol::Tcp);
        assert_eq!(protocol(Some("tcp".to_owned())), Protocol::Unknown);
    }
}
