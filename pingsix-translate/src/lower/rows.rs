//! Which rows each zone of a data plane holds, and which routes cannot be served there alone.

use std::collections::{BTreeMap, BTreeSet};

use super::plane::{Plane, RuleRef, ZoneListeners};
use super::table::{Row, Zone};
use crate::attach::{Attachment, Hostname, ServedName, served_names};
use crate::resolve::ResolvedRule;
use crate::route::Route;

/// A route with what the earlier stages found out about it.
#[derive(Debug)]
pub(crate) struct RouteInput {
    pub(crate) route: Route,
    /// One per rule of the route.
    pub(crate) rules: Vec<ResolvedRule>,
    /// One per parentRef that is ours.
    pub(crate) parents: Vec<Attachment>,
    /// Listeners attached to through any of them.
    listeners: BTreeSet<usize>,
}

impl RouteInput {
    pub(crate) fn new(route: Route, rules: Vec<ResolvedRule>, parents: Vec<Attachment>) -> Self {
        let listeners =
            parents.iter().filter_map(|parent| parent.outcome.as_ref().ok()).flatten().copied().collect();
        Self { route, rules, parents, listeners }
    }

    /// Whether the route is attached to a listener, through whichever parentRef.
    pub(crate) fn is_attached_to(&self, listener: usize) -> bool {
        self.listeners.contains(&listener)
    }
}

/// A route that a data plane cannot serve on one listener alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneRefusal {
    /// Index of the route.
    pub(crate) route: usize,
    /// The listener it is attached to.
    pub(crate) listener: usize,
    pub(crate) cause: ZoneRefusalCause,
}

/// Why: PingSIX serves every host on every port of the data plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ZoneRefusalCause {
    /// Another listener serves the same hosts on another port, and the route is not attached to it.
    NotAttached { other: usize },
    /// All listeners of these hosts speak HTTPS, but the data plane also has a plaintext port.
    Exposed { port: u16 },
}

/// The zones of a data plane, each with the routes that have a name there.
#[derive(Debug)]
pub(crate) struct PlaneRows<'a> {
    plane: &'a Plane,
    routes: &'a [RouteInput],
    /// By zone.
    zones: Vec<Vec<NamedRoute>>,
}

/// A route in a zone.
#[derive(Debug)]
struct NamedRoute {
    /// Index of the route.
    route: usize,
    /// Its names there, at least one.
    names: Vec<ServedName>,
    refused: Option<ZoneRefusalCause>,
}

impl<'a> PlaneRows<'a> {
    pub(crate) fn new(plane: &'a Plane, routes: &'a [RouteInput]) -> Self {
        let mut zones_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (zone, members) in plane.zones.iter().enumerate().filter(|(_, members)| members.is_served) {
            for &listener in &members.listeners {
                zones_of.entry(listener).or_default().push(zone);
            }
        }
        let hostnames: BTreeSet<&Hostname> =
            plane.zones.iter().filter_map(|zone| zone.hostname.as_ref()).collect();
        let mut by_zone: Vec<Vec<NamedRoute>> = plane.zones.iter().map(|_| Vec::new()).collect();
        for (route, input) in routes.iter().enumerate() {
            let zones: BTreeSet<usize> = input
                .listeners
                .iter()
                .filter_map(|listener| zones_of.get(listener))
                .flatten()
                .copied()
                .collect();
            for zone in zones {
                let members = &plane.zones[zone];
                let own = members.hostname.as_ref();
                let mut names = served_names(&input.route.hostnames, own);
                // Every host of the others belongs to a narrower zone.
                names.retain(|name| most_specific(&hostnames, name.served.as_ref()).as_ref() == own);
                if !names.is_empty() {
                    by_zone[zone].push(NamedRoute { route, names, refused: refuse(members, input) });
                }
            }
        }
        Self { plane, routes, zones: by_zone }
    }

    /// Index of every route that has a name somewhere.
    pub(crate) fn routes(&self) -> BTreeSet<usize> {
        self.zones.iter().flatten().map(|named| named.route).collect()
    }

    /// Whether a route is refused in a zone, so that its rules answer 500 there.
    pub(crate) fn is_refused(&self, zone: usize, route: usize) -> bool {
        let named = &self.zones[zone];
        named
            .binary_search_by_key(&route, |named| named.route)
            .is_ok_and(|position| named[position].refused.is_some())
    }

    /// Routes that cannot be served in a zone without being served where they are not attached.
    pub(crate) fn refused(&self) -> Vec<ZoneRefusal> {
        self.attached()
            .filter_map(|(named, listener)| {
                Some(ZoneRefusal { route: named.route, listener, cause: named.refused? })
            })
            .collect()
    }

    /// Routes and listeners that serve them for at least some hosts: index of the route, listener.
    pub(crate) fn served(&self) -> BTreeSet<(usize, usize)> {
        self.attached()
            .filter(|(named, _)| named.refused.is_none())
            .map(|(named, listener)| (named.route, listener))
            .collect()
    }

    /// Every route in every zone, with each listener of the zone it is attached to.
    fn attached(&self) -> impl Iterator<Item = (&NamedRoute, usize)> {
        self.plane.zones.iter().zip(&self.zones).flat_map(move |(zone, named)| {
            named.iter().flat_map(move |named| {
                let attached = &self.routes[named.route].listeners;
                zone.listeners
                    .iter()
                    .filter(move |listener| attached.contains(listener))
                    .map(move |&listener| (named, listener))
            })
        })
    }

    /// The rows of a zone: those of the admitted rules, or all.
    pub(crate) fn zone(&self, zone: usize, admitted: Option<&BTreeSet<RuleRef>>) -> Zone<'a> {
        let members = &self.plane.zones[zone];
        let mut groups: BTreeMap<Option<Hostname>, Vec<Row<'a>>> = BTreeMap::new();
        for NamedRoute { route, names, .. } in &self.zones[zone] {
            for name in names {
                groups.entry(name.original.clone()).or_default().extend(self.rows(*route, admitted));
            }
        }
        Zone { hostname: members.hostname.clone(), guarded: members.guarded, groups }
    }

    fn rows<'s>(
        &'s self,
        position: usize,
        admitted: Option<&'s BTreeSet<RuleRef>>,
    ) -> impl Iterator<Item = Row<'a>> + 's {
        let route = &self.routes[position].route;
        route.rules.iter().enumerate().flat_map(move |(rule, content)| {
            let reference = RuleRef { route: position, rule };
            let admitted = admitted.is_none_or(|admitted| admitted.contains(&reference));
            content.matches.iter().filter(move |_| admitted).map(move |matched| Row {
                rule: reference,
                route: &route.key,
                age: route.age,
                rule_index: content.index,
                match_index: matched.index,
                path: &matched.path,
                method: matched.method,
                conditions: &matched.conditions,
            })
        })
    }
}

/// Why a route cannot be served in a zone it has a name in.
fn refuse(zone: &ZoneListeners, input: &RouteInput) -> Option<ZoneRefusalCause> {
    match zone.listeners.iter().find(|listener| !input.listeners.contains(listener)) {
        Some(&other) => Some(ZoneRefusalCause::NotAttached { other }),
        None => zone.exposed_on.map(|port| ZoneRefusalCause::Exposed { port }),
    }
}

/// The longest of the zones' hostnames that covers a name; none is the zone of every host.
pub(super) fn most_specific(hostnames: &BTreeSet<&Hostname>, name: Option<&Hostname>) -> Option<Hostname> {
    let name = name?;
    if hostnames.contains(name) {
        return Some(name.clone());
    }
    name.wider().find(|wider| hostnames.contains(wider))
}
