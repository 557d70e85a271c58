//! Traffic of a route's clients.

/// The traffic of a route's clients, which decides the backend protocol and the form of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Traffic {
    #[default]
    Http,
    Grpc,
    /// Bytes over TCP, passed on as they are.
    Tcp,
    /// TLS over TCP, passed through or terminated, as the listener configures.
    Tls,
    /// Datagrams, passed on as they are.
    Udp,
}

impl Traffic {
    /// The status of a rule that cannot be honoured or has no backend. Connections without requests are closed
    /// instead.
    pub(crate) const fn failure(self) -> u16 {
        match self {
            Self::Http | Self::Tcp | Self::Tls | Self::Udp => 500,
            // Clients map 503 to UNAVAILABLE; 500 would be UNKNOWN.
            Self::Grpc => 503,
        }
    }

    /// Whether there are requests that can be answered, not just connections that can be closed.
    pub(crate) const fn has_requests(self) -> bool {
        match self {
            Self::Http | Self::Grpc => true,
            Self::Tcp | Self::Tls | Self::Udp => false,
        }
    }

    /// The protocol of Service ports for this traffic. A number may occur once per protocol.
    pub(crate) const fn transport(self) -> &'static str {
        match self {
            Self::Http | Self::Grpc | Self::Tcp | Self::Tls => "TCP",
            Self::Udp => "UDP",
        }
    }
}
