//! The metrics of connections.
//!
//! Labels are ports, outcomes and words, and never names of objects.

use pingsix_translate::stream::Rejection;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::client_hello::Flaw;
use super::tls;
use super::udp::DatagramMetrics;

/// The counters of all ports.
#[derive(Clone, Debug, Default)]
pub struct StreamMetrics {
    connections: Family<ConnectionLabels, Counter>,
    active: Family<PortLabels, Gauge>,
    bytes: Family<DirectionLabels, Counter>,
    handshakes: Family<HandshakeLabels, Counter>,
    connect_failures: Family<PortLabels, Counter>,
    accept_pauses: Family<PortLabels, Counter>,
    datagrams: DatagramMetrics,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PortLabels {
    pub(super) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConnectionLabels {
    port: u16,
    outcome: &'static str,
    reason: &'static str,
}

/// The labels of something that is passed on: `in` from clients, `out` to clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DirectionLabels {
    pub(super) port: u16,
    pub(super) direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandshakeLabels {
    port: u16,
    kind: &'static str,
}

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
    /// The route says so.
    Route(Rejection),
    /// No route has the server name.
    NoMatch,
    /// There is no server name, and the port has no route for such connections.
    NoServerName,
    /// The first bytes are no `ClientHello`, or too large a one.
    Hello(Flaw),
    /// The `ClientHello` was not complete in time.
    HelloTimeout,
    /// The client left before the `ClientHello` was complete.
    HelloEnded,
    /// Too many connections, and this one was the oldest without a route, or with an unfinished handshake.
    Evicted,
    /// The TLS handshake failed.
    Handshake(tls::Flaw),
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
    /// Whether the client knows that nothing is missing.
    pub(super) const fn is_orderly(self) -> bool {
        matches!(self, Self::Closed | Self::Rejected(Reason::SlowRequest | Reason::NoRequest))
    }

    const fn words(self) -> (&'static str, &'static str) {
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
            Self::Route(Rejection::Invalid) => "invalid",
            Self::Route(Rejection::NoEndpoints) => "no_endpoints",
            Self::Route(Rejection::NoRoute) => "no_route",
            Self::NoMatch => "no_match",
            Self::NoServerName => "no_server_name",
            Self::Hello(Flaw::NotClientHello) => "no_client_hello",
            Self::Hello(Flaw::TooLarge) => "large_client_hello",
            Self::HelloTimeout => "slow_client_hello",
            Self::HelloEnded => "client_left",
            Self::Evicted => "evicted",
            Self::Handshake(tls::Flaw::Slow) => "slow_handshake",
            Self::Handshake(tls::Flaw::Evicted) => "evicted_handshake",
            Self::Handshake(tls::Flaw::Left) => "client_left_handshake",
            Self::Handshake(tls::Flaw::Refused) => "client_refused",
            Self::Handshake(tls::Flaw::Incompatible) => "incompatible_client",
            Self::Handshake(tls::Flaw::Invalid) => "invalid_handshake",
            Self::Handshake(tls::Flaw::ServerName) => "other_server_name",
            Self::Handshake(tls::Flaw::ClientCertificate) => "client_certificate",
            Self::SlowRequest => "slow_request",
            Self::NoRequest => "client_left_request",
            Self::Limit => "limit",
            Self::Unreachable => "unreachable",
            Self::Resources => "resources",
        }
    }
}

impl StreamMetrics {
    /// Metrics that start at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the metrics to a registry; their names begin with `stream_`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("stream");
        registry.register(
            "connections",
            "Connections that ended, by port, outcome (closed, broken, cut, rejected) and reason of rejection",
            self.connections.clone(),
        );
        registry.register("active_connections", "Open connections of clients", self.active.clone());
        registry.register_with_unit(
            "transferred",
            "Bytes passed on, by port and direction (in from clients, out to clients)",
            Unit::Bytes,
            self.bytes.clone(),
        );
        registry.register(
            "handshakes",
            "TLS handshakes that succeeded, by port and kind (full, resumed)",
            self.handshakes.clone(),
        );
        registry.register(
            "connect_failures",
            "Failed attempts to connect to a node",
            self.connect_failures.clone(),
        );
        registry.register(
            "accept_pauses",
            "Pauses of accepting connections for lack of descriptors or memory",
            self.accept_pauses.clone(),
        );
        self.datagrams.register(registry);
    }

    /// The metrics of UDP.
    pub(super) fn datagrams(&self) -> &DatagramMetrics {
        &self.datagrams
    }

    /// The counters of a port, without further lookups for each connection.
    pub(super) fn port(&self, port: u16) -> PortMetrics {
        let bytes = |direction| {
            let counter = self.bytes.get_or_create(&DirectionLabels { port, direction });
            counter.clone()
        };
        let handshakes = |kind| self.handshakes.get_or_create(&HandshakeLabels { port, kind }).clone();
        let labels = PortLabels { port };
        PortMetrics {
            port,
            connections: self.connections.clone(),
            active: self.active.get_or_create(&labels).clone(),
            bytes_in: bytes("in"),
            bytes_out: bytes("out"),
            full_handshakes: handshakes("full"),
            resumed_handshakes: handshakes("resumed"),
            connect_failures: self.connect_failures.get_or_create(&labels).clone(),
            accept_pauses: self.accept_pauses.get_or_create(&labels).clone(),
        }
    }
}

/// The counters of one port.
#[derive(Debug)]
pub(super) struct PortMetrics {
    port: u16,
    connections: Family<ConnectionLabels, Counter>,
    pub(super) active: Gauge,
    /// Bytes from clients.
    pub(super) bytes_in: Counter,
    /// Bytes to clients.
    pub(super) bytes_out: Counter,
    full_handshakes: Counter,
    resumed_handshakes: Counter,
    pub(super) connect_failures: Counter,
    pub(super) accept_pauses: Counter,
}

impl PortMetrics {
    /// Counts a connection that ended.
    pub(super) fn ended(&self, outcome: Outcome) {
        let (outcome, reason) = outcome.words();
        self.connections.get_or_create(&ConnectionLabels { port: self.port, outcome, reason }).inc();
    }

    /// Counts a TLS handshake that succeeded.
    pub(super) fn shaken(&self, kind: tls::Kind) {
        let counter = match kind {
            tls::Kind::Full => &self.full_handshakes,
            tls::Kind::Resumed => &self.resumed_handshakes,
        };
        counter.inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn connections_are_counted_by_port_outcome_and_reason() {
        let metrics = StreamMetrics::new();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let port = metrics.port(443);
        port.ended(Outcome::Closed);
        port.ended(Outcome::Rejected(Reason::Route(Rejection::NoRoute)));
        port.ended(Outcome::Rejected(Reason::Route(Rejection::NoRoute)));
        port.ended(Outcome::Rejected(Reason::Handshake(tls::Flaw::Slow)));
        port.shaken(tls::Kind::Resumed);
        port.bytes_in.inc_by(7);
        port.active.inc();
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            r#"stream_connections_total{port="443",outcome="closed",reason=""} 1"#,
            r#"stream_connections_total{port="443",outcome="rejected",reason="no_route"} 2"#,
            r#"stream_connections_total{port="443",outcome="rejected",reason="slow_handshake"} 1"#,
            r#"stream_handshakes_total{port="443",kind="resumed"} 1"#,
            r#"stream_transferred_bytes_total{port="443",direction="in"} 7"#,
            r#"stream_active_connections{port="443"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
