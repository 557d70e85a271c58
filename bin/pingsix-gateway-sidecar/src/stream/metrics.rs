//! The metrics of connections.
//!
//! Labels are ports, outcomes and words, and never names of objects.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{DirectionLabels, PortLabels};
use super::outcome::Outcome;
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
struct ConnectionLabels {
    port: u16,
    outcome: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandshakeLabels {
    port: u16,
    kind: &'static str,
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
    use pingsix_translate::stream::RejectReason;
    use prometheus_client::encoding::text::encode;

    use super::super::outcome::Reason;
    use super::*;

    #[test]
    fn connections_are_counted_by_port_outcome_and_reason() {
        let metrics = StreamMetrics::new();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let port = metrics.port(443);
        port.ended(Outcome::Closed);
        port.ended(Outcome::Rejected(Reason::Route(RejectReason::NoRoute)));
        port.ended(Outcome::Rejected(Reason::Route(RejectReason::NoRoute)));
        port.ended(Outcome::Rejected(Reason::Handshake(tls::HandshakeError::Slow)));
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
