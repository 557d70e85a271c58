//! The delivery state in verdicts: `Programmed`.

use std::collections::BTreeMap;

use super::{
    Condition, ConditionContent, ConditionStatus, Conditions, GatewayVerdict, ListenerSetVerdict,
    ListenerVerdict, Verdicts,
};
use crate::model::{ConditionType, DataPlaneKey, Reason};

/// The delivery state of a data plane's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// There is no delivery, as in `check` and `translate`.
    Offline,
    /// The configuration is on its way, or no PingSIX instance is connected, as the text says.
    Pending(String),
    /// The configuration is with connected instances that have no status page and therefore give no answer.
    Delivered,
    /// Every known instance has applied the configuration.
    Confirmed,
    /// Every known instance has applied the configuration, but cannot serve parts of it. The text names them.
    ConfirmedInPart(String),
    /// Every known instance has applied the configuration, but one has an unsupported version. The text names it.
    ConfirmedByOtherVersion(String),
    /// PingSIX refuses the configuration, for the reason in the text.
    Refused(String),
}

/// Adds `Programmed` to the Gateway, its ListenerSets and all listeners. Data planes that are not in `delivery` are
/// [`Delivery::Offline`].
#[must_use]
pub fn with_delivery(mut verdicts: Verdicts, delivery: &BTreeMap<DataPlaneKey, Delivery>) -> Verdicts {
    let Some(gateway) = &mut verdicts.gateway else { return verdicts };
    let GatewayVerdict { generation, conditions, obstacle, listeners, .. } = gateway;
    let accepted = conditions.is_true(ConditionType::Accepted);
    let own = finish_listeners(
        listeners,
        *generation,
        delivery,
        (!accepted).then_some("The Gateway is not accepted."),
    );
    let mut of_sets = None;
    for set in verdicts.listener_sets.values_mut() {
        let worst = finish_listener_set(set, delivery);
        of_sets = worse(of_sets, worst);
    }
    // A Gateway without listeners of its own has the state of its ListenerSets.
    let content = match own.or(of_sets).filter(|_| accepted) {
        Some(worst) => worst,
        None if !accepted => {
            (ConditionStatus::False, Reason::Invalid, "The Gateway is not accepted.".to_owned())
        }
        None => (ConditionStatus::False, Reason::Invalid, "No listener is served.".to_owned()),
    };
    conditions.put(ConditionType::Programmed, content, *generation);
    if let Some(obstacle) = obstacle.as_ref().filter(|_| accepted) {
        conditions.set(obstacle.clone());
    }
    verdicts
}

fn finish_listener_set(
    set: &mut ListenerSetVerdict,
    delivery: &BTreeMap<DataPlaneKey, Delivery>,
) -> Option<ConditionContent> {
    let ListenerSetVerdict { generation, conditions, listeners, .. } = set;
    let accepted = conditions.get(ConditionType::Accepted).cloned();
    let refused = accepted.filter(|accepted| accepted.status != ConditionStatus::True);
    let worst = finish_listeners(
        listeners,
        *generation,
        delivery,
        refused.is_some().then_some("The ListenerSet is not accepted."),
    );
    let content = match (refused, worst.clone()) {
        // The specification wants the reason of `Accepted`, except for a parent that is not accepted.
        (Some(Condition { reason: Reason::ParentNotAccepted, message, .. }), _) => {
            (ConditionStatus::False, Reason::ParentNotProgrammed, message)
        }
        (Some(Condition { reason, message, .. }), _) => (ConditionStatus::False, reason, message),
        (None, Some(worst)) => worst,
        (None, None) => (ConditionStatus::False, Reason::Invalid, "No listener is served.".to_owned()),
    };
    conditions.put(ConditionType::Programmed, content, *generation);
    worst
}

/// Adds `Programmed` to the listeners of an owner; `refused` is the message if the owner is not accepted. Returns the worst
/// state of the data planes that serve them: an owner is programmed if all of them are.
fn finish_listeners(
    listeners: &mut [ListenerVerdict],
    generation: i64,
    delivery: &BTreeMap<DataPlaneKey, Delivery>,
    refused: Option<&str>,
) -> Option<ConditionContent> {
    let mut worst = None;
    for listener in listeners {
        let content = match &listener.data_plane {
            None => unserved(&listener.conditions, refused),
            Some(key) => {
                let state = |key| programmed(delivery.get(key).unwrap_or(&Delivery::Offline));
                let own = state(key);
                let front = listener.front.as_ref().filter(|_| own.0 == ConditionStatus::True);
                let content = front.map(|front| state(&front.data_plane)).unwrap_or(own);
                worst = worse(worst, Some(content.clone()));
                content
            }
        };
        listener.conditions.put(ConditionType::Programmed, content, generation);
    }
    worst
}

/// The first of two contents that is not `True`.
fn worse(one: Option<ConditionContent>, other: Option<ConditionContent>) -> Option<ConditionContent> {
    match &one {
        None => other,
        Some((ConditionStatus::True, ..)) => other.or(one),
        Some((ConditionStatus::False | ConditionStatus::Unknown, ..)) => one,
    }
}

/// The content of `Programmed` for a listener that is not served.
fn unserved(conditions: &Conditions, refused: Option<&str>) -> ConditionContent {
    let message = refused.unwrap_or("The listener is not served; its other conditions say why.").to_owned();
    // The loser of a conflict has one reason in all conditions (Gateway API, ListenerSet conformance).
    let accepted = conditions.get(ConditionType::Accepted).map(|accepted| accepted.reason);
    let reason = match accepted {
        Some(
            reason @ (Reason::HostnameConflict
            | Reason::ProtocolConflict
            | Reason::NotAllowed
            | Reason::PortUnavailable),
        ) => reason,
        Some(_) | None => Reason::Invalid,
    };
    (ConditionStatus::False, reason, message)
}

fn programmed(delivery: &Delivery) -> ConditionContent {
    match delivery {
        Delivery::Offline => {
            (ConditionStatus::False, Reason::Pending, "The configuration is not being delivered.".to_owned())
        }
        Delivery::Pending(why) => (ConditionStatus::False, Reason::Pending, why.clone()),
        Delivery::Delivered => (
            ConditionStatus::True,
            Reason::Programmed,
            "The configuration is delivered. Instances without a status page, and instances of other \
             replicas, do not confirm it."
                .to_owned(),
        ),
        Delivery::Confirmed => (
            ConditionStatus::True,
            Reason::Programmed,
            "Every known PingSIX instance has published the configuration.".to_owned(),
        ),
        Delivery::ConfirmedInPart(unserved) => (
            ConditionStatus::True,
            Reason::Programmed,
            format!(
                "Every known instance has published the configuration, and cannot serve all of it: {unserved}"
            ),
        ),
        Delivery::ConfirmedByOtherVersion(version) => (
            ConditionStatus::True,
            Reason::Programmed,
            format!("Every known PingSIX instance has published the configuration. {version}"),
        ),
        Delivery::Refused(why) => (ConditionStatus::False, Reason::Invalid, why.clone()),
    }
}
