//! Verdicts on policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::affected::Affected;
use super::condition::resolved;
use super::limited::limited;
use super::target::not_found;
use super::{Ancestor, Condition, ConditionStatus, Conditions, PolicyVerdict};
use crate::attach::Listener;
use crate::infrastructure::HIDDEN_CLIENTS;
use crate::lower::RouteInput;
use crate::model::{ConditionType, FieldPath, Kind, ObjectKey, Problem, Reason, Refusal, joined};
use crate::normalise::Rule;
use crate::policy::{
    AttachedPolicies, AttachedPolicy, InheritedEffect, Overridden, Policies, PolicyEffect, PolicyTarget,
    UnsupportedTraffic, levels_of_listener, levels_of_rule,
};
use crate::references::References;
use crate::shared_map::SharedMap;

/// The verdicts on policies, their problems, and the policies that apply to each target.
#[derive(Debug, Default)]
pub(crate) struct JudgedPolicies {
    pub(crate) verdicts: BTreeMap<Arc<ObjectKey>, PolicyVerdict>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) affected: Affected,
}

/// Judges the policies with a target that is a Gateway, one of its ListenerSets or attached routes, or that such routes use;
/// the other policies are of no concern to the Gateway. `routes` are in the order of the snapshot. Routes without a relation to
/// a target of a policy may be left out.
pub(crate) fn judge_policies(
    policies: &Policies,
    (gateway, listeners, hides_clients): (&Arc<ObjectKey>, &[Listener], bool),
    routes: &[Arc<RouteInput>],
    references: &References<'_>,
) -> JudgedPolicies {
    if policies.targets().next().is_none() {
        return JudgedPolicies::default();
    }
    let mut targets = targets_in_use(routes, references);
    targets.insert((**gateway).clone());
    targets.extend(listeners.iter().map(|listener| (*listener.owner).clone()));
    let routes_by_key: BTreeMap<&ObjectKey, &RouteInput> =
        attached(routes).map(|input| (&*input.route.key, input)).collect();
    targets.extend(routes_by_key.keys().map(|key| (*key).clone()));
    let owner = OwnerOfPolicies {
        owner: gateway,
        listeners,
        routes: routes_by_key,
        targets,
        canaries: BTreeSet::new(),
        uses: uses(routes),
        hides_clients,
    };
    owner.judge_all(policies, references)
}

/// Judges the policies with a target that is an Ingress of a class, or a Service that such an Ingress uses. Routes without a
/// relation to a Service with a policy may be left out.
///
/// The ancestor of the verdicts is the IngressClass, for the reasons for which GEP-713 recommends the Gateway: the data planes
/// of the class apply the policy, and an ancestor stands for a distinct application of the policy. An entry for each Ingress
/// would be as correct, because an ancestor may be the target itself. The 16 entries that the API allows would then have no
/// room for a policy with 16 targets beside another controller.
///
/// The requests of a canary come in by another Ingress, so a policy of a canary has no effect and is refused.
pub(crate) fn judge_policies_of_ingresses(
    policies: &Policies,
    (class, ingresses, hides_clients): (&Arc<ObjectKey>, &SharedMap<Arc<ObjectKey>, ()>, bool),
    is_canary: impl Fn(&ObjectKey) -> bool,
    routes: &[Arc<RouteInput>],
    references: &References<'_>,
) -> JudgedPolicies {
    let mut targets = targets_in_use(routes, references);
    let of_ingresses = policies.targets().filter(|target| ingresses.contains_key(*target));
    targets.extend(of_ingresses.cloned());
    let canaries = targets.iter().filter(|target| target.kind == Kind::Ingress && is_canary(target));
    let canaries: BTreeSet<ObjectKey> = canaries.cloned().collect();
    let owner = OwnerOfPolicies {
        owner: class,
        listeners: &[],
        routes: BTreeMap::new(),
        targets,
        canaries,
        uses: uses(routes),
        hides_clients,
    };
    owner.judge_all(policies, references)
}

/// A Gateway or IngressClass through which policies take effect.
struct OwnerOfPolicies<'a> {
    owner: &'a Arc<ObjectKey>,
    listeners: &'a [Listener],
    /// The attached routes.
    routes: BTreeMap<&'a ObjectKey, &'a RouteInput>,
    /// Possible targets of policies: the Gateway, its ListenerSets, attached routes, and objects that these routes use,
    /// whether the latter exist or not; or the Ingresses of the class.
    targets: BTreeSet<ObjectKey>,
    /// The targets whose requests come in by other Ingresses.
    canaries: BTreeSet<ObjectKey>,
    /// By policy.
    uses: BTreeMap<Arc<ObjectKey>, BackendUses>,
    /// Whether clients may have the address of a node.
    hides_clients: bool,
}

/// The facts about an inherited policy that depend on the Gateway or IngressClass.
#[derive(Debug, Default)]
struct Inheritance {
    /// The fields that wider policies override for some requests.
    overridden: Vec<Overridden>,
    limitations: Vec<Refusal>,
}

/// The backends for which a policy counts.
#[derive(Debug, Default)]
struct BackendUses {
    /// Whether PingSIX honours the policy for some of them.
    honoured: bool,
    unsupported: UnsupportedTraffic,
}

impl OwnerOfPolicies<'_> {
    /// Judges the policies of all kinds.
    fn judge_all(&self, policies: &Policies, references: &References<'_>) -> JudgedPolicies {
        let mut judged = JudgedPolicies::default();
        let Policies { backend_tls, backend_traffic, security, traffic } = policies;
        self.judge(backend_tls, references, |_| Inheritance::default(), &mut judged);
        self.judge(backend_traffic, references, |_| Inheritance::default(), &mut judged);
        self.judge(security, references, |policy| self.inheritance(policy, security), &mut judged);
        self.judge(traffic, references, |policy| self.inheritance(policy, traffic), &mut judged);
        // The statuses of Services, which the other kinds target, are not ours.
        judged.affected.add(security, &judged.verdicts);
        judged.affected.add(traffic, &judged.verdicts);
        judged
    }

    /// Judges the policies of one kind.
    fn judge<P: PolicyEffect>(
        &self,
        policies: &AttachedPolicies<P>,
        references: &References<'_>,
        inheritance: impl Fn(&AttachedPolicy<P>) -> Inheritance,
        judged: &mut JudgedPolicies,
    ) {
        // The problems of policies that annotations stand for are those of the Ingress.
        for policy in policies.iter().filter(|policy| !policy.is_of_annotations()) {
            if !policy.targets.iter().flatten().any(|target| self.targets.contains(&target.object)) {
                continue;
            }
            let refusals = self.target_refusals(policy, policies, references);
            let uses = self.uses.get(&policy.key);
            let unsupported = match (&policy.spec.effect, uses) {
                (Ok(effect), Some(uses)) => effect.refuse(&uses.unsupported),
                (Ok(_) | Err(_), _) => Vec::new(),
            };
            let Inheritance { overridden, limitations } = inheritance(policy);
            let limitations = || policy.spec.limitations.iter().chain(&limitations);
            let mut conditions =
                conditions(policy, &refusals, &unsupported, uses.is_some_and(|uses| uses.honoured));
            let of_owner =
                [overridden_condition(&overridden, policy), limited(limitations(), policy.generation)];
            for condition in of_owner.into_iter().flatten() {
                conditions.set(condition);
            }
            let refused =
                refusals.iter().chain(policy.refusals()).chain(&policy.spec.unresolved).chain(&unsupported);
            judged.problems.extend(refused.map(|refusal| refusal.of(&policy.key)));
            judged.problems.extend(limitations().map(|limitation| limitation.of(&policy.key)));
            let verdict = PolicyVerdict {
                key: policy.key.clone(),
                generation: policy.generation,
                ancestor: Ancestor::Owner(self.owner.clone()),
                conditions,
            };
            judged.verdicts.insert(policy.key.clone(), verdict);
        }
    }

    /// The refusals of a policy for targets that it does not apply to.
    fn target_refusals<P: PolicyEffect>(
        &self,
        policy: &AttachedPolicy<P>,
        policies: &AttachedPolicies<P>,
        references: &References<'_>,
    ) -> Vec<Refusal> {
        let at = FieldPath::new("spec").child("targetRefs");
        let refusals = policy.targets.iter().enumerate().filter_map(|(position, target)| match target {
            Err(refusal) => Some(refusal.clone()),
            // The snapshot lacks objects that no route uses.
            Ok(target) if !self.targets.contains(&target.object) => None,
            Ok(target) if self.canaries.contains(&target.object) => {
                let message = format!(
                    "{} is a canary, and its requests come in by another Ingress, whose policies count for them.",
                    target.object
                );
                Some(Refusal::new(at.index(position), Reason::Invalid, message))
            }
            Ok(target) => {
                let at = at.index(position);
                self.missing(target, references, &at).or_else(|| policies.conflict(policy, target, at))
            }
        });
        refusals.collect()
    }
}

impl OwnerOfPolicies<'_> {
    fn inheritance<P: InheritedEffect>(
        &self,
        policy: &AttachedPolicy<P>,
        policies: &AttachedPolicies<P>,
    ) -> Inheritance {
        let (overridden, limitations) = (self.overridden(policy, policies), self.hidden_clients(policy));
        Inheritance { overridden, limitations }
    }

    /// The limitations of fields that need the addresses of clients.
    fn hidden_clients<P: InheritedEffect>(&self, policy: &AttachedPolicy<P>) -> Vec<Refusal> {
        let fields = policy.fields_by_address().filter(|_| self.hides_clients);
        fields.map(|field| Refusal::limited(FieldPath::new("spec").child(field), HIDDEN_CLIENTS)).collect()
    }

    /// The fields of a policy that wider policies override for some requests.
    fn overridden<P: InheritedEffect>(
        &self,
        policy: &AttachedPolicy<P>,
        policies: &AttachedPolicies<P>,
    ) -> Vec<Overridden> {
        let mut overridden: Vec<Overridden> = Vec::new();
        for target in policy.targets.iter().flatten() {
            if let Some(input) = self.routes.get(&target.object) {
                let rules = input.route.rules.iter();
                let rules: Vec<&Rule> = rules
                    .filter(|rule| {
                        target.section.is_none() || target.section.as_deref() == rule.name.as_deref()
                    })
                    .collect();
                for listener in input.attached.listeners() {
                    for rule in &rules {
                        let levels = levels_of_listener(self.owner, &self.listeners[listener]);
                        let levels: Vec<PolicyTarget> =
                            levels.chain(levels_of_rule(&input.route, rule)).collect();
                        overridden.extend(policies.overridden(policy, &levels));
                    }
                }
            } else {
                let of_target = |listener: &&Listener| {
                    *listener.owner == target.object
                        && target.section.as_ref().is_none_or(|section| *section == listener.name)
                };
                for listener in self.listeners.iter().filter(of_target) {
                    let levels: Vec<PolicyTarget> = levels_of_listener(self.owner, listener).collect();
                    overridden.extend(policies.overridden(policy, &levels));
                }
            }
        }
        overridden.sort_unstable();
        overridden.dedup();
        overridden
    }

    /// The refusal of a target that does not exist, or does not have the section.
    fn missing(&self, target: &PolicyTarget, references: &References<'_>, at: &FieldPath) -> Option<Refusal> {
        let PolicyTarget { object, section } = target;
        let wanted = section.as_deref();
        let refusal = |field, message| Some(Refusal::new(at.child(field), Reason::TargetNotFound, message));
        if object.kind == Kind::Service {
            let Some(service) = references.service(&object.name) else {
                return Some(not_found(object, at));
            };
            let wanted = wanted?;
            let exists = service.ports.iter().any(|port| port.name.as_deref() == Some(wanted));
            return if exists {
                None
            } else {
                refusal("sectionName", format!("{object} has no port named {wanted}."))
            };
        }
        let wanted = wanted?;
        match self.routes.get(object) {
            Some(input) if input.route.rules.iter().any(|rule| rule.name.as_deref() == Some(wanted)) => None,
            Some(_) => refusal("sectionName", format!("{object} has no rule named {wanted}.")),
            None => {
                let mut listeners = self.listeners.iter().filter(|listener| *listener.owner == *object);
                if listeners.any(|listener| listener.name == wanted) {
                    None
                } else {
                    refusal("sectionName", format!("{object} has no listener named {wanted}."))
                }
            }
        }
    }
}

/// The condition of a policy whose fields wider policies override.
fn overridden_condition<P: PolicyEffect>(
    overridden: &[Overridden],
    policy: &AttachedPolicy<P>,
) -> Option<Condition> {
    let named = |Overridden { field, by }: &Overridden| format!("{field} by {}", by.named_to(&policy.key));
    let mut fields: Vec<String> = overridden.iter().map(named).collect();
    fields.dedup();
    (!fields.is_empty()).then(|| {
        let message = format!("Policies with wider targets override fields: {}.", fields.join(", "));
        let content = (ConditionStatus::True, Reason::Overridden, message);
        Condition::new(ConditionType::Overridden, content, policy.generation)
    })
}

fn conditions<P: PolicyEffect>(
    policy: &AttachedPolicy<P>,
    refusals: &[Refusal],
    unsupported: &[Refusal],
    honoured: bool,
) -> Conditions {
    // The first refusal gives the reason: a target without effect comes before a spec that PingSIX cannot honour. The status
    // has one entry for all targets, so a policy that loses one of them is not accepted. The policy still counts for the
    // others, and the message has the field.
    let against: Vec<&Refusal> =
        refusals.iter().chain(policy.refusals()).chain(unsupported.iter().filter(|_| !honoured)).collect();
    let accepted = if let Some(first) = against.first() {
        (ConditionStatus::False, first.reason, joined(against.iter().copied()))
    } else {
        let also = if unsupported.is_empty() { String::new() } else { format!(" {}", joined(unsupported)) };
        (ConditionStatus::True, Reason::Accepted, format!("The policy is accepted.{also}"))
    };
    let mut conditions = Conditions::default();
    conditions.put(ConditionType::Accepted, accepted, policy.generation);
    // A policy that is not accepted has this condition, too.
    conditions.put(ConditionType::ResolvedRefs, resolved(&policy.spec.unresolved), policy.generation);
    conditions
}

/// The Services that attached routes refer to and may use, whether these exist or not.
fn targets_in_use(routes: &[Arc<RouteInput>], references: &References<'_>) -> BTreeSet<ObjectKey> {
    attached(routes)
        .flat_map(|input| {
            let backends = input.route.rules.iter().flat_map(|rule| &rule.backends);
            let backends = backends.filter_map(|backend| {
                references.service_of(&input.route.key, backend, FieldPath::default).ok()
            });
            // A default backend is in the namespace of its Ingress.
            let defaults = input.route.rules.iter().filter_map(|rule| rule.backend_settings.as_ref());
            let defaults = defaults.filter_map(|settings| settings.default_backend.clone());
            backends.chain(defaults).map(|name| ObjectKey { kind: Kind::Service, name })
        })
        .collect()
}

/// The routes that are attached to a listener, or to the ports of an IngressClass.
fn attached(routes: &[Arc<RouteInput>]) -> impl Iterator<Item = &RouteInput> {
    let routes = routes.iter().map(|route| &**route);
    routes.filter(|input| input.attached.listeners().next().is_some())
}

/// By policy, the backends of attached routes for which the policy counts.
fn uses(routes: &[Arc<RouteInput>]) -> BTreeMap<Arc<ObjectKey>, BackendUses> {
    let mut uses: BTreeMap<Arc<ObjectKey>, BackendUses> = BTreeMap::new();
    for input in attached(routes) {
        for used in input.rules.iter().flat_map(|rule| &rule.policies) {
            let of_policy = uses.entry(used.policy.clone()).or_default();
            match &used.outcome {
                Ok(()) => of_policy.honoured = true,
                Err(refusal) => {
                    let has_requests = input.route.traffic.has_requests();
                    let UnsupportedTraffic { requests, connections } = &mut of_policy.unsupported;
                    let unsupported = if has_requests { requests } else { connections };
                    unsupported.insert(if input.route.key.is_known_to(&used.policy) {
                        format!("{} {}", input.route.key, refusal.at)
                    } else {
                        input.route.key.named_to(&used.policy)
                    });
                }
            }
        }
    }
    uses
}
