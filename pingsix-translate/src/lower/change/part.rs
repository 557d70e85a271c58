//! The parts of a table, which are the unit of work of a change.
//!
//! A part has the Routes of one group (zone and original hostname) whose paths share their first segment. A path that
//! covers another one has the same first segment or is the root. So a part depends on the rows of its own segment and
//! of the root alone, in its group and in the groups that [`super::dirty`] names.
//!
//! One map holds the parts of all groups in the order of their keys, so the parts of a group are neighbours. Most
//! groups have one part, and a map for each group would take more memory than its contents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lower::rows::{Placement, RouteInput};
use crate::lower::table::{RequestScheme, TableKey};
use crate::model::Hostname;
use crate::normalise::Path;
use crate::packed::pack;
use crate::small_set::SmallSet;

/// The key of rows that may depend on each other: those of a group whose paths have the same first segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartKey {
    /// Index of the zone.
    pub(super) zone: usize,
    pub(super) original: Option<Hostname>,
    /// Empty for the root, and for paths that may cover several first segments.
    pub(super) segment: Box<str>,
}

/// The rows and Routes of a group whose paths have one first segment.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The routes with such rows.
    pub(super) routes: SmallSet<usize>,
    pub(super) keys: SmallSet<Arc<TableKey>>,
}

impl Part {
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.keys.is_empty()
    }
}

/// The parts of all groups.
#[derive(Debug, Default)]
pub(super) struct Parts(BTreeMap<PartKey, Part>);

impl Parts {
    pub(super) fn get(&self, key: &PartKey) -> Option<&Part> {
        self.0.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &PartKey) -> Option<&mut Part> {
        self.0.get_mut(key)
    }

    /// The part with this key; a new one is empty.
    pub(super) fn make(&mut self, key: PartKey) -> &mut Part {
        self.0.entry(key).or_default()
    }

    /// Frees unused capacity.
    pub(super) fn pack(&mut self) {
        pack(&mut self.0);
    }

    /// Drops a part if it is empty.
    pub(super) fn drop_empty(&mut self, key: &PartKey) {
        if self.0.get(key).is_some_and(Part::is_empty) {
            self.0.remove(key);
        }
    }

    /// The parts of a group, by first segment, the root first.
    pub(super) fn of_group(
        &self,
        zone: usize,
        original: Option<&Hostname>,
    ) -> impl Iterator<Item = (&str, &Part)> {
        let parts = self.0.range(part_key(zone, original, "")..);
        let of_group =
            parts.take_while(move |(key, _)| key.zone == zone && key.original.as_ref() == original);
        of_group.map(|(key, part)| (&*key.segment, part))
    }

    /// Whether there is a group.
    pub(super) fn has_group(&self, zone: usize, original: Option<&Hostname>) -> bool {
        self.of_group(zone, original).next().is_some()
    }

    /// The original hostnames of the groups of a zone.
    pub(super) fn groups(&self, zone: usize) -> impl Iterator<Item = &Option<Hostname>> {
        let parts = self.0.range(part_key(zone, None, "")..).take_while(move |(key, _)| key.zone == zone);
        let mut last = None;
        parts.map(|(key, _)| &key.original).filter(move |original| last.replace(*original) != Some(*original))
    }
}

/// The counts that affect all groups of a zone.
#[derive(Debug, Default)]
pub(super) struct ZoneCounts {
    /// The number of rows with conditions, by group. Groups without such rows have no entry.
    pub(super) conditional: BTreeMap<Option<Hostname>, usize>,
    /// The number of protected rows, by group. Groups without such rows have no entry.
    pub(super) protected: BTreeMap<Option<Hostname>, usize>,
    /// The number of routes that redirect all plaintext requests to HTTPS.
    redirecting: usize,
    /// The number of rows that are not for everybody.
    divided: usize,
}

impl ZoneCounts {
    /// Adds the rows of a route to the counts.
    pub(super) fn count(&mut self, input: &RouteInput, placement: &Placement) {
        self.change(input, placement, usize::saturating_add);
    }

    /// Subtracts the rows of a route from the counts.
    pub(super) fn discount(&mut self, input: &RouteInput, placement: &Placement) {
        self.change(input, placement, usize::saturating_sub);
    }

    fn change(&mut self, input: &RouteInput, placement: &Placement, by: fn(usize, usize) -> usize) {
        let counts =
            [(&mut self.conditional, conditional_rows(input)), (&mut self.protected, protected_rows(input))];
        for (by_group, rows) in counts.into_iter().filter(|(_, rows)| *rows > 0) {
            for name in &placement.names {
                let count = by_group.entry(name.original.clone()).or_default();
                *count = by(*count, rows);
                if *count == 0 {
                    by_group.remove(&name.original);
                }
            }
        }
        let rows = || input.route.rules.iter().map(|rule| rule.matches.len()).sum::<usize>();
        match placement.scheme {
            Ok(RequestScheme::Plaintext) => {
                self.redirecting = by(self.redirecting, 1);
                self.divided = by(self.divided, rows());
            }
            Ok(RequestScheme::Tls) => self.divided = by(self.divided, rows()),
            Ok(RequestScheme::Any) | Err(_) => {}
        }
    }

    /// Whether plaintext requests of some host are redirected to HTTPS.
    pub(super) const fn is_redirecting(&self) -> bool {
        self.redirecting > 0
    }

    /// Whether there are rows that are not for everybody.
    pub(super) const fn is_divided(&self) -> bool {
        self.divided > 0
    }
}

fn conditional_rows(input: &RouteInput) -> usize {
    let matches = input.route.rules.iter().flat_map(|rule| &*rule.matches);
    matches.filter(|matched| !matched.conditions.is_empty()).count()
}

/// The number of matches of protected rules.
fn protected_rows(input: &RouteInput) -> usize {
    let rules = input.route.rules.iter().enumerate().filter(|(rule, _)| input.is_protected(*rule));
    rules.map(|(_, rule)| rule.matches.len()).sum()
}

/// The first segment of a path, or of the guard's.
pub(super) fn segment(path: Option<&Path>) -> &str {
    path.map(Path::first_segment).unwrap_or_default()
}

/// The parts that a route has rows in, by first segment.
pub(super) fn segments(input: &RouteInput) -> BTreeSet<&str> {
    let matches = input.route.rules.iter().flat_map(|rule| &*rule.matches);
    matches.map(|matched| matched.path.first_segment()).collect()
}

pub(super) fn part_key(zone: usize, original: Option<&Hostname>, segment: &str) -> PartKey {
    PartKey { zone, original: original.cloned(), segment: segment.into() }
}
