//! Of several rules with one host and path, the one that is served.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::annotated::Annotated;
use crate::migrate::convert::Conversion;
use crate::migrate::convert::rules::Rule;
use crate::migrate::report::Reason;

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
    conversion: &mut Conversion,
) -> BTreeMap<(usize, String), Vec<Rule>> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|at| {
        let candidate = candidates.get(*at);
        let length = candidate.filter(|one| regular.contains(one.host.as_str())).map_or(0, |one| one.length);
        let rank = candidate.map(|one| one.rank);
        (rank, std::cmp::Reverse(length), candidate.map(|one| one.ingress), *at)
    });
    let mut winners: BTreeMap<(String, String), usize> = BTreeMap::new();
    for at in order {
        if let Some(one) = candidates.get(at) {
            winners.entry((one.host.clone(), one.matched.to_string())).or_insert(at);
        }
    }
    let mut served: BTreeMap<(usize, String), Vec<Rule>> = BTreeMap::new();
    let known: Vec<(usize, Rank)> = candidates.iter().map(|one| (one.ingress, one.rank)).collect();
    for (at, one) in candidates.into_iter().enumerate() {
        let winner = winners.get(&(one.host.clone(), one.matched.to_string()));
        if let Some((index, rank)) =
            winner.filter(|winner| **winner != at).and_then(|winner| known.get(*winner))
        {
            let other = ingresses.get(*index).map_or_else(String::new, |other| other.key.to_string());
            let Some(rule) = one.rules.first().filter(|_| one.rank == Rank::Path) else { continue };
            if *rank == Rank::Guard {
                let message = format!(
                    "{other} protects requests of the path that cannot be told apart, so it answers 503."
                );
                conversion.withhold(&rule.place, message);
            } else {
                let precedence = ingresses.get(one.ingress).map_or("", |own| own.dialect.precedence);
                let message = format!("{other} has the host and path, too, and {precedence}.");
                conversion.report.limited(&rule.place, Reason::Precedence, message);
            }
            continue;
        }
        served.entry((one.ingress, one.host)).or_default().extend(one.rules);
    }
    served
}
