//! Cells: the rows of a group that PingSIX cannot tell apart by host, path and method.

use std::collections::BTreeSet;

use super::{RequestScheme, Row, RowState};
use crate::lower::path_map::{PathEntry, PathMap};
use crate::normalise::{Condition, Path};

/// Rows of a group with one path and method.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) path: &'a Path,
    pub(super) method: Option<&'static str>,
    /// Positions in the group, in order, that some request reaches: each with conditions of its own, up to the first
    /// unconditional row of each audience.
    pub(super) rows: Vec<usize>,
    /// The other positions.
    pub(super) shadowed: Vec<usize>,
    pub(super) reach: ReachedSchemes,
}

/// Whether a zone has rows that count only for requests with or without TLS. If not, there is one audience.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemeSet {
    split: bool,
}

impl SchemeSet {
    /// The audiences of a zone's rows.
    pub(super) fn of<'r, 'a: 'r>(mut rows: impl Iterator<Item = &'r Row<'a>>) -> Self {
        Self { split: rows.any(|row| row.scheme != RequestScheme::Any) }
    }

    /// The audiences of a zone with or without such rows.
    pub(super) const fn divided(divided: bool) -> Self {
        Self { split: divided }
    }

    /// Each audience, as whether it comes by TLS.
    fn iter(self) -> impl Iterator<Item = bool> {
        std::iter::once(true).chain(self.split.then_some(false))
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

impl PathEntry for Cell<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

/// The cells of a group, whose rows are in order.
pub(super) fn cells<'a>(rows: &[Row<'a>], schemes: SchemeSet) -> PathMap<'a, Cell<'a>> {
    let mut cells = PathMap::new();
    // Equal conditions may be separated, so each cell remembers its own.
    let mut tried: BTreeSet<(bool, &Path, Option<&'static str>, &[Condition])> = BTreeSet::new();
    for (position, row) in rows.iter().enumerate() {
        let (path, method) = (row.path, row.method);
        let make = || Cell {
            path,
            method,
            rows: Vec::new(),
            shadowed: Vec::new(),
            reach: ReachedSchemes::default(),
        };
        let cell = cells.entry(path, method, make);
        if cell.reach.pass(row, schemes, |tls| tried.insert((tls, path, method, row.conditions))) {
            cell.rows.push(position);
        } else if row.state != RowState::Guard {
            cell.shadowed.push(position);
        }
    }
    cells
}
