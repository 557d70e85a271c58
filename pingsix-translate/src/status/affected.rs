//! The condition `pingsix.io/PolicyAffected` of the targets of policies.
//!
//! GEP-713 wants a condition on objects that policies affect, because their authors may not know of the policies. The condition
//! names accepted policies alone: a policy that is invalid or lost a conflict says so in its own status. Only targets have the
//! condition, not the objects that inherit a policy: a policy of a Gateway would otherwise be in the status of each route.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Condition, ConditionStatus, Conditions, ListenerVerdict, PolicyVerdict};
use crate::model::{ConditionType, ObjectKey, Reason};
use crate::policy::{AttachedPolicies, PolicyEffect};

/// The number of policies that a message names.
const MAX_NAMES: usize = 4;

/// The accepted policies of each target, by section. The policies of a whole object have no section.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Affected(BTreeMap<ObjectKey, BTreeMap<Option<String>, Names>>);

type Names = BTreeSet<Arc<ObjectKey>>;

impl Affected {
    /// Adds the policies of one kind that these verdicts accept.
    pub(super) fn add<P: PolicyEffect>(
        &mut self,
        policies: &AttachedPolicies<P>,
        verdicts: &BTreeMap<Arc<ObjectKey>, PolicyVerdict>,
    ) {
        let is_accepted = |policy: &ObjectKey| {
            verdicts.get(policy).is_some_and(|verdict| verdict.conditions.is_true(ConditionType::Accepted))
        };
        for policy in policies.iter().filter(|policy| is_accepted(&policy.key)) {
            for target in policy.targets.iter().flatten() {
                let sections = self.0.entry(target.object.clone()).or_default();
                sections.entry(target.section.clone()).or_default().insert(policy.key.clone());
            }
        }
    }

    /// The objects with other policies than before.
    pub(crate) fn changed(&self, before: &Self) -> BTreeSet<ObjectKey> {
        let objects: BTreeSet<&ObjectKey> = self.0.keys().chain(before.0.keys()).collect();
        let differs = |object: &&ObjectKey| self.0.get(*object) != before.0.get(*object);
        objects.into_iter().filter(differs).cloned().collect()
    }

    /// The policies of a route and of its rules, in words. A rule has no conditions of its own.
    pub(crate) fn of_route(&self, route: &ObjectKey) -> Option<String> {
        let sections = self.0.get(route)?;
        Some(in_words(&sections.values().flatten().cloned().collect(), "route"))
    }

    /// Adds the condition to a Gateway or ListenerSet and to its listeners.
    pub(crate) fn mark(
        &self,
        owner: &ObjectKey,
        generation: i64,
        (conditions, listeners): (&mut Conditions, &mut [ListenerVerdict]),
    ) {
        let Some(sections) = self.0.get(owner) else { return };
        if let Some(policies) = sections.get(&None) {
            conditions.set(condition(in_words(policies, owner.kind.as_str()), generation));
        }
        for listener in listeners {
            if let Some(policies) = sections.get(&Some(listener.name.clone())) {
                listener.conditions.set(condition(in_words(policies, "listener"), generation));
            }
        }
    }
}

/// The condition with a message.
pub(super) fn condition(message: String, observed_generation: i64) -> Condition {
    let content = (ConditionStatus::True, Reason::PolicyAffected, message);
    Condition::new(ConditionType::PolicyAffected, content, observed_generation)
}

fn in_words(policies: &Names, target: &str) -> String {
    let named: Vec<String> = policies.iter().take(MAX_NAMES).map(ToString::to_string).collect();
    let others = policies.len() - named.len();
    let others = if others > 0 { format!(" and {others} others") } else { String::new() };
    format!("These policies apply to the {target}: {}{others}.", named.join(", "))
}

#[cfg(test)]
mod tests;
