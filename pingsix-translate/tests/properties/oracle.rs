//! A direct reading of Gateway API: what a request is answered, without any thought of PingSIX's routes.
//!
//! The oracle shares no code with translation, not even the types of objects, and has no cache between requests. A
//! comment marks each decision that the specification leaves open.

mod attach;
pub(crate) mod backend;
mod backend_traffic;
mod filter;
mod grpc;
pub(crate) mod hostname;
mod list;
mod owner;
mod row;
mod security;
pub(crate) mod shadow;
pub(crate) mod spelling;
mod traffic;
mod verdict;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub(crate) use self::attach::ListenerProblem;
use self::list::Agreement;
pub(crate) use self::list::Refusals;
use self::row::Row;
pub(crate) use self::verdict::{ListenerStatus, ParentStatus};
pub(crate) use self::world::{Listener, Metadata, Owner, Route, RouteKindName, World};
use crate::effect::{Effect, Permission, Way};
use crate::probe::Probe;
use crate::protection::Protection;

/// Where a share of the requests goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// To the ready endpoints of a Service port.
    Service { namespace: String, name: String, port: u16, protocol: BackendProtocol, way: Way },
    /// Nowhere: this status.
    Status(u16),
    /// Elsewhere: to an absolute URL, unless the client named no host that could be in it.
    Redirect { status: u16, location: Option<String> },
    /// Nowhere: it is a preflight, and permitted or not.
    Preflight(Option<Permission>),
}

/// The protocol of connections to backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BackendProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/1.1, with connections that stay open.
    WebSocket,
    /// HTTP/2 with prior knowledge, with streams that stay open.
    H2c,
}

/// Shares by target, reduced to the smallest whole numbers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answer(BTreeMap<Target, u64>);

impl Answer {
    pub(crate) fn new(mut shares: BTreeMap<Target, u64>) -> Self {
        shares.retain(|_, weight| *weight > 0);
        let divisor = shares.values().copied().fold(0, gcd);
        for weight in shares.values_mut() {
            *weight /= divisor;
        }
        Self(shares)
    }

    pub(crate) fn targets(&self) -> Vec<&Target> {
        self.0.keys().collect()
    }

    pub(crate) fn status(status: u16) -> Self {
        Self(BTreeMap::from([(Target::Status(status), 1)]))
    }

    pub(crate) fn reaches_backend(&self) -> bool {
        self.0.keys().any(|target| matches!(target, Target::Service { .. }))
    }
}

impl<'a> IntoIterator for &'a Answer {
    type Item = (&'a Target, &'a u64);
    type IntoIter = std::collections::btree_map::Iter<'a, Target, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (target, weight)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " + " };
            match target {
                Target::Service { namespace, name, port, protocol, way } => {
                    write!(f, "{separator}{weight} x {namespace}/{name}:{port} ({protocol:?}, {way:?})")?;
                }
                Target::Status(status) => write!(f, "{separator}{weight} x {status}")?,
                Target::Redirect { status, location } => {
                    write!(f, "{separator}{weight} x {status} to {location:?}")?;
                }
                Target::Preflight(permission) => write!(f, "{separator}{weight} x {permission:?}")?,
            }
        }
        Ok(())
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rule that decides about a request, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// `namespace/name` of the route and the index of its rule; `None` for 404.
    pub(crate) rule: Option<(String, usize)>,
    pub(crate) answer: Answer,
    /// The effect on the message, if a backend gets it.
    pub(crate) effect: Option<Effect>,
    /// The demands of policies on the message, if it reaches a backend.
    pub(crate) protection: Option<Protection>,
}

impl Decided {
    /// By a rule, or by none, without a backend.
    pub(crate) fn without_backend(rule: Option<(String, usize)>, answer: Answer) -> Self {
        Self { rule, answer, effect: None, protection: None }
    }

    /// Whether the client is sent elsewhere.
    pub(crate) fn redirects(&self) -> bool {
        self.answer.targets().iter().any(|target| matches!(target, Target::Redirect { .. }))
    }
}

impl World {
    /// The answer to a request at one port, or at all ports of a Gateway alike.
    pub(crate) fn decide(&self, port: Option<u16>, request: &Probe) -> Decided {
        let listeners = self.listeners_for(port, request.routing_host().as_deref());
        if !listeners.iter().any(|&listener| self.serves(listener)) {
            return not_found();
        }
        let choices = self.choices(port, request);
        let agreed = self.agree(port, request, &choices);
        let decided = self.decide_among(request, &listeners, port, &agreed);
        // Problems are injected before anything else, into all requests that are decided among these rules.
        match agreed.error {
            Some(status) => Decided::without_backend(decided.rule, Answer::status(status)),
            None => decided,
        }
    }

    fn decide_among(
        &self,
        request: &Probe,
        listeners: &BTreeSet<usize>,
        port: Option<u16>,
        agreed: &Agreement,
    ) -> Decided {
        // A browser sends a preflight without the headers it asks for, so that no condition on them can count.
        if let Some(cors) = &agreed.cors
            && request.is_preflight()
            && agreed.error.is_none()
        {
            let answer = Answer::new([(Target::Preflight(cors.permit(request)), 1)].into());
            return Decided::without_backend(None, answer);
        }
        let mut rows = self.rows(listeners, request.routing_host().as_deref());
        // Which hostname counts for a cache is settled before conditions.
        let is_exact = rows.iter().find(|row| row.stands_for(request)).is_some_and(Row::is_of_exact_host);
        // Other spellings of a protected path are answered before the rules that do not name them.
        let guard = self.guard((port, listeners), &rows, request);
        rows.retain(|row| row.admits(request));
        if let Some(place) = guard
            && rows.iter().all(|row| row.comes_after(place))
        {
            return Decided::without_backend(None, Answer::status(400));
        }
        // Where only GRPCRoutes are concerned, the specification has an order of its own.
        let calls_only = rows.iter().all(|row| self.routes[row.route].kind == RouteKindName::Grpc);
        rows.sort_by(if calls_only { Row::order_of_calls } else { Row::order });
        let Some(row) = rows.first() else { return not_found() };
        let route = &self.routes[row.route];
        let rule = &route.spec.rules[row.rule];
        let refused = row::is_unsupported(rule)
            || self.refuses(port, row.route, listeners)
            || agreed.refused.contains(&(row.route, row.rule));
        let (answer, inherited) = if refused {
            (Answer::status(route.kind.failure()), None)
        } else {
            self.answer_under_policies(listeners, (row.route, row.rule), request)
        };
        let name = format!("{}/{}", route.metadata.namespace, route.metadata.name);
        let (effect, protection) = if answer.reaches_backend() {
            let inherited = inherited.unwrap_or_default();
            let mut read = filter::read(rule);
            read.filters.cors = read.filters.cors.or(inherited.cors);
            if let Some(changes) = inherited.headers {
                read.filters.response = changes;
            }
            let mut protection = inherited.protection;
            if !is_exact {
                // A response under an ambiguous host would be kept for others.
                protection.treatment.cache = None;
            }
            (Some(read.effect(request)), Some(protection))
        } else {
            (None, None)
        };
        Decided { rule: Some((name, row.rule)), answer, effect, protection }
    }

    /// The first guard of a protected path for a request: its place among the rows. A row that comes before and is
    /// for the path and the method takes the request, whatever its conditions are.
    fn guard(
        &self,
        asked: (Option<u16>, &BTreeSet<usize>),
        rows: &[Row<'_>],
        request: &Probe,
    ) -> Option<row::GuardPlace> {
        let guards = rows.iter().filter_map(|row| {
            let place = row.place_of_guard(request)?;
            self.is_exposed(asked, rows, row).then_some(place)
        });
        let place = guards.max()?;
        let is_taken = rows.iter().any(|row| row.stands_for(request) && !row.comes_after(place));
        (!is_taken).then_some(place)
    }

    /// Whether requests with another spelling of the path of a protected row reach a backend with less protection.
    fn is_exposed(
        &self,
        (port, listeners): (Option<u16>, &BTreeSet<usize>),
        rows: &[Row<'_>],
        protected: &Row<'_>,
    ) -> bool {
        let is_served = |row: &Row<'_>| !self.refuses(port, row.route, listeners);
        let rule = |row: &Row<'_>| &self.routes[row.route].spec.rules[row.rule];
        let is_reached = |row: &Row<'_>| {
            let before = rows.iter().take_while(|other| !std::ptr::eq(*other, row));
            before.filter(|other| row.is_behind(other)).count() == 0
        };
        let is_protected = filter::read(rule(protected)).filters.redirect.is_none()
            && self.protection_of(protected.route, protected.rule).1;
        if !is_protected || !is_served(protected) || !is_reached(protected) {
            return false;
        }
        // A row for another method than the protected one's takes none of its requests, whatever their spelling.
        let is_of_other_method = |row: &Row<'_>| {
            row.method().zip(protected.method()).is_some_and(|(method, of_protected)| method != of_protected)
        };
        for row in rows.iter().filter(|row| row.covers(protected) && is_reached(row)) {
            if is_of_other_method(row) {
                continue;
            }
            let is_forwarding = is_served(row)
                && !row::is_unsupported(rule(row))
                && self.answer_of(&self.routes[row.route], rule(row), &Probe::default()).reaches_backend();
            let (own, of_protected) = ((row.route, row.rule), (protected.route, protected.rule));
            if is_forwarding && self.is_open_beside(own, of_protected) {
                return true;
            }
            if row.takes_all() {
                return false;
            }
        }
        false
    }

    /// The rows that listeners have for a host, in order.
    fn rows(&self, listeners: &BTreeSet<usize>, host: Option<&str>) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let Some(&first) = listeners.first() else { return rows };
        let hostname = self.listeners[first].hostname.as_deref();
        for (index, route) in self.routes.iter().enumerate() {
            if listeners.iter().any(|&listener| self.is_attached(index, listener)) {
                // The order of rows is that of the original hostnames whatever the listener is, because the
                // hostname served is the narrower of the two; so any of the listeners will do.
                rows.extend(Row::of(index, route, hostname, host));
            }
        }
        let is_closed = |row: &&Row<'_>| self.protection_of(row.route, row.rule).0;
        let mut all: Vec<Row<'_>> = rows
            .iter()
            .filter(|row| row.closing().is_some())
            .filter(is_closed)
            .filter_map(Row::closing)
            .collect();
        all.append(&mut rows);
        all.sort_by(Row::order);
        all
    }

    /// A request as it would be if its client spoke to one of the listeners that take it, and what is decided then.
    /// The difference matters for redirects alone, whose default target is the address of the client's request.
    pub(crate) fn meet(&self, port: Option<u16>, request: &Probe) -> (Probe, Decided) {
        let decided = self.decide(port, request);
        let listeners = self.origins(&self.listeners_for(port, request.routing_host().as_deref()));
        match listeners.iter().cycle().nth(request.queries.len()) {
            Some(&(tls, port_of_listener)) if decided.redirects() => {
                let request = request.clone().at(tls, port_of_listener);
                let decided = self.decide(port, &request);
                (request, decided)
            }
            _ => (request.clone(), decided),
        }
    }

    /// Whether a preflight that no rule takes may be answered all the same: by a rule for the method it asks for.
    pub(crate) fn may_answer_preflight(&self, port: Option<u16>, request: &Probe) -> bool {
        let Some(method) = request.header("access-control-request-method") else { return false };
        let listeners = self.listeners_for(port, request.routing_host().as_deref());
        let asked = Probe { method: method.to_owned(), ..request.clone() };
        self.rows(&listeners, request.routing_host().as_deref()).iter().any(|row| {
            let rule = &self.routes[row.route].spec.rules[row.rule];
            let of_policy = || {
                let inherited = self.inherited(&listeners, row.route, row.rule);
                inherited.is_ok_and(|inherited| inherited.cors.is_some())
            };
            row.stands_for(&asked) && (filter::read(rule).filters.cors.is_some() || of_policy())
        })
    }

    /// The status with which policies have such a preflight answered.
    pub(crate) fn error_for_preflight(&self, port: Option<u16>, request: &Probe) -> Option<u16> {
        let method = request.header("access-control-request-method")?.to_owned();
        let asked = Probe { method, ..request.clone() };
        self.agree(port, &asked, &self.choices(port, &asked)).error
    }

    /// The listeners that take a request for a host: one per port that serves the host.
    fn listeners_for(&self, port: Option<u16>, host: Option<&str>) -> BTreeSet<usize> {
        let ports = self.ports().into_iter().filter(|served| port.is_none_or(|port| port == *served));
        ports.filter_map(|port| self.listener_for(port, host)).collect()
    }

    /// Whether a request is taken by a listener that stands in a ListenerSet.
    pub(crate) fn is_for_listener_set(&self, port: Option<u16>, request: &Probe) -> bool {
        let listeners = self.listeners_for(port, request.routing_host().as_deref());
        listeners.into_iter().any(|index| self.listeners[index].owner != Owner::Gateway)
    }

    /// Whether a data plane must not serve a route to the requests these listeners take. One for several ports
    /// cannot tell them apart, so either all of the listeners have the route or nobody gets it; and nothing that
    /// only HTTPS listeners serve may be had in plaintext.
    fn refuses(&self, port: Option<u16>, route: usize, listeners: &BTreeSet<usize>) -> bool {
        let all = &self.listeners;
        let is_plain = |index: usize| all[index].protocol == "HTTP";
        let exposed = port.is_none()
            && !listeners.iter().copied().any(is_plain)
            && (0..all.len()).any(|index| is_plain(index) && self.serves(index));
        exposed || !listeners.iter().all(|&listener| self.is_attached(route, listener))
    }
}

fn not_found() -> Decided {
    Decided::without_backend(None, Answer::status(404))
}
