//! The budget of guards, and the cells that refused rules close.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lower::Size;
use crate::lower::budget::Group;
use crate::lower::budget::admission::Closed;
use crate::lower::budget::table::TableSizes;
use crate::lower::lowering::Lowering;
use crate::lower::path_map::{PathMap, Region};
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::route_sizes::ROUTE_SIZES;
use crate::lower::table::host_of;
use crate::model::ObjectKey;
use crate::small_set::SmallSet;

/// Limit of attempts of a namespace to keep rules in place without room.
const MAX_ATTEMPTS: usize = 64;

/// Admitted rules of a group with one path and method.
#[derive(Default)]
pub(super) struct Cell<'a> {
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

/// The reason of a closed cell.
#[derive(Clone, Copy)]
pub(super) struct ClosedBy<'a> {
    pub(super) object: &'a Arc<ObjectKey>,
    pub(super) namespace: &'a str,
}

/// The rest of the guards' budget, and the cells that may be closed.
pub(super) struct GuardBudget<'a> {
    pub(super) all: Room,
    pub(super) namespaces: BTreeMap<&'a str, NamespacePart>,
    /// The part of one namespace.
    pub(super) part: Size,
    pub(super) cells: BTreeMap<Group, PathMap<'a, Cell<'a>>>,
    /// The regions in which all cells of others are closed for a namespace already, and whether they cover all
    /// requests.
    pub(super) closed_regions: BTreeMap<(Group, &'a str), PathMap<'a, bool>>,
    /// Bytes that the rows of rules take at least which keep their matches.
    pub(super) least: BTreeMap<RuleRef, usize>,
}

/// The rest of one namespace's part.
pub(super) struct NamespacePart {
    pub(super) all: Room,
    /// The part for rules that keep matches or paths.
    pub(super) in_place: Room,
    pub(super) attempts: usize,
    /// Groups without room for a rule, and for a guard. Later attempts cannot fit either.
    pub(super) full: BTreeSet<Group>,
    pub(super) unguarded: BTreeSet<Group>,
}

impl<'a> GuardBudget<'a> {
    pub(super) fn of(&mut self, namespace: &'a str) -> &mut NamespacePart {
        self.namespaces.entry(namespace).or_insert_with(|| NamespacePart {
            all: Room::new(self.part),
            in_place: Room::new(self.part.part(2)),
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
        add: impl FnOnce(&mut TableSizes<'a>, &mut Room) -> Option<()>,
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
                of.in_place.take_size(taken).unwrap_or_default();
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
        add: impl FnOnce(&mut TableSizes<'a>, &mut Room) -> Option<()>,
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
    pub(super) fn charge_up_to(&mut self, namespace: &'a str, taken: Size) {
        self.of(namespace).all.take_size(taken).unwrap_or_default();
        self.all.take_size(taken).unwrap_or_default();
    }

    /// Closes everything that would take requests for the hosts of a zone because it has no guard.
    pub(super) fn close_wider_zones(&self, lowering: &Lowering<'a>, zone: usize, closed: &mut Closed) {
        let zones = &lowering.plane.zones;
        let (Some(hostname), Some((_, owner))) = (&zones[zone].hostname, &zones[zone].owner) else { return };
        for (group, cells) in &self.cells {
            let host = host_of(group.1.as_ref(), zones[group.0].hostname.as_ref());
            if host.is_none_or(|host| host.covers_strictly(hostname)) {
                for (region, _) in cells.iter() {
                    close(closed, group, region, owner);
                }
            }
        }
    }

    /// Closes a cell unless all of it is of the namespace.
    pub(super) fn close_cell(
        &self,
        group: &Group,
        region: Region<'a>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) {
        let cell = self.cells.get(group).and_then(|cells| cells.get(region));
        if cell.is_some_and(|cell| !cell.is_of(closing.namespace)) {
            close(closed, group, region, closing.object);
        }
    }

    /// Closes the cells of others in a group that take requests of a region after a rule there, up to the first cell that
    /// leaves nothing over. Returns whether there is one.
    pub(super) fn close_covering(
        &self,
        group: &Group,
        region: Region<'a>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) -> bool {
        let cells = self.cells.get(group).into_iter().flat_map(|cells| cells.covering(region.path));
        let after_it = cells.filter(|(other, _)| other.rank() <= region.rank());
        close_up_to_end(after_it, group, region.method, closing, closed)
    }

    /// Closes the cells of others in a group with wider hostnames that take requests of a region. Returns whether one
    /// leaves nothing over.
    pub(super) fn close_all(
        &mut self,
        group: &Group,
        region: Region<'a>,
        closing: ClosedBy<'a>,
        closed: &mut Closed,
    ) -> bool {
        let Region { path, method } = region;
        let Some(cells) = self.cells.get(group) else { return false };
        let closed_regions = self.closed_regions.entry((group.clone(), closing.namespace)).or_default();
        let known = closed_regions.covering(path).find(|(other, _)| other.takes(method));
        // A wider region covers this one too.
        if let Some((_, is_complete)) = known.filter(|(other, is_complete)| **is_complete || *other == region)
        {
            return *is_complete;
        }
        for (other, cell) in cells.below(path).filter(|(other, _)| other.meets(method)) {
            if !cell.is_of(closing.namespace) {
                close(closed, group, other, closing.object);
            }
        }
        let is_complete = close_up_to_end(cells.covering(path), group, method, closing, closed);
        *closed_regions.entry(region) = is_complete;
        is_complete
    }
}

/// Closes the cells of others that take requests with a method, up to the first cell that leaves nothing over. Returns
/// whether there is one.
fn close_up_to_end<'a: 'c, 'c>(
    cells: impl Iterator<Item = (Region<'a>, &'c Cell<'a>)>,
    group: &Group,
    method: Option<&'static str>,
    closing: ClosedBy<'a>,
    closed: &mut Closed,
) -> bool {
    for (region, cell) in cells.filter(|(region, _)| region.meets(method)) {
        let is_own = cell.is_of(closing.namespace);
        if !is_own {
            close(closed, group, region, closing.object);
        }
        if region.takes(method) && (cell.ends || !is_own) {
            return true;
        }
    }
    false
}

/// Adds an item to a table if there is room in a ledger. Returns the charge.
fn charged<'a>(
    table: &mut TableSizes<'a>,
    mut ledger: Room,
    add: impl FnOnce(&mut TableSizes<'a>, &mut Room) -> Option<()>,
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
fn close(
    closed: &mut Closed,
    group: &Group,
    Region { path, method }: Region<'_>,
    because_of: &Arc<ObjectKey>,
) {
    let of_group = closed.entry(group.clone()).or_default();
    of_group.entry((path.clone(), method)).or_insert_with(|| because_of.clone());
}
