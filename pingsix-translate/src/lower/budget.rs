//! The rules and certificates within the budget of a data plane.
//!
//! [`mod@admit`] decides, by the upper bounds of documents in [`row_sizes`], [`rule_sizes`], [`table`], [`patterns`] and [`certificates`];
//! [`guards`] keeps the requests of refused rules from other rules. [`admission`] is the result, and
//! [`share`] the limit of one namespace.

mod admission;
mod admit;
mod certificates;
mod guards;
mod patterns;
mod row_sizes;
mod rule_sizes;
mod share;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use self::admission::Admission;
pub(super) use self::admission::UNAVAILABLE;
pub(super) use self::admit::admit;
pub(super) use self::rule_sizes::RuleSizes;
pub(super) use self::share::{Share, Shares};
pub(super) use self::table::TableSizes;

use super::Size;
use super::plane::RuleRef;
use super::rows::RouteInput;
use crate::model::{Budget, DataPlaneKey, Hostname, Reason, Refusal};

/// The divisor of the budget for the part of guards.
const GUARDS: usize = 16;

/// The room that there is for rules and certificates.
fn room(budget: Budget) -> Size {
    let budget = Size::of(budget);
    budget.with(budget.part(GUARDS), usize::saturating_sub)
}

/// A group of a zone: index of the zone, original hostname.
pub(crate) type Group = (usize, Option<Hostname>);

/// The older rules that keep a rule out of a data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OlderRules {
    /// There are no older rules.
    None,
    /// The oldest of them does not fit, even without any other.
    TooLarge(RuleRef),
    /// The older rules are admitted.
    Admitted,
}

/// The refusal of a rule; `share` is its namespace's, if the share does not suffice.
pub(super) fn refusal(
    routes: &[Arc<RouteInput>],
    rule: RuleRef,
    (older, share): (OlderRules, Option<Share>),
    plane: &DataPlaneKey,
    Budget { bytes, matcher_entries }: Budget,
) -> Refusal {
    let named = |rule: RuleRef| {
        let route = &routes[rule.route].route;
        (route.field_of(&route.rules[rule.rule]), &route.key)
    };
    let content = &routes[rule.route].route.rules[rule.rule];
    let charge = content.filters.as_ref().map_or(0, |filters| filters.pattern_charge());
    let patterns = if charge == 0 {
        String::new()
    } else {
        format!(
            " For the memory that PingSIX may need for its regular expressions, each Route counts as {charge} bytes more."
        )
    };
    let (at, reader) = named(rule);
    let (reason, bound, older_objects) = if let Some(share) = share {
        (Reason::ShareExceeded, share.named(&reader.name.namespace), "older objects")
    } else {
        let budget = format!("its budget of {bytes} bytes and {matcher_entries} matcher entries");
        (Reason::BudgetExceeded, budget, "older rules")
    };
    let why = match older {
        OlderRules::None => format!("the documents of the rule alone exceed {bound}"),
        OlderRules::TooLarge(oldest) if share.is_none() => {
            let (field, route) = named(oldest);
            let oldest = if route.is_known_to(reader) {
                format!("{field} of {route}")
            } else {
                format!("a rule of {}", route.named_to(reader))
            };
            format!("rules are admitted oldest first, and {oldest} already exceeds {bound}")
        }
        OlderRules::TooLarge(_) | OlderRules::Admitted => format!("{older_objects} use up {bound}"),
    };
    let message = format!("Data plane {plane} has no room for the rule: {why}.{patterns}");
    Refusal::new(at, reason, message)
}

/// The rules of the routes that have a place in a data plane, oldest route first.
pub(super) fn oldest_first(routes: &[Arc<RouteInput>], placed: &BTreeSet<usize>) -> Vec<RuleRef> {
    let mut order: Vec<usize> = placed.iter().copied().collect();
    order.sort_by(|left, right| routes[*left].route.compare_age(&routes[*right].route));
    order
        .into_iter()
        .flat_map(|route| {
            let rules = &routes[route].route.rules;
            let mut order: Vec<usize> = (0..rules.len()).collect();
            // Rows without conditions end the decision lists that others begin.
            let is_conditional =
                |rule: &usize| rules[*rule].matches.iter().any(|matched| !matched.conditions.is_empty());
            order.sort_by_key(is_conditional);
            order.into_iter().map(move |rule| RuleRef { route, rule })
        })
        .collect()
}
