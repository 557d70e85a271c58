//! Admission of stream routes within the budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Lowering;
use crate::lower::Size;
use crate::lower::budget::{OlderRules, Share, refusal};
use crate::lower::plane::RuleRef;
use crate::lower::rows::RouteInput;
use crate::model::{Budget, DataPlaneKey, Problem, Refusal};

/// The number of rules that fit, if not all do, and their output; without output unless at least one fits.
pub(super) fn admit<W>(
    oldest_first: &[RuleRef],
    within: impl Fn(&[RuleRef]) -> Option<W>,
) -> (usize, Option<W>) {
    // Admitting a rule may shrink the table, because one without conditions ends decision lists. So more rules might
    // fit than are found, but the found ones do.
    let (mut fitting, mut too_many, mut written) = (0, oldest_first.len(), None);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        match within(&oldest_first[..middle]) {
            Some(fits) => (fitting, written) = (middle, Some(fits)),
            None => too_many = middle,
        }
    }
    (fitting, written)
}

/// The rules beyond the number that fits, with the reason.
pub(super) fn refuse_beyond(
    oldest_first: &[RuleRef],
    fitting: usize,
    routes: &[Arc<RouteInput>],
    plane: &DataPlaneKey,
    (budget, share): (Budget, Option<Share>),
) -> Vec<(RuleRef, Refusal)> {
    let refused = oldest_first.iter().enumerate().skip(fitting);
    refused
        .map(|(position, &rule)| {
            let older = match (fitting, position) {
                (0, 0) => OlderRules::None,
                (0, _) if share.is_some() => OlderRules::Admitted,
                (0, _) => OlderRules::TooLarge(oldest_first[0]),
                (_, _) => OlderRules::Admitted,
            };
            (rule, refusal(routes, rule, (older, share), plane, budget))
        })
        .collect()
}

/// The result of the shares of namespaces.
#[derive(Default)]
pub(super) struct AdmittedByShares {
    /// The rules that may be admitted, oldest first; `None` for all without shares.
    pub(super) admitted: Option<Vec<RuleRef>>,
    pub(super) refused: Vec<(RuleRef, Refusal)>,
    pub(super) warnings: Vec<Problem>,
}

impl Lowering<'_> {
    /// The budget without guards.
    pub(super) fn left_by_guards(&self, budget: Budget) -> Size {
        Size::of(budget).with(self.lower(Some(&[])).plane.size, usize::saturating_sub)
    }

    /// The rules that fit the shares of their namespaces. Each namespace is charged for its rules alone, which is
    /// never less than their charge beside others.
    pub(super) fn within_shares(
        &self,
        rules: &[RuleRef],
        percent: u8,
        plane: &DataPlaneKey,
        budget: Budget,
    ) -> AdmittedByShares {
        let Some(share) = Share::of(percent, self.left_by_guards(budget)) else {
            return AdmittedByShares::default();
        };
        let routes = self.routes;
        let mut of_namespaces: BTreeMap<&str, Vec<RuleRef>> = BTreeMap::new();
        for rule in rules {
            let namespace = &routes[rule.route].route.key.name.namespace;
            of_namespaces.entry(namespace).or_default().push(*rule);
        }
        let alone = Self { is_guarded: false, ..*self };
        let fitting = |rules: &[RuleRef]| {
            let size = alone.lower(Some(rules)).plane.size;
            let Size { bytes, matcher_entries } = share.size;
            size.fits(Budget { bytes, matcher_entries }).then_some(size)
        };
        let mut shared = AdmittedByShares::default();
        let mut admitted: BTreeSet<RuleRef> = BTreeSet::new();
        for rules in of_namespaces.values() {
            let (count, size) = match fitting(rules) {
                Some(size) => (rules.len(), Some(size)),
                None => admit(rules, fitting),
            };
            shared.refused.extend(refuse_beyond(rules, count, routes, plane, (budget, Some(share))));
            admitted.extend(&rules[..count]);
            let youngest = count.checked_sub(1).map(|last| &routes[rules[last].route].route.key);
            let warning = youngest.zip(size).and_then(|(object, size)| share.warning(size, object, plane));
            shared.warnings.extend(warning);
        }
        shared.admitted = Some(rules.iter().filter(|rule| admitted.contains(rule)).copied().collect());
        shared
    }
}
