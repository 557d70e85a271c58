//! Rows: a match of a rule under one hostname, in the order in which they are tried.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::hostname::{matches, narrower, specificity};
use super::world::{Comparison, Match, Route, Rule};
use crate::probe::Probe;

/// One match of one rule of one attached route.
pub(crate) struct Row<'w> {
    pub(crate) route: usize,
    pub(crate) rule: usize,
    criteria: Match,
    rank: Rank<'w>,
}

/// The order of precedence; less comes first.
type Rank<'w> =
    (Reverse<Hostnames>, Reverse<Path>, Reverse<Conditions>, Option<&'w str>, String, (usize, usize));
/// Hostname served, then the route's own.
type Hostnames = ((u8, usize), (u8, usize));
/// Exact, then characters as written.
type Path = (bool, usize);
/// Method, headers, query parameters.
type Conditions = (bool, usize, usize);

impl<'w> Row<'w> {
    /// The rows of a route for a host, under the most specific of its hostnames: those under wider ones have
    /// the same matches.
    pub(crate) fn of(
        index: usize,
        route: &'w Route,
        listener: Option<&str>,
        host: Option<&str>,
    ) -> Vec<Self> {
        let any = [None];
        let own: Vec<Option<&str>> = route.spec.hostnames.iter().map(|name| Some(name.as_str())).collect();
        let hostnames = if own.is_empty() { &any[..] } else { &own[..] };
        let mut rows = Vec::new();
        for &hostname in hostnames.iter().filter(|hostname| matches(**hostname, host)) {
            // Both match the host, so they intersect.
            let served = narrower(listener, hostname);
            for (rule, matched, criteria) in matches_of(&route.spec.rules) {
                let rank = (
                    Reverse((specificity(served), specificity(hostname))),
                    Reverse((is_exact(&criteria), path(&criteria).chars().count())),
                    Reverse((
                        criteria.method.is_some(),
                        conditions(&criteria.headers, true).len(),
                        conditions(&criteria.query_params, false).len(),
                    )),
                    // Without a timestamp an object is newest.
                    Some(route.metadata.creation_timestamp.as_deref().unwrap_or("~")),
                    format!("{}/{}", route.metadata.namespace, route.metadata.name),
                    (rule, matched),
                );
                rows.push(Self { route: index, rule, criteria, rank });
            }
        }
        rows
    }

    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }

    /// Whether the request satisfies everything the match asks for. A regular expression counts as satisfied by
    /// any value, because nobody may guess what it would have let through.
    pub(crate) fn admits(&self, request: &Probe) -> bool {
        let criteria = &self.criteria;
        path_matches(criteria, &request.path)
            && criteria.method.as_ref().is_none_or(|method| *method == request.method)
            && conditions(&criteria.headers, true)
                .iter()
                .all(|header| holds(header, request.header(&header.name)))
            && conditions(&criteria.query_params, false)
                .iter()
                .all(|query| holds(query, request.query(&query.name)))
    }
}

/// Every match of every rule; a rule without matches has one that matches everything.
fn matches_of(rules: &[Rule]) -> Vec<(usize, usize, Match)> {
    let mut all = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        if rule.matches.is_empty() {
            all.push((index, 0, Match::default()));
        }
        all.extend(rule.matches.iter().enumerate().map(|(matched, one)| (index, matched, one.clone())));
    }
    all
}

fn is_exact(criteria: &Match) -> bool {
    criteria.path.r#type.as_deref() == Some("Exact")
}

fn path(criteria: &Match) -> &str {
    criteria.path.value.as_deref().unwrap_or("/")
}

fn path_matches(criteria: &Match, requested: &str) -> bool {
    let path = path(criteria);
    if is_exact(criteria) {
        return requested == path;
    }
    let prefix = path.strip_suffix('/').unwrap_or(path);
    requested.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The conditions that count: of entries with equivalent names only the first.
fn conditions(entries: &[Comparison], case_insensitive: bool) -> Vec<&Comparison> {
    let mut seen = BTreeSet::new();
    entries
        .iter()
        .filter(|entry| {
            let name = if case_insensitive { entry.name.to_ascii_lowercase() } else { entry.name.clone() };
            seen.insert(name)
        })
        .collect()
}

fn holds(condition: &Comparison, value: Option<&str>) -> bool {
    value.is_some_and(|value| is_regex(condition) || condition.value.as_deref() == Some(value))
}

fn is_regex(condition: &Comparison) -> bool {
    condition.r#type.as_deref() == Some("RegularExpression")
}

/// Whether a rule asks for something PingSIX cannot do; it then answers 500 where it matches.
pub(crate) fn is_unsupported(rule: &Rule) -> bool {
    let regex = |one: &Match| {
        conditions(&one.headers, true).into_iter().chain(conditions(&one.query_params, false)).any(is_regex)
    };
    !rule.filters.is_empty() || rule.matches.iter().any(regex)
}
