//! The validity of a single listener, and the hosts and certificates that it serves.

use std::sync::Arc;

use gateway_api::gateways as api;
use serde_json::Value;

use super::allowed_routes::{AllowedNamespaces, supported_kinds};
use super::front::Front;
use super::protocol::{Protocol, TlsMode};
use super::tls::{JudgedValidation, judge_validation, refuse_tls, resolve_certificates, tls_mode};
use super::{Overlap, stream};
use crate::model::{
    Age, FieldPath, Hostname, HostnameFlaw, Kind, Limitation, ObjectKey, Reason, Refusal, RouteKind,
};
use crate::references::{Certificate, References};
use crate::snapshot::{ExtraListenerFields, GatewaySpec};

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
    pub(crate) limitations: Vec<Limitation>,
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

    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, ListenerState::Served { .. })
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

/// A listener as written, with its position.
#[derive(Clone, Debug)]
pub(super) struct ListenerSource<'a> {
    pub(super) owner: &'a Arc<ObjectKey>,
    pub(super) age: Age,
    pub(super) index: usize,
    pub(super) at: FieldPath,
    pub(super) written: &'a api::GatewayListeners,
    pub(super) extra: Option<&'a ExtraListenerFields>,
}

/// The support of data planes for listeners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerSupport {
    /// [`Parameters::serves_streams`](crate::parameters::Parameters::serves_streams).
    pub(crate) serves_streams: bool,
    /// [`Parameters::fronts_https`](crate::parameters::Parameters::fronts_https).
    pub(crate) fronts_https: bool,
    /// Whether there is a responder.
    pub(crate) has_responder: bool,
    /// The number of ports of HTTP that all listeners together may have.
    pub(crate) max_ports: usize,
}

#[cfg(test)]
impl ListenerSupport {
    /// Nothing terminates TLS in front of PingSIX.
    pub(crate) const fn unfronted(serves_streams: bool, max_ports: usize) -> Self {
        Self { serves_streams, fronts_https: false, has_responder: true, max_ports }
    }
}

/// The inputs of a listener's verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origins<'a> {
    pub(super) gateway_key: &'a Arc<ObjectKey>,
    pub(super) gateway: &'a GatewaySpec,
    pub(super) references: &'a References<'a>,
    pub(super) support: ListenerSupport,
}

impl Origins<'_> {
    /// Whether the sidecar terminates TLS in front of PingSIX for listeners with a protocol.
    pub(super) fn fronts(&self, protocol: Option<Protocol>) -> bool {
        self.support.fronts_https && protocol == Some(Protocol::Https)
    }
}

/// Judges a listener by itself.
pub(super) fn judge_alone(source: &ListenerSource<'_>, origins: &Origins<'_>) -> Listener {
    let ListenerSource { written, at, .. } = source;
    let protocol = Protocol::parse(&written.protocol, origins.support.serves_streams);
    let port = u16::try_from(written.port).unwrap_or_default();
    let hostname =
        written.hostname.as_deref().filter(|name| !name.is_empty()).map(Hostname::parse).transpose();
    let namespaces = AllowedNamespaces::of(written, at);

    let (supported_kinds, wrong_kinds) = match protocol {
        None => (Vec::new(), Vec::new()),
        Some(protocol) => supported_kinds(written, protocol, at),
    };
    let tls_mode = tls_mode(written, protocol);
    let (certificates, mut unresolved) = match tls_mode {
        Some(TlsMode::Terminate) => resolve_certificates(source, protocol, origins),
        Some(TlsMode::Passthrough) | None => (Vec::new(), Vec::new()),
    };
    let mut validation = JudgedValidation::default();
    if protocol == Some(Protocol::Https) {
        validation = judge_validation(source, origins);
    }
    let JudgedValidation { refusal: validation, unusable, honoured } = validation;
    let front = origins.fronts(protocol).then(|| Front::new(honoured, origins.support.has_responder));
    unresolved.extend(unusable);
    unresolved.extend(wrong_kinds);

    let names_host = matches!(hostname, Ok(Some(_)));
    let refusal = refuse_port(written, port, at)
        .or_else(|| refuse_protocol(written, protocol, at))
        .or_else(|| Some(refuse_hostname(written, *hostname.as_ref().err()?, at)))
        .or_else(|| stream::refuse_hostname(protocol.filter(|_| names_host)?, at))
        .or_else(|| refuse_tls(source, protocol?))
        .or(validation)
        .or_else(|| refuse_filters(source.extra?, at))
        .or_else(|| namespaces.as_ref().err().cloned());
    let state = match (refusal, tls_mode) {
        (Some(refusal), _) => ListenerState::Refused { refusal },
        (None, Some(TlsMode::Terminate)) if certificates.is_empty() => ListenerState::Unresolved,
        (None, _) => ListenerState::Served { certificates },
    };
    Listener {
        owner: source.owner.clone(),
        age: source.age,
        index: source.index,
        name: written.name.clone(),
        protocol,
        written_protocol: written.protocol.clone(),
        written_port: written.port,
        port,
        hostname: hostname.unwrap_or_default(),
        tls_mode,
        front,
        state,
        unresolved,
        limitations: options_limitation(written, at).into_iter().collect(),
        overlap: None,
        supported_kinds,
        namespaces: namespaces.unwrap_or(AllowedNamespaces::None),
    }
}

fn refuse_port(listener: &api::GatewayListeners, port: u16, at: &FieldPath) -> Option<Refusal> {
    (port == 0).then(|| {
        Refusal::new(
            at.child("port"),
            Reason::PortUnavailable,
            format!("{} is not a port number.", listener.port),
        )
    })
}

fn refuse_protocol(
    listener: &api::GatewayListeners,
    protocol: Option<Protocol>,
    at: &FieldPath,
) -> Option<Refusal> {
    protocol.is_none().then(|| {
        Refusal::new(
            at.child("protocol"),
            Reason::UnsupportedProtocol,
            format!("The data plane does not serve protocol {}.", listener.protocol),
        )
    })
}

fn refuse_hostname(listener: &api::GatewayListeners, flaw: HostnameFlaw, at: &FieldPath) -> Refusal {
    let text = listener.hostname.as_deref().unwrap_or_default();
    Refusal::new(
        at.child("hostname"),
        Reason::UnsupportedValue,
        format!("\"{text}\" is not a hostname: {flaw}."),
    )
}

/// Refuses filters that run before routing. A filter that authenticates must not be skipped.
fn refuse_filters(extra: &ExtraListenerFields, at: &FieldPath) -> Option<Refusal> {
    let mut asked = Vec::new();
    for (list, filters) in &extra.filters {
        match filters {
            Value::Null => {}
            Value::Array(filters) => asked.extend(filters.iter().enumerate().map(|(index, filter)| {
                let kind = filter.get("type").and_then(Value::as_str).unwrap_or("without a type");
                format!("{list}[{index}] ({kind})")
            })),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                asked.push(list.clone());
            }
        }
    }
    (!asked.is_empty()).then(|| {
        Refusal::new(
            at.child("filters"),
            Reason::UnsupportedValue,
            format!(
                "PingSIX has no filters that run before routing, so the listener is not served: {}.",
                asked.join(", ")
            ),
        )
    })
}

/// Names the ignored options of TLS.
fn options_limitation(listener: &api::GatewayListeners, at: &FieldPath) -> Option<Limitation> {
    let options = listener.tls.as_ref()?.options.as_ref().filter(|options| !options.is_empty())?;
    let keys: Vec<&str> = options.keys().map(String::as_str).collect();
    Some(Limitation::new(
        at.child("tls").child("options"),
        format!("There are no options for TLS, so these are not looked at: {}.", keys.join(", ")),
    ))
}

#[cfg(test)]
mod tests;
