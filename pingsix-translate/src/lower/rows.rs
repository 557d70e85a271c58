//! Which rows each zone of a data plane holds, and which routes cannot be served there alone.

use std::collections::{BTreeMap, BTreeSet};

use super::plane::{EVERY_PORT, Plane, RuleRef, ZoneListeners};
use super::redirect::{is_to_https, to_https};
use super::table::{Audience, Row, Zone};
use crate::attach::{Attachment, Hostname, Protocol, ServedName, attached_listeners, served_names};
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
        let listeners = attached_listeners(&parents).collect();
        Self { route, rules, parents, listeners }
    }

    /// A route that every data plane of the translation serves.
    pub(crate) fn everywhere(route: Route, rules: Vec<ResolvedRule>) -> Self {
        Self { route, rules, parents: Vec::new(), listeners: BTreeSet::from([EVERY_PORT]) }
    }

    /// The listeners the route is attached to, through whichever parentRef.
    pub(super) fn listeners(&self) -> impl Iterator<Item = usize> + '_ {
        self.listeners.iter().copied()
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneRefusalCause {
    /// Another listener serves the same hosts on another port, and the route is not attached to it.
    NotAttached { other: usize },
    /// As [`NotAttached`](Self::NotAttached), but it redirects to HTTPS, which is possible for named hosts.
    UnnamedRedirect,
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
    /// Whom it is served to, or why it is not.
    audience: Result<Audience, ZoneRefusalCause>,
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
                    let audience = audience(members, input, &names);
                    by_zone[zone].push(NamedRoute { route, names, audience });
                }
            }
        }
        for (members, named) in plane.zones.iter().zip(&mut by_zone) {
            serve_over_tls(members, named, routes);
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
            .is_ok_and(|position| named[position].audience.is_err())
    }

    /// Routes that cannot be served in a zone without being served where they are not attached.
    pub(crate) fn refused(&self) -> Vec<ZoneRefusal> {
        self.attached()
            .filter_map(|(named, listener)| {
                Some(ZoneRefusal { route: named.route, listener, cause: named.audience.err()? })
            })
            .collect()
    }

    /// Routes and listeners that serve them for at least some hosts: index of the route, listener.
    pub(crate) fn served(&self) -> BTreeSet<(usize, usize)> {
        self.attached()
            .filter(|(named, _)| named.audience.is_ok())
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
        for NamedRoute { route, names, audience } in &self.zones[zone] {
            let audience = audience.unwrap_or(Audience::Everybody);
            for name in names {
                groups
                    .entry(name.original.clone())
                    .or_default()
                    .extend(self.rows(*route, audience, admitted));
            }
        }
        Zone { hostname: members.hostname.clone(), guarded: members.guarded, groups }
    }

    fn rows<'s>(
        &'s self,
        position: usize,
        audience: Audience,
        admitted: Option<&'s BTreeSet<RuleRef>>,
    ) -> impl Iterator<Item = Row<'a>> + 's {
        let route = &self.routes[position].route;
        let part = route.part;
        route.rules.iter().enumerate().flat_map(move |(rule, content)| {
            let reference = RuleRef { route: position, rule };
            let admitted = admitted.is_none_or(|admitted| admitted.contains(&reference));
            content.matches.iter().filter(move |_| admitted).map(move |matched| Row {
                rule: reference,
                route: &route.key,
                age: route.age,
                section: part.section(content, matched),
                path: &matched.path,
                method: matched.method,
                conditions: &matched.conditions,
                audience,
            })
        })
    }
}

/// Whom a route with these names is served to, or why it cannot be served in a zone alone.
fn audience(
    zone: &ZoneListeners,
    input: &RouteInput,
    names: &[ServedName],
) -> Result<Audience, ZoneRefusalCause> {
    match zone.listeners.iter().find(|listener| !input.listeners.contains(listener)) {
        None => match zone.exposed_on {
            None => Ok(Audience::Everybody),
            Some(port) => Err(ZoneRefusalCause::Exposed { port }),
        },
        Some(_)
            if zone.is_attached_by(Protocol::Http, &input.listeners) && redirects_to_https(input, names) =>
        {
            Ok(Audience::Plaintext)
        }
        Some(_)
            if zone.is_attached_by(Protocol::Http, &input.listeners) && only_redirects_to_https(input) =>
        {
            Err(ZoneRefusalCause::UnnamedRedirect)
        }
        Some(&other) => Err(ZoneRefusalCause::NotAttached { other }),
    }
}

/// Where requests in plaintext are sent to HTTPS, routes attached to the HTTPS listeners alone can be served.
fn serve_over_tls(zone: &ZoneListeners, named: &mut [NamedRoute], routes: &[RouteInput]) {
    if !named.iter().any(|named| named.audience == Ok(Audience::Plaintext)) {
        return;
    }
    for named in named.iter_mut().filter(|named| named.audience.is_err()) {
        if zone.is_attached_by(Protocol::Https, &routes[named.route].listeners) {
            named.audience = Ok(Audience::Tls);
        }
    }
}

/// Whether every rule of a route sends requests in plaintext to HTTPS in a way that PingSIX has for whole Routes.
fn redirects_to_https(input: &RouteInput, names: &[ServedName]) -> bool {
    input.route.rules.iter().zip(&input.rules).all(|(rule, resolved)| {
        let Some(filters) = rule.filters.as_deref().filter(|_| resolved.action.is_filtered()) else {
            return false;
        };
        let alone = filters.cors.is_none() && filters.response_headers.is_empty();
        let unconditional = rule.matches.iter().all(|matched| matched.conditions.is_empty());
        let redirects = |name: &ServedName| {
            filters
                .redirect
                .as_ref()
                .is_some_and(|redirect| to_https(redirect, name.served.as_ref()).is_some())
        };
        alone && unconditional && names.iter().all(redirects)
    })
}

/// Whether that is what a route is for, possible or not.
fn only_redirects_to_https(input: &RouteInput) -> bool {
    input.route.rules.iter().all(|rule| {
        let redirect = rule.filters.as_deref().and_then(|filters| filters.redirect.as_ref());
        redirect.is_some_and(is_to_https)
    })
}

/// The longest of the zones' hostnames that covers a name; none is the zone of every host.
pub(super) fn most_specific(hostnames: &BTreeSet<&Hostname>, name: Option<&Hostname>) -> Option<Hostname> {
    let name = name?;
    if hostnames.contains(name) {
        return Some(name.clone());
    }
    name.wider().find(|wider| hostnames.contains(wider))
}

#[cfg(test)]
mod tests;
