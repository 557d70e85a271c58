//! Which stream routes there is room for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Lowering;
use crate::lower::Size;
use crate::lower::budget::{Older, Share, refusal};
use crate::lower::plane::RuleRef;
use crate::lower::rows::RouteInput;
use crate::model::{Budget, DataPlaneKey, Problem, Refusal};

/// How many of some rules, which do not fit all together, do, and what is written with those; nothing is unless at
/// least one does.
pub(super) fn admit<W>(
    oldest_first: &[RuleRef],
    within: impl Fn(&[RuleRef]) -> Option<W>,
) -> (usize, Option<W>) {
    // Admitting a rule may make the table smaller, since one without conditions ends decision lists. So more
    // rules than are found here might fit, but those that are found do.
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

/// The rules that are not admitted, because only so many fit, and why.
pub(super) fn no_room(
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
                (0, 0) => Older::None,
                (0, _) if share.is_some() => Older::Admitted,
                (0, _) => Older::TooLarge(oldest_first[0]),
                (_, _) => Older::Admitted,
            };
            (rule, refusal(routes, rule, (older, share), plane, budget))
        })
        .collect()
}

/// What comes of the shares of namespaces.
#[derive(Default)]
pub(super) struct Shared {
    /// What may be admitted, oldest first; everything if there are no shares.
    pub(super) admitted: Option<Vec<RuleRef>>,
    pub(super) refused: Vec<(RuleRef, Refusal)>,
    pub(super) warnings: Vec<Problem>,
}

impl Lowering<'_> {
    /// What guards leave of a budget.
    fn left_by_guards(&self, budget: Budget) -> Size {
        let guards = self.lower(Some(&[])).plane.size;
        Size {
            bytes: budget.bytes.saturating_sub(guards.bytes),
            matcher_entries: budget.matcher_entries.saturating_sub(guards.matcher_entries),
        }
    }

    /// Which of some rules fit the shares of their namespaces. Each namespace is charged what its rules would take
    /// without any others, which is never less than what they take beside them.
    pub(super) fn within_shares(
        &self,
        rules: &[RuleRef],
        percent: u8,
        plane: &DataPlaneKey,
        budget: Budget,
    ) -> Shared {
        let Some(share) = Share::of(percent, self.left_by_guards(budget)) else { return Shared::default() };
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
        let mut shared = Shared::default();
        let mut admitted: BTreeSet<RuleRef> = BTreeSet::new();
        for rules in of_namespaces.values() {
            let (count, size) = match fitting(rules) {
                Some(size) => (rules.len(), Some(size)),
                None => admit(rules, fitting),
            };
            shared.refused.extend(no_room(rules, count, routes, plane, (budget, Some(share))));
            admitted.extend(&rules[..count]);
            let youngest = count.checked_sub(1).map(|last| &routes[rules[last].route].route.key);
            let warning = youngest.zip(size).and_then(|(object, size)| share.warning(size, object, plane));
            shared.warnings.extend(warning);
        }
        shared.admitted = Some(rules.iter().filter(|rule| admitted.contains(rule)).copied().collect());
        shared
    }
}
