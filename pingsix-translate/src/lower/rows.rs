//! The rows of each zone of a data plane, and the routes that cannot be served there alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plane::{Plane, RuleRef, ZoneListeners};
use super::redirect::{is_to_https, to_https};
use super::table::{Access, RequestScheme, Row, RowState};
use crate::attach::{Attachment, Protocol, ServedName, attached_listeners, served_names};
use crate::backends::ResolvedRule;
#[cfg(doc)]
use crate::infrastructure::INGRESS_PORTS;
use crate::model::{Hostname, hostname_and_wider, hostname_precedence};
use crate::normalise::{Match, Part, Route, Rule, RuleRole};
use crate::policy::{ListenerChains, RuleProtection};
use crate::small_set::SmallSet;

/// A route with the results of the earlier stages.
#[derive(Debug, PartialEq)]
pub(crate) struct RouteInput {
    pub(crate) route: Route,
    /// One per rule of the route.
    pub(crate) rules: Box<[ResolvedRule]>,
    /// Most routes of a Gateway have the same.
    pub(crate) attached: Arc<Attachments>,
    is_gone: bool,
}

/// The attachments of a route.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attachments {
    /// One per parentRef that is ours.
    pub(crate) parents: Box<[Attachment]>,
    /// Listeners attached to through any of them.
    listeners: SmallSet<usize>,
}

impl Attachments {
    pub(crate) fn new(parents: Vec<Attachment>) -> Self {
        let listeners = attached_listeners(&parents).collect();
        Self { parents: parents.into(), listeners }
    }

    /// The listeners attached to, through whichever parentRef.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = usize> + '_ {
        self.listeners.iter().copied()
    }

    /// Attachments to ports of an IngressClass, by their indices in [`INGRESS_PORTS`].
    pub(crate) fn to_ports(ports: impl IntoIterator<Item = usize>) -> Self {
        Self { parents: Box::default(), listeners: ports.into_iter().collect() }
    }
}

impl RouteInput {
    /// A route that is attached, with rules that close the inexpressible paths of its protected rules.
    pub(crate) fn new(route: Route, rules: Box<[ResolvedRule]>, attached: Arc<Attachments>) -> Self {
        let mut input = Self { route, rules, attached, is_gone: false };
        for (content, resolved) in input.route.rules.iter().zip(&mut input.rules) {
            if matches!(content.role, RuleRole::Refusing(_)) {
                resolved.chains.protect_by(RuleProtection::OfRule);
            }
        }
        add_closing(&mut input);
        input
    }

    /// The number of rules that are not added, which come first.
    pub(crate) fn written_rules(&self) -> usize {
        let is_added = |rule: &Rule| rule.role == RuleRole::Closing;
        self.route.rules.iter().position(is_added).unwrap_or(self.route.rules.len())
    }

    /// The route without the rules that were added to it.
    pub(crate) fn written(&self) -> Route {
        let mut route = self.route.clone();
        route.rules.truncate(self.written_rules());
        route
    }

    /// Whether the route has the same places and charges as another version of it. Weights may differ.
    pub(super) fn is_charged_like(&self, other: &Self) -> bool {
        let (one, two) = (&self.route, &other.route);
        let is_alike = |(one, two): (&Rule, &Rule)| one.matches == two.matches && one.filters == two.filters;
        one.key == two.key
            && one.place() == two.place()
            && one.age == two.age
            && one.hostnames == two.hostnames
            && self.attached == other.attached
            && one.rules.len() == two.rules.len()
            && one.rules.iter().zip(&two.rules).all(is_alike)
            && self.rules.iter().zip(&other.rules).all(|(one, two)| one.is_charged_like(two))
    }

    /// The route with other rules that fix their hosts.
    pub(crate) fn with_fixed_hosts(&self, fixed: &[bool]) -> Self {
        let rules = self.rules.iter().zip(fixed);
        Self {
            route: self.route.clone(),
            rules: rules.map(|(rule, fixed)| ResolvedRule { fixes_host: *fixed, ..rule.clone() }).collect(),
            attached: self.attached.clone(),
            is_gone: self.is_gone,
        }
    }

    /// Fixes the hosts of the rules that fixed them in an earlier version with as many rules.
    pub(crate) fn keep_fixed_hosts(&mut self, before: &Self) {
        if self.rules.len() == before.rules.len() {
            for (rule, before) in self.rules.iter_mut().zip(&before.rules) {
                rule.fixes_host = before.fixes_host;
            }
        }
    }

    /// A tombstone for a removed route. It has no rules, so lowering removes its rows.
    pub(crate) fn gone(route: Route) -> Self {
        Self { route, rules: Box::default(), attached: Arc::default(), is_gone: true }
    }

    /// Whether it stands for a route.
    pub(crate) const fn is_there(&self) -> bool {
        !self.is_gone
    }

    /// Whether the route is attached to a listener, through whichever parentRef.
    pub(super) fn is_attached_to(&self, listener: usize) -> bool {
        self.attached.listeners.contains(&listener)
    }

    /// The policies that protect a rule. A rule that sends requests elsewhere is not protected, but an Ingress redirects requests
    /// in plaintext to the paths that it protects.
    fn protection(&self, rule: usize) -> RuleProtection {
        let content = &self.route.rules[rule];
        match content.role {
            RuleRole::Written if answers(content) && self.route.part == Part::Whole => RuleProtection::None,
            RuleRole::Written | RuleRole::Refusing(_) | RuleRole::Closing => {
                self.rules[rule].chains.protection()
            }
        }
    }

    /// Whether a rule has more protection than all requests of its listeners, so that other spellings of its paths may need a
    /// Route.
    pub(super) fn is_protected(&self, rule: usize) -> bool {
        self.protection(rule) == RuleProtection::OfRule
    }

    /// Whether a protected rule answers all requests with errors.
    pub(crate) fn refuses(&self, rule: usize) -> bool {
        self.rules[rule].serves_nothing() && self.protection(rule) != RuleProtection::None
    }

    /// The clients that a rule lets pass.
    fn access(&self, rule: usize) -> Access<'_> {
        let (content, resolved) = (&self.route.rules[rule], &self.rules[rule]);
        let is_known = match content.role {
            RuleRole::Written => !resolved.chains.is_empty(),
            RuleRole::Closing => resolved.chains.has_protectors(),
            RuleRole::Refusing(_) => false,
        };
        Access {
            chains: Some(&resolved.chains).filter(|_| is_known),
            is_forwarding: resolved.action.is_filtered() && !answers(content),
            is_protected: self.is_protected(rule),
        }
    }
}

/// The status of other spellings of a protected path.
pub(super) const MISSPELLED: u16 = 400;

/// Adds rules that close the paths in the place of inexpressible ones to the protected rules of a route.
fn add_closing(input: &mut RouteInput) {
    let (mut closing, mut protected): (Vec<Rule>, Vec<ListenerChains>) = Default::default();
    for (position, rule) in input.route.rules.iter().enumerate() {
        if rule.closing.is_empty() || input.protection(position) == RuleProtection::None {
            continue;
        }
        // No policy runs before an answer of the controller.
        let mut chains = input.rules[position].chains.clone();
        chains.protect_by(input.protection(position));
        protected.push(chains);
        closing.push(Rule {
            role: RuleRole::Closing,
            index: rule.index,
            matches: rule.closing.iter().cloned().collect(),
            ..Rule::default()
        });
    }
    if closing.is_empty() {
        return;
    }
    let failure = input.route.traffic.failure();
    let mut rules = std::mem::take(&mut input.rules).into_vec();
    let answer = |chains| ResolvedRule { chains, ..ResolvedRule::answering(failure) };
    rules.extend(protected.into_iter().map(answer));
    input.route.rules.extend(closing);
    input.rules = rules.into();
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

/// The cause: PingSIX serves every host on every port of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneRefusalCause {
    /// Another listener serves the same hosts on another port, and the route is not attached to it.
    NotAttached { other: usize },
    /// As [`NotAttached`](Self::NotAttached) for a redirect to HTTPS, which is possible for named hosts.
    UnnamedRedirect,
    /// All listeners of these hosts speak HTTPS, but the data plane also has a plaintext port.
    Exposed { port: u16 },
}

/// The places of routes, by index of the route. Routes without a place have no entry.
pub(super) type Places = BTreeMap<usize, Box<[Placement]>>;

/// The served names of a route in a zone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placement {
    pub(crate) zone: usize,
    /// The served names there, at least one.
    pub(crate) names: Vec<ServedName>,
    /// Whom it is served to, or why it is not.
    pub(crate) scheme: Result<RequestScheme, ZoneRefusalCause>,
}

/// Finds the zones of a data plane that a route has names in.
#[derive(Debug)]
pub(super) struct Placer {
    /// The zones of each listener that are served.
    zones_of: BTreeMap<usize, Vec<usize>>,
    hostnames: BTreeSet<Hostname>,
}

impl Placer {
    pub(super) fn new(plane: &Plane) -> Self {
        let mut zones_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (zone, members) in plane.zones.iter().enumerate().filter(|(_, members)| members.is_served) {
            for &listener in &members.listeners {
                zones_of.entry(listener).or_default().push(zone);
            }
        }
        let hostnames = plane.zones.iter().filter_map(|zone| zone.hostname.clone()).collect();
        Self { zones_of, hostnames }
    }

    /// The names of a route, without effects between routes, which [`serve_over_tls`] has.
    pub(super) fn place(&self, plane: &Plane, input: &RouteInput) -> Vec<Placement> {
        let zones: BTreeSet<usize> = input
            .attached
            .listeners()
            .filter_map(|listener| self.zones_of.get(&listener))
            .flatten()
            .copied()
            .collect();
        zones.into_iter().filter_map(|zone| self.place_in(zone, plane, input)).collect()
    }

    /// The names in one zone of a route that is attached to its listeners.
    pub(super) fn place_in(&self, zone: usize, plane: &Plane, input: &RouteInput) -> Option<Placement> {
        let members = &plane.zones[zone];
        let own = members.hostname.as_ref();
        let mut names = served_names(&input.route.hostnames, own);
        // Every host of the others belongs to a narrower zone.
        let is_zone =
            |name: &Option<Hostname>| name.as_ref().is_none_or(|name| self.hostnames.contains(name));
        names.retain(|name| hostname_and_wider(name.served.as_ref()).find(is_zone).flatten().as_ref() == own);
        (!names.is_empty()).then(|| Placement { zone, scheme: scheme(members, input, &names), names })
    }

    /// The places of all routes.
    pub(super) fn place_all(&self, plane: &Plane, routes: &[Arc<RouteInput>]) -> Places {
        let all = routes.iter().enumerate().map(|(route, input)| (route, self.place(plane, input)));
        let of_routes = all.filter(|(_, places)| !places.is_empty());
        // Most routes have one place, and the capacity of a vector that grows is 4.
        let mut places: Places = of_routes.map(|(route, places)| (route, places.into())).collect();
        let redirects =
            places.values().flatten().filter(|place| place.scheme == Ok(RequestScheme::Plaintext));
        let redirecting: BTreeSet<usize> = redirects.map(|place| place.zone).collect();
        for (route, places) in places.iter_mut().filter(|_| !redirecting.is_empty()) {
            for place in places.iter_mut().filter(|place| redirecting.contains(&place.zone)) {
                serve_over_tls(&plane.zones[place.zone], place, &routes[*route]);
            }
        }
        places
    }
}

/// The treatment of a rule's rows in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowTreatment {
    Served,
    /// The rows answer 503.
    InPlace,
    /// The rows answer 503 without their conditions.
    Closed,
    /// The rows answer 503 without their conditions, after other rows of the same path and method.
    Behind,
    Nothing,
}

/// The rows of a route in a zone, under one of its names.
pub(super) fn rows_of<'a>(
    position: usize,
    input: &'a RouteInput,
    original: Option<&Hostname>,
    scheme: Result<RequestScheme, ZoneRefusalCause>,
    kept: impl Fn(RuleRef, &Match) -> RowTreatment,
) -> impl Iterator<Item = Row<'a>> {
    let route = &input.route;
    let specificity = hostname_precedence(original);
    let (served, scheme) = match scheme {
        Ok(scheme) => (RowState::Served, scheme),
        Err(_) => (RowState::Refused, RequestScheme::Any),
    };
    let matches = route.rules.iter().enumerate().flat_map(move |(rule, content)| {
        let rule = RuleRef { route: position, rule };
        content.matches.iter().map(move |matched| (rule, content, matched))
    });
    matches.filter_map(move |(rule, content, matched)| {
        let (conditions, scheme, state) = match kept(rule, matched) {
            RowTreatment::Served => (&*matched.conditions, scheme, served),
            RowTreatment::InPlace => (&*matched.conditions, RequestScheme::Any, RowState::Unavailable),
            RowTreatment::Closed => (&[][..], RequestScheme::Any, RowState::Unavailable),
            RowTreatment::Behind => (&[][..], RequestScheme::Any, RowState::Guard),
            RowTreatment::Nothing => return None,
        };
        Some(Row {
            rule,
            route: &route.key,
            age: route.age,
            section: route.part.section(content, matched),
            specificity,
            path: &matched.path,
            method: matched.method,
            conditions,
            scheme,
            state,
            is_closing: content.role == RuleRole::Closing,
            access: input.access(rule.rule),
        })
    })
}

/// Whether a rule redirects or responds itself, so that there is nothing to protect.
fn answers(rule: &Rule) -> bool {
    rule.filters.as_deref().is_some_and(|filters| filters.redirect.is_some() || filters.response.is_some())
}

/// Whom a route with these names is served to, or why it cannot be served in a zone alone.
fn scheme(
    zone: &ZoneListeners,
    input: &RouteInput,
    names: &[ServedName],
) -> Result<RequestScheme, ZoneRefusalCause> {
    match zone.listeners.iter().find(|listener| !input.attached.listeners.contains(listener)) {
        None => match zone.exposed_on {
            None => Ok(RequestScheme::Any),
            Some(port) => Err(ZoneRefusalCause::Exposed { port }),
        },
        Some(_)
            if zone.is_attached_by(Protocol::Http, &input.attached.listeners)
                && redirects_to_https(input, names) =>
        {
            Ok(RequestScheme::Plaintext)
        }
        Some(_)
            if zone.is_attached_by(Protocol::Http, &input.attached.listeners)
                && only_redirects_to_https(input) =>
        {
            Err(ZoneRefusalCause::UnnamedRedirect)
        }
        Some(&other) => Err(ZoneRefusalCause::NotAttached { other }),
    }
}

/// A route of the HTTPS listeners alone can be served if plaintext requests are redirected to HTTPS.
pub(super) fn serve_over_tls(zone: &ZoneListeners, placement: &mut Placement, input: &RouteInput) {
    if placement.scheme.is_err() && zone.is_attached_by(Protocol::Https, &input.attached.listeners) {
        placement.scheme = Ok(RequestScheme::Tls);
    }
}

/// Whether every rule of a route sends requests in plaintext to HTTPS in a way that PingSIX has for whole Routes.
fn redirects_to_https(input: &RouteInput, names: &[ServedName]) -> bool {
    input.route.rules[..input.written_rules()].iter().zip(&*input.rules).all(|(rule, resolved)| {
        let Some(filters) = rule.filters.as_deref().filter(|_| resolved.action.is_filtered()) else {
            return false;
        };
        let unconditional = rule.matches.iter().all(|matched| matched.conditions.is_empty());
        let redirects = |name: &ServedName| {
            filters
                .redirect
                .as_ref()
                .is_some_and(|redirect| to_https(redirect, name.served.as_ref()).is_some())
        };
        !filters.changes_responses() && unconditional && names.iter().all(redirects)
    })
}

/// Whether the route's only purpose is a redirect to HTTPS, possible or not.
fn only_redirects_to_https(input: &RouteInput) -> bool {
    input.route.rules[..input.written_rules()].iter().all(|rule| {
        let redirect = rule.filters.as_deref().and_then(|filters| filters.redirect.as_ref());
        redirect.is_some_and(is_to_https)
    })
}

#[cfg(test)]
mod tests;
