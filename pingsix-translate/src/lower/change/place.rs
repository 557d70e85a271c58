//! The places of routes, and the parts with other rows when routes change.
//!
//! Where a route has rows is up to the route and the zones, but for one thing: whether some route of a zone redirects
//! requests in plaintext to HTTPS decides whom others may be served to. When that changes, or whether there are rows that
//! are not for everybody, the data plane is stale. So only parts that a changed route has or had rows in have other rows.

use std::collections::{BTreeMap, BTreeSet};

use super::part::{ZoneParts, part_key, segments};
use super::{RouteChange, Stale};
use crate::lower::document::{Lowering, PartKey};
use crate::lower::plane::Plane;
use crate::lower::rows::{Placement, Placer, RouteInput, serve_over_tls};

/// The routes of a data plane in their places.
#[derive(Debug)]
pub(super) struct Placed {
    placer: Placer,
    by_route: Vec<Vec<Placement>>,
    pub(super) zones: Vec<ZoneParts>,
}

impl Placed {
    /// No routes.
    pub(super) fn new(plane: &Plane) -> Self {
        let zones = plane.zones.iter().map(|_| ZoneParts::default()).collect();
        Self { placer: Placer::new(plane), by_route: Vec::new(), zones }
    }

    /// The places of a route.
    pub(super) fn of(&self, route: usize) -> &[Placement] {
        self.by_route.get(route).map(Vec::as_slice).unwrap_or_default()
    }

    /// Puts a route in a place, and tells which parts have rows of it.
    pub(super) fn add(
        &mut self,
        route: usize,
        input: &RouteInput,
        placement: Placement,
        mut tell: impl FnMut(PartKey),
    ) {
        let zone = &mut self.zones[placement.zone];
        zone.count(input, &placement);
        let segments = segments(input);
        for name in &placement.names {
            let group = zone.groups.entry(name.original.clone()).or_default();
            for segment in &segments {
                group.entry((*segment).into()).or_default().routes.insert(route);
                tell(part_key(placement.zone, name.original.as_ref(), segment));
            }
        }
        if self.by_route.len() <= route {
            self.by_route.resize_with(route + 1, Vec::new);
        }
        self.by_route[route].push(placement);
    }

    /// Takes a route out of all its places, and tells which parts had rows of it. A part that is empty then stays until
    /// it is compiled.
    fn remove(&mut self, route: usize, input: &RouteInput, mut tell: impl FnMut(PartKey)) {
        let Some(placements) = self.by_route.get_mut(route) else { return };
        let segments = segments(input);
        for placement in std::mem::take(placements) {
            let zone = &mut self.zones[placement.zone];
            zone.discount(input, &placement);
            for name in &placement.names {
                let Some(group) = zone.groups.get_mut(&name.original) else { continue };
                for segment in &segments {
                    if let Some(part) = group.get_mut(*segment) {
                        part.routes.remove(&route);
                        tell(part_key(placement.zone, name.original.as_ref(), segment));
                    }
                }
            }
        }
    }

    /// Moves the changed routes to their places. Returns the parts with other rows than before.
    pub(super) fn change(
        &mut self,
        lowering: &Lowering<'_>,
        routes: &BTreeMap<usize, RouteChange>,
    ) -> Result<BTreeSet<PartKey>, Stale> {
        let mut parts = BTreeSet::new();
        // By zone: whether it redirected, and was divided.
        let mut was: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
        for (&route, change) in routes {
            let input = &lowering.routes[route];
            let after = if change.is_there { self.placer.place(lowering.plane, input) } else { Vec::new() };
            for placement in self.of(route).iter().chain(&after) {
                let zone = &self.zones[placement.zone];
                was.entry(placement.zone).or_insert_with(|| (zone.is_redirecting(), zone.is_divided()));
            }
            if let Some(before) = &change.before {
                self.remove(route, before, |part| {
                    parts.insert(part);
                });
            }
            for mut placement in after {
                if was.get(&placement.zone).is_some_and(|(redirecting, _)| *redirecting) {
                    serve_over_tls(&lowering.plane.zones[placement.zone], &mut placement, input);
                }
                self.add(route, input, placement, |part| {
                    parts.insert(part);
                });
            }
        }
        let is = |zone: usize| (self.zones[zone].is_redirecting(), self.zones[zone].is_divided());
        if was.into_iter().any(|(zone, was)| is(zone) != was) { Err(Stale) } else { Ok(parts) }
    }
}
