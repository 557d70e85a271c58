//! Changes a data plane that was lowered before, as lowering it again would.
//!
//! The unit of work is a **part** of a table: the Routes of one group (zone and original hostname) whose paths have one
//! first segment. What covers a path has the same first segment or is the root, so a part depends on rows of its own
//! segment and of the root's, in its group, in groups that PingSIX matches by the same host, and in groups with wider
//! names; see [`super::table`]. A route that changes therefore dirties the parts it has rows in, and those of the groups
//! that continue there; rows of the root dirty whole groups.
//!
//! Patterns ([`super::closure`]) depend on the set of patterns of a host, and only when that set changes are other Routes
//! of the host closed again: those with a catch-all above the pattern. Hosts that cover each other are closed together.
//!
//! Everything else that a Route depends on is its own rows. What is rare, and would need more to be known, is not changed
//! but lowered anew ([`Stale`]): more than fits the budget, rows that are never reached, ids that collide, hosts that
//! start or cease to redirect to HTTPS, and changes of most of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::budget::{Lowered, Room};
use super::closure::{Closed, HostTree, Matched, Pattern, close, listed};
use super::document::{Drafted, Lowering, Naming, PartKey, Written, WrittenRoute, id_of};
use super::plane::{Plane, RuleRef};
use super::rows::{
    Placement, Placer, PlaneRows, RouteInput, ZoneRefusal, refusals, rows, serve_over_tls, serving,
};
use super::table::{Audience, Compiled, Only, Row, TableKey, TableRoute, Zone, compile_zone, host_of};
use super::upstream::UpstreamKey;
use crate::attach::Hostname;
use crate::options::Options;
use crate::pingsix::{self, Document, DocumentKey, ResourceKind, canonical_prefix, listed_bytes};
use crate::resolve::{Backends, Target};
use crate::route::{Path, Refusal};
use crate::translation::{DataPlane, Size};

/// A data plane must be lowered anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stale;

/// What is different from the last time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed<'a> {
    /// Routes that came, went or changed, with what they were; those that went have no place any more.
    pub(crate) routes: &'a BTreeMap<usize, RouteChange>,
    /// Backends with other endpoints, or another protocol.
    pub(crate) backends: &'a BTreeSet<usize>,
}

/// How a route changed.
#[derive(Clone, Debug)]
pub(crate) struct RouteChange {
    /// What it was.
    pub(crate) before: Option<Arc<RouteInput>>,
    /// Whether it still is there.
    pub(crate) is_there: bool,
}

/// A data plane with everything it takes to change it.
#[derive(Debug)]
pub(crate) struct LoweredPlane {
    data_plane: DataPlane,
    /// By route.
    placements: Vec<Vec<Placement>>,
    zones: Vec<ZoneParts>,
    table: BTreeMap<TableKey, WrittenRoute>,
    hosts: BTreeMap<Option<Hostname>, HostPatterns>,
    /// Hosts that cover others, or are covered.
    linked: BTreeSet<Hostname>,
    /// How many Routes use each upstream, and its bytes in the list response.
    upstreams: BTreeMap<UpstreamKey, UpstreamUse>,
    naming: Naming,
    /// What Routes refuse, by rule.
    refused: BTreeMap<RuleRef, BTreeMap<TableKey, Refusal>>,
    unreached: BTreeSet<PartKey>,
    /// What the table takes of [`Room`].
    room: usize,
}

/// The groups of a zone.
#[derive(Debug, Default)]
struct ZoneParts {
    groups: BTreeMap<Option<Hostname>, BTreeMap<Box<str>, Part>>,
    /// Routes that redirect everything in plaintext to HTTPS.
    redirecting: usize,
    /// Rows that are not for everybody.
    divided: usize,
}

/// The rows and Routes of a group whose paths have one first segment.
#[derive(Debug, Default)]
struct Part {
    /// Those with such rows.
    routes: BTreeSet<usize>,
    keys: Vec<TableKey>,
}

/// The patterns that the Routes with one host have themselves.
#[derive(Debug, Default)]
struct HostPatterns {
    /// With the number of Routes that have them.
    patterns: BTreeMap<Pattern, usize>,
    set: BTreeSet<Pattern>,
    /// By the end of what they catch all of: Routes.
    by_stem: BTreeMap<Box<str>, BTreeSet<TableKey>>,
}

#[derive(Debug, Default)]
struct UpstreamUse {
    routes: usize,
    bytes: usize,
}

/// Parts of a group that have to be compiled again.
#[derive(Debug)]
enum Dirty {
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

    fn holds(&self, segment: &str) -> bool {
        match self {
            Self::All => true,
            Self::Segments(segments) => segments.contains(segment),
        }
    }

    /// Whether rows of a segment count for what is dirty.
    fn reads(&self, segment: &str) -> bool {
        segment.is_empty() || self.holds(segment)
    }
}

/// Below how many groups nobody asks whether it would be cheaper to lower everything.
const FEW: usize = 32;

/// The first segment of a path, or of the guard's.
fn segment(path: Option<&Path>) -> &str {
    path.map(Path::first_segment).unwrap_or_default()
}

fn part_key(zone: usize, original: Option<&Hostname>, segment: &str) -> PartKey {
    PartKey { zone, original: original.cloned(), segment: segment.into() }
}

/// The parts that a route has rows in, by first segment.
fn segments(input: &RouteInput) -> BTreeSet<&str> {
    let matches = input.route.rules.iter().flat_map(|rule| &rule.matches);
    matches.map(|matched| segment(Some(&matched.path))).collect()
}

impl LoweredPlane {
    pub(super) fn new(lowering: &Lowering<'_>, rows: PlaneRows<'_>, written: Written) -> Self {
        let Written { data_plane, table, naming, unreached, .. } = written;
        let mut plane = Self {
            data_plane,
            placements: Vec::new(),
            zones: lowering.plane.zones.iter().map(|_| ZoneParts::default()).collect(),
            table: BTreeMap::new(),
            hosts: BTreeMap::new(),
            linked: BTreeSet::new(),
            upstreams: BTreeMap::new(),
            naming,
            refused: BTreeMap::new(),
            unreached,
            room: 0,
        };
        for (route, placement) in rows.into_placements() {
            let input = &lowering.routes[route];
            plane.zones[placement.zone].count(input, &placement, usize::saturating_add);
            let segments = segments(input);
            for name in &placement.names {
                let group = plane.zones[placement.zone].groups.entry(name.original.clone()).or_default();
                for segment in &segments {
                    group.entry((*segment).into()).or_default().routes.insert(route);
                }
            }
            if plane.placements.len() <= route {
                plane.placements.resize_with(route + 1, Vec::new);
            }
            plane.placements[route].push(placement);
        }
        let mut uses: BTreeMap<UpstreamKey, usize> = BTreeMap::new();
        for route in table {
            for upstream in &route.uses {
                *uses.entry(*upstream).or_default() += 1;
            }
            plane.add_patterns(&route.key, route.host.as_ref(), &mut BTreeMap::new());
            let key = route.key.clone();
            if let Some(path) = &key.path
                && let Some(group) = plane.zones[route.zone].groups.get_mut(&key.original)
            {
                group.entry(segment(Some(path)).into()).or_default().keys.push(key.clone());
            }
            plane.room = plane.room.saturating_add(route.room).saturating_add(route.pattern_bytes);
            for (rule, refusal) in &route.refused {
                plane.refused.entry(*rule).or_default().insert(key.clone(), refusal.clone());
            }
            plane.table.insert(key, route);
        }
        for (upstream, routes) in uses {
            let document = plane.naming.upstreams.key(upstream);
            let bytes = document.and_then(|key| Some(listed_bytes(&key, plane.data_plane.config.get(&key)?)));
            plane.upstreams.insert(upstream, UpstreamUse { routes, bytes: bytes.unwrap_or_default() });
        }
        plane.link_hosts();
        plane
    }

    /// Whether it can be changed at all.
    fn is_stale(&self) -> bool {
        self.naming.ids.collided()
    }

    /// The documents.
    pub(crate) const fn data_plane(&self) -> &DataPlane {
        &self.data_plane
    }

    /// What is refused of a route: rules, each with the first reason, and the route in zones.
    pub(crate) fn refused_of(&self, plane: &Plane, route: usize, input: &RouteInput) -> Lowered {
        let rules = self.refused.range(RuleRef { route, rule: 0 }..=RuleRef { route, rule: usize::MAX });
        let refused_rules = rules.filter_map(|(rule, by_key)| Some((*rule, by_key.values().next()?.clone())));
        let placements = self.placements.get(route).map(Vec::as_slice).unwrap_or_default();
        let refused_zones: Vec<ZoneRefusal> =
            placements.iter().flat_map(|placement| refusals(plane, route, input, placement)).collect();
        let served = placements.iter().flat_map(|placement| serving(plane, input, placement));
        Lowered {
            data_plane: DataPlane::default(),
            refused_rules: refused_rules.collect(),
            refused_zones,
            served_zones: served.map(|listener| (route, listener)).collect(),
        }
    }

    /// Makes of the data plane what lowering it anew would. Returns the routes of which something else is refused than
    /// before. When it is stale, nothing can be said of what is left of it.
    pub(crate) fn change(
        &mut self,
        plane: &Plane,
        routes: &[Arc<RouteInput>],
        backends: &Backends,
        options: &Options,
        changed: Changed<'_>,
    ) -> Result<BTreeSet<usize>, Stale> {
        if self.is_stale() {
            return Err(Stale);
        }
        let lowering = Lowering { plane, routes, backends, options };
        let mut told: BTreeSet<usize> = BTreeSet::new();
        let parts = self.place(&lowering, changed, &mut told)?;
        let dirty = self.dirty(plane, parts)?;
        let mut work =
            Work { prefix: canonical_prefix(&plane.key.prefix(&options.root)).len(), ..Work::default() };
        for ((zone, original), dirty) in &dirty {
            self.compile(&lowering, (*zone, original.clone()), dirty, &mut work)?;
        }
        self.close(&mut work, options)?;
        self.write(&mut work)?;
        self.write_upstreams(&lowering, changed.backends, &mut work);
        told.extend(work.told);
        let Size { bytes, matcher_entries } = self.data_plane.size;
        let budget = options.budget;
        let fits = self.data_plane.size.fits(budget) && self.room <= budget.bytes;
        if !fits || self.naming.ids.collided() || bytes == usize::MAX || matcher_entries == usize::MAX {
            return Err(Stale);
        }
        Ok(told)
    }

    /// Moves the changed routes to their places. Returns the parts with other rows than before.
    fn place(
        &mut self,
        lowering: &Lowering<'_>,
        changed: Changed<'_>,
        told: &mut BTreeSet<usize>,
    ) -> Result<BTreeSet<PartKey>, Stale> {
        let placer = Placer::new(lowering.plane);
        let mut parts = BTreeSet::new();
        let was: Vec<(bool, bool)> = self.zones.iter().map(ZoneParts::audiences).collect();
        for (&route, change) in changed.routes {
            if self.placements.len() <= route {
                self.placements.resize_with(route + 1, Vec::new);
            }
            let before = std::mem::take(&mut self.placements[route]);
            if let Some(input) = &change.before {
                let segments = segments(input);
                for placement in &before {
                    let zone = &mut self.zones[placement.zone];
                    zone.count(input, placement, usize::saturating_sub);
                    for name in &placement.names {
                        let Some(group) = zone.groups.get_mut(&name.original) else { continue };
                        for segment in &segments {
                            if let Some(part) = group.get_mut(*segment) {
                                part.routes.remove(&route);
                                parts.insert(part_key(placement.zone, name.original.as_ref(), segment));
                            }
                        }
                    }
                }
            }
            let mut after = Vec::new();
            if change.is_there {
                let input = &lowering.routes[route];
                let segments = segments(input);
                after = placer.place(input);
                for placement in &mut after {
                    let zone = &mut self.zones[placement.zone];
                    if was.get(placement.zone).is_some_and(|(redirecting, _)| *redirecting) {
                        serve_over_tls(&lowering.plane.zones[placement.zone], placement, input);
                    }
                    zone.count(input, placement, usize::saturating_add);
                    for name in &placement.names {
                        let group = zone.groups.entry(name.original.clone()).or_default();
                        for segment in &segments {
                            group.entry((*segment).into()).or_default().routes.insert(route);
                            parts.insert(part_key(placement.zone, name.original.as_ref(), segment));
                        }
                    }
                }
            }
            told.insert(route);
            self.placements[route] = after;
        }
        // Who is redirected decides what others are served to.
        if self.zones.iter().map(ZoneParts::audiences).ne(was) { Err(Stale) } else { Ok(parts) }
    }

    /// What has to be compiled again when these parts have other rows.
    fn dirty(
        &self,
        plane: &Plane,
        parts: BTreeSet<PartKey>,
    ) -> Result<BTreeMap<(usize, Option<Hostname>), Dirty>, Stale> {
        let mut dirty: BTreeMap<(usize, Option<Hostname>), Dirty> = BTreeMap::new();
        let all: usize = self.zones.iter().map(|zone| zone.groups.len()).sum();
        for PartKey { zone, original, segment } in parts {
            let served = plane.zones[zone].hostname.as_ref();
            let host = host_of(original.as_ref(), served);
            let wide = original.as_ref().is_none_or(Hostname::is_wildcard) || host.as_ref() == served;
            let continues = |other: &&Option<Hostname>| {
                **other == original
                    || host_of(other.as_ref(), served) == host
                    || other
                        .as_ref()
                        .is_some_and(|name| original.as_ref().is_none_or(|original| original.covers(name)))
            };
            let mut add = |group: &Option<Hostname>| {
                let of_group =
                    dirty.entry((zone, group.clone())).or_insert_with(|| Dirty::Segments(BTreeSet::new()));
                of_group.add(&segment);
            };
            if wide {
                self.zones[zone].groups.keys().filter(continues).for_each(&mut add);
            }
            add(&original);
            if dirty.len() > FEW && dirty.len() * 2 > all {
                return Err(Stale);
            }
        }
        Ok(dirty)
    }

    /// Compiles the dirty parts of a group.
    fn compile(
        &mut self,
        lowering: &Lowering<'_>,
        (zone, original): (usize, Option<Hostname>),
        dirty: &Dirty,
        work: &mut Work,
    ) -> Result<(), Stale> {
        let served = lowering.plane.zones[zone].hostname.as_ref();
        let host = host_of(original.as_ref(), served);
        let parts = &self.zones[zone];
        let mut context: BTreeSet<Option<Hostname>> = BTreeSet::from([original.clone()]);
        if let Some(name) = &original {
            context.extend(name.wider().map(Some).chain([None]));
        }
        if host.as_ref() == served {
            // Those that PingSIX matches by the zone's own name.
            context.extend(served.into_iter().flat_map(|name| name.wider().map(Some).chain([None])));
            context.insert(served.cloned());
        }
        let mut groups: BTreeMap<Option<Hostname>, Vec<Row<'_>>> = BTreeMap::new();
        for name in context {
            let Some(group) = parts.groups.get(&name) else { continue };
            let first = PartKey { zone, original: name.clone(), segment: Box::default() };
            let mut of_group =
                self.unreached.range(first..).take_while(|part| part.zone == zone && part.original == name);
            if of_group.any(|part| dirty.reads(&part.segment)) {
                return Err(Stale);
            }
            let read = group.iter().filter(|(segment, _)| dirty.reads(segment));
            let routes: BTreeSet<usize> = read.flat_map(|(_, part)| &part.routes).copied().collect();
            let of_routes = routes.into_iter().flat_map(|route| {
                let placement = self.placements[route].iter().find(|placement| placement.zone == zone);
                let audience = placement.map(|placement| placement.audience);
                audience.into_iter().flat_map(move |audience| rows(route, &lowering.routes[route], audience))
            });
            groups.insert(name, of_routes.filter(|row| dirty.reads(segment(Some(row.path)))).collect());
        }
        let zone_rows = Zone { hostname: served.cloned(), guarded: false, groups };
        let only = Only { original: &original, divided: self.zones[zone].divided > 0 };
        let mut room = Room::of(lowering.options.budget);
        let Compiled { groups, routes, unreached } =
            compile_zone(zone_rows, Some(only), &mut room).ok_or(Stale)?;
        if !unreached.is_empty() {
            return Err(Stale);
        }
        let mut before: BTreeSet<TableKey> = BTreeSet::new();
        if let Some(group) = self.zones[zone].groups.get_mut(&original) {
            for (_, part) in group.iter_mut().filter(|(segment, _)| dirty.holds(segment)) {
                before.extend(part.keys.drain(..));
            }
        }
        let is_dirty = |route: &&TableRoute| dirty.holds(segment(route.key.path.as_ref()));
        for route in routes.iter().filter(is_dirty) {
            let drafted = lowering.draft(route, zone, &groups, &mut self.naming);
            let key = route.key.clone();
            if let Some(group) = self.zones[zone].groups.get_mut(&original) {
                group.entry(segment(key.path.as_ref()).into()).or_default().keys.push(key.clone());
            }
            before.remove(&key);
            self.put(zone, route, route.room(&groups), drafted, work);
        }
        for key in before {
            self.take_out(&key, work);
        }
        let of_zone = &mut self.zones[zone].groups;
        if let Some(group) = of_zone.get_mut(&original) {
            group.retain(|_, part| !part.routes.is_empty() || !part.keys.is_empty());
            if group.is_empty() {
                of_zone.remove(&original);
            }
        }
        Ok(())
    }

    /// Puts a Route into the table, in the place of the one with its key if there is one.
    fn put(&mut self, zone: usize, route: &TableRoute, room: usize, drafted: Drafted, work: &mut Work) {
        let Drafted { document, origin, uses, refused } = drafted;
        let key = route.key.clone();
        for upstream in &uses {
            work.used.insert(*upstream);
            self.upstreams.entry(*upstream).or_default().routes += 1;
        }
        for (rule, refusal) in &refused {
            work.told.insert(rule.route);
            self.refused.entry(*rule).or_default().insert(key.clone(), refusal.clone());
        }
        let mut written = WrittenRoute {
            zone,
            key: key.clone(),
            host: route.host.clone(),
            id: String::new(),
            uses,
            refused,
            room,
            pattern_bytes: 0,
            matcher_entries: 0,
            bytes: 0,
        };
        self.room = self.room.saturating_add(room);
        if let Some(before) = self.table.remove(&key) {
            self.room -= before.room;
            self.give_up(&before, &written.refused, work);
            let WrittenRoute { id, pattern_bytes, matcher_entries, bytes, .. } = before;
            written = WrittenRoute { id, pattern_bytes, matcher_entries, bytes, ..written };
        } else {
            written.id = id_of(&key, &mut self.naming.ids);
            self.add_patterns(&key, written.host.as_ref(), &mut work.patterns);
            work.to_close.insert(key.clone());
        }
        let document_key = DocumentKey { kind: ResourceKind::Route, id: written.id.clone() };
        if self.data_plane.provenance.get(&document_key) != Some(&origin) {
            self.data_plane.provenance.insert(document_key, origin);
        }
        work.drafts.insert(key.clone(), document);
        self.table.insert(key, written);
    }

    /// Gives up what a Route used and refused, but for the rules that are refused now.
    fn give_up(&mut self, route: &WrittenRoute, still: &BTreeMap<RuleRef, Refusal>, work: &mut Work) {
        for upstream in &route.uses {
            work.used.insert(*upstream);
            if let Some(used) = self.upstreams.get_mut(upstream) {
                used.routes = used.routes.saturating_sub(1);
            }
        }
        for rule in route.refused.keys() {
            work.told.insert(rule.route);
            if !still.contains_key(rule)
                && let Some(by_key) = self.refused.get_mut(rule)
            {
                by_key.remove(&route.key);
                if by_key.is_empty() {
                    self.refused.remove(rule);
                }
            }
        }
    }

    fn take_out(&mut self, key: &TableKey, work: &mut Work) {
        let Some(route) = self.table.remove(key) else { return };
        self.give_up(&route, &BTreeMap::new(), work);
        self.remove_patterns(key, route.host.as_ref(), &mut work.patterns);
        self.room -= route.room + route.pattern_bytes;
        let size = &mut self.data_plane.size;
        size.bytes -= route.bytes + work.prefix;
        size.matcher_entries -= route.matcher_entries;
        self.naming.ids.release(&route.id);
        let document = DocumentKey { kind: ResourceKind::Route, id: route.id };
        self.data_plane.config.remove(&document);
        self.data_plane.provenance.remove(&document);
    }

    fn add_patterns(&mut self, key: &TableKey, host: Option<&Hostname>, changed: &mut ChangedPatterns) {
        let of_host = self.hosts.entry(host.cloned()).or_default();
        for pattern in Pattern::of(key.path.as_ref()) {
            if pattern.catch_all {
                let stem = pattern.literal.strip_suffix('/').unwrap_or(&pattern.literal);
                of_host.by_stem.entry(stem.into()).or_default().insert(key.clone());
            }
            let count = of_host.patterns.entry(pattern.clone()).or_default();
            *count += 1;
            if *count == 1 {
                of_host.set.insert(pattern.clone());
                changed.entry(host.cloned()).or_default().insert(pattern);
            }
        }
    }

    fn remove_patterns(&mut self, key: &TableKey, host: Option<&Hostname>, changed: &mut ChangedPatterns) {
        let Some(of_host) = self.hosts.get_mut(&host.cloned()) else { return };
        for pattern in Pattern::of(key.path.as_ref()) {
            if pattern.catch_all {
                let stem = pattern.literal.strip_suffix('/').unwrap_or(&pattern.literal);
                if let Some(keys) = of_host.by_stem.get_mut(stem) {
                    keys.remove(key);
                    if keys.is_empty() {
                        of_host.by_stem.remove(stem);
                    }
                }
            }
            if let Some(count) = of_host.patterns.get_mut(&pattern) {
                *count -= 1;
                if *count == 0 {
                    of_host.patterns.remove(&pattern);
                    of_host.set.remove(&pattern);
                    changed.entry(host.cloned()).or_default().insert(pattern);
                }
            }
        }
    }

    fn link_hosts(&mut self) {
        let hosts = || self.hosts.keys().flatten();
        self.linked = if hosts().any(Hostname::is_wildcard) {
            HostTree::new(hosts()).linked()
        } else {
            BTreeSet::new()
        };
    }

    /// Lists the patterns of Routes that are new, or that others' patterns concern.
    fn close(&mut self, work: &mut Work, options: &Options) -> Result<(), Stale> {
        let mut linked_changed = false;
        for (host, patterns) in &work.patterns {
            let Some(of_host) = self.hosts.get(host) else { continue };
            let is_linked =
                |linked: &BTreeSet<Hostname>| host.as_ref().is_some_and(|host| linked.contains(host));
            linked_changed |= is_linked(&self.linked);
            for pattern in patterns {
                let mut stem = &*pattern.literal;
                loop {
                    work.to_close.extend(of_host.by_stem.get(stem).into_iter().flatten().cloned());
                    let Some((shorter, _)) = stem.rsplit_once('/') else { break };
                    stem = shorter;
                }
            }
        }
        let empty: Vec<Option<Hostname>> = {
            let changed = work.patterns.keys();
            let is_empty =
                |host: &&Option<Hostname>| self.hosts.get(*host).is_some_and(|of| of.set.is_empty());
            changed.filter(is_empty).cloned().collect()
        };
        for host in &empty {
            self.hosts.remove(host);
        }
        let mut apart = BTreeSet::new();
        if !work.patterns.is_empty() {
            // A host may have come or gone.
            let before = std::mem::take(&mut self.linked);
            self.link_hosts();
            linked_changed |= before != self.linked;
            apart = before.difference(&self.linked).cloned().collect();
            linked_changed |= work.patterns.keys().flatten().any(|host| self.linked.contains(host));
        }
        linked_changed |= work.to_close.iter().any(|key| {
            let host = self.table.get(key).and_then(|route| route.host.as_ref());
            host.is_some_and(|host| self.linked.contains(host))
        });
        let of_hosts = |hosts: &BTreeSet<Hostname>| -> Vec<TableKey> {
            let is_there =
                |route: &&WrittenRoute| route.host.as_ref().is_some_and(|host| hosts.contains(host));
            self.table.values().filter(is_there).map(|route| route.key.clone()).collect()
        };
        if !apart.is_empty() {
            work.to_close.extend(of_hosts(&apart));
        }
        let mut together = Vec::new();
        if linked_changed {
            together = of_hosts(&self.linked);
        }
        let matched = together.iter().filter_map(|key| self.table.get(key));
        let matched: Vec<Matched<'_>> = matched
            .map(|route| Matched { path: route.key.path.as_ref(), host: route.host.as_ref() })
            .collect();
        let closed = close(&matched, &mut Room::of(options.budget)).ok_or(Stale)?;
        let mut all: BTreeMap<TableKey, Closed> = together.into_iter().zip(closed).collect();
        for key in std::mem::take(&mut work.to_close) {
            let Some(route) = self.table.get(&key) else { continue };
            if all.contains_key(&key) {
                continue;
            }
            let host = route.host.as_ref();
            let Some(of_host) = self.hosts.get(&route.host) else { continue };
            let uris = listed(&Pattern::of(key.path.as_ref()), std::iter::once(&of_host.set));
            let hosts = Arc::new(host.map(|host| host.as_str().to_owned()).into_iter().collect());
            all.insert(key, Closed { hosts, uris });
        }
        work.closed = all;
        Ok(())
    }

    /// Writes the Routes that are new, or list other patterns than before.
    fn write(&mut self, work: &mut Work) -> Result<(), Stale> {
        let drafts = std::mem::take(&mut work.drafts);
        let mut closed = std::mem::take(&mut work.closed);
        let keys: BTreeSet<TableKey> = drafts.keys().chain(closed.keys()).cloned().collect();
        let mut drafts = drafts;
        for key in keys {
            let Some(written) = self.table.get_mut(&key) else { continue };
            let document_key = DocumentKey { kind: ResourceKind::Route, id: written.id.clone() };
            let before = self.data_plane.config.route(&written.id);
            let mut document: pingsix::Route = match (drafts.remove(&key), before) {
                (Some(draft), Some(before)) => pingsix::Route {
                    uri: before.uri.clone(),
                    uris: before.uris.clone(),
                    host: before.host.clone(),
                    hosts: before.hosts.clone(),
                    ..draft
                },
                (Some(draft), None) => draft,
                (None, Some(before)) => before.clone(),
                (None, None) => return Err(Stale),
            };
            if let Some(closed) = closed.remove(&key) {
                self.room = self.room.saturating_sub(written.pattern_bytes).saturating_add(closed.bytes());
                let entries = closed.matcher_entries();
                let size = &mut self.data_plane.size;
                size.matcher_entries = size.matcher_entries - written.matcher_entries + entries;
                written.pattern_bytes = closed.bytes();
                written.matcher_entries = entries;
                closed.put_into(&mut document);
            }
            if before == Some(&document) {
                continue;
            }
            let was = if before.is_some() { written.bytes + work.prefix } else { 0 };
            let document = Document::Route(document);
            written.bytes = listed_bytes(&document_key, &document);
            let size = &mut self.data_plane.size;
            size.bytes = size.bytes - was + written.bytes + work.prefix;
            self.data_plane.config.insert(document_key.id, document);
        }
        Ok(())
    }

    /// Writes the upstreams that are used for the first time or have other endpoints, and takes out the unused.
    fn write_upstreams(&mut self, lowering: &Lowering<'_>, changed: &BTreeSet<usize>, work: &mut Work) {
        let changed = changed.iter().map(|index| UpstreamKey::Target(Target::Backend(*index)));
        let all: BTreeSet<UpstreamKey> = work.used.iter().copied().chain(changed).collect();
        for upstream in all {
            let Some(used) = self.upstreams.get_mut(&upstream) else { continue };
            let Some(key) = self.naming.upstreams.key(upstream) else {
                // Asked for in vain.
                if used.routes == 0 {
                    self.upstreams.remove(&upstream);
                }
                continue;
            };
            let before = self.data_plane.config.upstream(&key.id);
            let was = if before.is_some() { used.bytes + work.prefix } else { 0 };
            let size = &mut self.data_plane.size;
            if used.routes == 0 {
                size.bytes -= was;
                self.data_plane.config.remove(&key);
                self.data_plane.provenance.remove(&key);
                self.naming.upstreams.release(upstream, &mut self.naming.ids);
                self.upstreams.remove(&upstream);
                continue;
            }
            let Some((document, origin)) = upstream.write(lowering.options.responder, lowering.backends)
            else {
                continue;
            };
            if before == Some(&document) {
                continue;
            }
            let document = Document::Upstream(document);
            used.bytes = listed_bytes(&key, &document);
            size.bytes = size.bytes - was + used.bytes + work.prefix;
            self.data_plane.config.insert(key.id.clone(), document);
            self.data_plane.provenance.insert(key, origin);
        }
    }
}

impl ZoneParts {
    /// Counts a route in or out.
    fn count(&mut self, input: &RouteInput, placement: &Placement, by: fn(usize, usize) -> usize) {
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

    /// Whether some requests are redirected to HTTPS, and whether there are rows that are not for everybody.
    const fn audiences(&self) -> (bool, bool) {
        (self.redirecting > 0, self.divided > 0)
    }
}

/// By host: patterns that came or went.
type ChangedPatterns = BTreeMap<Option<Hostname>, BTreeSet<Pattern>>;

/// What a change has to see to.
#[derive(Debug, Default)]
struct Work {
    /// Length of the prefix of all keys.
    prefix: usize,
    /// Routes without their patterns.
    drafts: BTreeMap<TableKey, pingsix::Route>,
    to_close: BTreeSet<TableKey>,
    closed: BTreeMap<TableKey, Closed>,
    patterns: ChangedPatterns,
    /// Upstreams that are used more or less than before.
    used: BTreeSet<UpstreamKey>,
    /// Routes of which something else may be refused.
    told: BTreeSet<usize>,
}
