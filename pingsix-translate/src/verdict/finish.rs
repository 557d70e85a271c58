//! What delivery adds to verdicts: `Programmed`.

use std::collections::BTreeMap;

use super::{Condition, ConditionStatus, ConditionType, Conditions, GatewayVerdict, Reason, Verdicts};
use crate::translation::DataPlaneKey;

/// How far the configuration of a data plane has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// There is no data plane to deliver to; what `check` and `translate` know.
    Offline,
    /// On its way, or no PingSIX instance is connected; the text says which.
    Pending(String),
    /// Delivered to connected instances that have no status address; the best that can be known.
    Delivered,
    /// Every known instance has published it.
    Confirmed,
    /// PingSIX refuses it; the text says why.
    Refused(String),
}

/// Adds `Programmed` to the Gateway and its listeners. Data planes that are not in `delivery` are
/// [`Delivery::Offline`].
#[must_use]
pub fn finish(mut verdicts: Verdicts, delivery: &BTreeMap<DataPlaneKey, Delivery>) -> Verdicts {
    let Some(GatewayVerdict { generation, conditions, listeners, .. }) = &mut verdicts.gateway else {
        return verdicts;
    };
    let generation = *generation;
    let accepted = conditions.is_true(ConditionType::Accepted);
    let not_accepted = "The Gateway is not accepted.";
    let mut worst: Option<(ConditionStatus, Reason, String)> = None;
    for listener in listeners {
        let (status, reason, message) = match &listener.data_plane {
            None if !accepted => (ConditionStatus::False, Reason::Invalid, not_accepted.to_owned()),
            None => (
                ConditionStatus::False,
                Reason::Invalid,
                "The listener is not served; its other conditions say why.".to_owned(),
            ),
            Some(key) => programmed(delivery.get(key).unwrap_or(&Delivery::Offline)),
        };
        if listener.data_plane.is_some() {
            // A Gateway is programmed when all data planes that serve it are.
            if worst.as_ref().is_none_or(|(worst, ..)| *worst == ConditionStatus::True) {
                worst = Some((status, reason, message.clone()));
            }
        }
        set(&mut listener.conditions, generation, status, reason, message);
    }
    let (status, reason, message) = match worst {
        Some(worst) if accepted => worst,
        _ => (ConditionStatus::False, Reason::Invalid, not_accepted.to_owned()),
    };
    set(conditions, generation, status, reason, message);
    verdicts
}

fn programmed(delivery: &Delivery) -> (ConditionStatus, Reason, String) {
    match delivery {
        Delivery::Offline => {
            (ConditionStatus::False, Reason::Pending, "The configuration is not being delivered.".to_owned())
        }
        Delivery::Pending(why) => (ConditionStatus::False, Reason::Pending, why.clone()),
        Delivery::Delivered => (
            ConditionStatus::True,
            Reason::Programmed,
            "The configuration is delivered; without a status address it is not known whether PingSIX has \
             published it."
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
