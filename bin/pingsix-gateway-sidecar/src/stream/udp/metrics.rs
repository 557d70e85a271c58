//! The metrics of datagrams and their sessions.

use pingsix_translate::stream::RejectReason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::super::labels::{DirectionLabels, PortLabels};
use super::super::outcome::Reason;

/// The counters of all ports.
#[derive(Clone, Debug, Default)]
pub(in crate::stream) struct DatagramMetrics {
    datagrams: Family<DirectionLabels, Counter>,
    bytes: Family<DirectionLabels, Counter>,
    dropped: Family<DropLabels, Counter>,
    active: Family<PortLabels, Gauge>,
    ended: Family<EndLabels, Counter>,
    refusals: Family<PortLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DropLabels {
    port: u16,
    direction: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    port: u16,
    reason: &'static str,
}

/// Reason why a datagram of a client is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// The route rejects its datagrams.
    Route(RejectReason),
    /// The source is no client.
    Source,
    /// Too many new sessions.
    Rate,
    /// No session has a place to give up.
    Limit,
    /// No node takes the datagram.
    Unreachable,
    /// The port is to be closed, and the datagram has no session.
    Closing,
    /// The datagram could not be sent.
    Unsent(Unsent),
}

/// Reason why this machine could not send a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// The buffer of the socket is full.
    Congested,
    /// The datagram is larger than the network allows.
    TooLarge,
    /// The process is short of descriptors, ports or memory.
    Resources,
    /// The system refuses the address.
    Address,
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// No datagram came for a while.
    Idle,
    /// Too many sessions, and this one was the least recently used.
    Evicted,
    /// Its route or its node is gone.
    Withdrawn,
    /// Its port was closed.
    Cut,
}

impl Dropped {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Route(word) => Reason::Route(word).as_str(),
            Self::Source => "source",
            Self::Rate => "rate",
            Self::Limit => Reason::Limit.as_str(),
            Self::Unreachable => Reason::Unreachable.as_str(),
            Self::Closing => "closing",
            Self::Unsent(unsent) => unsent.as_str(),
        }
    }
}

impl Unsent {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Congested => "congested",
            Self::TooLarge => "too_large",
            Self::Resources => Reason::Resources.as_str(),
            Self::Address => "address",
        }
    }
}

impl End {
    const ALL: [Self; 4] = [Self::Idle, Self::Evicted, Self::Withdrawn, Self::Cut];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Evicted => "evicted",
            Self::Withdrawn => "withdrawn",
            Self::Cut => "cut",
        }
    }
}

impl DatagramMetrics {
    /// Adds the metrics to a registry.
    pub(in crate::stream) fn register(&self, registry: &mut Registry) {
        registry.register(
            "datagrams",
            "Datagrams passed on, by port and direction (in from clients, out to clients)",
            self.datagrams.clone(),
        );
        registry.register_with_unit(
            "datagram",
            "Bytes of datagrams passed on, by port and direction",
            Unit::Bytes,
            self.bytes.clone(),
        );
        registry.register(
            "dropped_datagrams",
            "Datagrams dropped, by port, direction and reason",
            self.dropped.clone(),
        );
        registry.register("active_sessions", "Sessions of UDP clients", self.active.clone());
        registry.register(
            "sessions",
            "Sessions of UDP clients that ended, by port and reason (idle, evicted, withdrawn, cut)",
            self.ended.clone(),
        );
        registry.register(
            "session_refusals",
            "Nodes that refused the datagrams of a session",
            self.refusals.clone(),
        );
    }

    /// The counters of a port.
    pub(super) fn port(&self, port: u16) -> PortMetrics {
        let of = |family: &Family<DirectionLabels, Counter>, direction| {
            let counter = family.get_or_create(&DirectionLabels { port, direction });
            counter.clone()
        };
        for end in End::ALL {
            drop(self.ended.get_or_create(&EndLabels { port, reason: end.as_str() }));
        }
        let labels = PortLabels { port };
        PortMetrics {
            port,
            inward: Passed { datagrams: of(&self.datagrams, "in"), bytes: of(&self.bytes, "in") },
            outward: Passed { datagrams: of(&self.datagrams, "out"), bytes: of(&self.bytes, "out") },
            dropped: self.dropped.clone(),
            active: self.active.get_or_create(&labels).clone(),
            ended: self.ended.clone(),
            refusals: self.refusals.get_or_create(&labels).clone(),
        }
    }
}

/// The counters of one port.
#[derive(Debug)]
pub(super) struct PortMetrics {
    port: u16,
    /// From clients.
    pub(super) inward: Passed,
    /// To clients.
    pub(super) outward: Passed,
    dropped: Family<DropLabels, Counter>,
    active: Gauge,
    ended: Family<EndLabels, Counter>,
    pub(super) refusals: Counter,
}

/// The datagrams of one direction.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) datagrams: Counter,
    pub(super) bytes: Counter,
}

impl PortMetrics {
    /// Counts datagrams of a client that are dropped.
    pub(super) fn dropped(&self, reason: Dropped, datagrams: usize) {
        self.count("in", reason.as_str(), datagrams);
    }

    /// Counts answers that are dropped.
    pub(super) fn dropped_answers(&self, reason: Unsent, datagrams: usize) {
        self.count("out", reason.as_str(), datagrams);
    }

    fn count(&self, direction: &'static str, reason: &'static str, datagrams: usize) {
        let labels = DropLabels { port: self.port, direction, reason };
        self.dropped.get_or_create(&labels).inc_by(u64::try_from(datagrams).unwrap_or(u64::MAX));
    }

    /// Counts a session that began.
    pub(super) fn began(&self) {
        self.active.inc();
    }

    /// Counts a session that ended.
    pub(super) fn ended(&self, end: End) {
        self.active.dec();
        self.ended.get_or_create(&EndLabels { port: self.port, reason: end.as_str() }).inc();
    }
}
