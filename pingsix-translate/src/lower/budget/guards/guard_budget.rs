//! The budget of guards, and the cells that refused rules close.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lower::Size;
use crate::lower::budget::Group;
use crate::lower::budget::admission::Closed;
use crate::lower::budget::ledger::Ledger;
use crate::lower::budget::row_sizes::fits;
use crate::lower::budget::table::{Region, TableSizes};
use crate::lower::lowering::Lowering;
use crate::lower::path_map::{PathEntry, PathMap};
use crate::lower::plane::RuleRef;
use crate::lower::route_sizes::ROUTE_SIZES;
use crate::lower::table::host_of;
use crate::model::ObjectKey;
use crate::normalise::Path;
use crate::small_set::SmallSet;

/// Limit of attempts of a namespace to keep rules in place without room.
const MAX_ATTEMPTS: usize = 64;

/// Admitted rules of a group with one path and method.
pub(super) struct Cell<'a> {
    pub(super) path: &'a Path,
    pub(super) method: Option<&'static str>,
    pub(super) namespaces: SmallSet<&'a str>,
    /// Whether one of them takes all requests that come that far.
    pub(super) ends: bool,
}

impl Cell<'_> {
    /// Whether all of its rules are of a namespace.
    pub(super) fn is_of(&self, namespace: &str) -> bool {
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
pub(super) struct ClosedBy<'a> {
    pub(super) object: &'a Arc<ObjectKey>,
    pub(super) namespace: &'a str,
}

/// The rest of the guards' budget, and the cells that may be closed.
pub(super) struct GuardBudget<'a> {
    pub(super) all: Ledger,
    pub(super) namespaces: BTreeMap<&'a str, NamespacePart>,
    /// The part of one namespace.
    pub(super) part: Size,
    pub(super) cells: BTreeMap<Group, PathMap<'a, Cell<'a>>>,
    /// The regions in which all cells of others are closed for a namespace already, and whether they cover all
    /// requests.
    pub(super) closed_regions: BTreeMap<(Group, &'a str), PathMap<'a, ClosedRegion<'a>>>,
    /// Bytes that the rows of rules take at least which keep their matches.
    pub(super) least: BTreeMap<RuleRef, usize>,
}

/// The rest of one namespace's part.
pub(super) struct NamespacePart {
    pub(super) all: Ledger,
    /// The part for rules that keep matches or paths.
    pub(super) in_place: Ledger,
    pub(super) attempts: usize,
    /// Groups without room for a rule, and for a guard. Later attempts cannot fit either.
    pub(super) full: BTreeSet<Group>,
    pub(super) unguarded: BTreeSet<Group>,
}

/// A region of a group in which everything of others is closed.
pub(super) struct ClosedRegion<'a> {
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
    pub(super) fn of(&mut self, namespace: &'a str) -> &mut NamespacePart {
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
    pub(super) fn keep(
        &mut self,
        namespace: &'a str,
        group: &Group,
        table: &mut TableSizes<'a>,
        add: impl FnOnce(&mut TableSizes<'a>, &mut Ledger) -> Option<()>,
    ) -> bool {
        let everybodys = self.all;
        let of = self.of(namespace);
        if of.attempts == 0 || of.full.contains(group) || of.in_place.left().bytes < ROUTE_SIZES.route {
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
    pub(super) fn guard(
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
    pub(super) fn charge_up_to(&mut self, namespace: &'a str, Size { bytes, matcher_entries }: Size) {
        self.of(namespace).all.take(bytes, matcher_entries).unwrap_or_default();
        self.all.take(bytes, matcher_entries).unwrap_or_default();
    }

    /// Closes everything that would take requests for the hosts of a zone because it has no guard.
    pub(super) fn close_wider_zones(&self, lowering: &Lowering<'a>, zone: usize, closed: &mut Closed) {
        let zones = &lowering.plane.zones;
        let (Some(hostname), Some((_, owner))) = (&zones[zone].hostname, &zones[zone].owner) else { return };
        for (group, cells) in &self.cells {
            let host = host_of(group.1.as_ref(), zones[group.0].hostname.as_ref());
            if host.is_none_or(|host| host.covers_strictly(hostname)) {
                for cell in cells.iter() {
                    close(closed, group, (cell.path, cell.method), owner);
                }
            }
        }
    }

    /// Closes a cell unless all of it is of the namespace.
    pub(super) fn close_cell(
        &self,
        group: &Group,
        path: &'a Path,
        method: Option<&'static str>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) {
        let cells = self.cells.get(group).into_iter().flat_map(|cells| cells.covering(path));
        let mut cell = cells.filter(|cell| cell.path == path && cell.method == method);
        if cell.any(|cell| !cell.is_of(closing.namespace)) {
            close(closed, group, (path, method), closing.object);
        }
    }

    /// Closes the cells of others in a group that take requests of a region after a rule there, up to the first cell that
    /// leaves nothing over. Returns whether there is one.
    pub(super) fn close_covering(
        &self,
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
                close(closed, group, (cell.path, cell.method), closing.object);
            }
            if cell.takes(method) && (cell.ends || !is_own) {
                return true;
            }
        }
        false
    }

    /// Closes the cells of others in a group with wider hostnames that take requests of a region. Returns whether one
    /// leaves nothing over.
    pub(super) fn close_all(
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
                close(closed, group, (cell.path, cell.method), closing.object);
            }
        }
        let mut is_complete = false;
        for cell in cells.covering(path).filter(|cell| fits(cell.method, method)) {
            let is_own = cell.is_of(closing.namespace);
            if !is_own {
                close(closed, group, (cell.path, cell.method), closing.object);
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

/// Closes a cell. Its Route exists, and takes no more room than before.
fn close(closed: &mut Closed, group: &Group, (path, method): Region<'_>, because_of: &Arc<ObjectKey>) {
    let of_group = closed.entry(group.clone()).or_default();
    of_group.entry((path.clone(), method)).or_insert_with(|| because_of.clone());
}
