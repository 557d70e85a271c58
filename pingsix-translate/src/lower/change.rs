//! Changes a lowered data plane into the result of lowering it anew.
//!
//! The order of the data: [`admit`] decides again which rules the budget admits; [`placement`] moves changed routes to
//! their places and names the [`part`]s of the table with other rows; [`dirty`] finds all parts whose Routes may
//! depend on those; [`compile`] compiles these parts; [`patterns`] finds the Routes with other patterns; [`write`]
//! writes the differences. Each module argues why other parts cannot change.
//!
//! Apart from these dependencies, a Route depends on its own rows alone. Rare cases that would need more state are
//! lowered anew ([`FullTranslationNeeded`]): certificates without room, rows that are never reached, ids that collide, hosts that
//! begin or cease to redirect to HTTPS, and changes of most of the table.

mod admit;
mod compile;
mod dirty;
mod part;
mod patterns;
mod placement;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::part::{part_key, segment};
use self::patterns::{ChangedPatterns, HostPatterns};
use self::placement::PlacementIndex;
use self::write::Documents;
use super::budget::{Admission, lower_admitted};
use super::closure::Closed;
use super::document::{Lowering, Naming, PartKey, PlaneDocuments, WrittenRoute, is_limitation};
use super::plane::{Plane, RuleRef};
use super::rows::{PlaneRows, RouteInput, ZoneRefusal, refusals, serving};
use super::ssl::SslKey;
use super::table::TableKey;
use super::upstream::UpstreamKey;
use crate::lower::{DataPlane, Size};
use crate::model::{ObjectKey, Problem, Refusal};
use crate::packed::pack;
use crate::pingsix;
use crate::policy::PolicyChain;

/// The data plane must be lowered anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullTranslationNeeded;

/// The difference from the last time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoweringDiff<'a> {
    /// Added, removed and changed routes, each with its former version. A removed route has no place any more.
    pub(crate) routes: &'a BTreeMap<usize, RouteChange>,
    /// Backends with other endpoints or another protocol.
    pub(crate) backends: &'a BTreeSet<usize>,
    /// Inherited policies with other contents.
    pub(crate) policies: &'a BTreeSet<Arc<ObjectKey>>,
}

/// The refusals of a route on a data plane.
#[derive(Debug)]
pub(crate) struct RouteRefusals {
    /// Rules, each with the first reason.
    pub(crate) rules: Vec<(RuleRef, Refusal)>,
    /// Listeners on which the route is refused; its rules answer 500 there.
    pub(crate) zones: Vec<ZoneRefusal>,
    /// Routes and listeners that are served for at least some hosts: index of the route, listener.
    pub(crate) served: BTreeSet<(usize, usize)>,
}

/// The change of a route.
#[derive(Clone, Debug)]
pub(crate) struct RouteChange {
    /// The former version; `None` for a new route.
    pub(crate) before: Option<Arc<RouteInput>>,
    /// Whether the route still exists.
    pub(crate) is_there: bool,
}

/// A data plane with the state of an incremental change.
#[derive(Debug)]
pub(crate) struct LoweredPlane {
    documents: Documents,
    placed: PlacementIndex,
    /// The Routes until [`prepare_for_changes`](Self::prepare_for_changes), each with the index of its zone.
    written: Option<Vec<(usize, Arc<TableKey>, WrittenRoute)>>,
    table: BTreeMap<Arc<TableKey>, WrittenRoute>,
    patterns: HostPatterns,
    /// The parts with cells that get no Route.
    unreached: BTreeSet<PartKey>,
    naming: Naming,
    /// The ids of the documents of certificates.
    certificates: BTreeMap<SslKey, String>,
    /// The refusals of Routes, by rule.
    refused: BTreeMap<RuleRef, BTreeMap<Arc<TableKey>, Refusal>>,
    /// The share of the table in [`Room`](super::budget::Room).
    room: usize,
    /// The rules and certificates that the budget admits.
    admission: Admission,
    /// Whether certificates changed since the admission.
    is_recertified: bool,
    /// The number of Route documents that the last change wrote.
    routes_written: usize,
}

/// The intermediate results of a change.
#[derive(Debug, Default)]
struct Work {
    /// Compiled Routes without their patterns.
    drafts: BTreeMap<Arc<TableKey>, pingsix::Route>,
    /// Compiled Routes that are new.
    to_close: BTreeSet<Arc<TableKey>>,
    closed: BTreeMap<Arc<TableKey>, Closed>,
    patterns: ChangedPatterns,
    /// Upstreams with more or fewer uses than before.
    used: BTreeSet<UpstreamKey>,
    /// Services with more or fewer uses than before.
    services: BTreeSet<Arc<PolicyChain>>,
    /// Routes whose refusals may differ.
    to_judge: BTreeSet<usize>,
    /// The charge of a change without another admission.
    growth: Option<Size>,
}

impl LoweredPlane {
    /// Lowers everything attached to the listeners of a data plane.
    pub(crate) fn new(lowering: &Lowering<'_>) -> Self {
        let rows = PlaneRows::new(lowering.plane, lowering.routes);
        let (written, admission) = lower_admitted(lowering, &rows);
        let PlaneDocuments { data_plane, table, naming, certificates, unreached, .. } = written;
        let mut plane = Self {
            documents: Documents::new(data_plane, lowering),
            placed: PlacementIndex::new(lowering.plane),
            written: None,
            table: BTreeMap::new(),
            patterns: HostPatterns::default(),
            unreached,
            naming,
            certificates,
            refused: BTreeMap::new(),
            room: 0,
            admission,
            is_recertified: false,
            routes_written: 0,
        };
        for (route, placement) in rows.placements() {
            plane.placed.zones[placement.zone].count(&lowering.routes[*route], placement);
        }
        for (_, key, route) in &table {
            for (rule, refusal) in &route.refused {
                plane.refused.entry(*rule).or_default().insert(key.clone(), refusal.clone());
            }
        }
        plane.written = Some(table);
        plane
    }

    /// Builds the indexes that [`change`](Self::change) needs, from the routes as they were lowered.
    pub(crate) fn prepare_for_changes(&mut self, plane: &Plane, routes: &[Arc<RouteInput>]) {
        let Some(written) = self.written.take() else { return };
        self.patterns = HostPatterns::new(written.iter().map(|(_, key, _)| key));
        for (route, input) in routes.iter().enumerate() {
            for placement in self.placed.places(plane, input) {
                self.placed.add_parts(route, input, &placement, |_| {});
            }
        }
        for (zone, key, route) in written {
            for upstream in &route.uses {
                self.naming.upstreams.named.add_use(upstream);
            }
            if let Some(chain) = &route.chain {
                self.naming.services.add_use(chain);
            }
            if let Some(path) = &key.path {
                let part = part_key(zone, key.original.as_ref(), segment(Some(path)));
                self.placed.parts.make(part).keys.insert(key.clone());
            }
            self.room = self.room.saturating_add(route.room).saturating_add(route.pattern_bytes);
            self.table.insert(key, route);
        }
        self.pack();
    }

    /// Frees unused capacity.
    fn pack(&mut self) {
        pack(&mut self.table);
        self.placed.parts.pack();
        self.naming.upstreams.named.pack();
        self.naming.services.pack();
        self.naming.ids.pack();
    }

    /// Certificates without room, with their owners.
    pub(crate) fn refused_certificates(&self) -> &[(Arc<ObjectKey>, Refusal)] {
        self.admission.certificate_refusals()
    }

    /// The warnings of namespaces near their shares, and of owners of listeners without guards.
    pub(crate) fn problems(&self) -> &[Problem] {
        self.admission.problems()
    }

    /// The documents.
    pub(crate) const fn data_plane(&self) -> &DataPlane {
        self.documents.data_plane()
    }

    /// The number of Route documents that the last change wrote.
    pub(crate) const fn routes_written(&self) -> usize {
        self.routes_written
    }

    /// The refusals of a route: rules, each with the first reason, and the route in zones.
    pub(crate) fn refused_of(
        &self,
        plane: &Plane,
        route: usize,
        routes: &[Arc<RouteInput>],
    ) -> RouteRefusals {
        let input = &routes[route];
        let rules = self.refused.range(RuleRef { route, rule: 0 }..=RuleRef { route, rule: usize::MAX });
        let first = |by_key: &BTreeMap<Arc<TableKey>, Refusal>| {
            by_key.values().min_by_key(|refusal| is_limitation(refusal)).cloned()
        };
        let rules = rules.filter_map(|(rule, by_key)| Some((*rule, first(by_key)?)));
        let mut rules: Vec<(RuleRef, Refusal)> = rules.collect();
        let placements = self.placed.places(plane, input);
        rules.extend(self.admission.refusals(route, routes, &placements, &plane.key));
        rules.sort_by_key(|(rule, _)| *rule);
        let zones = placements.iter().flat_map(|placement| refusals(plane, route, input, placement));
        let served = placements.iter().flat_map(|placement| serving(plane, input, placement));
        RouteRefusals {
            rules,
            zones: zones.collect(),
            served: served.map(|listener| (route, listener)).collect(),
        }
    }

    /// Changes the data plane into the result of lowering it anew. Returns the routes whose refusals may differ.
    /// After [`FullTranslationNeeded`], the data plane is unusable.
    ///
    /// The zones of the data plane are those of the last time; for its certificates, there is
    /// [`change_certificates`](Self::change_certificates). A new data plane takes
    /// [`prepare_for_changes`](Self::prepare_for_changes) first.
    pub(crate) fn change(
        &mut self,
        lowering: &Lowering<'_>,
        changed: LoweringDiff<'_>,
    ) -> Result<BTreeSet<usize>, FullTranslationNeeded> {
        self.routes_written = 0;
        if self.naming.ids.collided() {
            return Err(FullTranslationNeeded);
        }
        let Lowering { plane, options, .. } = *lowering;
        let mut work = Work { to_judge: changed.routes.keys().copied().collect(), ..Work::default() };
        let before = self.data_plane().size;
        let mut parts = self.placed.change(lowering, changed.routes)?;
        self.admit(lowering, changed, &mut parts, &mut work)?;
        for (group, dirty) in &self.placed.dirty(plane, parts)? {
            self.compile(lowering, group, dirty, &mut work)?;
        }
        self.close(&mut work, options)?;
        self.write(&mut work)?;
        self.write_upstreams(lowering, changed.backends, &work.used);
        self.write_services(lowering, changed.policies, &work.services);
        let size @ Size { bytes, matcher_entries } = self.data_plane().size;
        let budget = options.budget;
        let fits = size.fits(budget) && self.room <= budget.bytes;
        if !fits || self.naming.ids.collided() || bytes == usize::MAX || matcher_entries == usize::MAX {
            return Err(FullTranslationNeeded);
        }
        self.update_charge(lowering, before, &work)?;
        Ok(work.to_judge)
    }
}
