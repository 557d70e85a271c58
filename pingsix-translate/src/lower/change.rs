//! Changes a lowered data plane into the result of lowering it anew.
//!
//! The order of the data: [`admit`] decides again which rules the budget admits; [`placement`] moves changed routes to
//! their places and names the [`part`]s of the table with other rows; [`dirty`] finds all parts whose Routes may
//! depend on those; [`compile`] compiles these parts; [`patterns`] finds the Routes with other patterns; [`write`]
//! writes the differences. Each module argues why other parts cannot change. The first change ([`first`]) begins with an
//! empty table, and all parts are dirty.
//!
//! Apart from these dependencies, a Route depends on its own rows alone. In rare cases that would need more state, the data
//! plane is [`Stale`] and lowered anew: certificates without room, rows that are never reached, ids that collide, hosts that
//! begin or cease to redirect to HTTPS, and changes of most of the table.

mod admit;
mod compile;
mod dirty;
mod first;
mod part;
mod patterns;
mod placement;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thin_vec::ThinVec;

use self::dirty::read_by;
use self::part::PartKey;
use self::patterns::{ChangedPatterns, HostPatterns};
use self::placement::PlacementIndex;
use self::write::Documents;
use super::budget::Admission;
use super::closure::Closed;
use super::lowering::Lowering;
use super::naming::{Naming, WrittenDocument};
use super::plane::{Plane, RuleRef};
use super::room::Room;
use super::rows::{Placement, RouteInput, ZoneRefusal};
use super::shared::{SharedKey, Uses};
use super::ssl::SslKey;
use super::table::TableKey;
use crate::backends::Target;
use crate::lower::{DataPlane, Size};
use crate::model::{ObjectKey, Problem, Provenance, Refusal};
use crate::pingsix::{self, DocumentKey, LazyDocument};

/// A change would need more state than there is, and the data plane must be lowered anew.
#[derive(Clone, Copy, Debug)]
struct Stale;

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
    pub(crate) routes_written: usize,
    /// Whether the last change lowered everything anew.
    pub(crate) is_lowered_anew: bool,
}

/// The state for rewriting a written Route.
#[derive(Debug)]
struct WrittenRoute {
    uses: Uses,
    /// Whether it lists other spellings of its hosts.
    has_spellings: bool,
    /// The refusals because of the Route, each rule once.
    refused: ThinVec<(RuleRef, Refusal)>,
    /// Bytes of room that it takes, without its patterns.
    room: usize,
    /// Bytes of room that its patterns take.
    pattern_bytes: usize,
    matcher_entries: usize,
}

/// The intermediate results of a change.
#[derive(Debug)]
struct Work {
    /// The room for the changed part of the table.
    room: Room,
    /// Compiled Routes without their patterns.
    drafts: BTreeMap<Arc<TableKey>, Draft>,
    /// Compiled Routes that are new.
    to_close: BTreeSet<Arc<TableKey>>,
    closed: BTreeMap<Arc<TableKey>, Closed>,
    patterns: ChangedPatterns,
    /// Shared documents with more or fewer uses than before.
    used: BTreeSet<SharedKey>,
    /// Routes whose refusals may differ.
    to_judge: BTreeSet<usize>,
    /// The charge of a change without another admission.
    growth: Option<Size>,
    /// New and changed documents.
    documents: Vec<(DocumentKey, LazyDocument)>,
    /// The origins of documents that may be new or changed.
    origins: Vec<(DocumentKey, Provenance)>,
}

/// A Route without its patterns.
type Draft = (DocumentKey, pingsix::Route);

impl Work {
    fn new(room: Room) -> Self {
        Self {
            room,
            drafts: BTreeMap::new(),
            to_close: BTreeSet::new(),
            closed: BTreeMap::new(),
            patterns: ChangedPatterns::new(),
            used: BTreeSet::new(),
            to_judge: BTreeSet::new(),
            growth: None,
            documents: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Adds documents that may be new or changed.
    fn extend(&mut self, documents: impl IntoIterator<Item = WrittenDocument>) {
        for (key, document, origin) in documents {
            self.documents.push((key.clone(), document));
            self.origins.push((key, origin));
        }
    }
}

impl LoweredPlane {
    /// Certificates without room, with their owners.
    pub(crate) fn refused_certificates(&self) -> &[(Arc<ObjectKey>, Refusal)] {
        &self.admission.certificate_refusals
    }

    /// The warnings of namespaces near their shares, and of owners of listeners without guards.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.admission.problems
    }

    /// The documents.
    pub(crate) const fn data_plane(&self) -> &DataPlane {
        &self.documents.data_plane
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
            by_key.values().min_by_key(|refusal| refusal.is_limited()).cloned()
        };
        let rules = rules.filter_map(|(rule, by_key)| Some((*rule, first(by_key)?)));
        let mut rules: Vec<(RuleRef, Refusal)> = rules.collect();
        let placements = self.placed.places(plane, input);
        rules.extend(self.admission.refusals(route, routes, &placements, &plane.key));
        rules.sort_by_key(|(rule, _)| *rule);
        let (mut zones, mut served) = (Vec::new(), BTreeSet::new());
        for Placement { zone, scheme, .. } in placements {
            let listeners = plane.zones[zone].listeners.iter().copied();
            for listener in listeners.filter(|listener| input.is_attached_to(*listener)) {
                match scheme {
                    Ok(_) => {
                        served.insert((route, listener));
                    }
                    Err(cause) => zones.push(ZoneRefusal { route, listener, cause }),
                }
            }
        }
        RouteRefusals { rules, zones, served }
    }

    /// Changes the data plane into the result of lowering it anew. Returns the routes whose refusals may differ.
    ///
    /// The zones of the data plane are those of the last time; its certificates have changed by
    /// [`change_certificates`](Self::change_certificates).
    pub(crate) fn change(&mut self, lowering: &Lowering<'_>, changed: LoweringDiff<'_>) -> BTreeSet<usize> {
        (self.routes_written, self.is_lowered_anew) = (0, false);
        self.change_parts(lowering, changed).unwrap_or_else(|Stale| {
            *self = Self::new(lowering);
            self.is_lowered_anew = true;
            let all = lowering.routes.iter().enumerate().filter(|(_, input)| input.is_there());
            all.map(|(route, _)| route).chain(changed.routes.keys().copied()).collect()
        })
    }

    /// Changes the parts with other rows than before. After [`Stale`], the data plane is unusable.
    fn change_parts(
        &mut self,
        lowering: &Lowering<'_>,
        changed: LoweringDiff<'_>,
    ) -> Result<BTreeSet<usize>, Stale> {
        // Of changed certificates, others may have room than before.
        let is_recertified = self.is_recertified && !self.admission.certificate_refusals.is_empty();
        if is_recertified || self.naming.ids.collided() {
            return Err(Stale);
        }
        let Lowering { plane, options, .. } = *lowering;
        let mut work = Work::new(Room::of(options.budget));
        work.to_judge.extend(changed.routes.keys());
        let before = self.data_plane().size;
        let mut parts = self.placed.change(lowering, changed.routes)?;
        self.admit(lowering, changed, &mut parts, &mut work)?;
        for (zone, dirty) in &self.placed.dirty(plane, parts)? {
            let read = read_by(dirty, plane.zones[*zone].hostname.as_ref());
            let compiled = self.compile(lowering, (*zone, false), dirty, &read, &mut work.room)?;
            if !compiled.unreached.is_empty() {
                return Err(Stale);
            }
            self.replace(lowering, *zone, dirty, compiled, &mut work);
        }
        self.close(&mut work)?;
        self.write(&mut work)?;
        let backends = changed.backends.iter().map(|index| SharedKey::Upstream(Target::Backend(*index)));
        work.used.extend(backends.chain(self.naming.services_of(changed.policies).cloned()));
        self.write_shared(lowering, &mut work);
        self.documents.put_all(std::mem::take(&mut work.documents), std::mem::take(&mut work.origins));
        let size @ Size { bytes, matcher_entries } = self.data_plane().size;
        let budget = options.budget;
        let fits = size.fits(budget) && self.room <= budget.bytes;
        if !fits || self.naming.ids.collided() || bytes == usize::MAX || matcher_entries == usize::MAX {
            return Err(Stale);
        }
        self.update_charge(lowering, before, &work)?;
        Ok(work.to_judge)
    }
}
