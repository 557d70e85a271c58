//! The statuses that an earlier process of the controller wrote.
//!
//! PingSIX still serves the last accepted configuration. The statuses of routes name the problems of that time, and
//! show which routes are new or changed. If PingSIX refuses the first publication, a search suspects these routes
//! before all other routes.

use std::collections::BTreeSet;

use pingsix_translate::ObjectKey;
use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::status::{ConditionType, Reason};
use serde_json::Value;

/// The relevant statuses of an earlier process. Kinds without conditions have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct PriorStatuses {
    /// Routes whose present generation PingSIX refused.
    pub(crate) refused: BTreeSet<ObjectKey>,
    /// Routes without a verdict on their present generation.
    pub(crate) unjudged: BTreeSet<ObjectKey>,
}

impl PriorStatuses {
    /// Reads the statuses that `controller` wrote on the routes of a snapshot.
    pub(crate) fn of(
        snapshot: &OwnerSnapshot,
        controller: &str,
        status: impl Fn(&ObjectKey) -> Value,
    ) -> Self {
        let mut prior_statuses = Self::default();
        let OwnerSnapshot::Gateway(snapshot) = snapshot else { return prior_statuses };
        for (key, route) in snapshot.routes.iter().filter(|(key, _)| key.kind.has_requests()) {
            match prior_verdict(&status(key), controller, route.metadata().generation) {
                PriorVerdict::None => prior_statuses.unjudged.insert(key.clone()),
                PriorVerdict::Refused => prior_statuses.refused.insert(key.clone()),
                PriorVerdict::Other => false,
            };
        }
        prior_statuses
    }
}

/// The earlier verdict on the present generation of a route.
#[derive(Debug, PartialEq, Eq)]
enum PriorVerdict {
    None,
    /// PingSIX refused a part of the route.
    Refused,
    Other,
}

fn prior_verdict(status: &Value, controller: &str, generation: i64) -> PriorVerdict {
    let parents = status["parents"].as_array().into_iter().flatten();
    let ours = parents.filter(|parent| parent["controllerName"] == controller);
    let conditions = ours.filter_map(|parent| parent["conditions"].as_array()).flatten();
    let current = conditions.filter(|condition| condition["observedGeneration"] == generation);
    let mut prior_verdict = PriorVerdict::None;
    for condition in current {
        if condition["reason"] == Reason::Quarantined.as_str() {
            return PriorVerdict::Refused;
        }
        if condition["type"] == ConditionType::Accepted.as_str() {
            prior_verdict = PriorVerdict::Other;
        }
    }
    prior_verdict
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_our_verdict_on_the_present_generation_counts() {
        let status = |controller: &str, kind: &str, reason: &str, generation: i64| {
            let condition = json!({"type": kind, "reason": reason, "observedGeneration": generation});
            json!({"parents": [{"controllerName": controller, "conditions": [condition]}]})
        };
        for (status, expected) in [
            (Value::Null, PriorVerdict::None),
            (status("a", "Accepted", "Accepted", 3), PriorVerdict::Other),
            (status("a", "Accepted", "Accepted", 2), PriorVerdict::None),
            (status("b", "Accepted", "Accepted", 3), PriorVerdict::None),
            (status("a", "ResolvedRefs", "ResolvedRefs", 3), PriorVerdict::None),
            (status("a", "Accepted", "Quarantined", 3), PriorVerdict::Refused),
            (status("a", "PartiallyInvalid", "Quarantined", 3), PriorVerdict::Refused),
            (status("a", "Accepted", "Quarantined", 2), PriorVerdict::None),
            (status("b", "Accepted", "Quarantined", 3), PriorVerdict::None),
        ] {
            assert_eq!(prior_verdict(&status, "a", 3), expected, "{status}");
        }
    }
}
