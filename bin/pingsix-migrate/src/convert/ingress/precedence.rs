//! Of several rules with one host and path, the one that is served.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::annotated::Annotated;
use crate::convert::rules::Rule;
use crate::report::{Reason, Report};

/// The rank of rules with one host and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The rule refuses the requests of a protected path that cannot be written.
    Guard,
    /// The rule is for a path.
    Path,
    /// The rule is for requests that no path takes.
    Fallback,
}

/// A rule with its place among the rules of all Ingresses.
pub(super) struct Candidate {
    pub(super) ingress: usize,
    pub(super) host: String,
    /// The path as ingress-nginx compares it with others: its length, if it is a regular expression.
    pub(super) length: usize,
    pub(super) rank: Rank,
    pub(super) matched: Value,
    pub(super) rules: Vec<Rule>,
}

/// The rules by Ingress and host. Of several Ingresses with one host and path, ingress-nginx serves the oldest; of regular
/// expressions, the longest.
pub(super) fn prefer(
    candidates: Vec<Candidate>,
    ingresses: &[Annotated],
    regular: &BTreeSet<&str>,
    report: &mut Report,
) -> BTreeMap<(usize, String), Vec<Rule>> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|at| {
        let candidate = candidates.get(*at);
        let length = candidate.filter(|one| regular.contains(one.host.as_str())).map_or(0, |one| one.length);
        let rank = candidate.map(|one| one.rank);
        (rank, std::cmp::Reverse(length), candidate.map(|one| one.ingress), *at)
    });
    let mut first: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut winners: Vec<usize> = (0..candidates.len()).collect();
    for at in order {
        if let (Some(one), Some(winner)) = (candidates.get(at), winners.get_mut(at)) {
            *winner = *first.entry((&one.host, one.matched.to_string())).or_insert(at);
        }
    }
    let shadows: Vec<Option<usize>> = {
        let longest = longest(&candidates, regular);
        let paths = candidates.iter().map(|one| value(one).filter(|_| one.rank == Rank::Path));
        let paths = paths.zip(&candidates);
        paths.map(|(path, one)| longest.around((one.host.as_str(), path?), one.length)).collect()
    };
    let mut served: BTreeMap<(usize, String), Vec<Rule>> = BTreeMap::new();
    let known: Vec<(usize, Rank, usize)> =
        candidates.iter().map(|one| (one.ingress, one.rank, one.length)).collect();
    for (at, one) in candidates.into_iter().enumerate() {
        let winner = winners.get(at).filter(|winner| **winner != at);
        if let Some((index, rank, length)) = winner.and_then(|winner| known.get(*winner)) {
            let other = ingresses.get(*index).map_or_else(String::new, |other| other.key.to_string());
            let Some(rule) = one.rules.first().filter(|_| one.rank == Rank::Path) else { continue };
            if *rank == Rank::Guard {
                let message = format!(
                    "{other} protects requests of the path that cannot be told apart, so it answers 503."
                );
                report.withhold(&rule.place, message);
            } else if *length != one.length {
                let message = format!(
                    "{other} has another expression for the same path of an HTTPRoute, and takes the requests. ingress-nginx \
                     sends those that it does not match to this one."
                );
                report.limited(&rule.place, Reason::Precedence, message);
            } else {
                let precedence = ingresses.get(one.ingress).map_or("", |own| own.dialect.precedence);
                let message = format!("{other} has the host and path, too, and {precedence}.");
                report.limited(&rule.place, Reason::Precedence, message);
            }
            continue;
        }
        if let Some(Some(index)) = shadows.get(at)
            && let Some(rule) = one.rules.first()
        {
            let other = ingresses.get(*index).map_or_else(String::new, |other| other.key.to_string());
            let message = format!(
                "ingress-nginx prefers the regular expression with the longest text. A path of {other} has a longer one for all \
                 requests of this path, so this one gets no requests, as before."
            );
            report.limited(&rule.place, Reason::Precedence, message);
            continue;
        }
        served.entry((one.ingress, one.host)).or_default().extend(one.rules);
    }
    served
}

/// By host and path: the longest regular expression for the path, with its Ingress.
#[derive(Default)]
struct Longest<'a>(BTreeMap<&'a str, BTreeMap<&'a str, (usize, usize)>>);

impl<'a> Longest<'a> {
    /// Notes a regular expression of an Ingress by the path for which it stands and by its length.
    fn note(&mut self, (host, path): (&'a str, &'a str), length: usize, ingress: usize) {
        let held = self.0.entry(host).or_default().entry(path).or_default();
        *held = (*held).max((length, ingress));
    }

    /// The Ingress with a longer regular expression that matches all requests of a path, because its own path is a beginning of
    /// that path.
    fn around(&self, (host, path): (&str, &str), length: usize) -> Option<usize> {
        let of_host = self.0.get(host)?;
        let beginnings = path.match_indices('/').map(|(at, _)| if at == 0 { "/" } else { &path[..at] });
        let mut around = beginnings.filter(|around| *around != path).filter_map(|around| of_host.get(around));
        around.find(|(other, _)| *other > length).map(|(_, ingress)| *ingress)
    }
}

/// The regular expressions of rules.
fn longest<'a>(candidates: &'a [Candidate], regular: &BTreeSet<&str>) -> Longest<'a> {
    let mut longest = Longest::default();
    for one in candidates.iter().filter(|one| one.rank == Rank::Path && regular.contains(one.host.as_str())) {
        if let Some(path) = value(one).filter(|_| one.matched["type"] == "PathPrefix") {
            longest.note((one.host.as_str(), path), one.length, one.ingress);
        }
    }
    longest
}

fn value(one: &Candidate) -> Option<&str> {
    one.matched.get("value")?.as_str()
}
