//! The parts of a table, which are the unit of work of a change.
//!
//! A part is the Routes of one group (zone and original hostname) whose paths have one first segment. What covers a path
//! has the same first segment or is the root, so that a part depends on rows of its own segment and of the root's alone,
//! in its group and in those that [`super::dirty`] names.

use std::collections::{BTreeMap, BTreeSet};

use crate::attach::Hostname;
use crate::lower::document::PartKey;
use crate::lower::rows::{Placement, RouteInput};
use crate::lower::table::{Audience, TableKey};
use crate::route::Path;

/// The rows and Routes of a group whose paths have one first segment.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Those with such rows.
    pub(super) routes: BTreeSet<usize>,
    pub(super) keys: Vec<TableKey>,
}

impl Part {
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.keys.is_empty()
    }
}

/// The parts of a group, by first segment.
pub(super) type Group = BTreeMap<Box<str>, Part>;

/// The groups of a zone.
#[derive(Debug, Default)]
pub(super) struct ZoneParts {
    pub(super) groups: BTreeMap<Option<Hostname>, Group>,
    /// How many rows with conditions a group has. Those that have none are not there.
    pub(super) conditional: BTreeMap<Option<Hostname>, usize>,
    /// Routes that redirect everything in plaintext to HTTPS.
    redirecting: usize,
    /// Rows that are not for everybody.
    divided: usize,
}

impl ZoneParts {
    /// Counts the rows of a route in.
    pub(super) fn count(&mut self, input: &RouteInput, placement: &Placement) {
        self.count_audience(input, placement, usize::saturating_add);
        let conditional = conditional_rows(input);
        if conditional > 0 {
            for name in &placement.names {
                *self.conditional.entry(name.original.clone()).or_default() += conditional;
            }
        }
    }

    /// Counts them out again.
    pub(super) fn discount(&mut self, input: &RouteInput, placement: &Placement) {
        self.count_audience(input, placement, usize::saturating_sub);
        let conditional = conditional_rows(input);
        for name in &placement.names {
            if let Some(count) = self.conditional.get_mut(&name.original) {
                *count = count.saturating_sub(conditional);
                if *count == 0 {
                    self.conditional.remove(&name.original);
                }
            }
        }
    }

    fn count_audience(&mut self, input: &RouteInput, placement: &Placement, by: fn(usize, usize) -> usize) {
        let rows = || input.route.rules.iter().map(|rule| rule.matches.len()).sum::<usize>();
        match placement.audience {
            Ok(Audience::Plaintext) => {
                self.redirecting = by(self.redirecting, 1);
                self.divided = by(self.divided, rows());
            }
            Ok(Audience::Tls) => self.divided = by(self.divided, rows()),
            Ok(Audience::Everybody) | Err(_) => {}
        }
    }

    /// Whether some requests are redirected to HTTPS.
    pub(super) const fn is_redirecting(&self) -> bool {
        self.redirecting > 0
    }

    /// Whether there are rows that are not for everybody.
    pub(super) const fn is_divided(&self) -> bool {
        self.divided > 0
    }
}

fn conditional_rows(input: &RouteInput) -> usize {
    let matches = input.route.rules.iter().flat_map(|rule| &rule.matches);
    matches.filter(|matched| !matched.conditions.is_empty()).count()
}

/// The first segment of a path, or of the guard's.
pub(super) fn segment(path: Option<&Path>) -> &str {
    path.map(Path::first_segment).unwrap_or_default()
}

/// The parts that a route has rows in, by first segment.
pub(super) fn segments(input: &RouteInput) -> BTreeSet<&str> {
    let matches = input.route.rules.iter().flat_map(|rule| &rule.matches);
    matches.map(|matched| matched.path.first_segment()).collect()
}

pub(super) fn part_key(zone: usize, original: Option<&Hostname>, segment: &str) -> PartKey {
    PartKey { zone, original: original.cloned(), segment: segment.into() }
}
