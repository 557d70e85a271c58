//! Compiles the dirty parts of a group, and puts their Routes into the table.
//!
//! [`compile_zone`] gets one group with all rows that count for its dirty parts: the rows of the group, of wider
//! names, and of all names that PingSIX matches by the same host, in the dirty segments and in the root. Hence the
//! Routes of the dirty parts equal those of the whole zone. The Routes of other parts may differ from them and are
//! dropped. Rows that are never reached are named at the Routes that take their requests, in any part. So the data
//! plane is stale if there are such rows before or after the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::dirty::Dirty;
use super::part::{GroupKey, part_key, segment};
use super::{LoweredPlane, Stale, Work, WrittenRoute};
use crate::lower::document::{RouteDraft, document_key, name_of_route};
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::rows::rows_of;
use crate::lower::table::{Compiled, Only, Row, TableKey, TableRoute, Zone, compile_zone, host_of};
use crate::model::{Hostname, Refusal};

impl LoweredPlane {
    /// Compiles the dirty parts of a group.
    pub(super) fn compile(
        &mut self,
        lowering: &Lowering<'_>,
        key: &GroupKey,
        dirty: &Dirty,
        work: &mut Work,
    ) -> Result<(), Stale> {
        let &(zone, ref original) = key;
        let hostname = lowering.plane.zones[zone].hostname.clone();
        let mut groups: BTreeMap<Option<Hostname>, Vec<Row<'_>>> = BTreeMap::new();
        for name in context(original.as_ref(), hostname.as_ref()) {
            let other = (zone, name);
            if let Some(rows) = self.rows(lowering, &other, dirty)? {
                groups.insert(other.1, rows);
            }
        }
        let only = Only { original, divided: self.placed.zones[zone].is_divided() };
        let zone_rows = Zone { hostname, guarded: false, groups };
        let mut room = Room::of(lowering.options.budget);
        let Compiled { groups, routes, unreached } =
            compile_zone(zone_rows, Some(only), &mut room).ok_or(Stale)?;
        if !unreached.is_empty() {
            return Err(Stale);
        }
        let mut before = self.take_keys(key, dirty);
        let is_dirty = |route: &&TableRoute| dirty.holds(segment(route.key.path.as_ref()));
        for route in routes.iter().filter(is_dirty) {
            let drafted = lowering.draft(route, zone, &groups, &mut self.naming);
            let part = part_key(zone, original.as_ref(), segment(route.key.path.as_ref()));
            self.placed.parts.make(part).keys.insert(route.key.clone());
            before.remove(&route.key);
            self.put(route, route.room(&groups), drafted, work);
        }
        for key in before {
            self.take_out(&key, work);
        }
        self.drop_empty(key, dirty);
        Ok(())
    }

    /// The rows of a group that count for its dirty parts; empty for an unknown group.
    fn rows<'a>(
        &self,
        lowering: &Lowering<'a>,
        group @ (zone, name): &GroupKey,
        dirty: &Dirty,
    ) -> Result<Option<Vec<Row<'a>>>, Stale> {
        let (zone, original) = (*zone, name.as_ref());
        let guard = self.admission.guard(group, lowering.routes);
        if !self.placed.parts.has_group(zone, original) && guard.is_none() {
            return Ok(None);
        }
        let mut of_group = self
            .unreached
            .range(part_key(zone, original, "")..)
            .take_while(|part| part.zone == zone && part.original == *name);
        if of_group.any(|part| dirty.reads(&part.segment)) {
            return Err(Stale);
        }
        let read = dirty.read(&self.placed.parts, group);
        let routes: BTreeSet<usize> = read.into_iter().flat_map(|part| &part.routes).copied().collect();
        let of_routes = routes.into_iter().flat_map(|route| {
            let input = &lowering.routes[route];
            let places = self.placed.places(lowering.plane, input).into_iter();
            let schemes = places.filter(move |place| place.zone == zone).map(|place| place.scheme);
            schemes.flat_map(move |scheme| {
                rows_of(route, input, original, scheme, |rule, matched| {
                    self.admission.kept(rule, matched, group)
                })
            })
        });
        let rows = of_routes.filter(|row| dirty.reads(segment(Some(row.path)))).chain(guard);
        Ok(Some(rows.collect()))
    }

    /// Removes and returns the Routes in the dirty parts of a group.
    fn take_keys(&mut self, group: &GroupKey, dirty: &Dirty) -> BTreeSet<Arc<TableKey>> {
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
    fn drop_empty(&mut self, group: &GroupKey, dirty: &Dirty) {
        for segment in dirty.segments(&self.placed.parts, group) {
            self.placed.parts.drop_empty(&part_key(group.0, group.1.as_ref(), &segment));
        }
    }

    /// Puts a Route into the table, and replaces the one with its key.
    fn put(&mut self, route: &TableRoute, room: usize, drafted: RouteDraft, work: &mut Work) {
        let RouteDraft { document, origin, uses, service, has_spellings, refused } = drafted;
        let key = route.key.clone();
        for upstream in &uses {
            work.used.insert(*upstream);
            self.naming.upstreams.named.add_use(upstream);
        }
        if let Some(service) = &service {
            work.services.insert(service.clone());
            self.naming.services.add_use(service);
        }
        for (rule, refusal) in &refused {
            work.to_judge.insert(rule.route);
            self.refused.entry(*rule).or_default().insert(key.clone(), refusal.clone());
        }
        let mut written = WrittenRoute {
            uses,
            service,
            has_spellings,
            refused,
            room,
            pattern_bytes: 0,
            matcher_entries: 0,
        };
        self.room = self.room.saturating_add(room);
        if let Some(before) = self.table.remove(&key) {
            self.room -= before.room;
            self.give_up(&key, &before, &written.refused, work);
            if before.has_spellings != has_spellings {
                work.to_close.insert(key.clone());
            }
            let WrittenRoute { pattern_bytes, matcher_entries, .. } = before;
            written = WrittenRoute { pattern_bytes, matcher_entries, ..written };
        } else {
            self.naming.ids.assign(&name_of_route(&key));
            self.patterns.add(&key, &mut work.patterns);
            work.to_close.insert(key.clone());
        }
        self.documents.note_origin(document_key(&key), origin);
        work.drafts.insert(key.clone(), document);
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
        for upstream in &route.uses {
            work.used.insert(*upstream);
            self.naming.upstreams.named.drop_use(upstream);
        }
        if let Some(service) = &route.service {
            work.services.insert(service.clone());
            self.naming.services.drop_use(service);
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

/// The groups whose rows count for a group, and that group itself. `served` is the hostname of the zone.
fn context(original: Option<&Hostname>, served: Option<&Hostname>) -> BTreeSet<Option<Hostname>> {
    let and_wider = |name: &Hostname| {
        let wider: Vec<Hostname> = name.wider().collect();
        wider.into_iter().map(Some).chain([Some(name.clone()), None])
    };
    let mut context = BTreeSet::from([original.cloned()]);
    context.extend(original.into_iter().flat_map(and_wider));
    if host_of(original, served).as_ref() == served {
        // The names that PingSIX matches by the zone's own name.
        context.extend(served.into_iter().flat_map(and_wider));
    }
    context
}
