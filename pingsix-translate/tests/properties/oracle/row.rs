//! Rows: a match of a rule under one hostname, in the order in which they are tried.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::filter;
use super::grpc::Call;
use super::hostname::{matches, narrower, specificity};
use super::spelling;
use super::world::{Comparison, Match, Route, Rule};
use crate::probe::Probe;

/// One match of one rule of one attached route.
pub(crate) struct Row<'w> {
    pub(crate) route: usize,
    pub(crate) rule: usize,
    criteria: Match,
    rank: Rank<'w>,
}

/// The order among rows of GRPCRoutes; less comes first.
type RankOfCalls<'w> = (Reverse<Hostnames>, Reverse<(usize, usize)>, Reverse<usize>, Age<'w>);
/// Oldest, `namespace/name`, rule, match.
type Age<'w> = (Option<&'w str>, String, (usize, usize));

/// The order of precedence; less comes first.
type Rank<'w> =
    (Reverse<Hostnames>, Reverse<Path>, Reverse<Conditions>, Option<&'w str>, String, (usize, usize));
/// Hostname served, then the route's own.
type Hostnames = ((u8, usize), (u8, usize));
/// Exact, then characters as written.
type Path = (bool, usize);
/// Method, headers, query parameters.
type Conditions = (bool, usize, usize);

/// The place of a guard among rows.
pub(crate) type GuardPlace = (Hostnames, Path);

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
                    Reverse(specificity_of_path(&criteria)),
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

    /// The rows that close the paths of unsupported matches of protected rules. Of one route, they come before others.
    pub(crate) fn closing(&self) -> Option<Self> {
        let call = self.criteria.call.as_ref()?.closing()?;
        let criteria = Match { call: Some(call), ..Match::default() };
        let (hostnames, _, _, age, name, _) = self.rank.clone();
        let rank =
            (hostnames, Reverse(specificity_of_path(&criteria)), Reverse((false, 0, 0)), age, name, (0, 0));
        Some(Self { route: self.route, rule: self.rule, criteria, rank })
    }

    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }

    /// The order the specification has for rows of GRPCRoutes.
    pub(crate) fn order_of_calls(&self, other: &Self) -> std::cmp::Ordering {
        self.rank_of_calls().cmp(&other.rank_of_calls())
    }

    fn rank_of_calls(&self) -> RankOfCalls<'w> {
        let (hostnames, _, Reverse((_, headers, _)), age, name, position) = self.rank.clone();
        let call = self.criteria.call.as_ref().expect("a row of a GRPCRoute is about calls");
        (hostnames, Reverse(call.specificity()), Reverse(headers), (age, name, position))
    }

    /// Its hostnames, its path, and whether it asks for a method.
    pub(crate) fn width(&self) -> (Hostnames, Path, bool) {
        let (Reverse(hostnames), Reverse(path), Reverse((method, ..)), ..) = self.rank;
        (hostnames, path, method)
    }

    /// Whether it is served under a hostname without a wildcard.
    pub(crate) fn is_of_exact_host(&self) -> bool {
        let ((served, _), _) = self.width().0;
        served == specificity(Some("a")).0
    }

    /// Age and `namespace/name` of the route; less is older.
    pub(crate) fn age(&self) -> (Option<&str>, &str) {
        let (.., age, name, _) = &self.rank;
        (*age, name)
    }

    /// The place among rows of the guard for other spellings of the path, if the request has one: behind all exact paths of the
    /// hostname, and before all prefixes.
    pub(crate) fn place_of_guard(&self, request: &Probe) -> Option<GuardPlace> {
        let (hostnames, ..) = self.width();
        let is_other = self.path().is_some_and(|path| spelling::is_other(&path, &request.path));
        is_other.then_some((hostnames, (false, usize::MAX)))
    }

    /// The path of the row; `None` if it has none or stands for an unsupported one.
    fn path(&self) -> Option<String> {
        match &self.criteria.call {
            Some(call) if call.is_closing() || call.is_unsupported() => None,
            Some(call) => Some(call.path()),
            None => Some(path(&self.criteria).to_owned()),
        }
    }

    /// Whether the row has the requests to the other spellings of another row's path behind it.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let (Some(own), Some(path)) = (self.path(), other.path()) else { return false };
        let ((hostnames, (is_exact, _), _), (of_other, (other_is_exact, _), _)) =
            (self.width(), other.width());
        let stem = if other_is_exact { &*path } else { path.strip_suffix('/').unwrap_or(&path) };
        let rest = stem.strip_prefix(own.strip_suffix('/').unwrap_or(&own));
        let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_same = hostnames == of_other && own == path && is_exact == other_is_exact;
        hostnames <= of_other && !is_exact && is_below && !is_same
    }

    /// Whether all paths of another row are its own, too.
    pub(crate) fn covers_path_of(&self, other: &Self) -> bool {
        let (Some(own), Some(path)) = (self.path(), other.path()) else { return false };
        let is_exact = |row: &Self| row.width().1.0;
        let bare = |path: &str| path.strip_suffix('/').unwrap_or(path).to_owned();
        match (is_exact(self), is_exact(other)) {
            (true, true) => own == path,
            (true, false) => false,
            (false, is_exact) => {
                let path = if is_exact { path } else { bare(&path) };
                let rest = path.strip_prefix(&bare(&own));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }

    /// The method that the match asks for.
    pub(crate) fn method(&self) -> Option<&str> {
        self.criteria.method.as_deref()
    }

    /// Whether it takes all requests for its hostname.
    pub(crate) fn takes_all(&self) -> bool {
        let is_root = self.path().is_some_and(|path| path == "/") && !self.width().1.0;
        is_root && self.criteria.method.is_none() && self.conditions().is_empty()
    }

    /// Whether an earlier row for the same hostnames, path and method takes all its requests.
    pub(crate) fn is_behind(&self, earlier: &Self) -> bool {
        let is_alike = self.width() == earlier.width()
            && self.path() == earlier.path()
            && self.criteria.method == earlier.criteria.method;
        let conditions = earlier.conditions();
        is_alike && (conditions.is_empty() || conditions == self.conditions())
    }

    /// Whether a guard with this place takes requests before the row.
    pub(crate) fn comes_after(&self, guard: GuardPlace) -> bool {
        let (hostnames, path, _) = self.width();
        guard > (hostnames, path)
    }

    /// Whether the request has the path and the method that the match asks for.
    pub(crate) fn stands_for(&self, request: &Probe) -> bool {
        let criteria = &self.criteria;
        path_matches(criteria, &request.path)
            && criteria.method.as_ref().is_none_or(|method| *method == request.method)
    }

    /// The conditions of the match, in no order: whether a condition is for a header, its name, and the value unless any
    /// value matches.
    pub(crate) fn conditions(&self) -> BTreeSet<(bool, String, Option<String>)> {
        let Match { headers, query_params, .. } = &self.criteria;
        let value = |entry: &Comparison| entry.value.clone().filter(|_| !is_regex(entry));
        let headers = conditions(headers, true);
        let headers = headers.into_iter().map(|entry| (true, entry.name.to_ascii_lowercase(), value(entry)));
        let queries = conditions(query_params, false);
        headers.chain(queries.into_iter().map(|entry| (false, entry.name.clone(), value(entry)))).collect()
    }

    /// Whether the request satisfies everything the match asks for. A regular expression counts as satisfied by
    /// any value, because nobody may guess what it would have let through; but not by an empty one, which PingSIX
    /// cannot tell from none.
    pub(crate) fn admits(&self, request: &Probe) -> bool {
        let criteria = &self.criteria;
        self.stands_for(request)
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

/// Exact, then characters as written.
fn specificity_of_path(criteria: &Match) -> (bool, usize) {
    match &criteria.call {
        Some(call) => call.as_path(),
        None => (is_exact(criteria), path(criteria).chars().count()),
    }
}

fn path_matches(criteria: &Match, requested: &str) -> bool {
    if let Some(call) = &criteria.call {
        return call.holds(requested);
    }
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
    value.is_some_and(|value| {
        if is_regex(condition) { !value.is_empty() } else { condition.value.as_deref() == Some(value) }
    })
}

fn is_regex(condition: &Comparison) -> bool {
    condition.r#type.as_deref() == Some("RegularExpression")
}

/// Whether a rule asks for something PingSIX cannot do; it then fails where it matches.
pub(crate) fn is_unsupported(rule: &Rule) -> bool {
    let regex = |one: &Match| {
        conditions(&one.headers, true).into_iter().chain(conditions(&one.query_params, false)).any(is_regex)
    };
    let call = |one: &Match| one.call.as_ref().is_some_and(Call::is_unsupported);
    filter::read(rule).is_unsupported || rule.matches.iter().any(|one| regex(one) || call(one))
}
