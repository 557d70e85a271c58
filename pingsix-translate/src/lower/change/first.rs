//! Lowers a data plane without a former one, and builds the indexes for its changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::part::{PartKey, part_key, segment};
use super::patterns::HostPatterns;
use super::placement::PlacementIndex;
use super::write::Documents;
use super::{LoweredPlane, WrittenRoute};
use crate::lower::budget::{Admission, admit};
use crate::lower::closure::{Matched, close};
use crate::lower::document::{RouteDraft, name_of_route};
use crate::lower::lowering::Lowering;
use crate::lower::naming::{Naming, WrittenDocument, telemetry};
use crate::lower::plane::Plane;
use crate::lower::room::Room;
use crate::lower::rows::{PlaneRows, RouteInput};
use crate::lower::ssl::ServedCertificate;
use crate::lower::table::compile_zone;
use crate::model::Budget;
use crate::packed::pack;
use crate::pingsix::validate::encode;
use crate::pingsix::{Document, DocumentKey, ResourceKind};

/// Limit of attempts with a smaller budget.
const MAX_SMALLER_BUDGETS: usize = 4;

impl LoweredPlane {
    /// Lowers everything attached to the listeners of a data plane. When the budget does not suffice, objects are admitted
    /// oldest first, and the others are refused.
    ///
    /// The charge is an upper bound of the size. If the bound fails nevertheless, a smaller budget is tried until the
    /// documents fit.
    pub(crate) fn new(lowering: &Lowering<'_>) -> Self {
        let rows = PlaneRows::new(lowering.plane, lowering.routes);
        let budget = lowering.options.budget;
        let mut smaller = budget;
        for _ in 0..MAX_SMALLER_BUDGETS {
            let admission = admit(lowering, &rows, smaller);
            let mut room = Room::of(budget);
            let plane = Self::of_admitted(lowering, &rows, admission, &mut room);
            if let Some(plane) = plane.filter(|plane| plane.data_plane().size.fits(budget)) {
                return plane;
            }
            let is_guarded = lowering.plane.zones.iter().any(|zone| zone.guarded);
            debug_assert!(is_guarded, "documents take more than they are charged");
            smaller.bytes -= smaller.bytes / 4;
            smaller.matcher_entries -= smaller.matcher_entries / 4;
        }
        let admission = admit(lowering, &rows, Budget { bytes: 0, matcher_entries: 0 });
        let plane = Self::of_admitted(lowering, &rows, admission.clone(), &mut Room::unlimited());
        plane.unwrap_or_else(|| Self::empty(lowering, admission))
    }

    /// Without documents.
    fn empty(lowering: &Lowering<'_>, admission: Admission) -> Self {
        Self {
            documents: Documents::new(lowering),
            placed: PlacementIndex::new(lowering.plane),
            written: None,
            table: BTreeMap::new(),
            patterns: HostPatterns::default(),
            unreached: BTreeSet::new(),
            naming: Naming::default(),
            certificates: BTreeMap::new(),
            refused: BTreeMap::new(),
            room: 0,
            admission,
            is_recertified: false,
            routes_written: 0,
            is_lowered_anew: false,
        }
    }

    /// Lowers the admitted rules and certificates. `None` when the documents cannot fit the room; a result may exceed the
    /// room slightly.
    fn of_admitted<'a>(
        lowering: &Lowering<'a>,
        rows: &PlaneRows<'a>,
        admission: Admission,
        room: &mut Room,
    ) -> Option<Self> {
        let mut lowered = Self::empty(lowering, admission);
        let (mut zones, mut table) = (Vec::new(), Vec::new());
        for zone in 0..lowering.plane.zones.len() {
            let compiled = compile_zone(lowered.admission.zone(rows, zone), None, room)?;
            lowered.unreached.extend(compiled.unreached.iter().map(|(group, path)| PartKey {
                zone,
                original: compiled.groups[*group].0.clone(),
                segment: path.first_segment().into(),
            }));
            table.extend(compiled.routes.into_iter().map(|route| (zone, route)));
            zones.push(compiled.groups);
        }
        let matched: Vec<Matched<'_>> = table.iter().map(|(_, route)| Matched::by(route)).collect();
        let closed = close(&matched, room)?;
        for (route, placement) in rows.placements() {
            lowered.placed.zones[placement.zone].count(&lowering.routes[*route], placement);
        }
        let mut documents: Vec<WrittenDocument> = Vec::with_capacity(table.len());
        let mut written = Vec::with_capacity(table.len());
        let mut used = BTreeSet::new();
        for ((zone, route), closed) in table.into_iter().zip(closed) {
            let RouteDraft { mut document, origin, uses, service, has_spellings, refused } =
                lowering.draft(&route, zone, &zones[zone], &mut lowered.naming);
            let closed = if has_spellings { closed.with_spellings() } else { closed };
            let room = route.room(&zones[zone]);
            let (pattern_bytes, matcher_entries) = (closed.bytes(), closed.matcher_entries());
            closed.into_patterns().put_into(&mut document);
            let id = lowered.naming.ids.assign(&name_of_route(&route.key));
            let key = DocumentKey { kind: ResourceKind::Route, id };
            let document = encode(&key, &Document::Route(document));
            documents.push((key, document, origin));
            lowered.documents.replace_matcher_entries(0, matcher_entries);
            used.extend(uses.iter().copied());
            for (rule, refusal) in &refused {
                lowered.refused.entry(*rule).or_default().insert(route.key.clone(), refusal.clone());
            }
            let route_written =
                WrittenRoute { uses, service, has_spellings, refused, room, pattern_bytes, matcher_entries };
            written.push((zone, route.key, route_written));
        }
        let is_shown = |served: &ServedCertificate| lowered.admission.shows(&served.name);
        for (certificate, document) in lowering.plane.certificates.documents(is_shown) {
            let written = lowered.naming.certificate(&mut lowered.certificates, certificate, &document);
            documents.push(written);
        }
        documents.extend(telemetry(lowering.plane));
        documents.extend(used.iter().filter_map(|upstream| lowered.naming.upstream(lowering, upstream)));
        let services = lowered.naming.services.keys();
        documents.extend(services.filter_map(|service| lowered.naming.service(lowering, service)));
        lowered.documents.fill(documents);
        lowered.documents.set_charged_ratio(lowered.admission.charged_ratio());
        lowered.written = Some(written);
        Some(lowered)
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
            if let Some(service) = &route.service {
                self.naming.services.add_use(service);
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
}
