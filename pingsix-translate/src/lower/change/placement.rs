//! The places of routes, and the parts with other rows when routes change.
//!
//! The rows of a route depend on the route and the zones, with one exception: a route that redirects plaintext
//! requests of a zone to HTTPS restricts the audience of other routes. When the zone begins or ceases to redirect, or
//! to have rows that are not for everybody, the data plane is stale. Otherwise only parts with rows of a changed
//! route have other rows.

use std::collections::{BTreeMap, BTreeSet};

use super::part::{PartKey, Parts, ZoneCounts, part_key, segments};
use super::{RouteChange, Stale};
use crate::lower::lowering::Lowering;
use crate::lower::plane::Plane;
use crate::lower::rows::{Placement, Placer, Places, RouteInput, ZoneRefusalCause, serve_over_tls};
use crate::lower::table::RequestScheme;

/// The routes of a data plane in their places.
///
/// Places are not stored; [`places`](Self::places) finds them again.
#[derive(Debug)]
pub(super) struct PlacementIndex {
    placer: Placer,
    pub(super) parts: Parts,
    /// By zone.
    pub(super) zones: Vec<ZoneCounts>,
}

impl PlacementIndex {
    /// No routes.
    pub(super) fn new(plane: &Plane) -> Self {
        let zones = plane.zones.iter().map(|_| ZoneCounts::default()).collect();
        Self { placer: Placer::new(plane), parts: Parts::default(), zones }
    }

    /// Adds all routes to an empty index.
    pub(super) fn fill(&mut self, lowering: &Lowering<'_>, places: Places) {
        for (route, places) in places {
            for placement in &places {
                self.add(route, &lowering.routes[route], placement, |_| {});
            }
        }
        self.parts.pack();
    }

    /// The places of all routes.
    pub(super) fn all(&self, lowering: &Lowering<'_>) -> Places {
        self.placer.place_all(lowering.plane, lowering.routes)
    }

    /// The places of a route.
    pub(super) fn places(&self, plane: &Plane, input: &RouteInput) -> Vec<Placement> {
        self.places_if(plane, input, |zone| self.zones[zone].is_redirecting())
    }

    /// The requests of a zone that a route with rows there gets, or the reason for none.
    pub(super) fn scheme_in(
        &self,
        zone: usize,
        plane: &Plane,
        input: &RouteInput,
    ) -> Option<Result<RequestScheme, ZoneRefusalCause>> {
        let mut placement = self.placer.place_in(zone, plane, input)?;
        if self.zones[zone].is_redirecting() {
            serve_over_tls(&plane.zones[zone], &mut placement, input);
        }
        Some(placement.scheme)
    }

    /// The places of a route in zones that redirect to HTTPS, or do not.
    fn places_if(
        &self,
        plane: &Plane,
        input: &RouteInput,
        is_redirecting: impl Fn(usize) -> bool,
    ) -> Vec<Placement> {
        let mut places = self.placer.place(plane, input);
        for placement in places.iter_mut().filter(|placement| is_redirecting(placement.zone)) {
            serve_over_tls(&plane.zones[placement.zone], placement, input);
        }
        places
    }

    /// Adds a route to a place, and names the parts with its rows.
    fn add(
        &mut self,
        route: usize,
        input: &RouteInput,
        placement: &Placement,
        mut tell: impl FnMut(PartKey),
    ) {
        self.zones[placement.zone].count(input, placement);
        for part in parts_of(input, placement) {
            self.parts.make(part.clone()).routes.insert(route);
            tell(part);
        }
    }

    /// Removes a route from a place, and names the parts that had its rows. An empty part remains until it is
    /// compiled.
    fn remove(
        &mut self,
        route: usize,
        input: &RouteInput,
        placement: &Placement,
        mut tell: impl FnMut(PartKey),
    ) {
        self.zones[placement.zone].discount(input, placement);
        for key in parts_of(input, placement) {
            if let Some(part) = self.parts.get_mut(&key) {
                part.routes.remove(&route);
                tell(key);
            }
        }
    }

    /// Moves the changed routes to their places. Returns the parts with other rows than before.
    pub(super) fn change(
        &mut self,
        lowering: &Lowering<'_>,
        routes: &BTreeMap<usize, RouteChange>,
    ) -> Result<BTreeSet<PartKey>, Stale> {
        let plane = lowering.plane;
        let mut parts = BTreeSet::new();
        // By zone: whether it redirected and was divided.
        let was: Vec<(bool, bool)> = self.redirecting_and_divided();
        for (&route, change) in routes {
            if let Some(before) = &change.before {
                for placement in self.places_if(plane, before, |zone| was[zone].0) {
                    self.remove(route, before, &placement, |part| {
                        parts.insert(part);
                    });
                }
            }
            if change.is_there {
                let input = &lowering.routes[route];
                for placement in self.places_if(plane, input, |zone| was[zone].0) {
                    self.add(route, input, &placement, |part| {
                        parts.insert(part);
                    });
                }
            }
        }
        if self.redirecting_and_divided() == was { Ok(parts) } else { Err(Stale) }
    }

    fn redirecting_and_divided(&self) -> Vec<(bool, bool)> {
        self.zones.iter().map(|zone| (zone.is_redirecting(), zone.is_divided())).collect()
    }
}

/// The parts with rows of a route in a place.
pub(super) fn parts_of<'p>(
    input: &'p RouteInput,
    placement: &'p Placement,
) -> impl Iterator<Item = PartKey> + 'p {
    let segments = segments(input);
    placement.names.iter().flat_map(move |name| {
        let key = |segment: &&str| part_key(placement.zone, name.original.as_ref(), segment);
        segments.iter().map(key).collect::<Vec<_>>()
    })
}
