//! Which parts have to be compiled again when some have other rows.
//!
//! Rows of a group count for Routes of another one in two ways (see [`crate::lower::table`]). Groups that PingSIX matches
//! by the same host take requests from each other: all of them are dirty. And a list that does not end in its own group
//! goes on in those with wider names: when one of these changes, the groups it covers are dirty, if they have lists
//! that go on at all. A list ends with a row without conditions, so that a group without any conditions has no such
//! list, unless there are rows that are not for everybody, which end it for some only.
//!
//! Within a group, rows of a segment count for the part of that segment, and rows of the root for all parts.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use super::Stale;
use super::part::{GroupKey, Part, Parts};
use super::place::Placed;
use crate::lower::document::PartKey;
use crate::lower::plane::Plane;
use crate::lower::table::host_of;
use crate::model::Hostname;

/// Below how many groups nobody asks whether it would be cheaper to lower everything.
const FEW: usize = 32;

/// Parts of a group that have to be compiled again.
#[derive(Debug)]
pub(super) enum Dirty {
    All,
    Segments(BTreeSet<Box<str>>),
}

impl Dirty {
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

    /// Whether rows of a segment count for what is dirty.
    pub(super) fn reads(&self, segment: &str) -> bool {
        segment.is_empty() || self.holds(segment)
    }

    /// The segments of a group that are dirty.
    pub(super) fn segments(&self, parts: &Parts, (zone, original): &GroupKey) -> Vec<Box<str>> {
        match self {
            Self::All => {
                parts.of_group(*zone, original.as_ref()).map(|(segment, _)| segment.into()).collect()
            }
            Self::Segments(segments) => segments.iter().cloned().collect(),
        }
    }

    /// The parts of a group whose rows count for what is dirty.
    pub(super) fn read<'p>(&self, parts: &'p Parts, (zone, original): &GroupKey) -> Vec<&'p Part> {
        match self {
            Self::All => parts.of_group(*zone, original.as_ref()).map(|(_, part)| part).collect(),
            Self::Segments(segments) => {
                let root = std::iter::once("");
                root.chain(segments.iter().map(AsRef::as_ref))
                    .filter_map(|segment| parts.of_segment(*zone, original.as_ref(), segment))
                    .collect()
            }
        }
    }
}

impl Placed {
    /// What has to be compiled again when these parts have other rows.
    pub(super) fn dirty(
        &self,
        plane: &Plane,
        parts: BTreeSet<PartKey>,
    ) -> Result<BTreeMap<GroupKey, Dirty>, Stale> {
        let mut dirty: BTreeMap<GroupKey, Dirty> = BTreeMap::new();
        let all: LazyCell<usize, _> =
            LazyCell::new(|| (0..self.zones.len()).map(|zone| self.parts.groups(zone).count()).sum());
        for PartKey { zone, original, segment } in parts {
            let mut add = |group: Option<Hostname>| {
                let of_group = dirty.entry((zone, group)).or_insert_with(|| Dirty::Segments(BTreeSet::new()));
                of_group.add(&segment);
            };
            for group in self.dependent(zone, plane.zones[zone].hostname.as_ref(), original.as_ref()) {
                add(group);
            }
            add(original);
            if dirty.len() > FEW && dirty.len() * 2 > *all {
                return Err(Stale);
            }
        }
        Ok(dirty)
    }

    /// The other groups that rows of a group count for. `served` is the hostname of the zone.
    fn dependent(
        &self,
        zone: usize,
        served: Option<&Hostname>,
        original: Option<&Hostname>,
    ) -> Vec<Option<Hostname>> {
        let counts = &self.zones[zone];
        let host = host_of(original, served);
        let is_below = |other: &&Option<Hostname>| {
            other.as_ref().is_some_and(|name| original.is_none_or(|original| original.covers(name)))
        };
        let mut groups = Vec::new();
        if original.is_none_or(Hostname::is_wildcard) {
            if counts.is_divided() {
                groups.extend(self.parts.groups(zone).filter(is_below).cloned());
            } else {
                groups.extend(counts.conditional.keys().filter(is_below).cloned());
            }
        }
        if host.as_ref() == served {
            // By the zone's own name, PingSIX matches what has that name, a wider one, or none.
            let wider = served.into_iter().flat_map(|name| name.wider().map(Some).chain([None]));
            let alike = std::iter::once(served.cloned()).chain(wider);
            groups.extend(alike.filter(|name| self.parts.has_group(zone, name.as_ref())));
        }
        groups
    }
}
