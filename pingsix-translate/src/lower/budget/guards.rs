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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admission::{Closed, EVERY_PATH, KeptPart, UNAVAILABLE};
use super::admit::Admitting;
use super::ledger::Ledger;
use super::oldest_first;
use super::table::{
    Group, ROUTE, Region, STATUS, SizedRow, TableSizes, fits, is_conditional, name_bytes, row_bytes,
};
use crate::backends::Action;
use crate::lower::Size;
use crate::lower::document::Lowering;
use crate::lower::path_map::{PathEntry, PathMap};
use crate::lower::plane::RuleRef;
use crate::lower::rows::{Placement, RouteInput};
use crate::lower::table::{RequestScheme, host_of};
use crate::model::ObjectKey;
use crate::normalise::{Conditions, Path};
use crate::small_set::SmallSet;

/// The divisor of the guards' part for one namespace.
const NAMESPACES: usize = 4;

/// Limit of attempts of a namespace to keep rules in place without room.
const MAX_ATTEMPTS: usize = 64;

impl<'a> Admitting<'a> {
    /// Finds the guards of refused rules.
    pub(super) fn guard(&mut self, reserve: Size) {
        let mut guard_budget = GuardBudget {
            all: Ledger::new(reserve),
            namespaces: BTreeMap::new(),
            part: Size {
                bytes: reserve.bytes / NAMESPACES,
                matcher_entries: reserve.matcher_entries / NAMESPACES,
            },
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
            for placement in self.places.get(&rule.route).cloned().unwrap_or_default() {
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
        for (&route, places) in &self.places {
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
                    let cells = groups.entry(group).or_insert_with(PathMap::new);
                    let scheme = placement.scheme.unwrap_or(RequestScheme::Any);
                    for matched in content.matches.iter() {
                        let (path, method) = (&matched.path, matched.method);
                        let make =
                            || Cell { path, method, namespaces: SmallSet::One(namespace), ends: false };
                        let cell = cells.entry(path, method, make);
                        cell.namespaces.insert(namespace);
                        cell.ends |= !is_conditional(&matched.conditions, scheme);
                    }
                }
            }
        }
        groups
    }

    /// Sees to the requests of a refused rule for one of its hostnames.
    fn guard_group(
        &mut self,
        rule: RuleRef,
        placement: &'a Placement,
        group: Group,
        guard_budget: &mut GuardBudget<'a>,
    ) {
        let (input, content) = self.lowering.rule(rule);
        let namespace: &'a str = &input.route.key.name.namespace;
        let regions: BTreeSet<Region<'a>> =
            content.matches.iter().map(|matched| (&matched.path, matched.method)).collect();
        let closing = ClosedBy { object: &input.route.key, namespace };
        if let Some(keeping) = self.keep_in_place(rule, placement, &group, guard_budget) {
            if keeping == KeptPart::Paths {
                for &(path, method) in &regions {
                    guard_budget.close_cell(&group, path, method, closing, &mut self.admission.closed);
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
        for wider in original.iter().flat_map(|name| name.wider().map(Some).chain([None])) {
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

/// Admitted rules of a group with one path and method.
struct Cell<'a> {
    path: &'a Path,
    method: Option<&'static str>,
    namespaces: SmallSet<&'a str>,
    /// Whether one of them takes all requests that come that far.
    ends: bool,
}

impl Cell<'_> {
    /// Whether all of its rules are of a namespace.
    fn is_of(&self, namespace: &str) -> bool {
        self.namespaces.iter().all(|other| *other == namespace)
    }
}

impl PathEntry for Cell<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

/// The reason of a closed cell.
#[derive(Clone, Copy)]
struct ClosedBy<'a> {
    object: &'a Arc<ObjectKey>,
    namespace: &'a str,
}

/// The rest of the guards' budget, and the cells that may be closed.
struct GuardBudget<'a> {
    all: Ledger,
    namespaces: BTreeMap<&'a str, NamespacePart>,
    /// The part of one namespace.
    part: Size,
    cells: BTreeMap<Group, PathMap<'a, Cell<'a>>>,
    /// The regions in which all cells of others are closed for a namespace already, and whether they cover all
    /// requests.
    closed_regions: BTreeMap<(Group, &'a str), PathMap<'a, ClosedRegion<'a>>>,
    /// Bytes that the rows of rules take at least which keep their matches.
    least: BTreeMap<RuleRef, usize>,
}

/// The rest of one namespace's part.
struct NamespacePart {
    all: Ledger,
    /// The part for rules that keep matches or paths.
    in_place: Ledger,
    attempts: usize,
    /// Groups without room for a rule, and for a guard. Later attempts cannot fit either.
    full: BTreeSet<Group>,
    unguarded: BTreeSet<Group>,
}

/// A region of a group in which everything of others is closed.
struct ClosedRegion<'a> {
    path: &'a Path,
    method: Option<&'static str>,
    is_complete: bool,
}

impl PathEntry for ClosedRegion<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

impl<'a> GuardBudget<'a> {
    fn of(&mut self, namespace: &'a str) -> &mut NamespacePart {
        let Size { bytes, matcher_entries } = self.part;
        let half = Size { bytes: bytes / 2, matcher_entries: matcher_entries / 2 };
        self.namespaces.entry(namespace).or_insert_with(|| NamespacePart {
            all: Ledger::new(self.part),
            in_place: Ledger::new(half),
            attempts: MAX_ATTEMPTS,
            full: BTreeSet::new(),
            unguarded: BTreeSet::new(),
        })
    }

    /// Charges the rows of a rule that is kept in a group to a namespace. Returns whether there is room.
    fn keep(
        &mut self,
        namespace: &'a str,
        group: &Group,
        table: &mut TableSizes<'a>,
        add: impl FnOnce(&mut TableSizes<'a>, &mut Ledger) -> Option<()>,
    ) -> bool {
        let everybodys = self.all;
        let of = self.of(namespace);
        if of.attempts == 0 || of.full.contains(group) || of.in_place.left().bytes < ROUTE {
            return false;
        }
        let ledger = of.in_place.within(&of.all).within(&everybodys);
        let taken = charged(table, ledger, add);
        match taken {
            Some(taken) => {
                of.in_place.take(taken.bytes, taken.matcher_entries).unwrap_or_default();
                self.charge_up_to(namespace, taken);
            }
            None => of.attempts -= 1,
        }
        taken.is_some()
    }

    /// Charges a guard to a namespace. Returns whether there is room.
    fn guard(
        &mut self,
        namespace: &'a str,
        group: &Group,
        table: &mut TableSizes<'a>,
        add: impl FnOnce(&mut TableSizes<'a>, &mut Ledger) -> Option<()>,
    ) -> bool {
        let everybodys = self.all;
        let of = self.of(namespace);
        // No rule of the namespace is kept where one was not.
        of.full.insert(group.clone());
        if of.unguarded.contains(group) {
            return false;
        }
        let Some(taken) = charged(table, of.all.within(&everybodys), add) else {
            of.unguarded.insert(group.clone());
            return false;
        };
        self.charge_up_to(namespace, taken);
        true
    }

    /// Charges as much as there is room for, to a namespace and to all.
    fn charge_up_to(&mut self, namespace: &'a str, Size { bytes, matcher_entries }: Size) {
        self.of(namespace).all.take(bytes, matcher_entries).unwrap_or_default();
        self.all.take(bytes, matcher_entries).unwrap_or_default();
    }

    /// Closes everything that would take requests for the hosts of a zone because it has no guard.
    fn close_wider_zones(&mut self, lowering: &Lowering<'a>, zone: usize, closed: &mut Closed) {
        let zones = &lowering.plane.zones;
        let (Some(hostname), Some((_, owner))) = (&zones[zone].hostname, &zones[zone].owner) else { return };
        for (group, cells) in &self.cells {
            let host = host_of(group.1.as_ref(), zones[group.0].hostname.as_ref());
            if host.is_none_or(|host| host.covers_strictly(hostname)) {
                for cell in cells.iter() {
                    close(&mut self.all, closed, group, (cell.path, cell.method), owner);
                }
            }
        }
    }

    /// Closes a cell unless all of it is of the namespace.
    fn close_cell(
        &mut self,
        group: &Group,
        path: &'a Path,
        method: Option<&'static str>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) {
        let cells = self.cells.get(group).into_iter().flat_map(|cells| cells.covering(path));
        let mut cell = cells.filter(|cell| cell.path == path && cell.method == method);
        if cell.any(|cell| !cell.is_of(closing.namespace)) {
            close(&mut self.all, closed, group, (path, method), closing.object);
        }
    }

    /// Closes the cells of others in a group that take requests of a region after a rule there, up to the first cell that
    /// leaves nothing over. Returns whether there is one.
    fn close_covering(
        &mut self,
        group: &Group,
        (path, method): Region<'a>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) -> bool {
        let rank = (path.precedence(), method.is_some());
        let cells = self.cells.get(group).into_iter().flat_map(|cells| cells.covering(path));
        for cell in cells.filter(|cell| cell.rank() <= rank && fits(cell.method, method)) {
            let is_own = cell.is_of(closing.namespace);
            if !is_own {
                close(&mut self.all, closed, group, (cell.path, cell.method), closing.object);
            }
            if cell.takes(method) && (cell.ends || !is_own) {
                return true;
            }
        }
        false
    }

    /// Closes the cells of others in a group with wider hostnames that take requests of a region. Returns whether one
    /// leaves nothing over.
    fn close_all(
        &mut self,
        group: &Group,
        (path, method): Region<'a>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) -> bool {
        let Some(cells) = self.cells.get(group) else { return false };
        let closed_regions =
            self.closed_regions.entry((group.clone(), closing.namespace)).or_insert_with(PathMap::new);
        if let Some(closed_regions) =
            closed_regions.covering(path).find(|closed_regions| closed_regions.takes(method))
        {
            // A wider region covers this one too.
            if closed_regions.is_complete || (closed_regions.path == path && closed_regions.method == method)
            {
                return closed_regions.is_complete;
            }
        }
        for cell in cells.below(path).filter(|cell| fits(cell.method, method)) {
            if !cell.is_of(closing.namespace) {
                close(&mut self.all, closed, group, (cell.path, cell.method), closing.object);
            }
        }
        let mut is_complete = false;
        for cell in cells.covering(path).filter(|cell| fits(cell.method, method)) {
            let is_own = cell.is_of(closing.namespace);
            if !is_own {
                close(&mut self.all, closed, group, (cell.path, cell.method), closing.object);
            }
            if cell.takes(method) && (cell.ends || !is_own) {
                is_complete = true;
                break;
            }
        }
        closed_regions.entry(path, method, || ClosedRegion { path, method, is_complete }).is_complete =
            is_complete;
        is_complete
    }
}

/// Adds an item to a table if there is room in a ledger. Returns the charge.
fn charged<'a>(
    table: &mut TableSizes<'a>,
    mut ledger: Ledger,
    add: impl FnOnce(&mut TableSizes<'a>, &mut Ledger) -> Option<()>,
) -> Option<Size> {
    let whole = ledger.left();
    if add(table, &mut ledger).is_none() {
        table.roll_back();
        return None;
    }
    table.commit();
    Some(ledger.used_of(whole))
}

/// Closes a cell. Its Route exists and needs at most a plugin, which is charged as long as there is room.
fn close(
    ledger: &mut Ledger,
    closed: &mut Closed,
    group: &Group,
    (path, method): Region<'_>,
    because_of: &Arc<ObjectKey>,
) {
    let of_group = closed.entry(group.clone()).or_default();
    if let std::collections::btree_map::Entry::Vacant(free) = of_group.entry((path.clone(), method)) {
        free.insert(because_of.clone());
        let mut less = *ledger;
        if less.take(STATUS, 0).is_some() {
            *ledger = less;
        }
    }
}

/// Charges the rows of a rule that is kept in a group and answers 503.
fn add_guard_rows<'a>(
    table: &mut TableSizes<'a>,
    lowering: &Lowering<'a>,
    rule: RuleRef,
    group: &Group,
    keeping: KeptPart,
    ledger: &mut Ledger,
) -> Option<()> {
    let (_, content) = lowering.rule(rule);
    let action = Action::status(UNAVAILABLE);
    table.add_upstreams(&action, ledger)?;
    let no_conditions = Conditions::default();
    content.matches.iter().try_for_each(|matched| {
        let conditions = if keeping == KeptPart::Matches { &matched.conditions } else { &no_conditions };
        let bytes = name_bytes(lowering, rule.route) + guard_row_bytes(conditions);
        let is_conditional = !conditions.is_empty();
        let row = SizedRow { path: &matched.path, method: matched.method, is_conditional, bytes };
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
    ledger: &mut Ledger,
) -> Option<()> {
    table.add_upstreams(&Action::status(UNAVAILABLE), ledger)?;
    let bytes = STATUS + name_bytes(lowering, rule.route);
    table.add_row(group, SizedRow { path: &EVERY_PATH, method: None, is_conditional: false, bytes }, ledger)
}
