//! Which listeners of a Gateway are valid, and what each of them serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_api::gateways as api;

use super::allowed_routes::{AllowedNamespaces, supported_kinds};
use super::conflict::mark_conflicts;
use super::overlap::mark_overlaps;
use super::{Hostname, HostnameFlaw, Overlap};
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey};
use crate::options::Options;
use crate::resolve::{Certificate, References};
use crate::route::{Limit, Refusal};
use crate::snapshot::Gateway;
use crate::verdict::{Problem, Reason, RouteKind};

/// Protocols that can be served: HTTP and HTTPS by PingSIX, the others by what reads the stream documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Http,
    Https,
    Tls,
    Tcp,
    Udp,
}

impl Protocol {
    /// Reads `listeners[].protocol`; `None` for one that the data planes do not speak.
    pub(crate) fn parse(text: &str, options: &Options) -> Option<Self> {
        match text {
            "HTTP" => Some(Self::Http),
            "HTTPS" => Some(Self::Https),
            "TLS" => options.stream.then_some(Self::Tls),
            "TCP" => options.stream.then_some(Self::Tcp),
            "UDP" => options.stream.then_some(Self::Udp),
            _ => None,
        }
    }

    /// Whether PingSIX serves it.
    pub(crate) const fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// The kinds of routes it can carry (Gateway API, `ProtocolType`).
    pub(crate) const fn route_kinds(self) -> &'static [Kind] {
        match self {
            Self::Http | Self::Https => &[Kind::HttpRoute],
            Self::Tls => &[Kind::TlsRoute],
            Self::Tcp => &[Kind::TcpRoute],
            Self::Udp => &[Kind::UdpRoute],
        }
    }
}

/// A listener, judged.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) name: String,
    /// `None` for one that the data planes do not speak.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) written_protocol: String,
    /// As written: what parentRefs select by.
    pub(crate) written_port: i32,
    /// 0 when what is written is no port number.
    pub(crate) port: u16,
    pub(crate) hostname: Option<Hostname>,
    pub(crate) state: ListenerState,
    /// Why not all references are good; judged whatever the state.
    pub(crate) unresolved: Vec<Refusal>,
    /// How what is served differs from what was asked for; nothing for one that is not served. Lowering adds to it.
    pub(crate) limits: Vec<Limit>,
    /// With which listeners it shares hosts.
    pub(crate) overlap: Option<Overlap>,
    /// Kinds of routes that may attach.
    pub(crate) supported_kinds: Vec<RouteKind>,
    pub(crate) namespaces: AllowedNamespaces,
}

/// What a listener can do. Illegal combinations (a refused listener with a certificate) do not exist.
#[derive(Clone, Debug)]
pub(crate) enum ListenerState {
    /// Served, with certificates if the protocol is HTTPS.
    Served { certificates: Vec<Certificate> },
    /// Accepted, but not served, because none of its certificates is usable.
    Unresolved,
    /// Not accepted.
    Refused { refusal: Refusal },
    /// Not accepted, because it cannot be told from another listener.
    Conflicted { refusal: Refusal },
}

impl Listener {
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, ListenerState::Served { .. })
    }

    pub(crate) fn supports(&self, kind: Kind) -> bool {
        self.supported_kinds
            .iter()
            .any(|supported| supported.kind == kind.as_str() && supported.group == kind.group())
    }
}

/// Judges every listener of a Gateway, in spec order.
pub(crate) fn judge_listeners(
    gateway: &Gateway,
    key: &Arc<ObjectKey>,
    references: &References<'_>,
    options: &Options,
    problems: &mut Vec<Problem>,
) -> Vec<Listener> {
    let mut listeners: Vec<Listener> = gateway
        .spec
        .listeners
        .iter()
        .enumerate()
        .map(|(index, listener)| judge_alone(gateway, key, index, listener, references, options))
        .collect();
    refuse_repeated_names(&mut listeners);
    mark_conflicts(&mut listeners);
    mark_overlaps(&mut listeners);
    for listener in &mut listeners {
        if listener.is_served() {
            let limits = listener.certificate_limits();
            listener.limits.extend(limits);
        } else {
            listener.limits.clear();
        }
    }
    for listener in &listeners {
        if let ListenerState::Refused { refusal } | ListenerState::Conflicted { refusal } = &listener.state {
            problems.push(refusal.of(key));
        }
        problems.extend(listener.unresolved.iter().map(|refusal| refusal.of(key)));
    }
    listeners
}

fn judge_alone(
    gateway: &Gateway,
    key: &Arc<ObjectKey>,
    index: usize,
    listener: &api::GatewayListeners,
    references: &References<'_>,
    options: &Options,
) -> Listener {
    let at = FieldPath::new("spec").child("listeners").index(index);
    let protocol = Protocol::parse(&listener.protocol, options);
    let port = u16::try_from(listener.port).unwrap_or_default();
    let hostname =
        listener.hostname.as_deref().filter(|name| !name.is_empty()).map(Hostname::parse).transpose();
    let namespaces = AllowedNamespaces::of(listener, &at);

    let (supported_kinds, wrong_kinds) = match protocol {
        None => (Vec::new(), Vec::new()),
        Some(protocol) => supported_kinds(listener, protocol, &at),
    };
    let (certificates, mut unresolved) = match protocol {
        Some(Protocol::Https) => resolve_certificates(key, listener, &at, references),
        Some(Protocol::Http | Protocol::Tls | Protocol::Tcp | Protocol::Udp) | None => {
            (Vec::new(), Vec::new())
        }
    };
    unresolved.extend(wrong_kinds);

    let refusal = refuse_port(listener, port, &at)
        .or_else(|| refuse_protocol(listener, protocol, &at))
        .or_else(|| Some(refuse_hostname(listener, *hostname.as_ref().err()?, &at)))
        .or_else(|| refuse_tls(gateway, listener, protocol?, &at))
        .or_else(|| namespaces.as_ref().err().cloned());
    let state = match (refusal, protocol) {
        (Some(refusal), _) => ListenerState::Refused { refusal },
        (None, Some(Protocol::Https)) if certificates.is_empty() => ListenerState::Unresolved,
        (None, _) => ListenerState::Served { certificates },
    };
    Listener {
        name: listener.name.clone(),
        protocol,
        written_protocol: listener.protocol.clone(),
        written_port: listener.port,
        port,
        hostname: hostname.unwrap_or_default(),
        state,
        unresolved,
        limits: limit_options(listener, &at).into_iter().collect(),
        overlap: None,
        supported_kinds,
        namespaces: namespaces.unwrap_or(AllowedNamespaces::None),
    }
}

fn refuse_port(listener: &api::GatewayListeners, port: u16, at: &FieldPath) -> Option<Refusal> {
    (port == 0).then(|| {
        Refusal::new(
            at.child("port"),
            Reason::UnsupportedValue,
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

/// What is wrong with `tls` besides the certificates.
fn refuse_tls(
    gateway: &Gateway,
    listener: &api::GatewayListeners,
    protocol: Protocol,
    at: &FieldPath,
) -> Option<Refusal> {
    let refused =
        |field: FieldPath, message: &str| Some(Refusal::new(field, Reason::UnsupportedValue, message));
    let at = at.child("tls");
    match (protocol, &listener.tls) {
        (Protocol::Http, None) | (Protocol::Tls | Protocol::Tcp | Protocol::Udp, _) => None,
        // What its author meant for HTTPS must not be served in plaintext.
        (Protocol::Http, Some(_)) => refused(at, "A listener with protocol HTTP has no TLS; use HTTPS."),
        (Protocol::Https, tls) => {
            if let Some(field) = frontend_validation(gateway, listener.port) {
                return refused(
                    field,
                    "PingSIX asks clients for no certificates, so the listener is not served.",
                );
            }
            match tls {
                None => refused(at, "A listener with protocol HTTPS needs a certificate."),
                Some(tls) if is_passthrough(tls) => refused(
                    at.child("mode"),
                    "A listener with protocol HTTPS terminates TLS; mode Passthrough is for protocol TLS.",
                ),
                Some(_) => None,
            }
        }
    }
}

fn is_passthrough(tls: &api::GatewayListenersTls) -> bool {
    tls.mode == Some(api::GatewayListenersTlsMode::Passthrough)
}

/// The usable certificates of a listener, and one refusal for each that is not.
fn resolve_certificates(
    gateway: &Arc<ObjectKey>,
    listener: &api::GatewayListeners,
    at: &FieldPath,
    references: &References<'_>,
) -> (Vec<Certificate>, Vec<Refusal>) {
    let Some(tls) = listener.tls.as_ref().filter(|tls| !is_passthrough(tls)) else {
        return (Vec::new(), Vec::new());
    };
    let at = at.child("tls").child("certificateRefs");
    let refs = tls.certificate_refs.as_deref().unwrap_or_default();
    if refs.is_empty() {
        let refusal = Refusal::new(at, Reason::InvalidCertificateRef, "There is no certificate.");
        return (Vec::new(), vec![refusal]);
    }
    let mut certificates = Vec::new();
    let mut refused = Vec::new();
    for (index, certificate) in refs.iter().enumerate() {
        match references.certificate(gateway, certificate, &at.index(index)) {
            Ok(certificate) => certificates.push(certificate),
            Err(refusal) => refused.push(refusal),
        }
    }
    (certificates, refused)
}

/// Says which options of TLS are not looked at.
fn limit_options(listener: &api::GatewayListeners, at: &FieldPath) -> Option<Limit> {
    let options = listener.tls.as_ref()?.options.as_ref().filter(|options| !options.is_empty())?;
    let keys: Vec<&str> = options.keys().map(String::as_str).collect();
    Some(Limit::new(
        at.child("tls").child("options"),
        format!("There are no options for TLS, so these are not looked at: {}.", keys.join(", ")),
    ))
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

/// `sectionName` and the list in the status both go by name, so listeners that share one all lose.
fn refuse_repeated_names(listeners: &mut [Listener]) {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for listener in listeners.iter() {
        *count.entry(listener.name.clone()).or_default() += 1;
    }
    for (index, listener) in listeners.iter_mut().enumerate() {
        if count.get(&listener.name).is_some_and(|count| *count > 1) {
            let refusal = Refusal::new(
                FieldPath::new("spec").child("listeners").index(index).child("name"),
                Reason::UnsupportedValue,
                format!("Another listener is called \"{}\" too.", listener.name),
            );
            listener.state = ListenerState::Refused { refusal };
        }
    }
}

#[cfg(test)]
mod tests;
