//! A listener with its verdict.

use std::net::SocketAddrV4;
use std::sync::Arc;

use super::allowed_routes::AllowedNamespaces;
use super::front::Front;
use super::overlap::Overlap;
use super::protocol::{Protocol, TlsMode};
use crate::model::{Age, FieldPath, Hostname, Kind, ObjectKey, Refusal, RouteKind};
use crate::references::Certificate;
use crate::stream::front_address;

/// A listener with its verdict.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    /// The Gateway or ListenerSet whose spec contains it.
    pub(crate) owner: Arc<ObjectKey>,
    /// The age of the owner.
    pub(crate) age: Age,
    /// Index into `spec.listeners` of the owner.
    pub(crate) index: usize,
    pub(crate) name: String,
    /// `None` for a protocol that the data planes do not support.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) written_protocol: String,
    /// The port as written, by which parentRefs select.
    pub(crate) written_port: i32,
    /// The port; 0 if the written number is no port.
    pub(crate) port: u16,
    pub(crate) hostname: Option<Hostname>,
    /// `None` without TLS.
    pub(crate) tls_mode: Option<TlsMode>,
    /// `None` if the sidecar terminates no TLS in front of PingSIX for it.
    pub(crate) front: Option<Front>,
    pub(crate) state: ListenerState,
    /// The refusals of references. They do not depend on the state. A ListenerSet that is not allowed has none.
    pub(crate) unresolved: Vec<Refusal>,
    /// Differences between the served listener and its spec; empty for a listener that is not served. Lowering adds
    /// to it.
    pub(crate) limitations: Vec<Refusal>,
    /// The listeners with shared hosts.
    pub(crate) overlap: Option<Overlap>,
    /// Kinds of routes that may attach.
    pub(crate) supported_kinds: Vec<RouteKind>,
    pub(crate) namespaces: AllowedNamespaces,
}

/// The state of a listener. Illegal combinations (a refused listener with a certificate) do not exist.
#[derive(Clone, Debug)]
pub(crate) enum ListenerState {
    /// The listener is served, with certificates if it terminates TLS.
    Served { certificates: Vec<Certificate> },
    /// The listener is accepted, but not served, because none of its certificates is usable.
    Unresolved,
    /// The listener is not accepted.
    Refused { refusal: Refusal },
    /// The listener is not accepted, because it conflicts with another listener.
    Conflicted { refusal: Refusal },
    /// The listener is not accepted, because the Gateway does not allow its ListenerSet.
    Excluded { refusal: Refusal },
}

impl Listener {
    /// The field of the listener in its owner's spec.
    pub(crate) fn at(&self) -> FieldPath {
        FieldPath::new("spec").child("listeners").index(self.index)
    }

    /// Whether it needs certificates.
    pub(crate) fn terminates_tls(&self) -> bool {
        self.tls_mode == Some(TlsMode::Terminate)
    }

    /// The address at which PingSIX gets the requests of a fronted listener.
    pub(crate) fn front_address(&self) -> Option<SocketAddrV4> {
        Some(front_address(self.port, self.front.as_ref()?.slot?))
    }

    /// Whether the sidecar terminates TLS for the listener, in front of PingSIX.
    pub(crate) const fn is_fronted(&self) -> bool {
        self.front.is_some()
    }

    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, ListenerState::Served { .. })
    }

    /// Whether the listener has its hosts, served or not, so that listeners with wider hostnames do not get them. A listener
    /// that lost a conflict has no hosts, nor has one that the Gateway does not allow.
    pub(crate) fn keeps_hosts(&self) -> bool {
        match self.state {
            ListenerState::Served { .. } | ListenerState::Unresolved | ListenerState::Refused { .. } => true,
            ListenerState::Conflicted { .. } | ListenerState::Excluded { .. } => false,
        }
    }

    /// The reason for which the listener is not accepted.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match &self.state {
            ListenerState::Served { .. } | ListenerState::Unresolved => None,
            ListenerState::Refused { refusal }
            | ListenerState::Conflicted { refusal }
            | ListenerState::Excluded { refusal } => Some(refusal),
        }
    }

    /// Whether another listener attaches routes and leads to verdicts on routes alike. Certificates and their
    /// refusals may differ.
    pub(super) fn attaches_like(&self, other: &Self) -> bool {
        let Self {
            owner,
            age,
            index,
            name,
            protocol,
            written_protocol,
            written_port,
            port,
            hostname,
            tls_mode,
            front,
            state: _,
            unresolved: _,
            limitations: _,
            overlap: _,
            supported_kinds,
            namespaces,
        } = self;
        (owner, *age, *index, name, *protocol, written_protocol)
            == (&other.owner, other.age, other.index, &other.name, other.protocol, &other.written_protocol)
            && (*written_port, *port, hostname, *tls_mode)
                == (other.written_port, other.port, &other.hostname, other.tls_mode)
            && (supported_kinds, namespaces) == (&other.supported_kinds, &other.namespaces)
            && front.is_some() == other.front.is_some()
            && self.is_served() == other.is_served()
    }

    pub(crate) fn supports(&self, kind: Kind) -> bool {
        self.supported_kinds
            .iter()
            .any(|supported| supported.kind == kind.as_str() && supported.group == kind.group())
    }
}
