//! The validity of a single listener, and the hosts and certificates that it serves.

use gateway_api::gateways as api;
use serde_json::Value;

use super::allowed_routes::{AllowedNamespaces, supported_kinds};
use super::front::Front;
use super::listener::{Listener, ListenerState};
use super::listener_source::{ListenerSource, Origins};
use super::protocol::{Protocol, TlsMode};
use super::stream;
use super::tls::{JudgedValidation, judge_validation, refuse_tls, resolve_certificates, tls_mode};
use crate::model::{Capability, FieldPath, Hostname, HostnameError, Reason, Refusal};
use crate::snapshot::ExtraListenerFields;

/// Judges a listener by itself.
pub(super) fn judge_alone(source: &ListenerSource<'_>, origins: &Origins<'_>) -> Listener {
    let ListenerSource { written, at, .. } = source;
    let protocol = Protocol::parse(&written.protocol, origins.support.executors);
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
    let detects = Capability::MisdirectedRequests.is_served(origins.support.executors);
    let front = origins.fronts(protocol).then(|| Front::new(honoured, detects));
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
    protocol
        .is_none()
        .then(|| Capability::StreamProtocol.refuse_with(at.child("protocol"), &[&listener.protocol]))
}

fn refuse_hostname(listener: &api::GatewayListeners, error: HostnameError, at: &FieldPath) -> Refusal {
    let text = listener.hostname.as_deref().unwrap_or_default();
    Refusal::new(
        at.child("hostname"),
        Reason::UnsupportedValue,
        format!("\"{text}\" is not a hostname: {error}."),
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
    (!asked.is_empty())
        .then(|| Capability::ListenerFilters.refuse_with(at.child("filters"), &[&asked.join(", ")]))
}

/// Names the ignored options of TLS.
fn options_limitation(listener: &api::GatewayListeners, at: &FieldPath) -> Option<Refusal> {
    let options = listener.tls.as_ref()?.options.as_ref().filter(|options| !options.is_empty())?;
    let keys: Vec<&str> = options.keys().map(String::as_str).collect();
    Some(Refusal::limited(
        at.child("tls").child("options"),
        format!("There are no options for TLS, so these are not looked at: {}.", keys.join(", ")),
    ))
}

#[cfg(test)]
mod tests;
