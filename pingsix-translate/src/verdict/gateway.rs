//! Verdicts on a Gateway and its listeners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    Condition, ConditionStatus, ConditionType, Conditions, GatewayVerdict, ListenerVerdict, Problem, Reason,
    RouteVerdict,
};
use crate::attach::{Listener, ListenerState};
use crate::field::FieldPath;
use crate::lower::{RouteInput, data_plane_of};
use crate::object::ObjectKey;
use crate::options::Layout;
use crate::route::Refusal;
use crate::snapshot::Gateway;

/// How many accepted routes each listener has; a route counts once, through however many parentRefs.
pub(crate) fn attached_routes(
    routes: &[RouteInput],
    verdicts: &BTreeMap<Arc<ObjectKey>, RouteVerdict>,
    listeners: usize,
) -> Vec<i32> {
    let mut counts = vec![0; listeners];
    for route in routes {
        let Some(verdict) = verdicts.get(&route.route.key) else { continue };
        let accepted = route
            .parents
            .iter()
            .zip(&verdict.parents)
            .filter(|(_, verdict)| verdict.conditions.is_true(ConditionType::Accepted));
        let listeners: BTreeSet<usize> =
            accepted.filter_map(|(parent, _)| parent.outcome.as_ref().ok()).flatten().copied().collect();
        for listener in listeners {
            counts[listener] += 1;
        }
    }
    counts
}

/// Judges a Gateway whose listeners are judged already. `Programmed` is for [`super::finish`] to say.
pub(crate) fn judge_gateway(
    gateway: &Gateway,
    key: Arc<ObjectKey>,
    listeners: &[Listener],
    attached: &[i32],
    layout: Layout,
    problems: &mut Vec<Problem>,
) -> GatewayVerdict {
    let generation = gateway.metadata.generation.unwrap_or_default();
    let verdicts = listeners
        .iter()
        .zip(attached)
        .map(|(listener, &attached_routes)| ListenerVerdict {
            name: listener.name.clone(),
            supported_kinds: listener.supported_kinds.clone(),
            attached_routes,
            conditions: listener_conditions(listener, generation),
            data_plane: data_plane_of(&key.name, listener, layout),
        })
        .collect();
    let (status, reason, message) = match refuse_gateway(gateway) {
        Some(refusal) => {
            problems.push(refusal.of(&key));
            (ConditionStatus::False, refusal.reason, format!("{}: {}", refusal.at, refusal.message))
        }
        None => accepted_by_listeners(listeners),
    };
    let mut conditions = Conditions::default();
    conditions.set(Condition {
        kind: ConditionType::Accepted,
        status,
        reason,
        message,
        observed_generation: generation,
    });
    GatewayVerdict { key, generation, layout, conditions, listeners: verdicts }
}

/// What is wrong with a Gateway besides its listeners.
fn refuse_gateway(gateway: &Gateway) -> Option<Refusal> {
    let spec = FieldPath::new("spec");
    if let Some(parameters) =
        gateway.spec.infrastructure.as_ref().and_then(|infrastructure| infrastructure.parameters_ref.as_ref())
    {
        return Some(Refusal::new(
            spec.child("infrastructure").child("parametersRef"),
            Reason::InvalidParameters,
            format!(
                "Parameters of kind {} of group \"{}\" are not supported.",
                parameters.kind, parameters.group
            ),
        ));
    }
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

fn accepted_by_listeners(listeners: &[Listener]) -> (ConditionStatus, Reason, String) {
    let bad: Vec<&str> = listeners
        .iter()
        .filter(|listener| listener.protocol().is_none())
        .map(|listener| listener.name.as_str())
        .collect();
    let names = bad.join(", ");
    if bad.is_empty() && !listeners.is_empty() {
        (ConditionStatus::True, Reason::Accepted, "The Gateway is accepted.".to_owned())
    } else if bad.len() < listeners.len() {
        // True with a reason that sounds negative: what the specification asks for.
        (ConditionStatus::True, Reason::ListenersNotValid, format!("These listeners are not valid: {names}."))
    } else {
        (ConditionStatus::False, Reason::ListenersNotValid, format!("No listener is valid: {names}."))
    }
}

fn listener_conditions(listener: &Listener, generation: i64) -> Conditions {
    let mut conditions = Conditions::default();
    let mut set = |kind, status, reason, message: String| {
        conditions.set(Condition { kind, status, reason, message, observed_generation: generation });
    };
    let sentence = |refusal: &Refusal| format!("{}: {}", refusal.at, refusal.message);
    match &listener.state {
        ListenerState::Served { .. } | ListenerState::Unresolved { .. } => set(
            ConditionType::Accepted,
            ConditionStatus::True,
            Reason::Accepted,
            "The listener is accepted.".to_owned(),
        ),
        ListenerState::Refused { refusal } | ListenerState::Conflicted { refusal, .. } => {
            set(ConditionType::Accepted, ConditionStatus::False, refusal.reason, sentence(refusal));
        }
    }
    // Judged also for a listener that is not accepted.
    match listener.unresolved() {
        Some(refusal) => {
            set(ConditionType::ResolvedRefs, ConditionStatus::False, refusal.reason, sentence(refusal));
        }
        None => set(
            ConditionType::ResolvedRefs,
            ConditionStatus::True,
            Reason::ResolvedRefs,
            "All references are resolved.".to_owned(),
        ),
    }
    match &listener.state {
        ListenerState::Conflicted { refusal, .. } => {
            set(ConditionType::Conflicted, ConditionStatus::True, refusal.reason, sentence(refusal));
        }
        ListenerState::Served { .. } | ListenerState::Unresolved { .. } | ListenerState::Refused { .. } => {
            set(
                ConditionType::Conflicted,
                ConditionStatus::False,
                Reason::NoConflicts,
                "No other listener has the same port and hostname.".to_owned(),
            );
        }
    }
    conditions
}
