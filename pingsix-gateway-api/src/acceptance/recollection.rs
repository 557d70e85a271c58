//! The statuses from before the first publication: of another process, or of this one before a restart.
//!
//! PingSIX still serves the last accepted configuration, and the statuses of routes tell the faults of that time, and
//! the routes that have come or changed since. So if PingSIX refuses the first publication, these routes are suspected
//! before the routes that were served all the time.

use std::collections::BTreeSet;

use pingsix_translate::ObjectKey;
use pingsix_translate::status::{ConditionType, Reason};
use serde_json::Value;

use crate::world::OwnerSnapshot;

/// The statuses from before the first publication. Kinds without conditions have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recollection {
    /// Routes that PingSIX refused as they are now.
    pub refused: BTreeSet<ObjectKey>,
    /// Routes that nobody has judged as they are now.
    pub unjudged: BTreeSet<ObjectKey>,
}

impl Recollection {
    /// Reads the statuses of all routes of a snapshot; what `controller` has written counts.
    pub fn of(snapshot: &OwnerSnapshot, controller: &str, status: impl Fn(&ObjectKey) -> Value) -> Self {
        let mut recollection = Self::default();
        let OwnerSnapshot::Gateway(snapshot) = snapshot else { return recollection };
        for (key, route) in snapshot.routes.iter().filter(|(key, _)| key.kind.has_requests()) {
            match judgement(&status(key), controller, route.metadata().generation) {
                Judgement::None => recollection.unjudged.insert(key.clone()),
                Judgement::Refused => recollection.refused.insert(key.clone()),
                Judgement::Other => false,
            };
        }
        recollection
    }
}

/// The last verdict on a route.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    None,
    /// PingSIX refused something of it.
    Refused,
    Other,
}

fn judgement(status: &Value, controller: &str, generation: i64) -> Judgement {
    let parents = status["parents"].as_array().into_iter().flatten();
    let ours = parents.filter(|parent| parent["controllerName"] == controller);
    let conditions = ours.filter_map(|parent| parent["conditions"].as_array()).flatten();
    let current = conditions.filter(|condition| condition["observedGeneration"] == generation);
    let mut judgement = Judgement::None;
    for condition in current {
        if condition["reason"] == Reason::Quarantined.as_str() {
            return Judgement::Refused;
        }
        if condition["type"] == ConditionType::Accepted.as_str() {
            judgement = Judgement::Other;
        }
    }
    judgement
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_counts_is_what_we_have_said_of_the_route_as_it_is() {
        let status = |controller: &str, kind: &str, reason: &str, generation: i64| {
            let said = json!({"type": kind, "reason": reason, "observedGeneration": generation});
            json!({"parents": [{"controllerName": controller, "conditions": [said]}]})
        };
        for (status, expected) in [
            (Value::Null, Judgement::None),
            (status("a", "Accepted", "Accepted", 3), Judgement::Other),
            (status("a", "Accepted", "Accepted", 2), Judgement::None),
            (status("b", "Accepted", "Accepted", 3), Judgement::None),
            (status("a", "ResolvedRefs", "ResolvedRefs", 3), Judgement::None),
            (status("a", "Accepted", "Quarantined", 3), Judgement::Refused),
            (status("a", "PartiallyInvalid", "Quarantined", 3), Judgement::Refused),
            (status("a", "Accepted", "Quarantined", 2), Judgement::None),
            (status("b", "Accepted", "Quarantined", 3), Judgement::None),
        ] {
            assert_eq!(judgement(&status, "a", 3), expected, "{status}");
        }
    }
}
