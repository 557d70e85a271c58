//! Verdicts on policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::limited::limited;
use super::{Condition, ConditionStatus, Conditions, PolicyVerdict};
use crate::lower::RouteInput;
use crate::model::{ConditionType, FieldPath, ObjectKey, ObjectName, Problem, Reason, Refusal, joined};
use crate::policy::{BackendTls, BackendTlsPolicies, PolicyTarget};
use crate::references::References;

/// Judges the policies that take part in what a Gateway serves: those that target a Service to which a route that is
/// attached refers. The others are none of this Gateway's business. `routes` are in the order of the snapshot; those that
/// refer to no Service which a policy targets may be left out.
pub(crate) fn judge_policies(
    policies: &BackendTlsPolicies,
    gateway: &Arc<ObjectKey>,
    routes: &[Arc<RouteInput>],
    references: &References<'_>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<Arc<ObjectKey>, PolicyVerdict> {
    let mut verdicts = BTreeMap::new();
    if policies.is_empty() {
        return verdicts;
    }
    let services = services_in_use(routes, references);
    let uses = uses(routes);
    for (index, policy) in policies.iter() {
        if !policy.targets.iter().flatten().any(|target| services.contains(&target.service)) {
            continue;
        }
        let faults = target_faults(index, policy, policies, &services, references);
        let unserved = uses.get(&policy.key).map(|uses| uses.unserved(policy)).unwrap_or_default();
        let served = uses.get(&policy.key).is_some_and(|uses| uses.honoured);
        let conditions = judge_policy(policy, &faults, &unserved, served);
        let refused = faults.iter().chain(flaws(policy)).chain(&policy.unresolved).chain(&unserved);
        problems.extend(refused.map(|refusal| refusal.of(&policy.key)));
        problems.extend(policy.limits.iter().map(|limit| limit.of(&policy.key)));
        let verdict = PolicyVerdict {
            key: policy.key.clone(),
            generation: policy.generation,
            ancestor: gateway.clone(),
            conditions,
        };
        verdicts.insert(policy.key.clone(), verdict);
    }
    verdicts
}

fn judge_policy(policy: &BackendTls, faults: &[Refusal], unserved: &[Refusal], served: bool) -> Conditions {
    let mut conditions = Conditions::default();
    let mut set = |kind, status, reason, message: String| {
        conditions.set(Condition { kind, status, reason, message, observed_generation: policy.generation });
    };
    // The first decides: whether a policy applies comes before whether it can be honoured. There is one entry for all
    // targets, and one that loses any of them says so; it still counts for the others, and the message has the field.
    let against: Vec<&Refusal> =
        faults.iter().chain(flaws(policy)).chain(unserved.iter().filter(|_| !served)).collect();
    if let Some(first) = against.first() {
        let message = joined(against.iter().copied());
        set(ConditionType::Accepted, ConditionStatus::False, first.reason, message);
    } else {
        let also = if unserved.is_empty() { String::new() } else { format!(" {}", joined(unserved)) };
        let message = format!("The policy is accepted.{also}");
        set(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, message);
    }
    // Judged also for a policy that is not accepted.
    match policy.unresolved.first() {
        None => set(
            ConditionType::ResolvedRefs,
            ConditionStatus::True,
            Reason::ResolvedRefs,
            "All references are resolved.".to_owned(),
        ),
        Some(first) => {
            let message = joined(&policy.unresolved);
            set(ConditionType::ResolvedRefs, ConditionStatus::False, first.reason, message);
        }
    }
    if let Some(condition) = limited(&policy.limits, policy.generation) {
        conditions.set(condition);
    }
    conditions
}

/// Why PingSIX cannot do what a policy asks for, whatever the route.
fn flaws(policy: &BackendTls) -> &[Refusal] {
    policy.verified.as_ref().err().map(Vec::as_slice).unwrap_or_default()
}

/// The Services that routes which are attached may refer to and do, whether they exist or not.
fn services_in_use(routes: &[Arc<RouteInput>], references: &References<'_>) -> BTreeSet<ObjectName> {
    attached(routes)
        .flat_map(|input| {
            let backends = input.route.rules.iter().flat_map(|rule| &rule.backends);
            backends.filter_map(|backend| {
                references.service_of(&input.route.key, backend, FieldPath::default).ok()
            })
        })
        .collect()
}

fn attached(routes: &[Arc<RouteInput>]) -> impl Iterator<Item = &RouteInput> {
    let routes = routes.iter().map(|route| &**route);
    routes.filter(|input| input.attached.parents.iter().any(|parent| parent.outcome.is_ok()))
}

/// Targets of a policy that it does not apply to.
fn target_faults(
    index: usize,
    policy: &BackendTls,
    policies: &BackendTlsPolicies,
    services: &BTreeSet<ObjectName>,
    references: &References<'_>,
) -> Vec<Refusal> {
    let at = |position: usize| FieldPath::new("spec").child("targetRefs").index(position);
    let mut faults = Vec::new();
    for (position, target) in policy.targets.iter().enumerate() {
        match target {
            Err(refusal) => faults.push(refusal.clone()),
            // What no route refers to is not known here.
            Ok(target) if !services.contains(&target.service) => {}
            Ok(target) => {
                let missing = missing(target, references)
                    .map(|(field, message)| (at(position).child(field), Reason::TargetNotFound, message));
                let lost = || {
                    let preferred = policies.preferred(index, target)?;
                    let message = format!(
                        "{preferred} has the same target and takes precedence, so that only it counts."
                    );
                    Some((at(position), Reason::Conflicted, message))
                };
                faults.extend(
                    missing.or_else(lost).map(|(at, reason, message)| Refusal::new(at, reason, message)),
                );
            }
        }
    }
    faults
}

/// What there is not of a target: the field that names it, and a sentence.
fn missing(target: &PolicyTarget, references: &References<'_>) -> Option<(&'static str, String)> {
    let Some(service) = references.service(&target.service) else {
        return Some(("name", format!("Service {} does not exist.", target.service)));
    };
    let wanted = target.port.as_deref()?;
    let exists = service.ports.iter().any(|port| port.name.as_deref() == Some(wanted));
    (!exists).then(|| ("sectionName", format!("Service {} has no port named {wanted}.", target.service)))
}

/// What became of the backends a policy counts for.
#[derive(Debug, Default)]
struct Uses {
    /// Whether some of them are spoken to as the policy wants.
    honoured: bool,
    /// The others that requests go to, as object and field.
    denied: Vec<String>,
    /// The others that connections without requests go to, likewise.
    closed: Vec<String>,
}

impl Uses {
    /// What a policy that PingSIX could honour is not honoured for.
    fn unserved(&self, policy: &BackendTls) -> Vec<Refusal> {
        let Ok(hostname) = &policy.verified else { return Vec::new() };
        let denied = (!self.denied.is_empty()).then(|| Refusal::new(
            FieldPath::new("spec").child("validation").child("hostname"),
            Reason::UnsupportedValue,
            format!(
                "PingSIX sends one name as Host and as server name, so it can verify {hostname} only for requests \
                 that all have this Host, or are given it by a URLRewrite filter. These may have others, and are \
                 answered with an error: {}.",
                self.denied.join(", ")
            ),
        ));
        let closed = (!self.closed.is_empty()).then(|| Refusal::new(
            FieldPath::new("spec").child("targetRefs"),
            Reason::UnsupportedValue,
            format!(
                "Only requests are sent to backends over TLS. These connections carry none that is known of, and are \
                 closed: {}.",
                self.closed.join(", ")
            ),
        ));
        denied.into_iter().chain(closed).collect()
    }
}

/// By policy, what routes that are attached make of it.
fn uses(routes: &[Arc<RouteInput>]) -> BTreeMap<Arc<ObjectKey>, Uses> {
    let mut uses: BTreeMap<Arc<ObjectKey>, Uses> = BTreeMap::new();
    for input in attached(routes) {
        for used in input.rules.iter().flat_map(|rule| &rule.policies) {
            let of_policy = uses.entry(used.policy.clone()).or_default();
            match &used.outcome {
                Ok(()) => of_policy.honoured = true,
                Err(refusal) => {
                    let has_requests = input.route.traffic.has_requests();
                    let told = if has_requests { &mut of_policy.denied } else { &mut of_policy.closed };
                    told.push(format!("{} {}", input.route.key, refusal.at));
                }
            }
        }
    }
    uses
}
