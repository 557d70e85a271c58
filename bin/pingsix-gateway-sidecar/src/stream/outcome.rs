//! The ends of connections, in words for metrics and logs.

use pingsix_translate::stream::RejectReason;

use super::client_hello::ClientHelloError;
use super::tls;

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Both sides have ended it.
    Closed,
    /// One side reset it, or went away.
    Broken,
    /// The proxy ended it: the grace after a shutdown or after the removal of its listener was over.
    Cut,
    /// It reached no backend.
    Rejected(Reason),
}

/// Reason why a connection reaches no backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The route rejects its connections.
    Route(RejectReason),
    /// No route has the server name.
    NoMatch,
    /// There is no server name, and the port has no route for such connections.
    NoServerName,
    /// The first bytes are no `ClientHello`, or too large a one.
    Hello(ClientHelloError),
    /// The `ClientHello` was not complete in time.
    HelloTimeout,
    /// The client left before the `ClientHello` was complete.
    HelloEnded,
    /// Too many connections, and this one was the oldest without a route, or with an unfinished handshake.
    Evicted,
    /// The TLS handshake failed.
    Handshake(tls::HandshakeError),
    /// The client did not begin a request of HTTP in time.
    SlowRequest,
    /// The client left after the handshake and before a request of HTTP.
    NoRequest,
    /// Too many connections.
    Limit,
    /// No node could be reached.
    Unreachable,
    /// The process is short of descriptors, ports or memory.
    Resources,
}

impl Outcome {
    /// Whether the end shows the client that it has received everything.
    pub(super) const fn is_orderly(self) -> bool {
        matches!(self, Self::Closed | Self::Rejected(Reason::SlowRequest | Reason::NoRequest))
    }

    pub(super) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Closed => ("closed", ""),
            Self::Broken => ("broken", ""),
            Self::Cut => ("cut", ""),
            Self::Rejected(reason) => ("rejected", reason.as_str()),
        }
    }
}

impl Reason {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Route(RejectReason::Invalid) => "invalid",
            Self::Route(RejectReason::NoEndpoints) => "no_endpoints",
            Self::Route(RejectReason::NoRoute) => "no_route",
            Self::NoMatch => "no_match",
            Self::NoServerName => "no_server_name",
            Self::Hello(ClientHelloError::NotClientHello) => "no_client_hello",
            Self::Hello(ClientHelloError::TooLarge) => "large_client_hello",
            Self::HelloTimeout => "slow_client_hello",
            Self::HelloEnded => "client_left",
            Self::Evicted => "evicted",
            Self::Handshake(tls::HandshakeError::Slow) => "slow_handshake",
            Self::Handshake(tls::HandshakeError::Evicted) => "evicted_handshake",
            Self::Handshake(tls::HandshakeError::Left) => "client_left_handshake",
            Self::Handshake(tls::HandshakeError::Refused) => "client_refused",
            Self::Handshake(tls::HandshakeError::Incompatible) => "incompatible_client",
            Self::Handshake(tls::HandshakeError::Invalid) => "invalid_handshake",
            Self::Handshake(tls::HandshakeError::ServerName) => "other_server_name",
            Self::Handshake(tls::HandshakeError::ClientCertificate) => "client_certificate",
            Self::SlowRequest => "slow_request",
            Self::NoRequest => "client_left_request",
            Self::Limit => "limit",
            Self::Unreachable => "unreachable",
            Self::Resources => "resources",
        }
    }
}
