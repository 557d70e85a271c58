//! Verdicts on ListenerSets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::condition::refused;
use super::listener::{GatewayState, unserved};
use super::{ConditionContent, ConditionStatus, Conditions, ListenerSetVerdict};
use crate::attach::ListenerOwner;
use crate::model::{ConditionType, ObjectKey, Reason};

/// Judges every ListenerSet of a Gateway. [`super::with_delivery()`] adds `Programmed`.
pub(crate) fn judge_listener_sets(state: &GatewayState<'_>) -> BTreeMap<Arc<ObjectKey>, ListenerSetVerdict> {
    let sets = state.listeners.sets.iter();
    sets.map(|set| (set.key.clone(), judge_listener_set(set, state))).collect()
}

fn judge_listener_set(set: &ListenerOwner, state: &GatewayState<'_>) -> ListenerSetVerdict {
    let mut conditions = Conditions::default();
    conditions.put(ConditionType::Accepted, accepted(set, state), set.generation);
    ListenerSetVerdict {
        key: set.key.clone(),
        generation: set.generation,
        conditions,
        listeners: state.verdicts(set),
    }
}

fn accepted(set: &ListenerOwner, state: &GatewayState<'_>) -> ConditionContent {
    if let Some(refusal) = &set.excluded {
        return refused(refusal);
    }
    if state.refused.is_some() {
        let message = format!("{} is not accepted.", state.listeners.gateway.key);
        return (ConditionStatus::False, Reason::ParentNotAccepted, message);
    }
    let listeners = state.listeners.of(set);
    let (names, any_served) = unserved(listeners);
    if listeners.is_empty() {
        let message = "The ListenerSet has no listener.".to_owned();
        (ConditionStatus::False, Reason::ListenersNotValid, message)
    } else if names.is_empty() {
        (ConditionStatus::True, Reason::Accepted, "The ListenerSet is accepted.".to_owned())
    } else if any_served {
        (ConditionStatus::True, Reason::ListenersNotValid, format!("These listeners are not valid: {names}."))
    } else {
        (ConditionStatus::False, Reason::ListenersNotValid, format!("No listener is valid: {names}."))
    }
}
