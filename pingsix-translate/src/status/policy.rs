//! Verdicts on policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::limited::limited;
use super::{Condition, ConditionStatus, Conditions, PolicyVerdict};
use crate::lower::RouteInput;
use crate::model::{ConditionType, FieldPath, Kind, ObjectKey, Problem, Reason, Refusal, joined};
use crate::policy::{AttachedPolicies, AttachedPolicy, Policies, PolicyKind, PolicyTarget, Unserved};
use crate::references::References;

/// Judges the policies with a target that attached routes of a Gateway use; the other policies are of no concern to the
/// Gateway. `routes` are in the order of the snapshot. Routes without a relation to a target of a policy may be left out.
pub(crate) fn judge_policies(
    policies: &Policies,
    gateway: &Arc<ObjectKey>,
    routes: &[Arc<RouteInput>],
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<Arc<ObjectKey>, PolicyVerdict> {
    let mut verdicts = BTreeMap::new();
    let Policies { backend_tls, backend_traffic } = policies;
    if policies.targets().next().is_some() {
        let ancestor = Ancestor { gateway, targets: targets_in_use(routes, references), uses: uses(routes) };
        ancestor.judge(backend_tls, references, &mut verdicts, problems);
        ancestor.judge(backend_traffic, references, &mut verdicts, problems);
    }
    verdicts
}

/// A Gateway through which policies take effect.
struct Ancestor<'a> {
    gateway: &'a Arc<ObjectKey>,
    /// Possible targets of policies that attached routes use, whether these objects exist or not.
    targets: BTreeSet<ObjectKey>,
    /// By policy.
    uses: BTreeMap<Arc<ObjectKey>, Uses>,
}

/// The backends for which a policy counts.
#[derive(Debug, Default)]
struct Uses {
    /// Whether PingSIX honours the policy for some of them.
    honoured: bool,
    unserved: Unserved,
}

impl Ancestor<'_> {
    /// Judges the policies of one kind.
    fn judge<P: PolicyKind>(
        &self,
        policies: &AttachedPolicies<P>,
        references: &References<'_>,
        verdicts: &mut BTreeMap<Arc<ObjectKey>, PolicyVerdict>,
        problems: &mut Vec<Problem>,
    ) {
        for policy in policies.iter() {
            if !policy.targets.iter().flatten().any(|target| self.targets.contains(&target.object)) {
                continue;
            }
            let faults = self.target_faults(policy, policies, references);
            let uses = self.uses.get(&policy.key);
            let unserved = match (&policy.spec.effect, uses) {
                (Ok(effect), Some(uses)) => effect.refuse(&uses.unserved),
                (Ok(_) | Err(_), _) => Vec::new(),
            };
            let conditions = conditions(policy, &faults, &unserved, uses.is_some_and(|uses| uses.honoured));
            let refused = faults.iter().chain(policy.flaws()).chain(&policy.spec.unresolved).chain(&unserved);
            problems.extend(refused.map(|refusal| refusal.of(&policy.key)));
            problems.extend(policy.spec.limits.iter().map(|limit| limit.of(&policy.key)));
            let verdict = PolicyVerdict {
                key: policy.key.clone(),
                generation: policy.generation,
                ancestor: self.gateway.clone(),
                conditions,
            };
            verdicts.insert(policy.key.clone(), verdict);
        }
    }

    /// The refusals of a policy for targets that it does not apply to.
    fn target_faults<P: PolicyKind>(
        &self,
        policy: &AttachedPolicy<P>,
        policies: &AttachedPolicies<P>,
        references: &References<'_>,
    ) -> Vec<Refusal> {
        let at = FieldPath::new("spec").child("targetRefs");
        let faults = policy.targets.iter().enumerate().filter_map(|(position, target)| match target {
            Err(refusal) => Some(refusal.clone()),
            // The snapshot lacks objects that no route uses.
            Ok(target) if !self.targets.contains(&target.object) => None,
            Ok(target) => {
                let at = at.index(position);
                missing(target, references, &at).or_else(|| policies.conflict(policy, target, at))
            }
        });
        faults.collect()
    }
}

fn conditions<P: PolicyKind>(
    policy: &AttachedPolicy<P>,
    faults: &[Refusal],
    unserved: &[Refusal],
    honoured: bool,
) -> Conditions {
    let mut conditions = Conditions::default();
    let mut set = |kind, status, reason, message: String| {
        conditions.set(Condition { kind, status, reason, message, observed_generation: policy.generation });
    };
    // The first refusal gives the reason: a target without effect comes before a spec that PingSIX cannot honour. The status
    // has one entry for all targets, so a policy that loses one of them is not accepted. The policy still counts for the
    // others, and the message has the field.
    let against: Vec<&Refusal> =
        faults.iter().chain(policy.flaws()).chain(unserved.iter().filter(|_| !honoured)).collect();
    if let Some(first) = against.first() {
        let message = joined(against.iter().copied());
        set(ConditionType::Accepted, ConditionStatus::False, first.reason, message);
    } else {
        let also = if unserved.is_empty() { String::new() } else { format!(" {}", joined(unserved)) };
        let message = format!("The policy is accepted.{also}");
        set(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, message);
    }
    // A policy that is not accepted has this condition, too.
    match policy.spec.unresolved.first() {
        None => set(
            ConditionType::ResolvedRefs,
            ConditionStatus::True,
            Reason::ResolvedRefs,
            "All references are resolved.".to_owned(),
        ),
        Some(first) => {
            let message = joined(&policy.spec.unresolved);
            set(ConditionType::ResolvedRefs, ConditionStatus::False, first.reason, message);
        }
    }
    if let Some(condition) = limited(&policy.spec.limits, policy.generation) {
        conditions.set(condition);
    }
    conditions
}

/// The Services that attached routes refer to and may use, whether these exist or not.
fn targets_in_use(routes: &[Arc<RouteInput>], references: &References<'_>) -> BTreeSet<ObjectKey> {
    attached(routes)
        .flat_map(|input| {
            let backends = input.route.rules.iter().flat_map(|rule| &rule.backends);
            backends.filter_map(|backend| {
                let name = references.service_of(&input.route.key, backend, FieldPath::default).ok()?;
                Some(ObjectKey { kind: Kind::Service, name })
            })
        })
        .collect()
}

fn attached(routes: &[Arc<RouteInput>]) -> impl Iterator<Item = &RouteInput> {
    let routes = routes.iter().map(|route| &**route);
    routes.filter(|input| input.attached.parents.iter().any(|parent| parent.outcome.is_ok()))
}

/// The refusal of a target that is not a Service or a port of one.
fn missing(target: &PolicyTarget, references: &References<'_>, at: &FieldPath) -> Option<Refusal> {
    let PolicyTarget { object, section } = target;
    let refusal = |field, message| Some(Refusal::new(at.child(field), Reason::TargetNotFound, message));
    let Some(service) = references.service(&object.name) else {
        return refusal("name", format!("{object} does not exist."));
    };
    let wanted = section.as_deref()?;
    let exists = service.ports.iter().any(|port| port.name.as_deref() == Some(wanted));
    if exists { None } else { refusal("sectionName", format!("{object} has no port named {wanted}.")) }
}

/// By policy, the backends of attached routes for which the policy counts.
fn uses(routes: &[Arc<RouteInput>]) -> BTreeMap<Arc<ObjectKey>, Uses> {
    let mut uses: BTreeMap<Arc<ObjectKey>, Uses> = BTreeMap::new();
    for input in attached(routes) {
        for used in input.rules.iter().flat_map(|rule| &rule.policies) {
            let of_policy = uses.entry(used.policy.clone()).or_default();
            match &used.outcome {
                Ok(()) => of_policy.honoured = true,
                Err(refusal) => {
                    let has_requests = input.route.traffic.has_requests();
                    let Unserved { requests, connections } = &mut of_policy.unserved;
                    let unserved = if has_requests { requests } else { connections };
                    unserved.push(format!("{} {}", input.route.key, refusal.at));
                }
            }
        }
    }
    uses
}
