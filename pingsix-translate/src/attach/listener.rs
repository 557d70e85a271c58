//! Which listeners of a Gateway are valid, and what each of them serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_api::gateways as api;

use super::Hostname;
use crate::field::FieldPath;
use crate::object::{GATEWAY_GROUP, Kind, ObjectKey};
use crate::resolve::{Certificate, References};
use crate::route::Refusal;
use crate::snapshot::Gateway;
use crate::verdict::{Problem, Reason, RouteKind};

/// Protocols PingSIX can serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Http,
    Https,
}

/// A listener, judged.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) hostname: Option<Hostname>,
    pub(crate) state: ListenerState,
    /// Kinds of routes that may attach.
    pub(crate) supported_kinds: Vec<RouteKind>,
    pub(crate) namespaces: AllowedNamespaces,
}

/// What a listener can do. Illegal combinations (a refused listener with a certificate) do not exist.
#[derive(Clone, Debug)]
pub(crate) enum ListenerState {
    /// Served. `unresolved` says why its references are not all good nevertheless.
    Served { protocol: Protocol, certificates: Vec<Certificate>, unresolved: Option<Refusal> },
    /// Accepted, but not served, because its only certificates are unusable.
    Unresolved { refusal: Refusal },
    /// Not accepted.
    Refused { refusal: Refusal },
    /// Not accepted, because it cannot be told from another listener. Its references are judged all the same.
    Conflicted { refusal: Refusal, unresolved: Option<Refusal> },
}

impl Listener {
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        match self.state {
            ListenerState::Served { protocol, .. } => Some(protocol),
            ListenerState::Unresolved { .. }
            | ListenerState::Refused { .. }
            | ListenerState::Conflicted { .. } => None,
        }
    }

    /// Why not all references are good.
    pub(crate) fn unresolved(&self) -> Option<&Refusal> {
        match &self.state {
            ListenerState::Served { unresolved, .. } | ListenerState::Conflicted { unresolved, .. } => {
                unresolved.as_ref()
            }
            ListenerState::Unresolved { refusal } => Some(refusal),
            ListenerState::Refused { .. } => None,
        }
    }

    pub(crate) fn supports(&self, kind: Kind) -> bool {
        self.supported_kinds
            .iter()
            .any(|supported| supported.kind == kind.as_str() && supported.group == kind.group())
    }
}

/// `allowedRoutes.namespaces`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowedNamespaces {
    Same,
    All,
    Selector { labels: BTreeMap<String, String>, expressions: Vec<Expression> },
}

/// One entry of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Not one of the API's: admits nothing.
    Unknown,
}

impl AllowedNamespaces {
    /// Whether routes of a namespace with these labels may attach.
    pub(crate) fn admits(
        &self,
        own: &str,
        namespace: &str,
        namespace_labels: &BTreeMap<String, String>,
    ) -> bool {
        match self {
            Self::Same => own == namespace,
            Self::All => true,
            Self::Selector { labels, expressions } => {
                labels.iter().all(|(key, value)| namespace_labels.get(key) == Some(value))
                    && expressions.iter().all(|expression| expression.holds(namespace_labels))
            }
        }
    }
}

impl Expression {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Unknown => false,
        }
    }
}

/// Judges every listener of a Gateway, in spec order.
pub(crate) fn judge_listeners(
    gateway: &Gateway,
    key: &Arc<ObjectKey>,
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Listener> {
    let mut listeners: Vec<Listener> = gateway
        .spec
        .listeners
        .iter()
        .enumerate()
        .map(|(index, listener)| judge_alone(gateway, key, index, listener, references))
        .collect();
    mark_conflicts(&mut listeners);
    for listener in &listeners {
        if let ListenerState::Refused { refusal } | ListenerState::Conflicted { refusal, .. } =
            &listener.state
        {
            problems.push(refusal.of(key));
        }
        problems.extend(listener.unresolved().map(|refusal| refusal.of(key)));
    }
    listeners
}

fn judge_alone(
    gateway: &Gateway,
    key: &Arc<ObjectKey>,
    index: usize,
    listener: &api::GatewayListeners,
    references: &References<'_>,
) -> Listener {
    let at = FieldPath::new("spec").child("listeners").index(index);
    let protocol = match listener.protocol.as_str() {
        "HTTP" => Some(Protocol::Http),
        "HTTPS" => Some(Protocol::Https),
        _ => None,
    };
    let (supported_kinds, invalid_kinds) = match protocol {
        None => (Vec::new(), None),
        Some(_) => supported_kinds(listener, &at),
    };
    let hostname = listener.hostname.as_deref().filter(|name| !name.is_empty()).map(Hostname::parse);
    let state = match (protocol, &hostname) {
        (None, _) => ListenerState::Refused {
            refusal: Refusal::new(
                at.child("protocol"),
                Reason::UnsupportedProtocol,
                format!("PingSIX does not serve protocol {}.", listener.protocol),
            ),
        },
        (Some(_), Some(Err(flaw))) => ListenerState::Refused {
            refusal: Refusal::new(
                at.child("hostname"),
                Reason::UnsupportedValue,
                format!(
                    "\"{}\" is not a hostname: {flaw}.",
                    listener.hostname.as_deref().unwrap_or_default()
                ),
            ),
        },
        (Some(Protocol::Http), _) => {
            ListenerState::Served { protocol: Protocol::Http, certificates: Vec::new(), unresolved: None }
        }
        (Some(Protocol::Https), _) => judge_tls(gateway, key, &at, listener, references),
    };
    let state = match (u16::try_from(listener.port).ok().filter(|port| *port > 0), state, invalid_kinds) {
        (None, ..) => ListenerState::Refused {
            refusal: Refusal::new(
                at.child("port"),
                Reason::UnsupportedValue,
                format!("{} is not a port number.", listener.port),
            ),
        },
        (Some(_), ListenerState::Served { protocol, certificates, unresolved: None }, unresolved) => {
            ListenerState::Served { protocol, certificates, unresolved }
        }
        (Some(_), state, _) => state,
    };
    Listener {
        name: listener.name.clone(),
        port: u16::try_from(listener.port).unwrap_or_default(),
        hostname: hostname.and_then(Result::ok),
        state,
        supported_kinds,
        namespaces: allowed_namespaces(listener),
    }
}

fn judge_tls(
    gateway: &Gateway,
    key: &Arc<ObjectKey>,
    at: &FieldPath,
    listener: &api::GatewayListeners,
    references: &References<'_>,
) -> ListenerState {
    let refused = |field: FieldPath, message: &str| ListenerState::Refused {
        refusal: Refusal::new(field, Reason::UnsupportedValue, message),
    };
    if let Some(field) = frontend_validation(gateway, listener.port) {
        return refused(field, "PingSIX asks clients for no certificates, so the listener is not served.");
    }
    let at = at.child("tls");
    let Some(tls) = &listener.tls else {
        return refused(at, "A listener with protocol HTTPS needs a certificate.");
    };
    if tls.mode == Some(api::GatewayListenersTlsMode::Passthrough) {
        return refused(
            at.child("mode"),
            "A listener with protocol HTTPS terminates TLS; mode Passthrough is for protocol TLS.",
        );
    }
    let refs = tls.certificate_refs.as_deref().unwrap_or_default();
    let at = at.child("certificateRefs");
    if refs.is_empty() {
        return ListenerState::Unresolved {
            refusal: Refusal::new(at, Reason::InvalidCertificateRef, "There is no certificate."),
        };
    }
    let mut certificates = Vec::new();
    let mut first_refusal = None;
    for (index, certificate) in refs.iter().enumerate() {
        match references.certificate(key, certificate, &at.index(index)) {
            Ok(certificate) => certificates.push(certificate),
            Err(refusal) => {
                first_refusal.get_or_insert(refusal);
            }
        }
    }
    match first_refusal {
        Some(refusal) if certificates.is_empty() => ListenerState::Unresolved { refusal },
        unresolved => ListenerState::Served { protocol: Protocol::Https, certificates, unresolved },
    }
}

/// The field that asks for client certificates on this port.
fn frontend_validation(gateway: &Gateway, port: i32) -> Option<FieldPath> {
    let frontend = gateway.spec.tls.as_ref()?.frontend.as_ref()?;
    let at = FieldPath::new("spec").child("tls").child("frontend");
    for (index, per_port) in frontend.per_port.iter().flatten().enumerate() {
        if per_port.port == port {
            // perPort replaces the default for that port, also when it asks for nothing.
            return per_port.tls.validation.is_some().then(|| at.child("perPort").index(index));
        }
    }
    frontend.default.validation.is_some().then(|| at.child("default"))
}

fn supported_kinds(listener: &api::GatewayListeners, at: &FieldPath) -> (Vec<RouteKind>, Option<Refusal>) {
    const CARRIED: [Kind; 1] = [Kind::HttpRoute];
    let as_route_kind =
        |kind: Kind| RouteKind { group: kind.group().to_owned(), kind: kind.as_str().to_owned() };
    let asked =
        listener.allowed_routes.as_ref().and_then(|allowed| allowed.kinds.as_deref()).unwrap_or_default();
    if asked.is_empty() {
        return (CARRIED.into_iter().map(as_route_kind).collect(), None);
    }
    let mut supported = Vec::new();
    let mut refusal = None;
    for (index, kind) in asked.iter().enumerate() {
        let group = kind.group.as_deref().unwrap_or(GATEWAY_GROUP);
        match Kind::from_group_kind(group, &kind.kind).filter(|known| CARRIED.contains(known)) {
            Some(known) => {
                let kind = as_route_kind(known);
                if !supported.contains(&kind) {
                    supported.push(kind);
                }
            }
            None => {
                refusal.get_or_insert_with(|| {
                    Refusal::new(
                        at.child("allowedRoutes").child("kinds").index(index),
                        Reason::InvalidRouteKinds,
                        format!(
                            "Routes of kind {} cannot attach to a listener with protocol {}.",
                            kind.kind, listener.protocol
                        ),
                    )
                });
            }
        }
    }
    (supported, refusal)
}

fn allowed_namespaces(listener: &api::GatewayListeners) -> AllowedNamespaces {
    use api::GatewayListenersAllowedRoutesNamespacesFrom as From;
    let Some(namespaces) = listener.allowed_routes.as_ref().and_then(|allowed| allowed.namespaces.as_ref())
    else {
        return AllowedNamespaces::Same;
    };
    match namespaces.from.as_ref().unwrap_or(&From::Same) {
        From::Same => AllowedNamespaces::Same,
        From::All => AllowedNamespaces::All,
        From::Selector => match &namespaces.selector {
            // The API demands a selector; without one, nothing is selected.
            None => AllowedNamespaces::Selector {
                labels: BTreeMap::new(),
                expressions: vec![Expression {
                    key: String::new(),
                    operator: Operator::Unknown,
                    values: Vec::new(),
                }],
            },
            Some(selector) => AllowedNamespaces::Selector {
                labels: selector.match_labels.clone().unwrap_or_default(),
                expressions: selector
                    .match_expressions
                    .iter()
                    .flatten()
                    .map(|expression| Expression {
                        key: expression.key.clone(),
                        operator: match expression.operator.as_str() {
                            "In" => Operator::In,
                            "NotIn" => Operator::NotIn,
                            "Exists" => Operator::Exists,
                            "DoesNotExist" => Operator::DoesNotExist,
                            _ => Operator::Unknown,
                        },
                        values: expression.values.clone().unwrap_or_default(),
                    })
                    .collect(),
            },
        },
    }
}

/// Listeners of one Gateway that cannot be told apart all lose (Gateway API, "Distinct Listeners").
fn mark_conflicts(listeners: &mut [Listener]) {
    let mut conflicts = Vec::new();
    for (index, listener) in listeners.iter().enumerate() {
        let Some(protocol) = claimed_protocol(listener) else { continue };
        let at = FieldPath::new("spec").child("listeners").index(index);
        let rivals = || {
            listeners.iter().enumerate().filter(move |(other_index, other)| {
                *other_index != index && other.port == listener.port && claimed_protocol(other).is_some()
            })
        };
        let protocol_rival = rivals().find(|(_, other)| claimed_protocol(other) != Some(protocol));
        let hostname_rival = rivals().find(|(_, other)| other.hostname == listener.hostname);
        if let Some((_, rival)) = protocol_rival {
            conflicts.push((
                index,
                Refusal::new(
                    at.child("protocol"),
                    Reason::ProtocolConflict,
                    format!("Listener \"{}\" uses port {} with another protocol.", rival.name, listener.port),
                ),
            ));
        } else if let Some((_, rival)) = hostname_rival {
            conflicts.push((
                index,
                Refusal::new(
                    at.child("hostname"),
                    Reason::HostnameConflict,
                    format!("Listener \"{}\" has the same port {} and hostname.", rival.name, listener.port),
                ),
            ));
        }
    }
    for (index, refusal) in conflicts {
        let unresolved = listeners[index].unresolved().cloned();
        listeners[index].state = ListenerState::Conflicted { refusal, unresolved };
    }
}

/// The protocol a listener occupies its port with, whether or not it can be served.
fn claimed_protocol(listener: &Listener) -> Option<Protocol> {
    match &listener.state {
        ListenerState::Served { protocol, .. } => Some(*protocol),
        // Only HTTPS listeners have certificates that could be missing.
        ListenerState::Unresolved { .. } => Some(Protocol::Https),
        ListenerState::Refused { .. } | ListenerState::Conflicted { .. } => None,
    }
}
