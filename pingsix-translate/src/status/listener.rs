//! Verdicts on listeners of Gateways and ListenerSets.

use super::condition::{accepted, refused, resolved};
use super::limited::limited;
use super::route::Refusals;
use super::{ConditionStatus, Conditions, ListenerFront, ListenerVerdict, RouteVerdict};
use crate::attach::{Listener, ListenerOwner, ListenerState, Listeners};
use crate::lower::{RouteInput, data_plane_of};
use crate::model::{ConditionType, DataPlaneKey, Layout, Reason, Refusal};
use crate::small_set::SmallSet;

/// The state by which Gateways and ListenerSets are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatewayState<'a> {
    pub(crate) listeners: &'a Listeners,
    /// The number of accepted routes for each listener.
    pub(crate) attached: &'a [i32],
    pub(crate) layout: Layout,
    /// The refusal of the whole Gateway.
    pub(crate) refused: Option<&'a Refusal>,
    /// The limitations of the Gateway itself.
    pub(crate) limitations: &'a [Refusal],
}

impl GatewayState<'_> {
    /// Verdicts on the listeners of an owner.
    pub(super) fn verdicts(&self, owner: &ListenerOwner) -> Vec<ListenerVerdict> {
        let gateway = &self.listeners.gateway.key.name;
        let attached =
            owner.listeners.clone().map(|index| self.attached.get(index).copied().unwrap_or_default());
        let listeners = self.listeners.of(owner).iter().zip(attached);
        listeners
            .map(|(listener, attached_routes)| ListenerVerdict {
                name: listener.name.clone(),
                port: listener.written_port,
                protocol: listener.written_protocol.clone(),
                hostname: listener.hostname.as_ref().map(ToString::to_string),
                supported_kinds: listener.supported_kinds.clone(),
                attached_routes,
                conditions: listener_conditions(listener, owner.generation),
                keeps_hosts: listener.keeps_hosts(),
                data_plane: data_plane_of(gateway, listener, self.layout).filter(|_| self.refused.is_none()),
                front: listener
                    .front_address()
                    .filter(|_| listener.is_served() && self.refused.is_none())
                    .map(|address| ListenerFront {
                        data_plane: DataPlaneKey::Stream { gateway: gateway.clone() },
                        address,
                    }),
            })
            .collect()
    }
}

/// The names of the listeners that are not served, and whether any listener is.
pub(super) fn unserved(listeners: &[Listener]) -> (String, bool) {
    let bad: Vec<&str> = listeners
        .iter()
        .filter(|listener| !listener.is_served())
        .map(|listener| listener.name.as_str())
        .collect();
    (bad.join(", "), bad.len() < listeners.len())
}

/// The listeners that count a route as attached, once for all parentRefs. A listener that does not serve the route does not
/// count it, even if another listener of the same parentRef does.
pub(crate) fn attached_to(
    index: usize,
    route: &RouteInput,
    verdict: &RouteVerdict,
    refusals: &Refusals,
) -> SmallSet<usize> {
    let accepted = route
        .attached
        .parents
        .iter()
        .zip(verdict.parents.iter())
        .filter(|(_, verdict)| verdict.conditions.is_true(ConditionType::Accepted));
    let listeners = accepted.filter_map(|(parent, _)| parent.outcome.as_ref().ok()).flatten().copied();
    listeners.filter(|listener| !refusals.is_refused_on(index, *listener)).collect()
}

fn listener_conditions(listener: &Listener, generation: i64) -> Conditions {
    let accepted = match &listener.state {
        ListenerState::Served { .. } | ListenerState::Unresolved => {
            accepted(None, "The listener is accepted.")
        }
        ListenerState::Refused { refusal }
        | ListenerState::Conflicted { refusal }
        | ListenerState::Excluded { refusal } => refused(refusal),
    };
    let resolved = if let ListenerState::Excluded { refusal } = &listener.state
        && listener.terminates_tls()
    {
        let message = "The references of a ListenerSet that is not allowed are not resolved.";
        (ConditionStatus::Unknown, refusal.reason, message.to_owned())
    } else {
        resolved(&listener.unresolved)
    };
    let conflicted = if let ListenerState::Conflicted { refusal } = &listener.state {
        (ConditionStatus::True, refusal.reason, refusal.to_string())
    } else {
        let message = "No other listener has the same port and hostname.".to_owned();
        (ConditionStatus::False, Reason::NoConflicts, message)
    };
    let mut conditions = Conditions::default();
    conditions.put(ConditionType::Accepted, accepted, generation);
    // A listener that is not accepted has this condition, too.
    conditions.put(ConditionType::ResolvedRefs, resolved, generation);
    conditions.put(ConditionType::Conflicted, conflicted, generation);
    // Absent rather than `False`, as the specification wants the first condition; the second follows it.
    if let Some(overlap) = &listener.overlap {
        let content = (ConditionStatus::True, overlap.reason(), overlap.to_string());
        conditions.put(ConditionType::OverlappingTlsConfig, content, generation);
    }
    if let Some(condition) = limited(&listener.limitations, generation) {
        conditions.set(condition);
    }
    conditions
}
