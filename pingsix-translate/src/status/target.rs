//! Verdicts on targets of policies that lead to no object.
//!
//! A Gateway or an IngressClass judges the policies of the objects that it serves. A target that does not exist, or that has
//! a kind that the policy cannot target, belongs to neither: its author would take the traffic for protected. The target
//! itself is the ancestor of such a verdict, as GEP-713 allows.

use std::sync::Arc;

use super::condition::refused;
use super::{Ancestor, Conditions, PolicyVerdict, UnresolvedTarget};
use crate::model::{ConditionType, FieldPath, ObjectKey, ObjectName, Problem, Reason, Refusal};
use crate::policy::PolicyTarget;
use crate::snapshot::AnyPolicy;

/// The verdicts on targets of a policy that lead to no object, and their problems.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedTargets {
    /// A verdict for each of these targets, in the order of the spec.
    pub verdicts: Vec<PolicyVerdict>,
    /// Their problems.
    pub problems: Vec<Problem>,
}

/// Judges the targets of a policy that lead to no object. `exists` says whether there is an object; an object may be
/// unknown as well, for example before the first list of its kind has ended, and is not judged then.
pub fn judge_targets(policy: &AnyPolicy, exists: impl Fn(&ObjectKey) -> Option<bool>) -> JudgedTargets {
    let key = Arc::new(policy.key());
    let namespace = &key.name.namespace;
    let at = FieldPath::new("spec").child("targetRefs");
    let mut judged = JudgedTargets::default();
    for (index, target) in policy.target_refs().into_iter().enumerate() {
        let at = at.index(index);
        let refusal = match PolicyTarget::read((key.kind, policy.kinds_of_targets()), namespace, target, &at)
        {
            Err(refusal) => refusal,
            Ok(target) if exists(&target.object) == Some(false) => not_found(&target.object, &at),
            Ok(_) => continue,
        };
        judged.problems.push(refusal.of(&key));
        let generation = policy.generation();
        let mut conditions = Conditions::default();
        conditions.put(ConditionType::Accepted, refused(&refusal), generation);
        let ancestor = Ancestor::Target(Box::new(UnresolvedTarget {
            group: target.group.to_owned(),
            kind: target.kind.to_owned(),
            name: ObjectName::new(namespace.clone(), target.name),
            section_name: target.section_name.map(str::to_owned),
        }));
        judged.verdicts.push(PolicyVerdict { key: key.clone(), generation, ancestor, conditions });
    }
    judged
}

/// The refusal of a target that does not exist.
pub(super) fn not_found(object: &ObjectKey, at: &FieldPath) -> Refusal {
    Refusal::new(at.child("name"), Reason::TargetNotFound, format!("{object} does not exist."))
}
