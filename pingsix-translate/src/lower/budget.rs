//! Which rules a data plane has room for.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::LoweredPlane;
use super::document::{Lowering, Written};
use super::plane::{Plane, RuleRef};
use super::rows::{PlaneRows, RouteInput, ZoneRefusal};
use crate::object::compare_age;
use crate::options::{Budget, Options};
use crate::resolve::Backends;
use crate::route::Refusal;
use crate::translation::{DataPlane, DataPlaneKey};
use crate::verdict::Reason;

/// A data plane's documents, and what could not be put there.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) data_plane: DataPlane,
    /// Rules refused on this data plane.
    pub(crate) refused_rules: Vec<(RuleRef, Refusal)>,
    /// Routes refused on a listener; their rules answer 500 there.
    pub(crate) refused_zones: Vec<ZoneRefusal>,
    /// Routes and listeners that are served for at least some hosts: index of the route, listener.
    pub(crate) served_zones: BTreeSet<(usize, usize)>,
}

/// Lowers everything attached to the listeners of a data plane.
///
/// When the budget does not suffice, rules are admitted oldest first and the others refused.
pub(crate) fn lower_plane(
    plane: &Plane,
    routes: &[Arc<RouteInput>],
    backends: &Backends,
    options: &Options,
) -> Lowered {
    let rows = PlaneRows::new(plane, routes);
    let lowering = Lowering { plane, routes, backends, options };
    lower_rows(&lowering, &rows).0
}

/// As [`lower_plane`], ready to be changed: what comes second is `None` when not everything fits.
pub(crate) fn lower_plane_to_change(
    plane: &Plane,
    routes: &[Arc<RouteInput>],
    backends: &Backends,
    options: &Options,
) -> (Lowered, Option<LoweredPlane>) {
    let rows = PlaneRows::new(plane, routes);
    let lowering = Lowering { plane, routes, backends, options };
    let (lowered, written) = lower_rows(&lowering, &rows);
    let plane = written.map(|written| LoweredPlane::new(&lowering, rows, written));
    (lowered, plane)
}

fn lower_rows<'a>(lowering: &Lowering<'a>, rows: &PlaneRows<'a>) -> (Lowered, Option<Written>) {
    let all = within(lowering, rows, None);
    let is_all = all.is_some();
    let mut written = all.unwrap_or_else(|| oldest_within(lowering, rows));
    written.refused_rules.sort_by_key(|(rule, _)| *rule);
    let lowered = Lowered {
        data_plane: written.data_plane.clone(),
        refused_rules: written.refused_rules.clone(),
        refused_zones: rows.refused(),
        served_zones: rows.served(),
    };
    (lowered, is_all.then_some(written))
}

/// What fits of the rules, oldest first; the others are refused.
fn oldest_within<'a>(lowering: &Lowering<'a>, rows: &PlaneRows<'a>) -> Written {
    let oldest_first = oldest_first(lowering.routes, &rows.routes());
    let (fitting, written) = admit(&oldest_first, |admitted| within(lowering, rows, Some(admitted)));
    // Without rules only the guards are left; a budget too small even for them is exceeded.
    let mut written = written
        .or_else(|| lowering.lower(rows, Some(&BTreeSet::new()), &mut Room::unlimited()))
        .unwrap_or_default();
    let refused =
        no_room(&oldest_first, fitting, lowering.routes, &lowering.plane.key, lowering.options.budget);
    written.refused_rules.extend(refused);
    written
}

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

/// What keeps a rule out of a data plane: rules that are older than it.
#[derive(Clone, Copy, Debug)]
enum Older {
    /// There are none.
    None,
    /// The oldest of them does not fit, even without any other.
    TooLarge(RuleRef),
    /// They have been admitted.
    Admitted,
}

/// The rules that are not admitted, because only so many fit, and why.
pub(super) fn no_room(
    oldest_first: &[RuleRef],
    fitting: usize,
    routes: &[Arc<RouteInput>],
    plane: &DataPlaneKey,
    budget: Budget,
) -> Vec<(RuleRef, Refusal)> {
    let refused = oldest_first.iter().enumerate().skip(fitting);
    refused
        .map(|(position, &rule)| {
            let older = match (fitting, position) {
                (0, 0) => Older::None,
                (0, _) => Older::TooLarge(oldest_first[0]),
                (_, _) => Older::Admitted,
            };
            (rule, refusal(routes, rule, older, plane, budget))
        })
        .collect()
}

fn refusal(
    routes: &[Arc<RouteInput>],
    rule: RuleRef,
    older: Older,
    plane: &DataPlaneKey,
    Budget { bytes, matcher_entries }: Budget,
) -> Refusal {
    let named = |rule: RuleRef| {
        let route = &routes[rule.route].route;
        (route.field_of(&route.rules[rule.rule]), &route.key)
    };
    let budget = format!("budget of {bytes} bytes and {matcher_entries} matcher entries");
    let message = match older {
        Older::None => format!(
            "Data plane {plane} has no room for the rule: even without any other, its documents would exceed its \
             {budget}."
        ),
        Older::TooLarge(oldest) => {
            let (field, route) = named(oldest);
            format!(
                "Data plane {plane} has no room for the rule: rules are admitted oldest first, and {field} of {route} \
                 already exceeds its {budget}."
            )
        }
        Older::Admitted => {
            format!("Data plane {plane} has no room for the rule: older rules use up its {budget}.")
        }
    };
    Refusal::new(named(rule).0, Reason::BudgetExceeded, message)
}

/// Lowers the admitted rules, or all, if the result fits the budget.
fn within<'a>(
    lowering: &Lowering<'a>,
    rows: &PlaneRows<'a>,
    admitted: Option<&[RuleRef]>,
) -> Option<Written> {
    let budget = lowering.options.budget;
    let admitted: Option<BTreeSet<RuleRef>> = admitted.map(|rules| rules.iter().copied().collect());
    let written = lowering.lower(rows, admitted.as_ref(), &mut Room::of(budget))?;
    written.data_plane.size.fits(budget).then_some(written)
}

/// The rules of the routes that have a place in a data plane, oldest route first.
pub(super) fn oldest_first(routes: &[Arc<RouteInput>], placed: &BTreeSet<usize>) -> Vec<RuleRef> {
    let mut order: Vec<usize> = placed.iter().copied().collect();
    order.sort_by(|left, right| {
        let (left, right) = (&routes[*left].route, &routes[*right].route);
        compare_age((left.age, &left.key), (right.age, &right.key))
    });
    order
        .into_iter()
        .flat_map(|route| (0..routes[route].route.rules.len()).map(move |rule| RuleRef { route, rule }))
        .collect()
}

/// What is left of a budget while a table is built, counted by what documents cost at least: a table that cannot
/// fit is given up as soon as that is known, since conditions and wildcards multiply rules.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
    matcher_entries: usize,
}

impl Room {
    /// The key of a Route, and `{"uri":"","upstream_id":"nowhere","priority":2}`.
    pub(crate) const ROUTE: usize = 64;
    /// `{"vars":[["arg_a","!=",""]],"weighted_upstreams":[{"upstream_id":"status-500","weight":1}]},`
    pub(crate) const SPLIT_RULE: usize = 90;

    pub(crate) fn of(budget: Budget) -> Self {
        Self { bytes: budget.bytes, matcher_entries: budget.matcher_entries }
    }

    pub(crate) fn unlimited() -> Self {
        Self { bytes: usize::MAX, matcher_entries: usize::MAX }
    }

    /// Takes bytes; `None` when there are not as many.
    pub(crate) fn take_bytes(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }

    /// Takes matcher entries; `None` when there are not as many.
    pub(crate) fn take_matcher_entries(&mut self, entries: usize) -> Option<()> {
        self.matcher_entries = self.matcher_entries.checked_sub(entries)?;
        Some(())
    }
}
