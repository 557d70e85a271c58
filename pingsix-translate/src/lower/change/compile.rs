//! Compiles the dirty parts of a zone, and puts their Routes into the table.
//!
//! [`compile_zone`] gets all rows that count for the dirty parts: those of their groups, of wider names, and of all names
//! that PingSIX matches by the same host, in the dirty segments and in the root. Hence the Routes of the dirty parts equal
//! those of the whole zone. The Routes of other parts may differ from them and are dropped. Rows that are never reached
//! are named at the Routes that take their requests, in any part. So the data plane is stale if there are such rows before
//! or after the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::dirty::{Dirty, DirtyGroups};
use super::part::{PartKey, part_key, segment};
use super::{LoweredPlane, Stale, Work, WrittenRoute};
use crate::lower::budget::Group;
use crate::lower::document::{RouteDraft, document_key, name_of_route};
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::rows::{ZoneRefusalCause, rows_of};
use crate::lower::table::{Compiled, Groups, RequestScheme, Row, TableKey, TableRoute, Zone, compile_zone};
use crate::model::{Hostname, Refusal};
use crate::pingsix::{DocumentKey, ResourceKind};

/// The requests of a zone that each route gets. Finding them takes all names of a route, which may be in many groups.
type Schemes = BTreeMap<usize, Option<Result<RequestScheme, ZoneRefusalCause>>>;

impl LoweredPlane {
    /// Compiles the groups with dirty parts from the parts that [`read_by`](super::dirty::read_by) names. `is_guarded`:
    /// whether the guard of the zone is compiled, too.
    pub(super) fn compile<'a>(
        &self,
        lowering: &Lowering<'a>,
        (zone, is_guarded): (usize, bool),
        dirty: &DirtyGroups,
        read: &DirtyGroups,
        room: &mut Room,
    ) -> Result<Compiled<'a>, Stale> {
        let mut groups: BTreeMap<Option<Hostname>, Vec<Row<'a>>> = BTreeMap::new();
        let mut schemes = Schemes::new();
        for (name, parts) in read {
            let group = (zone, name.clone());
            let mut rows = self.rows(lowering, &group, parts, &mut schemes)?;
            // Most hostnames have one row, and the capacity of a vector that grows is 4.
            rows.shrink_to_fit();
            if !rows.is_empty() {
                groups.insert(group.1, rows);
            }
        }
        let hostname = lowering.plane.zones[zone].hostname.clone();
        let zone_rows = Zone { hostname, guarded: is_guarded, groups };
        let is_divided = self.placed.zones[zone].is_divided();
        compile_zone(zone_rows, is_divided, |group| dirty.contains_key(group), room).ok_or(Stale)
    }

    /// Replaces the Routes in the dirty parts of a zone.
    pub(super) fn replace(
        &mut self,
        lowering: &Lowering<'_>,
        zone: usize,
        dirty: &DirtyGroups,
        Compiled { groups, routes, .. }: Compiled<'_>,
        work: &mut Work,
    ) {
        let mut before: BTreeSet<Arc<TableKey>> = BTreeSet::new();
        for (original, dirty) in dirty {
            before.extend(self.take_keys(&(zone, original.clone()), dirty));
        }
        let is_dirty =
            |route: &&TableRoute| dirty[&route.key.original].holds(segment(route.key.path.as_ref()));
        for route in routes.iter().filter(is_dirty) {
            if !before.remove(&route.key) {
                self.patterns.add(&route.key, &mut work.patterns);
                work.to_close.insert(route.key.clone());
            }
            self.put(lowering, zone, &groups, route, work);
        }
        for key in before {
            self.take_out(&key, work);
        }
        for (original, dirty) in dirty {
            self.drop_empty(&(zone, original.clone()), dirty);
        }
    }

    /// The rows of a group that count for dirty parts; empty for an unknown group.
    fn rows<'a>(
        &self,
        lowering: &Lowering<'a>,
        group @ (zone, name): &Group,
        dirty: &Dirty,
        schemes: &mut Schemes,
    ) -> Result<Vec<Row<'a>>, Stale> {
        let (zone, original) = (*zone, name.as_ref());
        let guard = self.admission.guard(group, lowering.routes);
        if self.unreached_of(zone, original).any(|part| dirty.reads(&part.segment)) {
            return Err(Stale);
        }
        let read = dirty.read(&self.placed.parts, group);
        let routes: BTreeSet<usize> = read.into_iter().flat_map(|part| &part.routes).copied().collect();
        let of_routes = routes.into_iter().flat_map(|route| {
            let input = &lowering.routes[route];
            let scheme =
                *schemes.entry(route).or_insert_with(|| self.placed.scheme_in(zone, lowering.plane, input));
            scheme.into_iter().flat_map(move |scheme| {
                rows_of(route, input, original, scheme, |rule, matched| {
                    self.admission.kept(rule, matched, group)
                })
            })
        });
        let rows = of_routes.filter(|row| dirty.reads(segment(Some(row.path)))).chain(guard);
        Ok(rows.collect())
    }

    /// The parts of a group with cells that get no Route.
    pub(super) fn unreached_of<'s>(
        &'s self,
        zone: usize,
        original: Option<&'s Hostname>,
    ) -> impl Iterator<Item = &'s PartKey> {
        let parts = self.unreached.range(part_key(zone, original, "")..);
        parts.take_while(move |part| part.zone == zone && part.original.as_ref() == original)
    }

    /// Removes and returns the Routes in the dirty parts of a group.
    fn take_keys(&mut self, group: &Group, dirty: &Dirty) -> BTreeSet<Arc<TableKey>> {
        let (zone, original) = (group.0, group.1.as_ref());
        let mut keys = BTreeSet::new();
        for segment in dirty.segments(&self.placed.parts, group) {
            if let Some(part) = self.placed.parts.get_mut(&part_key(zone, original, &segment)) {
                keys.extend(std::mem::take(&mut part.keys).iter().cloned());
            }
        }
        keys
    }

    /// Drops empty parts. Only dirty parts can have become empty.
    fn drop_empty(&mut self, group: &Group, dirty: &Dirty) {
        for segment in dirty.segments(&self.placed.parts, group) {
            self.placed.parts.drop_empty(&part_key(group.0, group.1.as_ref(), &segment));
        }
    }

    /// Puts a Route into the table, and replaces the one with its key.
    pub(super) fn put<'a>(
        &mut self,
        lowering: &Lowering<'a>,
        zone: usize,
        groups: &Groups<'a>,
        route: &TableRoute,
        work: &mut Work,
    ) {
        let RouteDraft { document, origin, uses, has_spellings, refused } =
            lowering.draft(route, zone, groups, &mut self.naming);
        let (key, room) = (route.key.clone(), route.room(groups));
        if key.path.is_some() {
            let part = part_key(zone, key.original.as_ref(), segment(key.path.as_ref()));
            self.placed.parts.make(part).keys.insert(key.clone());
        }
        for (rule, refusal) in &refused {
            work.to_judge.insert(rule.route);
            self.refused.entry(*rule).or_default().insert(key.clone(), refusal.clone());
        }
        let mut written =
            WrittenRoute { uses, has_spellings, refused, room, pattern_bytes: 0, matcher_entries: 0 };
        self.room = self.room.saturating_add(room);
        let document_key = if let Some(before) = self.table.remove(&key) {
            self.room -= before.room;
            self.give_up(&key, &before, &written.refused, work);
            if before.has_spellings != has_spellings {
                work.to_close.insert(key.clone());
            }
            let WrittenRoute { pattern_bytes, matcher_entries, .. } = before;
            written = WrittenRoute { pattern_bytes, matcher_entries, ..written };
            document_key(&key)
        } else {
            DocumentKey { kind: ResourceKind::Route, id: self.naming.ids.assign(&name_of_route(&key)) }
        };
        for shared in &written.uses {
            work.used.insert(shared.clone());
            self.naming.add_use(shared, &key);
        }
        work.origins.push((document_key.clone(), origin));
        work.drafts.insert(key.clone(), (document_key, document));
        self.table.insert(key, written);
    }

    /// Releases the references and refusals of a Route, apart from the rules that are refused now.
    fn give_up(
        &mut self,
        key: &TableKey,
        route: &WrittenRoute,
        still: &[(RuleRef, Refusal)],
        work: &mut Work,
    ) {
        for shared in &route.uses {
            work.used.insert(shared.clone());
            self.naming.drop_use(shared, key);
        }
        for (rule, _) in &route.refused {
            work.to_judge.insert(rule.route);
            if still.iter().all(|(other, _)| other != rule)
                && let Some(by_key) = self.refused.get_mut(rule)
            {
                by_key.remove(key);
                if by_key.is_empty() {
                    self.refused.remove(rule);
                }
            }
        }
    }

    fn take_out(&mut self, key: &TableKey, work: &mut Work) {
        let Some((key, route)) = self.table.remove_entry(key) else { return };
        self.give_up(&key, &route, &[], work);
        self.patterns.remove(&key, &mut work.patterns);
        self.room -= route.room + route.pattern_bytes;
        self.documents.replace_matcher_entries(route.matcher_entries, 0);
        let key = document_key(&key);
        self.naming.ids.release(&key.id);
        self.documents.remove(&key);
    }
}
