//! Verdicts on routes.

use std::collections::{BTreeMap, BTreeSet};

use super::limited::limited;
use super::{
    Condition, ConditionStatus, ConditionType, Conditions, ParentVerdict, Problem, Reason, RouteVerdict,
};
use crate::attach::{Attachment, Listener};
use crate::field::FieldPath;
use crate::lower::{RouteInput, RuleRef, ZoneRefusal, ZoneRefusalCause};
use crate::route::{Limit, Refusal, joined};

/// What lowering refused, by route.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    rules: BTreeMap<usize, BTreeMap<usize, Refusal>>,
    /// By route: listener that does not serve it, and why.
    listeners: BTreeMap<usize, BTreeMap<usize, String>>,
    /// Routes and listeners that serve them for at least some hosts.
    served: BTreeSet<(usize, usize)>,
}

impl Refusals {
    pub(crate) fn add_rules(&mut self, refused: impl IntoIterator<Item = (RuleRef, Refusal)>) {
        for (rule, refusal) in refused {
            self.rules.entry(rule.route).or_default().entry(rule.rule).or_insert(refusal);
        }
    }

    /// Routes that a shared data plane cannot serve on one listener without serving them on another, and those
    /// that it serves.
    pub(crate) fn add_zones(
        &mut self,
        listeners: &[Listener],
        refused: &[ZoneRefusal],
        served: BTreeSet<(usize, usize)>,
    ) {
        self.served.extend(served);
        for &ZoneRefusal { route, listener, cause } in refused {
            let own = &listeners[listener];
            let message = match cause {
                ZoneRefusalCause::Exposed { port } => format!(
                    "PingSIX cannot tell ports apart, so what listener \"{}\" serves over HTTPS would also be \
                     served in plaintext on port {port}; use layout perPort.",
                    own.name
                ),
                ZoneRefusalCause::NotAttached { other } => {
                    let other = &listeners[other];
                    format!(
                        "PingSIX cannot tell ports apart, and listener \"{}\" on port {} serves the same hosts as \
                         listener \"{}\" on port {}; attach the route to both, or use layout perPort.",
                        other.name, other.port, own.name, own.port
                    )
                }
            };
            self.listeners.entry(route).or_default().entry(listener).or_insert(message);
        }
    }
}

/// Judges a route with respect to each parentRef that is ours.
pub(crate) fn judge_route(
    index: usize,
    input: &RouteInput,
    refusals: &Refusals,
    problems: &mut Vec<Problem>,
) -> RouteVerdict {
    let route = &input.route;
    let refused_rules = refused_rules(index, input, refusals);
    let limits: Vec<&Limit> = route.rules.iter().flat_map(|rule| &rule.limits).collect();
    let unresolved: Vec<&Refusal> = input.rules.iter().flat_map(|rule| &rule.unresolved).collect();
    let mut parents = Vec::with_capacity(input.parents.len());
    for Attachment { parent_ref, outcome } in &input.parents {
        let mut conditions = Conditions::default();
        let mut set = |kind, status, reason, message: String| {
            conditions.set(Condition {
                kind,
                status,
                reason,
                message,
                observed_generation: route.generation,
            });
        };
        let no_listeners = BTreeMap::new();
        let refusing = refusals.listeners.get(&index).unwrap_or(&no_listeners);
        match outcome {
            Err(refusal) => {
                problems.push(refusal.of(&route.key));
                let message = with_refusals(refusal.to_string(), &route.refusals);
                set(ConditionType::Accepted, ConditionStatus::False, refusal.reason, message);
            }
            Ok(listeners) => {
                let at = FieldPath::new("spec").child("parentRefs").index(parent_ref.index);
                let on_listeners: Vec<Refusal> = listeners
                    .iter()
                    .filter_map(|listener| refusing.get(listener))
                    .map(|message| Refusal::new(at.clone(), Reason::UnsupportedValue, message.clone()))
                    .collect();
                problems.extend(on_listeners.iter().map(|refusal| refusal.of(&route.key)));
                let every_rule = refused_rules.len() == route.rules.len();
                // A listener may serve the route for some hosts and not for others, or for none at all because
                // narrower listeners take them; what counts is whether anything is served.
                let every_listener = !on_listeners.is_empty()
                    && !listeners.iter().any(|&listener| refusals.served.contains(&(index, listener)));
                let all: Vec<&Refusal> =
                    on_listeners.iter().chain(refused_rules.values().flatten().copied()).collect();
                if every_rule || every_listener {
                    let message = joined(all);
                    set(ConditionType::Accepted, ConditionStatus::False, Reason::UnsupportedValue, message);
                } else {
                    let accepted = "The route is accepted.".to_owned();
                    let message = with_refusals(accepted, &route.refusals);
                    set(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, message);
                    if !all.is_empty() {
                        // The API wants the message of a rule that is not served to start with these words.
                        let message = format!("Dropped Rule: {}", joined(all));
                        set(
                            ConditionType::PartiallyInvalid,
                            ConditionStatus::True,
                            Reason::UnsupportedValue,
                            message,
                        );
                    }
                }
            }
        }
        if conditions.is_true(ConditionType::Accepted)
            && let Some(condition) = limited(limits.iter().copied(), route.generation)
        {
            conditions.set(condition);
        }
        let mut set = |kind, status, reason, message: String| {
            conditions.set(Condition {
                kind,
                status,
                reason,
                message,
                observed_generation: route.generation,
            });
        };
        // Judged also for a route that is not accepted.
        match unresolved.first() {
            None => set(
                ConditionType::ResolvedRefs,
                ConditionStatus::True,
                Reason::ResolvedRefs,
                "All references are resolved.".to_owned(),
            ),
            Some(first) => set(
                ConditionType::ResolvedRefs,
                ConditionStatus::False,
                first.reason,
                joined(unresolved.iter().copied()),
            ),
        }
        parents.push(ParentVerdict { parent_ref: parent_ref.clone(), conditions });
    }
    if !parents.is_empty() {
        problems.extend(route.refusals.iter().map(|refusal| refusal.of(&route.key)));
        problems.extend(limits.iter().map(|limit| limit.of(&route.key)));
        let refused = refused_rules.values().flatten().copied();
        problems.extend(refused.chain(unresolved).map(|refusal| refusal.of(&route.key)));
    }
    RouteVerdict { key: route.key.clone(), generation: route.generation, parents }
}

/// Every rule that is refused, by normalisation or by lowering, with all reasons.
fn refused_rules<'a>(
    index: usize,
    input: &'a RouteInput,
    refusals: &'a Refusals,
) -> BTreeMap<usize, Vec<&'a Refusal>> {
    let mut refused: BTreeMap<usize, Vec<&Refusal>> = BTreeMap::new();
    for (position, (rule, resolved)) in input.route.rules.iter().zip(&input.rules).enumerate() {
        if !(rule.refusals.is_empty() && resolved.refused.is_empty()) {
            refused.entry(position).or_default().extend(rule.refusals.iter().chain(&resolved.refused));
        }
    }
    for (position, refusal) in refusals.rules.get(&index).into_iter().flatten() {
        refused.entry(*position).or_default().push(refusal);
    }
    refused
}

/// A message, and what is refused besides, such as one of several hostnames.
fn with_refusals(message: String, refusals: &[Refusal]) -> String {
    if refusals.is_empty() { message } else { format!("{message} {}", joined(refusals)) }
}
