//! Cells: the rows of a group that PingSIX cannot tell apart by host, path and method.

use std::collections::{BTreeMap, BTreeSet};

use super::Row;
use crate::lower::path_map::{PathMap, Region};
use crate::model::Kind;
use crate::normalise::{Condition, Path};

/// Rows of a group with one path and method.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// Positions in the group, in order, that some request reaches: each with conditions of its own, up to the first
    /// unconditional row of each audience.
    pub(super) rows: Vec<usize>,
    /// The other positions.
    pub(super) shadowed: Vec<usize>,
    pub(super) reach: ReachedSchemes,
}

/// The audiences of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemeSet {
    /// Whether the zone may have rows that count only for requests with or without TLS. If not, there is one audience.
    pub(super) is_divided: bool,
}

impl SchemeSet {
    /// Each audience, as whether it comes by TLS.
    fn iter(self) -> impl Iterator<Item = bool> {
        std::iter::once(true).chain(self.is_divided.then_some(false))
    }
}

/// The audiences that have met an unconditional row and stop there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReachedSchemes {
    ended_tls: bool,
    ended_plaintext: bool,
}

impl ReachedSchemes {
    const fn ended(self, tls: bool) -> bool {
        if tls { self.ended_tls } else { self.ended_plaintext }
    }

    /// Whether all audiences stop.
    pub(super) fn is_total(self, schemes: SchemeSet) -> bool {
        schemes.iter().all(|tls| self.ended(tls))
    }

    /// Whether some audience reaches a row, and the audiences after it. `is_new` returns whether an audience has not
    /// met the row's conditions before.
    pub(super) fn pass(
        &mut self,
        row: &Row<'_>,
        schemes: SchemeSet,
        mut is_new: impl FnMut(bool) -> bool,
    ) -> bool {
        let mut reached = false;
        for tls in schemes.iter().filter(|tls| row.scheme.includes(*tls)) {
            if self.ended(tls) {
                continue;
            }
            if row.conditions.is_empty() {
                reached = true;
                if tls { self.ended_tls = true } else { self.ended_plaintext = true }
            } else {
                reached |= is_new(tls);
            }
        }
        reached
    }
}

/// The cells of a group, whose rows are in order.
pub(super) fn cells<'a>(rows: &[Row<'a>], schemes: SchemeSet) -> PathMap<'a, Cell> {
    let mut cells: PathMap<'a, Cell> = PathMap::default();
    // Equal conditions may be separated, so each cell remembers its own.
    let mut tried: BTreeSet<(bool, Region<'_>, &[Condition])> = BTreeSet::new();
    let oldest = oldest_ingresses(rows);
    for (position, row) in rows.iter().enumerate() {
        let of_other = oldest.get(row.path).filter(|oldest| oldest.route != row.route);
        if let Some(oldest) = of_other.filter(|_| !row.state.is_guard()) {
            cells.entry(oldest.region()).shadowed.push(position);
            continue;
        }
        let cell = cells.entry(row.region());
        if cell.reach.pass(row, schemes, |tls| tried.insert((tls, row.region(), row.conditions))) {
            cell.rows.push(position);
        } else if !row.state.is_guard() {
            cell.shadowed.push(position);
        }
    }
    cells
}

/// A row of the oldest Ingress by path, where an Ingress distinguishes methods or headers. An Ingress has all requests for
/// its paths, so those of a younger one with the same path are not more specific.
fn oldest_ingresses<'r, 'a>(rows: &'r [Row<'a>]) -> BTreeMap<&'a Path, &'r Row<'a>> {
    let ingresses = || rows.iter().filter(|row| row.route.kind == Kind::Ingress && !row.state.is_guard());
    let mut oldest: BTreeMap<&Path, &Row<'_>> = BTreeMap::new();
    if ingresses().any(|row| row.method.is_some() || !row.conditions.is_empty()) {
        for row in ingresses() {
            let first = oldest.entry(row.path).or_insert(row);
            if row.compare_age(first).is_lt() {
                *first = row;
            }
        }
    }
    oldest
}
