//! Guards: they keep the requests of refused rules from other namespaces.
//!
//! Without a refused rule, its requests could fall to a rule of another namespace. One part of the budget is for
//! Routes that answer them with 503, of which a namespace may take one part in [`NAMESPACES`]. For each hostname of a
//! refused rule, the first measure with room applies:
//!
//! 1. The rule keeps its matches and answers 503. Half of the namespace's part is for this measure and the next.
//! 2. The rule keeps paths and methods of its matches without conditions, after all other rules with the same. If
//!    another namespace has some of these, they are **closed**: they answer 503 too.
//! 3. For each match, the next cell of its requests is closed if it belongs to another namespace: rules for the same
//!    hostname whose paths cover the match's. This takes no room.
//! 4. If requests remain, a **guard** answers 503 to all requests for the hostname without an admitted rule.
//! 5. Without a guard, rules of other namespaces for wider hostnames are closed if their paths cover the match's or
//!    are covered.
//!
//! A closed cell therefore has a path and a method that the refused rule shares, for a hostname that the rule names;
//! or, for a namespace whose guards exceed its part, for a wider one. Rules of the same namespace may answer instead.
//!
//! # Why no request is answered by another namespace
//!
//! Let a request be for a refused rule of namespace N with hostname h, as it is written. Earlier rules precede the
//! refused rule with or without its refusal. With 1, the rule itself ends the list. With 2, its cell does, in which
//! no open row of others is left; cells with longer paths come first as before. Later rules are in cells of the same
//! hostname with paths that cover its own, longest first, then in cells of wider hostnames in the zone. Up to the
//! first cell that ends every list, each of them belongs to N alone, or is closed (3). The same holds if the guard is
//! the last of the hostname (4), or if the wider hostnames are treated likewise (5), where longer paths come after it
//! too. The guard of the zone keeps wider zones out; without room for that guard, everything in them for hosts of the
//! zone is closed.

mod guard_budget;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::guard_budget::{Cell, ClosedBy, GuardBudget};
use super::admission::{EVERY_PATH, KeptPart, UNAVAILABLE};
use super::admit::Admitting;
use super::row_sizes::{is_conditional, name_bytes, row_bytes};
use super::table::{SizedRow, TableSizes};
use super::{Group, oldest_first};
use crate::backends::Action;
use crate::lower::Size;
use crate::lower::lowering::Lowering;
use crate::lower::path_map::{PathMap, Region};
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::rows::{Placement, RouteInput};
use crate::lower::table::RequestScheme;
use crate::model::wider_hostnames;
use crate::normalise::{Conditions, Match};

/// The divisor of the guards' part for one namespace.
const NAMESPACES: usize = 4;

impl<'a> Admitting<'a> {
    /// Finds the guards of refused rules.
    pub(super) fn guard(&mut self, reserve: Size) {
        let mut guard_budget = GuardBudget {
            all: Room::new(reserve),
            namespaces: BTreeMap::new(),
            part: reserve.part(NAMESPACES),
            cells: self.cells(),
            closed_regions: BTreeMap::new(),
            least: BTreeMap::new(),
        };
        let routes = self.lowering.routes;
        let refused: BTreeSet<usize> = self.admission.refused.keys().map(|rule| rule.route).collect();
        let mut rules = oldest_first(routes, &refused);
        rules.retain(|rule| self.admission.refused.contains_key(rule));
        for &zone in &self.admission.unguarded {
            guard_budget.close_wider_zones(&self.lowering, zone, &mut self.admission.closed);
        }
        for rule in rules {
            for placement in self.places.get(&rule.route).into_iter().flatten() {
                for name in &placement.names {
                    let group = (placement.zone, name.original.clone());
                    self.guard_group(rule, placement, group, &mut guard_budget);
                }
            }
        }
    }

    /// The cells of admitted rules, by group.
    fn cells(&self) -> BTreeMap<Group, PathMap<'a, Cell<'a>>> {
        let mut groups: BTreeMap<Group, PathMap<'a, Cell<'a>>> = BTreeMap::new();
        let routes: &'a [Arc<RouteInput>] = self.lowering.routes;
        for (&route, places) in self.places {
            let input = &*routes[route].route.rules;
            let namespace: &'a str = &routes[route].route.key.name.namespace;
            let is_served = |(rule, _): &(usize, _)| {
                !self.admission.refused.contains_key(&RuleRef { route, rule: *rule })
            };
            for (_, content) in input.iter().enumerate().filter(is_served) {
                for (placement, name) in
                    places.iter().flat_map(|place| place.names.iter().map(move |name| (place, name)))
                {
                    let group = (placement.zone, name.original.clone());
                    let cells = groups.entry(group).or_default();
                    let scheme = placement.scheme.unwrap_or(RequestScheme::Any);
                    for matched in content.matches.iter() {
                        let cell = cells.entry(region_of(matched));
                        cell.namespaces.insert(namespace);
                        cell.ends |= !is_conditional(&matched.conditions, scheme);
                    }
                }
            }
        }
        groups
    }

    /// Guards the requests of a refused rule for one of its hostnames.
    fn guard_group(
        &mut self,
        rule: RuleRef,
        placement: &'a Placement,
        group: Group,
        guard_budget: &mut GuardBudget<'a>,
    ) {
        let (input, content) = self.lowering.rule(rule);
        let namespace: &'a str = &input.route.key.name.namespace;
        let regions: BTreeSet<Region<'a>> = content.matches.iter().map(region_of).collect();
        let closing = ClosedBy { object: &input.route.key, namespace };
        if let Some(keeping) = self.keep_in_place(rule, placement, &group, guard_budget) {
            if keeping == KeptPart::Paths {
                for &region in &regions {
                    guard_budget.close_cell(&group, region, closing, &mut self.admission.closed);
                }
            }
            if let Some(refused) = self.admission.refused.get_mut(&rule) {
                refused.in_place.insert(group, keeping);
            }
            return;
        }
        let mut open: Vec<Region<'a>> = regions.into_iter().collect();
        open.retain(|region| {
            !guard_budget.close_covering(&group, *region, closing, &mut self.admission.closed)
        });
        if open.is_empty() || self.has_guard(rule, &group, guard_budget) {
            return;
        }
        let (zone, original) = group;
        for wider in wider_hostnames(original.as_ref()) {
            let wider = (zone, wider);
            open.retain(|region| {
                !guard_budget.close_all(&wider, *region, closing, &mut self.admission.closed)
            });
        }
    }

    /// Keeps the matches of a rule in a group, or else their paths and methods, if there is room.
    ///
    /// Conditions need a responder for a status, and rows for one audience alone need more.
    fn keep_in_place(
        &mut self,
        rule: RuleRef,
        placement: &Placement,
        group: &Group,
        guard_budget: &mut GuardBudget<'a>,
    ) -> Option<KeptPart> {
        let (input, content) = self.lowering.rule(rule);
        let namespace: &'a str = &input.route.key.name.namespace;
        let is_plain = content.matches.iter().all(|matched| matched.conditions.is_empty());
        let is_for_everybody = !matches!(placement.scheme, Ok(RequestScheme::Tls | RequestScheme::Plaintext));
        let can_keep_all = is_for_everybody && (is_plain || self.lowering.options.responder.is_some());
        let lowering = self.lowering;
        // The charge of the rows alone is known early.
        let may_fit = |guard_budget: &mut GuardBudget<'a>| {
            let least = *guard_budget.least.entry(rule).or_insert_with(|| {
                let rows = content.matches.iter();
                rows.map(|matched| guard_row_bytes(&matched.conditions)).sum()
            });
            guard_budget.of(namespace).in_place.left().bytes >= least
        };
        let matches = Some(KeptPart::Matches).filter(|_| can_keep_all && may_fit(guard_budget));
        matches.into_iter().chain([KeptPart::Paths]).find(|&keeping| {
            guard_budget.keep(namespace, group, &mut self.table, |table, ledger| {
                add_guard_rows(table, &lowering, rule, group, keeping, ledger)
            })
        })
    }

    /// Whether a group has a guard, or gets one.
    fn has_guard(&mut self, rule: RuleRef, group: &Group, guard_budget: &mut GuardBudget<'a>) -> bool {
        if self.admission.guards.contains_key(group) {
            return true;
        }
        let (input, _) = self.lowering.rule(rule);
        let lowering = self.lowering;
        let is_guarded =
            guard_budget.guard(&input.route.key.name.namespace, group, &mut self.table, |table, ledger| {
                add_guard(table, &lowering, rule, group, ledger)
            });
        if is_guarded {
            self.admission.guards.insert(group.clone(), rule);
        }
        is_guarded
    }
}

fn region_of(matched: &Match) -> Region<'_> {
    Region { path: &matched.path, method: matched.method }
}

/// Charges the rows of a rule that is kept in a group and answers 503.
fn add_guard_rows<'a>(
    table: &mut TableSizes<'a>,
    lowering: &Lowering<'a>,
    rule: RuleRef,
    group: &Group,
    keeping: KeptPart,
    ledger: &mut Room,
) -> Option<()> {
    let (_, content) = lowering.rule(rule);
    table.add_status(UNAVAILABLE, ledger)?;
    let no_conditions = Conditions::default();
    content.matches.iter().try_for_each(|matched| {
        let conditions = if keeping == KeptPart::Matches { &matched.conditions } else { &no_conditions };
        let bytes = name_bytes(lowering, rule.route) + guard_row_bytes(conditions);
        let is_conditional = !conditions.is_empty();
        let row = SizedRow {
            region: region_of(matched),
            is_conditional,
            has_spellings: false,
            bytes,
            path_spellings: None,
        };
        table.add_row(group, row, ledger)
    })
}

/// Bytes of a row that answers 503.
fn guard_row_bytes(conditions: &Conditions) -> usize {
    row_bytes(conditions, &Action::status(UNAVAILABLE))
}

/// Charges the guard of a group.
fn add_guard<'a>(
    table: &mut TableSizes<'a>,
    lowering: &Lowering<'a>,
    rule: RuleRef,
    group: &Group,
    ledger: &mut Room,
) -> Option<()> {
    table.add_status(UNAVAILABLE, ledger)?;
    let bytes = name_bytes(lowering, rule.route);
    let row = SizedRow {
        region: Region { path: &EVERY_PATH, method: None },
        is_conditional: false,
        has_spellings: false,
        bytes,
        path_spellings: None,
    };
    table.add_row(group, row, ledger)
}
