//! Rules of routes without requests, because other rules take all of them first.
//!
//! The documents say so: a rule is shadowed if each of its matches is, in every data plane of the owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::current_problems::CurrentProblems;
use super::diff::{ProvenanceDiff, Provenances};
use super::route_slab::RouteSlab;
use crate::counts::decrement;
use crate::model::{ObjectKey, Origin, Problem, Provenance, Reason, Section, Severity, field};
use crate::shared_map::SharedMap;

/// A rule: its route, and its index there.
type RuleKey = (Arc<ObjectKey>, usize);

/// The rules with a shadowed match. They are few, so the documents of other rules cost a look-up, and no memory.
#[derive(Debug, Default)]
pub(super) struct ShadowedRules {
    provenance: Provenances,
    rules: BTreeMap<RuleKey, RuleUse>,
    /// The rules with other documents than at the last judgement.
    changed: BTreeSet<RuleKey>,
    /// The warnings of the last judgement.
    warnings: BTreeMap<RuleKey, Problem>,
}

/// The documents with matches of a rule.
#[derive(Debug, Default)]
struct RuleUse {
    /// The number of documents in which a match of the rule is tried.
    tried: usize,
    /// The matches that come before a match of the rule, with the number of documents for each.
    behind: BTreeMap<Behind, usize>,
}

/// The first match of a decision list that takes all requests of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Behind {
    first: Origin,
    /// The number of matches in the list.
    matches: usize,
}

impl ShadowedRules {
    /// Replaces the documents, at a cost in proportion to the difference, unless further rules are shadowed.
    pub(super) fn update(&mut self, now: Provenances) {
        let before = std::mem::replace(&mut self.provenance, now);
        let ProvenanceDiff { removed, added } = ProvenanceDiff::between(&before, &self.provenance);
        let (rules, changed) = (&mut self.rules, &mut self.changed);
        let mut further: BTreeSet<RuleKey> = BTreeSet::new();
        for (rule, behind) in removed.iter().copied().flat_map(shadowed) {
            if let Some(of_rule) = rules.get_mut(&rule) {
                decrement(&mut of_rule.behind, &behind);
            }
            changed.insert(rule);
        }
        for (rule, behind) in added.iter().copied().flat_map(shadowed) {
            if !rules.contains_key(&rule) {
                further.insert(rule.clone());
            }
            changed.insert(rule.clone());
            *rules.entry(rule).or_default().behind.entry(behind).or_default() += 1;
        }
        rules.retain(|_, of_rule| !of_rule.behind.is_empty());
        if rules.is_empty() {
            return;
        }
        for rule in removed.into_iter().flat_map(tried).filter(|rule| !further.contains(rule)) {
            if let Some(of_rule) = rules.get_mut(&rule) {
                of_rule.tried = of_rule.tried.saturating_sub(1);
                changed.insert(rule);
            }
        }
        for rule in added.into_iter().flat_map(tried).filter(|rule| !further.contains(rule)) {
            if let Some(of_rule) = rules.get_mut(&rule) {
                of_rule.tried += 1;
                changed.insert(rule);
            }
        }
        if !further.is_empty() {
            let all = self.provenance.values().flat_map(SharedMap::values);
            for rule in all.flat_map(tried).filter(|rule| further.contains(rule)) {
                rules.entry(rule).and_modify(|of_rule| of_rule.tried += 1);
            }
        }
    }

    /// Changes the warnings for the rules that no request reaches from the Gateway that they are attached to, where the
    /// documents of the rule or the problems of the route changed.
    pub(super) fn judge(&mut self, gateway: &ObjectKey, slab: &RouteSlab, problems: &mut CurrentProblems) {
        let mut rules = std::mem::take(&mut self.changed);
        for route in problems.changed() {
            let of_route = (route.clone(), 0)..=(route.clone(), usize::MAX);
            rules.extend(self.rules.range(of_route).map(|(rule, _)| rule.clone()));
        }
        for rule in rules {
            let now = self.rules.get(&rule).and_then(|of_rule| warning(&rule, of_rule, gateway, slab));
            let before = match &now {
                Some(now) => self.warnings.insert(rule, now.clone()),
                None => self.warnings.remove(&rule),
            };
            problems.replace(before.as_slice(), now.as_slice());
        }
    }
}

/// The warning for a rule that no request reaches. A rule with a refused match has no document for it, and is left to the
/// problem that says so.
fn warning(
    (route, rule): &RuleKey,
    of_rule: &RuleUse,
    gateway: &ObjectKey,
    slab: &RouteSlab,
) -> Option<Problem> {
    let field = field::rule(*rule);
    let is_of_match = |problem: &Problem| {
        problem.severity == Severity::Error
            && problem.field.as_str().split_once(".matches[").is_some_and(|(rule, _)| rule == field.as_str())
    };
    if of_rule.tried > 0 || slab.problems_of(route).any(is_of_match) {
        return None;
    }
    let (Behind { first, matches }, _) = of_rule.behind.first_key_value()?;
    let what = if first.object == *route {
        first.field().to_string()
    } else if first.object.is_known_to(route) {
        format!("{} of {}", first.field(), first.object)
    } else {
        format!("a match of {}", first.object.named_to(route))
    };
    let others = match matches {
        0 | 1 => "takes them first",
        2 => "or the match after it takes them first",
        _ => "or a match after it takes them first",
    };
    let gateway = gateway.named_to(route);
    Some(Problem {
        object: route.clone(),
        field,
        severity: Severity::Warning,
        reason: Reason::Shadowed,
        message: format!("The rule gets no requests from {gateway}: {what} {others}."),
    })
}

/// The rules that a document shadows at least a match of, each with what comes before.
fn shadowed(provenance: &Provenance) -> BTreeMap<RuleKey, Behind> {
    let Provenance::Rules { decisions, redirect, shadowed, .. } = provenance else { return BTreeMap::new() };
    if shadowed.is_empty() {
        return BTreeMap::new();
    }
    let mut matches = decisions.iter().filter_map(|decision| decision.origin.as_ref());
    let Some(first) = matches.next().or(redirect.as_deref()) else { return BTreeMap::new() };
    let behind = Behind { first: first.clone(), matches: 1 + matches.count() };
    shadowed.iter().filter_map(rule_of).map(|rule| (rule, behind.clone())).collect()
}

/// The rules with a match that a document tries.
fn tried(provenance: &Provenance) -> BTreeSet<RuleKey> {
    let Provenance::Rules { decisions, redirect, .. } = provenance else { return BTreeSet::new() };
    let decided = decisions.iter().filter_map(|decision| decision.origin.as_ref());
    decided.chain(redirect.as_deref()).filter_map(rule_of).collect()
}

fn rule_of(origin: &Origin) -> Option<RuleKey> {
    match origin.section {
        Section::Match { rule, .. } => Some((origin.object.clone(), rule)),
        Section::Whole | Section::Rule(_) | Section::DefaultBackend | Section::Tls(_) => None,
    }
}
