//! Verdicts on a Gateway.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::condition::{refused, resolved};
use super::limited::limited;
use super::listener::{GatewayState, unserved};
use super::{Condition, ConditionContent, ConditionStatus, Conditions, GatewayVerdict, ListenerSetVerdict};
use crate::attach::Listener;
use crate::model::{
    Capability, ConditionType, FieldPath, Hostname, ObjectKey, Problem, Reason, Refusal, joined,
};
use crate::references::{CertificateRef, References};
use crate::snapshot::{FrontendValidation, Gateway};

/// Judges a Gateway after its listeners and ListenerSets. [`super::with_delivery()`] adds `Programmed`.
pub(crate) fn judge_gateway(
    gateway: &Gateway,
    state: &GatewayState<'_>,
    listener_sets: &BTreeMap<Arc<ObjectKey>, ListenerSetVerdict>,
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> GatewayVerdict {
    let owner = &state.listeners.gateway;
    let (key, generation) = (&owner.key, owner.generation);
    problems.extend(state.refused.map(|refusal| refusal.of(key)));
    let by_listeners = || accepted_by_listeners(state.listeners.of(owner), serves_listener_sets(state));
    let mut conditions = Conditions::default();
    conditions.put(ConditionType::Accepted, state.refused.map_or_else(by_listeners, refused), generation);
    let mut limitations = state.limitations.to_vec();
    let client_certificate = judge_client_certificate(gateway, state, references, &mut limitations, problems);
    if let Some(content) = client_certificate {
        conditions.put(ConditionType::ResolvedRefs, content, generation);
    }
    let insecure: Vec<String> = FrontendValidation::all(&gateway.spec)
        .iter()
        .filter_map(|validation| Some(validation.insecure_field()?.to_string()))
        .collect();
    if !insecure.is_empty() {
        let message =
            format!("Clients without a valid certificate are to be let in: {}.", insecure.join(", "));
        let content = (ConditionStatus::True, Reason::ConfigurationChanged, message);
        conditions.put(ConditionType::InsecureFrontendValidationMode, content, generation);
    }
    if gateway.spec.extra.default_scope.is_some() {
        limitations.push(Refusal::limited(
            FieldPath::new("spec").child("defaultScope"),
            "There are no default Gateways; only routes that name this one attach to it.",
        ));
    }
    problems.extend(limitations.iter().map(|limitation| limitation.of(key)));
    if conditions.is_true(ConditionType::Accepted)
        && let Some(condition) = limited(&limitations, generation)
    {
        conditions.set(condition);
    }
    let unusable = unusable_addresses(gateway);
    problems.extend(unusable.iter().map(|refusal| refusal.of(key)));
    let obstacle = (!unusable.is_empty()).then(|| {
        let content = (ConditionStatus::False, Reason::AddressNotUsable, joined(&unusable));
        Condition::new(ConditionType::Programmed, content, generation)
    });
    let attached =
        listener_sets.values().filter(|set| set.conditions.is_true(ConditionType::Accepted)).count();
    GatewayVerdict {
        key: key.clone(),
        generation,
        layout: state.layout,
        conditions,
        obstacle,
        listeners: state.verdicts(owner),
        attached_listener_sets: i32::try_from(attached).unwrap_or(i32::MAX),
    }
}

/// Refuses a whole Gateway for a cause outside of its listeners and parameters.
pub(crate) fn refuse_gateway(gateway: &Gateway) -> Option<Refusal> {
    let spec = FieldPath::new("spec");
    gateway.spec.addresses.iter().flatten().enumerate().find_map(|(index, address)| {
        let kind = address.r#type.as_deref().unwrap_or("IPAddress");
        (!matches!(kind, "IPAddress" | "Hostname")).then(|| {
            Refusal::new(
                spec.child("addresses").index(index).child("type"),
                Reason::UnsupportedAddress,
                format!("Addresses of type {kind} are not supported."),
            )
        })
    })
}

/// Refuses addresses of a supported type that no data plane can have.
fn unusable_addresses(gateway: &Gateway) -> Vec<Refusal> {
    let count = gateway.spec.addresses.as_ref().map_or(0, Vec::len);
    (0..count).filter_map(|index| unusable_address(gateway, index)).collect()
}

/// Whether a data plane can have an address of `spec.addresses`.
pub(crate) fn is_usable_address(gateway: &Gateway, index: usize) -> bool {
    unusable_address(gateway, index).is_none()
}

fn unusable_address(gateway: &Gateway, index: usize) -> Option<Refusal> {
    let address = gateway.spec.addresses.as_ref()?.get(index)?;
    let at = FieldPath::new("spec").child("addresses").index(index);
    let routability = gateway.spec.extra.addresses.get(index).and_then(|extra| extra.routability.as_ref());
    if routability.is_some_and(|asked| asked.as_str() != Some("")) {
        return Some(Refusal::new(
            at.child("routability"),
            Reason::AddressNotUsable,
            "Addresses cannot be chosen by where they are reachable from.",
        ));
    }
    // Without a value, any address of the type will do.
    let value = address.value.as_deref().filter(|value| !value.is_empty())?;
    let (is_usable, what) = match address.r#type.as_deref().unwrap_or("IPAddress") {
        "IPAddress" => (value.parse::<IpAddr>().is_ok(), "an IP address"),
        "Hostname" => (Hostname::parse(value).is_ok_and(|name| !name.is_wildcard()), "a hostname"),
        _ => return None,
    };
    let message = || format!("\"{value}\" is not {what}.");
    (!is_usable).then(|| Refusal::new(at.child("value"), Reason::AddressNotUsable, message()))
}

/// `ResolvedRefs` of a Gateway with a client certificate for backends; other Gateways lack the condition.
fn judge_client_certificate(
    gateway: &Gateway,
    state: &GatewayState<'_>,
    references: &References<'_>,
    limitations: &mut Vec<Refusal>,
    problems: &mut Vec<Problem>,
) -> Option<ConditionContent> {
    let owner = &state.listeners.gateway;
    let written = gateway.spec.tls.as_ref()?.backend.as_ref()?.client_certificate_ref.as_ref()?;
    let at = FieldPath::new("spec").child("tls").child("backend").child("clientCertificateRef");
    let reference = CertificateRef {
        group: written.group.clone(),
        kind: written.kind.clone(),
        name: written.name.clone(),
        namespace: written.namespace.clone(),
    };
    if let Err(mut refusal) = references.certificate(&owner.key, &reference, &at) {
        if refusal.reason == Reason::InvalidCertificateRef {
            refusal.reason = Reason::InvalidClientCertificateRef;
        }
        problems.push(refusal.of(&owner.key));
        return Some(refused(&refusal));
    }
    limitations.push(Capability::CertificateOfGateway.limit(at));
    let unresolved: Vec<&str> = state
        .listeners
        .of(owner)
        .iter()
        .filter(|listener| !listener.unresolved.is_empty())
        .map(|listener| listener.name.as_str())
        .collect();
    Some(if unresolved.is_empty() {
        resolved([])
    } else {
        let message =
            format!("These listeners have references that are not resolved: {}.", unresolved.join(", "));
        (ConditionStatus::False, Reason::ListenersNotResolved, message)
    })
}

/// Whether a listener of a ListenerSet is served. A Gateway without listeners of its own is useful then.
fn serves_listener_sets(state: &GatewayState<'_>) -> bool {
    state.listeners.sets.iter().any(|set| state.listeners.of(set).iter().any(Listener::is_served))
}

fn accepted_by_listeners(listeners: &[Listener], others_serve: bool) -> ConditionContent {
    let (names, any_served) = unserved(listeners);
    if names.is_empty() && (any_served || others_serve) {
        return (ConditionStatus::True, Reason::Accepted, "The Gateway is accepted.".to_owned());
    }
    // The specification wants `True` with a negative reason.
    let (status, message) = match (listeners.is_empty(), any_served, others_serve) {
        (true, _, _) => (ConditionStatus::False, "The Gateway has no listener.".to_owned()),
        (false, true, _) => (ConditionStatus::True, format!("These listeners are not valid: {names}.")),
        (false, false, true) => (
            ConditionStatus::True,
            format!("Only listeners of ListenerSets are valid. Invalid listeners of the Gateway: {names}."),
        ),
        (false, false, false) => (ConditionStatus::False, format!("No listener is valid: {names}.")),
    };
    (status, Reason::ListenersNotValid, message)
}
