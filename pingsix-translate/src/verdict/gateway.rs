//! Verdicts on a Gateway and its listeners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gateway_class::refuse_parameters;
use super::limited::limited;
use super::{
    Condition, ConditionStatus, ConditionType, Conditions, GatewayVerdict, ListenerVerdict, Reason,
    RouteVerdict,
};
use crate::attach::{Listener, ListenerState};
use crate::field::FieldPath;
use crate::lower::{RouteInput, data_plane_of};
use crate::object::ObjectKey;
use crate::options::Layout;
use crate::route::{Refusal, joined};
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
    key: Arc<ObjectKey>,
    generation: i64,
    listeners: &[Listener],
    attached: &[i32],
    layout: Layout,
    refused: Option<&Refusal>,
) -> GatewayVerdict {
    let verdicts = listeners
        .iter()
        .zip(attached)
        .map(|(listener, &attached_routes)| ListenerVerdict {
            name: listener.name.clone(),
            port: listener.written_port,
            protocol: listener.written_protocol.clone(),
            hostname: listener.hostname.as_ref().map(ToString::to_string),
            supported_kinds: listener.supported_kinds.clone(),
            attached_routes,
            conditions: listener_conditions(listener, generation),
            data_plane: data_plane_of(&key.name, listener, layout).filter(|_| refused.is_none()),
        })
        .collect();
    let (status, reason, message) = match refused {
        Some(refusal) => (ConditionStatus::False, refusal.reason, refusal.to_string()),
        None => accepted_by_listeners(listeners),
    };
    let conditions = Conditions::from(Condition {
        kind: ConditionType::Accepted,
        status,
        reason,
        message,
        observed_generation: generation,
    });
    GatewayVerdict { key, generation, layout, conditions, listeners: verdicts }
}

/// What is wrong with a Gateway besides its listeners, so that it serves nothing at all.
pub(crate) fn refuse_gateway(gateway: &Gateway) -> Option<Refusal> {
    let spec = FieldPath::new("spec");
    if let Some(parameters) =
        gateway.spec.infrastructure.as_ref().and_then(|infrastructure| infrastructure.parameters_ref.as_ref())
    {
        let at = spec.child("infrastructure").child("parametersRef");
        return Some(refuse_parameters(at, &parameters.group, &parameters.kind));
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
        .filter(|listener| !listener.is_served())
        .map(|listener| listener.name.as_str())
        .collect();
    let names = bad.join(", ");
    if listeners.is_empty() {
        (ConditionStatus::False, Reason::ListenersNotValid, "The Gateway has no listener.".to_owned())
    } else if bad.is_empty() {
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
    match &listener.state {
        ListenerState::Served { .. } | ListenerState::Unresolved => set(
            ConditionType::Accepted,
            ConditionStatus::True,
            Reason::Accepted,
            "The listener is accepted.".to_owned(),
        ),
        ListenerState::Refused { refusal } | ListenerState::Conflicted { refusal } => {
            set(ConditionType::Accepted, ConditionStatus::False, refusal.reason, refusal.to_string());
        }
    }
    // Judged also for a listener that is not accepted.
    match listener.unresolved.first() {
        Some(first) => {
            let message = joined(&listener.unresolved);
            set(ConditionType::ResolvedRefs, ConditionStatus::False, first.reason, message);
        }
        None => set(
            ConditionType::ResolvedRefs,
            ConditionStatus::True,
            Reason::ResolvedRefs,
            "All references are resolved.".to_owned(),
        ),
    }
    match &listener.state {
        ListenerState::Conflicted { refusal } => {
            set(ConditionType::Conflicted, ConditionStatus::True, refusal.reason, refusal.to_string());
        }
        ListenerState::Served { .. } | ListenerState::Unresolved | ListenerState::Refused { .. } => {
            set(
                ConditionType::Conflicted,
                ConditionStatus::False,
                Reason::NoConflicts,
                "No other listener has the same port and hostname.".to_owned(),
            );
        }
    }
    // Absent rather than `False`: the specification wants it so for the first, and the second follows it.
    if let Some(overlap) = &listener.overlap {
        set(
            ConditionType::OverlappingTlsConfig,
            ConditionStatus::True,
            overlap.reason(),
            overlap.to_string(),
        );
    }
    if let Some(condition) = limited(&listener.limits, generation) {
        conditions.set(condition);
    }
    conditions
}
