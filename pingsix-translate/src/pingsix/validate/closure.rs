//! The independence of a table from the order of insertion.
//!
//! PingSIX looks up a pattern as if it were a request before the insertion, so an existing broad pattern swallows a
//! narrow one. Suppose that every route with a broad pattern first lists all narrower patterns of the same router.
//! Then the narrower patterns exist whenever the broad one does, and the look-up of a pattern finds its own entry or
//! none. Routes that share an entry still depend on the order: among equal priorities, the first inserted route wins.

use std::collections::{BTreeMap, BTreeSet};

use super::pattern::{is_peculiar, takes_in};
use super::{Rule, Severity, Violation};
use crate::pingsix::router::{inspect_pattern, reverse_host};
use crate::pingsix::{Config, DocumentKey, Route};

/// Reports the causes for which answers depend on the order of insertion, all as [`Severity::Misbehaves`]:
///
/// - broad patterns, of paths or hosts, before or without the narrower patterns of their router;
/// - patterns that no order makes safe;
/// - different routes that share a matcher entry at equal priority and serve a common method.
///
/// The cost is about the cost of sorting the matcher entries, hosts times paths of all routes.
pub fn order_dependence(config: &Config) -> Vec<Violation> {
    let routes: Vec<Placed<'_>> =
        config.routes().map(|(key, route)| Placed::new(config, key, route)).collect();
    let mut violations = Vec::new();

    let all_hosts: Vec<&str> =
        routes.iter().flat_map(|placed| placed.hosts.iter().map(|(_, reversed)| reversed.as_str())).collect();
    let all_hosts = Patterns::new(all_hosts);
    for placed in &routes {
        let list: Vec<&str> = placed.hosts.iter().map(|(_, reversed)| reversed.as_str()).collect();
        for violation in all_hosts.violations(&list) {
            let shown = |at: usize| placed.hosts.get(at).map_or("", |(host, _)| host);
            let missing = unreverse(violation.missing);
            violations.push(placed.violation("hosts", violation.at, shown(violation.at), &missing));
        }
    }

    let mut by_host: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, placed) in routes.iter().enumerate() {
        // A stored host is empty only for an empty pattern, which no request reaches.
        if placed.hosts.is_empty() {
            by_host.entry("").or_default().push(index);
        }
        for (_, reversed) in &placed.hosts {
            by_host.entry(reversed).or_default().push(index);
        }
    }
    let mut told = BTreeSet::new();
    let mut tied = BTreeSet::new();
    for members in by_host.values() {
        let members: Vec<(usize, &Placed<'_>)> =
            members.iter().filter_map(|&index| Some((index, routes.get(index)?))).collect();
        let union = members.iter().flat_map(|(_, placed)| placed.paths()).collect();
        let union = Patterns::new(union);
        for (index, placed) in &members {
            let list: Vec<&str> = placed.paths().collect();
            for violation in union.violations(&list) {
                if told.insert((*index, violation.at)) {
                    let broad = list.get(violation.at).copied().unwrap_or_default();
                    violations.push(placed.violation("uris", violation.at, broad, violation.missing));
                }
            }
        }
        check_ties(&members, &mut tied, &mut violations);
    }
    violations.sort_by(|one, other| one.subject.cmp(&other.subject));
    violations
}

/// The number of routes of one entry and priority with which each route is compared.
const MAX_PARTNERS: usize = 256;

/// A route and the host patterns it is stored under.
struct Placed<'c> {
    key: &'c DocumentKey,
    route: &'c Route,
    hosts: Vec<(&'c str, String)>,
}

impl<'c> Placed<'c> {
    fn new(config: &'c Config, key: &'c DocumentKey, route: &'c Route) -> Self {
        let hosts = config.hosts_of(route);
        Self { key, route, hosts: hosts.iter().map(|host| (host.as_str(), reverse_host(host))).collect() }
    }

    fn paths(&self) -> impl Iterator<Item = &'c str> + use<'c> {
        self.route.path_patterns().iter().map(String::as_str)
    }

    fn violation(&self, list: &str, at: usize, broad: &str, missing: &str) -> Violation {
        let message = if broad == missing {
            format!(
                "Pattern \"{broad}\" replaces other patterns in every order: avoid parameters beside catch-alls, and doubled braces."
            )
        } else {
            format!(
                "Pattern \"{broad}\" must come after \"{missing}\" in this route, because it covers it and PingSIX inserts routes in random order."
            )
        };
        Violation::of(self.key, Rule::Closure, Severity::Misbehaves, format!("{list}[{at}]"), message)
    }
}

/// The different patterns of one router, sorted.
struct Patterns<'c> {
    sorted: Vec<&'c str>,
    /// The patterns with parameters or escapes, for which a comparison of prefixes does not suffice.
    peculiar: Vec<&'c str>,
}

/// A broad pattern of a list, and a covered pattern that does not precede it. Both are equal for a pattern that is
/// unsafe by itself.
struct ClosureViolation<'c> {
    at: usize,
    missing: &'c str,
}

impl<'c> Patterns<'c> {
    fn new(mut patterns: Vec<&'c str>) -> Self {
        patterns.sort_unstable();
        patterns.dedup();
        let peculiar = patterns.iter().copied().filter(|pattern| is_peculiar(pattern)).collect();
        Self { sorted: patterns, peculiar }
    }

    /// The violations of the patterns of one route in this router, at most one for each.
    fn violations(&self, list: &[&'c str]) -> Vec<ClosureViolation<'c>> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, pattern) in list.iter().enumerate() {
            places.entry(pattern).or_insert(at);
        }
        let mut violations = Vec::new();
        for (at, &broad) in list.iter().enumerate() {
            if places.get(broad) != Some(&at) {
                continue;
            }
            let late = |covered: &&'c str| places.get(*covered).is_none_or(|&place| place > at);
            let missing = if self.is_unsafe(broad) {
                Some(broad)
            } else {
                self.covered_by(broad).find(late).or_else(|| {
                    self.peculiar.iter().copied().find(|other| covers(broad, other) && late(other))
                })
            };
            violations.extend(missing.map(|missing| ClosureViolation { at, missing }));
        }
        violations
    }

    /// The patterns whose text starts with the literal part of a catch-all and goes on.
    fn covered_by<'p>(&'p self, broad: &'p str) -> Box<dyn Iterator<Item = &'c str> + 'p> {
        let Some(literal) = catch_all_literal(broad) else {
            // Among all other patterns, only those with parameters cover another one.
            let candidates = if self.peculiar.contains(&broad) { self.sorted.as_slice() } else { &[] };
            return Box::new(candidates.iter().copied().filter(move |other| covers(broad, other)));
        };
        let start = self.sorted.partition_point(|pattern| *pattern < literal);
        let rest = self.sorted.get(start..).unwrap_or_default();
        let covered = rest.iter().copied().take_while(move |pattern| pattern.starts_with(literal));
        // A catch-all of the same literal part is the same entry, whatever its name.
        Box::new(covered.filter(move |pattern| {
            pattern.len() > literal.len() && catch_all_literal(pattern) != Some(literal)
        }))
    }

    /// Whether no list can make a pattern safe, because of escapes, or of parameters below a catch-all.
    fn is_unsafe(&self, pattern: &str) -> bool {
        if !self.peculiar.contains(&pattern) {
            return false;
        }
        let escapes = inspect_pattern(pattern).is_ok_and(|shape| shape.escapes);
        let stem = pattern.split('{').next().unwrap_or_default();
        escapes
            || self
                .sorted
                .iter()
                .filter_map(|other| catch_all_literal(other))
                .any(|reach| stem.starts_with(reach) || reach.starts_with(stem))
    }
}

/// The text before the catch-all of a pattern that has one and no parameters.
fn catch_all_literal(pattern: &str) -> Option<&str> {
    let start = pattern.find("{*")?;
    let literal = pattern.get(..start)?;
    (pattern.ends_with('}') && !literal.contains(['{', '}'])).then_some(literal)
}

fn covers(broad: &str, narrow: &str) -> bool {
    broad != narrow && takes_in(broad, narrow)
}

/// Reports members of a router that share an entry and depend on the order of insertion.
fn check_ties(
    members: &[(usize, &Placed<'_>)],
    tied: &mut BTreeSet<(usize, usize)>,
    violations: &mut Vec<Violation>,
) {
    let mut entries: Vec<(&str, u32, usize, &Placed<'_>)> = members
        .iter()
        .flat_map(|&(index, placed)| {
            placed.paths().map(move |path| (path, placed.route.priority, index, placed))
        })
        .collect();
    entries.sort_unstable_by_key(|&(path, priority, index, _)| (path, priority, index));
    for same in entries.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        for (at, &(path, priority, index, placed)) in same.iter().enumerate() {
            let others = same.get(at + 1..).unwrap_or_default();
            // One partner suffices for a report. The bound keeps large groups of equal routes cheap.
            let partner = others.iter().take(MAX_PARTNERS).find(|(_, _, other, partner)| {
                *other != index
                    && may_meet(placed.route, partner.route)
                    && differ(placed.route, partner.route)
            });
            if let Some(&(_, _, other, partner)) = partner
                && tied.insert((index, other))
            {
                let message = format!(
                    "Priority {priority} is also that of {}, which serves \"{path}\" too, so chance decides between them.",
                    partner.key
                );
                let rule = Rule::PriorityTie;
                violations.push(Violation::of(placed.key, rule, Severity::Misbehaves, "priority", message));
            }
        }
    }
}

fn may_meet(one: &Route, other: &Route) -> bool {
    one.methods.is_empty()
        || other.methods.is_empty()
        || one.methods.iter().any(|method| other.allows(method))
}

/// Whether it matters which of two routes serves a request.
fn differ(one: &Route, other: &Route) -> bool {
    one.plugins != other.plugins
        || one.upstream != other.upstream
        || one.upstream_id != other.upstream_id
        || one.service_id != other.service_id
        || one.timeout != other.timeout
}

/// A stored host pattern as it was written, but for its case.
fn unreverse(stored: &str) -> String {
    match stored.strip_suffix("{*subdomain}") {
        Some(reversed) => format!("*{}", reversed.chars().rev().collect::<String>()),
        None => stored.chars().rev().collect(),
    }
}
