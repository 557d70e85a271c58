//! Verdicts on routes.

use std::collections::{BTreeMap, BTreeSet};

use super::affected;
use super::condition::resolved;
use super::limited::limited;
use super::{ConditionStatus, Conditions, ParentVerdict, RouteVerdict};
use crate::attach::{Attachment, Listener};
use crate::backends::ResolvedRule;
use crate::lower::{RouteInput, RuleRef, ZoneRefusal, ZoneRefusalCause};
use crate::model::{Capability, ConditionType, FieldPath, Problem, Reason};
use crate::model::{Refusal, joined};
use crate::normalise::Part;

/// The refusals of lowering, by route.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// By route: the number of the data plane, the rule and its refusal.
    rules: BTreeMap<usize, Vec<(usize, usize, Refusal)>>,
    /// By served listener: the number of its data plane.
    planes: BTreeMap<usize, usize>,
    /// By route: the listeners that do not serve it, each with a message.
    listeners: BTreeMap<usize, BTreeMap<usize, String>>,
    /// Pairs of a route and a listener that serves the route for at least some hosts.
    served: BTreeSet<(usize, usize)>,
}

impl Refusals {
    /// Adds the served listeners of the data plane with a number.
    pub(crate) fn add_plane(&mut self, number: usize, listeners: impl IntoIterator<Item = usize>) {
        self.planes.extend(listeners.into_iter().map(|listener| (listener, number)));
    }

    /// Adds the rules that a data plane cannot serve.
    pub(crate) fn add_rules(&mut self, number: usize, refused: impl IntoIterator<Item = (RuleRef, Refusal)>) {
        for (rule, refusal) in refused {
            self.rules.entry(rule.route).or_default().push((number, rule.rule, refusal));
        }
    }

    /// The limitations of a route's rules, each once.
    fn limitations(&self, route: usize) -> Vec<&Refusal> {
        let of_rules = self.rules.get(&route).into_iter().flatten();
        let limited = of_rules.filter(|(.., refusal)| refusal.is_limited());
        let mut limitations = Vec::new();
        for (.., refusal) in limited {
            if !limitations.contains(&refusal) {
                limitations.push(refusal);
            }
        }
        limitations
    }

    /// Whether a listener serves a route for none of its hosts.
    pub(super) fn is_refused_on(&self, route: usize, listener: usize) -> bool {
        let refused = self.listeners.get(&route).is_some_and(|listeners| listeners.contains_key(&listener));
        refused && !self.served.contains(&(route, listener))
    }

    /// Adds the routes that a shared data plane cannot serve on one listener alone, and the routes that it serves.
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
                ZoneRefusalCause::Exposed { port } => {
                    Capability::RouteOfTlsPort.message(&[&own.name, &port.to_string()])
                }
                ZoneRefusalCause::UnnamedRedirect => Capability::RedirectOfWildcard.message(&[&own.name]),
                ZoneRefusalCause::NotAttached { other } => {
                    let other = &listeners[other];
                    let (of_other, of_own) = (other.port.to_string(), own.port.to_string());
                    Capability::RouteOfPort.message(&[&other.name, &of_other, &own.name, &of_own])
                }
            };
            self.listeners.entry(route).or_default().entry(listener).or_insert(message);
        }
    }
}

/// Judges a route with respect to each parentRef to the Gateway or its ListenerSets. `policies` says which policies apply to
/// the route.
pub(crate) fn judge_route(
    index: usize,
    input: &RouteInput,
    refusals: &Refusals,
    policies: Option<&str>,
    problems: &mut Vec<Problem>,
) -> RouteVerdict {
    let route = &input.route;
    let of_rules = route.rules.iter().flat_map(|rule| &rule.limitations);
    let of_lowering = refusals.limitations(index);
    let limitations: Vec<&Refusal> = route.limitations.iter().chain(of_rules).chain(of_lowering).collect();
    let written = input.written_rules();
    let unresolved: Vec<&Refusal> = input.rules.iter().flat_map(|rule| &rule.unresolved).collect();
    let RefusedBackends { denied, shares, of_every_rule } = refused_backends(&input.rules[..written]);
    let mut parents = Vec::with_capacity(input.attached.parents.len());
    for Attachment { parent_ref, outcome } in &input.attached.parents {
        let mut conditions = Conditions::default();
        let mut set = |kind, status, reason, message: String| {
            conditions.put(kind, (status, reason, message), route.generation);
        };
        // Refusals in the message of `Accepted`, `True` or `False`.
        let mut accepted: Vec<&Refusal> = route.refusals.iter().collect();
        let no_listeners = BTreeMap::new();
        let refusing = refusals.listeners.get(&index).unwrap_or(&no_listeners);
        match outcome {
            Err(refusal) => {
                problems.push(refusal.of(&route.key));
                let message = with_refusals(refusal.to_string(), accepted);
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
                let refused_rules = refused_rules(index, input, refusals, Some(listeners));
                let every_rule = refused_rules.len() == written
                    && refused_rules.values().all(|rule| rule.is_refused_everywhere);
                // A listener may serve the route for some hosts only, or for none if narrower listeners take them. The
                // route is refused if no listener serves any host.
                let every_listener = !on_listeners.is_empty()
                    && !listeners.iter().any(|&listener| refusals.served.contains(&(index, listener)));
                let of_route = on_listeners
                    .iter()
                    .chain(refused_rules.values().flat_map(|rule| &rule.refusals).copied());
                let mut dropped: Vec<&Refusal> = of_route.collect();
                if every_rule || every_listener {
                    let message =
                        joined(dropped.iter().copied().chain(denied.iter().chain(&shares).copied()));
                    let reason = reason_of(&dropped);
                    set(ConditionType::Accepted, ConditionStatus::False, reason, message);
                } else {
                    // The specification wants routes to Services with unusable policies accepted. A route without a
                    // served rule is not partially invalid either.
                    let refusals = if of_every_rule { &mut accepted } else { &mut dropped };
                    refusals.extend(denied.iter().copied());
                    let message = with_refusals("The route is accepted.".to_owned(), accepted);
                    set(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, message);
                    if let Some(message) = partial_refusal(&dropped, &shares) {
                        let kind = ConditionType::PartiallyInvalid;
                        set(kind, ConditionStatus::True, reason_of(&dropped), message);
                    }
                }
            }
        }
        if conditions.is_true(ConditionType::Accepted)
            && let Some(condition) = limited(limitations.iter().copied(), route.generation)
        {
            conditions.set(condition);
        }
        // A route that is not accepted has this condition, too.
        let resolved = resolved(unresolved.iter().copied());
        conditions.put(ConditionType::ResolvedRefs, resolved, route.generation);
        if let (Ok(_), Some(policies)) = (outcome, policies) {
            conditions.set(affected::condition(policies.to_owned(), route.generation));
        }
        parents.push(ParentVerdict { parent_ref: parent_ref.clone(), conditions });
    }
    // The routes of an Ingress have no parentRefs.
    if !parents.is_empty() || route.part != Part::Whole {
        problems.extend(route.refusals.iter().map(|refusal| refusal.of(&route.key)));
        problems.extend(limitations.iter().map(|limitation| limitation.of(&route.key)));
        let refused_rules = refused_rules(index, input, refusals, None);
        let refused = refused_rules.values().flat_map(|rule| &rule.refusals).copied();
        problems.extend(
            refused.chain(unresolved).chain(denied).chain(shares).map(|refusal| refusal.of(&route.key)),
        );
    }
    RouteVerdict { key: route.key.clone(), generation: route.generation, parents: parents.into() }
}

/// Refusals of backends.
struct RefusedBackends<'a> {
    /// Backends of rules that serve nothing, refused because of policies.
    denied: Vec<&'a Refusal>,
    /// Backends of rules that have other backends.
    shares: Vec<&'a Refusal>,
    /// Whether every rule serves nothing because of policies.
    of_every_rule: bool,
}

fn refused_backends(rules: &[ResolvedRule]) -> RefusedBackends<'_> {
    let is_denied = |rule: &ResolvedRule| rule.serves_nothing() && rule.denied().next().is_some();
    let of_every_rule = rules.iter().all(is_denied);
    let (whole, partial): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| rule.serves_nothing());
    let shares = partial.into_iter().flat_map(|rule| rule.refused.iter().chain(rule.denied()));
    RefusedBackends {
        denied: whole.into_iter().flat_map(ResolvedRule::denied).collect(),
        shares: shares.collect(),
        of_every_rule,
    }
}

/// The message about refused parts of an accepted route. The API wants the message about dropped rules to start with these
/// words. They would be wrong for a rule that has other backends.
fn partial_refusal(dropped: &[&Refusal], shares: &[&Refusal]) -> Option<String> {
    let parts = [("Dropped Rule", dropped), ("Dropped Backend", shares)];
    let parts = parts.into_iter().filter(|(_, refusals)| !refusals.is_empty());
    let parts = parts.map(|(what, refusals)| format!("{what}: {}", joined(refusals.iter().copied())));
    Some(parts.collect::<Vec<_>>().join(" ")).filter(|message| !message.is_empty())
}

/// The reason for dropped rules: `Quarantined` if that is the reason of all, or else `UnsupportedValue`.
fn reason_of(dropped: &[&Refusal]) -> Reason {
    let is_quarantined = |refusal: &&Refusal| refusal.reason == Reason::Quarantined;
    if !dropped.is_empty() && dropped.iter().all(is_quarantined) {
        Reason::Quarantined
    } else {
        Reason::UnsupportedValue
    }
}

/// A rule that is refused on some listeners.
#[derive(Debug, Default)]
struct RefusedRule<'a> {
    refusals: Vec<&'a Refusal>,
    is_refused_everywhere: bool,
}

/// Every rule that is refused by an earlier stage, or by lowering on the data planes of these listeners (`None` is all data
/// planes), with all refusals.
fn refused_rules<'a>(
    index: usize,
    input: &'a RouteInput,
    refusals: &'a Refusals,
    listeners: Option<&[usize]>,
) -> BTreeMap<usize, RefusedRule<'a>> {
    let mut refused: BTreeMap<usize, RefusedRule<'a>> = BTreeMap::new();
    let written = input.written_rules();
    for (position, (rule, resolved)) in input.route.rules.iter().zip(&input.rules).enumerate() {
        let of_backends = resolved.refused.iter().filter(|_| resolved.serves_nothing());
        let why: Vec<&Refusal> = rule.refusals.iter().chain(of_backends).collect();
        if !why.is_empty() {
            refused.insert(position, RefusedRule { refusals: why, is_refused_everywhere: true });
        }
    }
    let lowered = refusals.rules.get(&index).map(Vec::as_slice).unwrap_or_default();
    let planes: Option<BTreeSet<usize>> = listeners.filter(|_| !lowered.is_empty()).map(|listeners| {
        listeners.iter().filter_map(|listener| refusals.planes.get(listener)).copied().collect()
    });
    let mut on_planes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (plane, position, refusal) in lowered {
        if !refusal.is_limited()
            && *position < written
            && planes.as_ref().is_none_or(|planes| planes.contains(plane))
        {
            let rule = refused.entry(*position).or_default();
            rule.refusals.push(refusal);
            let on = on_planes.entry(*position).or_default();
            on.insert(*plane);
            rule.is_refused_everywhere |= planes.as_ref().is_some_and(|planes| planes.len() == on.len());
        }
    }
    refused
}

/// A message with further refusals, such as that of one of several hostnames.
fn with_refusals(message: String, refusals: Vec<&Refusal>) -> String {
    if refusals.is_empty() { message } else { format!("{message} {}", joined(refusals)) }
}
