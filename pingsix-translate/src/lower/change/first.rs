//! Lowers a data plane without a former one.

use std::collections::{BTreeMap, BTreeSet};

use super::dirty::{Dirty, DirtyGroups};
use super::part::PartKey;
use super::patterns::{HostPatterns, close_together};
use super::placement::PlacementIndex;
use super::write::Documents;
use super::{LoweredPlane, Stale, Work};
use crate::lower::budget::{Admission, admit};
use crate::lower::lowering::Lowering;
use crate::lower::naming::{Naming, telemetry};
use crate::lower::room::Room;
use crate::lower::shared::SharedKey;
use crate::lower::ssl::ServedCertificates;
use crate::lower::table::TableKey;
use crate::model::Budget;
use crate::packed::pack;

/// Limit of attempts with a smaller budget.
const MAX_SMALLER_BUDGETS: usize = 4;

impl LoweredPlane {
    /// Lowers everything attached to the listeners of a data plane. When the budget does not suffice, objects are admitted
    /// oldest first, and the others are refused.
    ///
    /// The charge is an upper bound of the size. If the bound fails nevertheless, a smaller budget is tried until the
    /// documents fit.
    pub(crate) fn new(lowering: &Lowering<'_>) -> Self {
        let budget = lowering.options.budget;
        let mut smaller = budget;
        for _ in 0..MAX_SMALLER_BUDGETS {
            let mut lowered = Self::empty(lowering);
            let filled = lowered.fill(lowering, smaller, Room::of(budget));
            if filled.is_ok() && lowered.data_plane().size.fits(budget) {
                return lowered;
            }
            let is_guarded = lowering.plane.zones.iter().any(|zone| zone.guarded);
            debug_assert!(is_guarded, "documents take more than they are charged");
            smaller.bytes -= smaller.bytes / 4;
            smaller.matcher_entries -= smaller.matcher_entries / 4;
        }
        let mut lowered = Self::empty(lowering);
        let filled = lowered.fill(lowering, Budget { bytes: 0, matcher_entries: 0 }, Room::unlimited());
        debug_assert!(filled.is_ok(), "the room has no limit");
        lowered
    }

    /// Without documents.
    fn empty(lowering: &Lowering<'_>) -> Self {
        Self {
            documents: Documents::new(lowering),
            placed: PlacementIndex::new(lowering.plane),
            table: BTreeMap::new(),
            patterns: HostPatterns::default(),
            unreached: BTreeSet::new(),
            naming: Naming::default(),
            certificates: BTreeMap::new(),
            refused: BTreeMap::new(),
            room: 0,
            admission: Admission::default(),
            is_recertified: false,
            routes_written: 0,
            is_lowered_anew: false,
        }
    }

    /// Fills an empty data plane with the rules and certificates that a budget admits. [`Stale`] if the documents cannot fit
    /// the room; a result may exceed the room slightly.
    fn fill(&mut self, lowering: &Lowering<'_>, budget: Budget, room: Room) -> Result<(), Stale> {
        let mut work = Work::new(room);
        let places = self.placed.all(lowering);
        self.admission = admit(lowering, &places, budget);
        self.placed.fill(lowering, places);
        let mut compiled = Vec::with_capacity(lowering.plane.zones.len());
        for (zone, members) in lowering.plane.zones.iter().enumerate() {
            let groups = self.placed.parts.groups(zone).chain(self.admission.guarded(zone));
            let all: DirtyGroups = groups.map(|group| (group.clone(), Dirty::All)).collect();
            let is_guarded = members.guarded && self.admission.guards_zone(zone);
            let of_zone = self.compile(lowering, (zone, is_guarded), &all, &all, &mut work.room)?;
            self.unreached.extend(of_zone.unreached.iter().map(|(group, path)| PartKey {
                zone,
                original: of_zone.groups[*group].0.clone(),
                segment: path.first_segment().into(),
            }));
            compiled.push((zone, of_zone));
        }
        let keys = || compiled.iter().flat_map(|(_, of_zone)| &of_zone.routes).map(|route| &route.key);
        let closed = close_together(keys(), &mut work.room)?;
        work.documents.reserve_exact(closed.len());
        work.origins.reserve_exact(closed.len());
        let mut closed = closed.into_iter();
        for (zone, of_zone) in compiled {
            for route in of_zone.routes {
                self.put(lowering, zone, &of_zone.groups, &route, &mut work);
                let closed = closed.next();
                if self.may_share(&route.key) {
                    // Later Routes decide whether its filters have a service.
                    work.closed.extend(closed.map(|closed| (route.key.clone(), closed)));
                } else {
                    let draft = work.drafts.remove(&route.key);
                    self.write_route(&route.key, draft, closed, &mut work)?;
                }
            }
        }
        self.write(&mut work)?;
        work.extend(self.written_certificates(&ServedCertificates::default(), &lowering.plane.certificates));
        work.extend(telemetry(lowering.plane));
        self.write_shared(lowering, &mut work);
        self.documents.put_all(work.documents, work.origins);
        self.documents.data_plane.charged_ratio = self.admission.charged_ratio();
        self.routes_written = 0;
        self.patterns = HostPatterns::new(self.table.keys());
        self.pack();
        Ok(())
    }

    /// Whether a Route has filters that do not have a service yet.
    fn may_share(&self, key: &TableKey) -> bool {
        let uses = self.table.get(key).into_iter().flat_map(|route| &route.uses);
        uses.into_iter().any(|shared| matches!(shared, SharedKey::Filters(_)) && !self.naming.exists(shared))
    }

    /// Frees unused capacity.
    fn pack(&mut self) {
        pack(&mut self.table);
        self.placed.parts.pack();
        self.naming.pack();
    }
}
