//! What delivery adds to verdicts: `Programmed`.

use std::collections::BTreeMap;

use super::{
    Condition, ConditionStatus, Conditions, GatewayVerdict, ListenerSetVerdict, ListenerVerdict, Verdicts,
};
use crate::model::{ConditionType, DataPlaneKey, Reason};

/// How far the configuration of a data plane has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// There is no data plane to deliver to; what `check` and `translate` know.
    Offline,
    /// On its way, or no PingSIX instance is connected; the text says which.
    Pending(String),
    /// Delivered to connected instances without a status page, which do not say whether they take or refuse it.
    Delivered,
    /// Every known instance has published it.
    Confirmed,
    /// PingSIX refuses it; the text says why.
    Refused(String),
}

/// Adds `Programmed` to the Gateway, its ListenerSets and all listeners. Data planes that are not in `delivery` are
/// [`Delivery::Offline`].
#[must_use]
pub fn finish(mut verdicts: Verdicts, delivery: &BTreeMap<DataPlaneKey, Delivery>) -> Verdicts {
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
    // A Gateway that has only ListenerSets to serve is as far as they are.
    let (status, reason, message) = match own.or(of_sets).filter(|_| accepted) {
        Some(worst) => worst,
        None if !accepted => {
            (ConditionStatus::False, Reason::Invalid, "The Gateway is not accepted.".to_owned())
        }
        None => (ConditionStatus::False, Reason::Invalid, "No listener is served.".to_owned()),
    };
    set(conditions, *generation, status, reason, message);
    if let Some(obstacle) = obstacle.as_ref().filter(|_| accepted) {
        conditions.set(obstacle.clone());
    }
    verdicts
}

/// What a condition says.
type ConditionContent = (ConditionStatus, Reason, String);

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
    let (status, reason, message) = match (refused, worst.clone()) {
        // The specification asks for the reason why it is not accepted, except that a parent has words of its own.
        (Some(Condition { reason: Reason::ParentNotAccepted, message, .. }), _) => {
            (ConditionStatus::False, Reason::ParentNotProgrammed, message)
        }
        (Some(Condition { reason, message, .. }), _) => (ConditionStatus::False, reason, message),
        (None, Some(worst)) => worst,
        (None, None) => (ConditionStatus::False, Reason::Invalid, "No listener is served.".to_owned()),
    };
    self::set(conditions, *generation, status, reason, message);
    worst
}

/// Adds `Programmed` to the listeners of an owner; `refused` says that it is not accepted. Returns what is worst about the
/// data planes that serve them: whatever is served there is programmed when all of them are.
fn finish_listeners(
    listeners: &mut [ListenerVerdict],
    generation: i64,
    delivery: &BTreeMap<DataPlaneKey, Delivery>,
    refused: Option<&str>,
) -> Option<ConditionContent> {
    let mut worst = None;
    for listener in listeners {
        let (status, reason, message) = match &listener.data_plane {
            None => unserved(&listener.conditions, refused),
            Some(key) => {
                let saying = programmed(delivery.get(key).unwrap_or(&Delivery::Offline));
                worst = worse(worst, Some(saying.clone()));
                saying
            }
        };
        set(&mut listener.conditions, generation, status, reason, message);
    }
    worst
}

/// The first of two that is not True.
fn worse(one: Option<ConditionContent>, other: Option<ConditionContent>) -> Option<ConditionContent> {
    match &one {
        None => other,
        Some((ConditionStatus::True, ..)) => other.or(one),
        Some((ConditionStatus::False | ConditionStatus::Unknown, ..)) => one,
    }
}

/// Why a listener that is not served is not programmed.
fn unserved(conditions: &Conditions, refused: Option<&str>) -> ConditionContent {
    let message = refused.unwrap_or("The listener is not served; its other conditions say why.").to_owned();
    // The loser of a conflict says the same in every condition (Gateway API, ListenerSet conformance).
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
            "The configuration is delivered. An instance without a status page does not say whether it has published or \
             refused the configuration, nor does one that reads from another replica of the controller."
                .to_owned(),
        ),
        Delivery::Confirmed => (
            ConditionStatus::True,
            Reason::Programmed,
            "Every known PingSIX instance has published the configuration.".to_owned(),
        ),
        Delivery::Refused(why) => (ConditionStatus::False, Reason::Invalid, why.clone()),
    }
}

fn set(
    conditions: &mut Conditions,
    generation: i64,
    status: ConditionStatus,
    reason: Reason,
    message: String,
) {
    conditions.set(Condition {
        kind: ConditionType::Programmed,
        status,
        reason,
        message,
        observed_generation: generation,
    });
}
