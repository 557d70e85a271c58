//! The parts to compile again when some parts have other rows.
//!
//! Rows of a group count for Routes of another one in two ways (see [`crate::lower::table`]). Groups that PingSIX matches
//! by the same host take requests from each other, so all of them are dirty. A list that does not end in its own
//! group continues in groups with wider names. So a changed group makes the groups that it covers dirty if these have
//! lists that continue. A row without conditions ends a list, so a group without conditions has no such list. The
//! exception are rows that are not for everybody, which end a list for some requests only. A protected path gets a Route for
//! its other spellings if a row of a wider name exposes it, so groups with protected rows are dirty as well.
//!
//! Within a group, rows of a segment count for the part of that segment, and rows of the root for all parts.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use super::Stale;
use super::part::{Part, PartKey, Parts, part_key};
use super::placement::PlacementIndex;
use crate::lower::budget::Group;
use crate::lower::plane::Plane;
use crate::lower::table::host_of;
use crate::model::{Hostname, hostname_and_wider, hostname_covers};

/// The number of groups up to which a change is not compared with lowering everything.
const MIN_GROUPS_FOR_FULL: usize = 32;

/// The dirty parts of a zone, by group.
pub(super) type DirtyGroups = BTreeMap<Option<Hostname>, Dirty>;

/// Parts of a group that have to be compiled again.
#[derive(Debug)]
pub(super) enum Dirty {
    All,
    Segments(BTreeSet<Box<str>>),
}

impl Default for Dirty {
    fn default() -> Self {
        Self::Segments(BTreeSet::new())
    }
}

impl Dirty {
    /// The parts of both.
    pub(super) fn and(mut self, other: &Self) -> Self {
        match other {
            Self::All => self = Self::All,
            Self::Segments(segments) => segments.iter().for_each(|segment| self.add(segment)),
        }
        self
    }

    fn add(&mut self, segment: &str) {
        match self {
            Self::All => {}
            Self::Segments(_) if segment.is_empty() => *self = Self::All,
            Self::Segments(segments) => {
                segments.insert(segment.into());
            }
        }
    }

    pub(super) fn holds(&self, segment: &str) -> bool {
        match self {
            Self::All => true,
            Self::Segments(segments) => segments.contains(segment),
        }
    }

    /// Whether rows of a segment count for the dirty segments.
    pub(super) fn reads(&self, segment: &str) -> bool {
        segment.is_empty() || self.holds(segment)
    }

    /// The dirty segments of a group.
    pub(super) fn segments(&self, parts: &Parts, (zone, original): &Group) -> Vec<Box<str>> {
        match self {
            Self::All => {
                parts.of_group(*zone, original.as_ref()).map(|(segment, _)| segment.into()).collect()
            }
            Self::Segments(segments) => segments.iter().cloned().collect(),
        }
    }

    /// The parts of a group whose rows count for the dirty segments.
    pub(super) fn read<'p>(&self, parts: &'p Parts, (zone, original): &Group) -> Vec<&'p Part> {
        match self {
            Self::All => parts.of_group(*zone, original.as_ref()).map(|(_, part)| part).collect(),
            Self::Segments(segments) => {
                let root = std::iter::once("");
                root.chain(segments.iter().map(AsRef::as_ref))
                    .filter_map(|segment| parts.get(&part_key(*zone, original.as_ref(), segment)))
                    .collect()
            }
        }
    }
}

/// The groups whose rows count for the dirty parts of a zone, with the parts that count. `served` is the hostname of the
/// zone.
pub(super) fn read_by(dirty: &DirtyGroups, served: Option<&Hostname>) -> DirtyGroups {
    let mut read = DirtyGroups::new();
    for (original, parts) in dirty {
        for name in context(original.as_ref(), served) {
            let of_name = read.entry(name).or_default();
            *of_name = std::mem::take(of_name).and(parts);
        }
    }
    read
}

/// The groups whose rows count for a group, and that group itself.
fn context(original: Option<&Hostname>, served: Option<&Hostname>) -> BTreeSet<Option<Hostname>> {
    let mut context: BTreeSet<Option<Hostname>> = hostname_and_wider(original).collect();
    if host_of(original, served).as_ref() == served {
        // The names that PingSIX matches by the zone's own name.
        context.extend(hostname_and_wider(served));
    }
    context
}

impl PlacementIndex {
    /// The parts to compile again when these parts have other rows.
    pub(super) fn dirty(
        &self,
        plane: &Plane,
        parts: BTreeSet<PartKey>,
    ) -> Result<BTreeMap<usize, DirtyGroups>, Stale> {
        let (mut dirty, mut count): (BTreeMap<usize, DirtyGroups>, usize) = Default::default();
        let all: LazyCell<usize, _> =
            LazyCell::new(|| (0..self.zones.len()).map(|zone| self.parts.groups(zone).count()).sum());
        for PartKey { zone, original, segment } in parts {
            let of_zone = dirty.entry(zone).or_default();
            count -= of_zone.len();
            let mut add = |group: Option<Hostname>| of_zone.entry(group).or_default().add(&segment);
            for group in self.dependent(zone, plane.zones[zone].hostname.as_ref(), original.as_ref()) {
                add(group);
            }
            add(original);
            count += of_zone.len();
            if count > MIN_GROUPS_FOR_FULL && count * 2 > *all {
                return Err(Stale);
            }
        }
        Ok(dirty)
    }

    /// The other groups that the rows of a group count for. `served` is the hostname of the zone.
    fn dependent(
        &self,
        zone: usize,
        served: Option<&Hostname>,
        original: Option<&Hostname>,
    ) -> Vec<Option<Hostname>> {
        let counts = &self.zones[zone];
        let host = host_of(original, served);
        let is_below =
            |other: &&Option<Hostname>| other.is_some() && hostname_covers(original, other.as_ref());
        let mut groups = Vec::new();
        if original.is_none_or(Hostname::is_wildcard) {
            if counts.is_divided() {
                groups.extend(self.parts.groups(zone).filter(is_below).cloned());
            } else {
                let all = counts.conditional.keys().chain(counts.protected.keys());
                groups.extend(all.filter(is_below).cloned());
            }
        }
        if host.as_ref() == served {
            // By the zone's own name, PingSIX matches rows with that name, with a wider one, and without any.
            groups
                .extend(hostname_and_wider(served).filter(|name| self.parts.has_group(zone, name.as_ref())));
        }
        groups
    }
}
