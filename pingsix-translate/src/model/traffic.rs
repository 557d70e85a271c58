//! What the clients of a route speak.

/// What the clients of a route speak: decides how its backends are spoken to, and what failure looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Traffic {
    #[default]
    Http,
    Grpc,
    /// Bytes over TCP, passed on as they are.
    Tcp,
    /// TLS over TCP, passed on as it is, or what is in it, as the listener says.
    Tls,
    /// Datagrams, passed on as they are.
    Udp,
}

impl Traffic {
    /// What a rule answers that cannot be honoured, or has nowhere to send requests to. Connections that carry no
    /// requests are closed in its stead.
    pub(crate) const fn failure(self) -> u16 {
        match self {
            Self::Http | Self::Tcp | Self::Tls | Self::Udp => 500,
            // What clients take for UNAVAILABLE; 500 would be UNKNOWN to them.
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

    /// The protocol of Service ports that take it. A number may be there once per protocol.
    pub(crate) const fn transport(self) -> &'static str {
        match self {
            Self::Http | Self::Grpc | Self::Tcp | Self::Tls => "TCP",
            Self::Udp => "UDP",
        }
    }
}
