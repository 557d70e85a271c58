//! A direct reading of Gateway API: what a request is answered, without any thought of PingSIX's routes.
//!
//! It shares no code with translation, not even the types it reads objects into, and it does everything anew for
//! every request. Where it had to decide something the specification leaves open, the place says so.

mod attach;
mod backend;
mod grpc;
mod hostname;
mod row;
mod verdict;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub(crate) use self::attach::ListenerFault;
use self::row::Row;
pub(crate) use self::world::{Metadata, Route, RouteKindName, World};
use crate::probe::Probe;

/// Where a share of the requests goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// To the ready endpoints of a Service port.
    Service { namespace: String, name: String, port: u16, speech: Speech },
    /// Nowhere: this status.
    Status(u16),
}

/// How requests are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Speech {
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
                Target::Service { namespace, name, port, speech } => {
                    write!(f, "{separator}{weight} x {namespace}/{name}:{port} ({speech:?})")?;
                }
                Target::Status(status) => write!(f, "{separator}{weight} x {status}")?,
            }
        }
        Ok(())
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rule that decides about a request, and what it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// `namespace/name` of the route and the index of its rule; `None` for 404.
    pub(crate) rule: Option<(String, usize)>,
    pub(crate) answer: Answer,
}

impl World {
    /// What a request to a data plane is answered: to one port, or to all ports of a Gateway alike.
    pub(crate) fn decide(&self, port: Option<u16>, request: &Probe) -> Decided {
        let host = request.routing_host();
        let host = host.as_deref();
        let listeners = self.listeners_for(port, host);
        let Some(&first) = listeners.first() else { return not_found() };
        if !listeners.iter().any(|&listener| self.serves(listener)) {
            return not_found();
        }
        let hostname = self.gateway.spec.listeners[first].hostname.as_deref();
        let mut rows: Vec<Row<'_>> = Vec::new();
        for (index, route) in self.routes.iter().enumerate() {
            if listeners.iter().any(|&listener| self.is_attached(index, listener)) {
                // The order of rows is that of the original hostnames whatever the listener is, because the
                // hostname served is the narrower of the two; so any of the listeners will do.
                rows.extend(Row::of(index, route, hostname, host));
            }
        }
        rows.retain(|row| row.admits(request));
        // Where only GRPCRoutes are concerned, the specification has an order of its own.
        let calls_only = rows.iter().all(|row| self.routes[row.route].kind == RouteKindName::Grpc);
        rows.sort_by(if calls_only { Row::order_of_calls } else { Row::order });
        let Some(row) = rows.first() else { return not_found() };
        let route = &self.routes[row.route];
        let rule = &route.spec.rules[row.rule];
        let refused = row::is_unsupported(rule) || self.refuses(port, row.route, &listeners);
        let answer = if refused { Answer::status(route.kind.failure()) } else { self.answer_of(route, rule) };
        let name = format!("{}/{}", route.metadata.namespace, route.metadata.name);
        Decided { rule: Some((name, row.rule)), answer }
    }

    /// The listeners that take a request for a host: one per port that serves the host.
    fn listeners_for(&self, port: Option<u16>, host: Option<&str>) -> BTreeSet<usize> {
        let ports = self.ports().into_iter().filter(|served| port.is_none_or(|port| port == *served));
        ports.filter_map(|port| self.listener_for(port, host)).collect()
    }

    /// Whether a data plane must not serve a route to the requests these listeners take. One for several ports
    /// cannot tell them apart, so either all of the listeners have the route or nobody gets it; and nothing that
    /// only HTTPS listeners serve may be had in plaintext.
    fn refuses(&self, port: Option<u16>, route: usize, listeners: &BTreeSet<usize>) -> bool {
        let all = &self.gateway.spec.listeners;
        let is_plain = |index: usize| all[index].protocol == "HTTP";
        let exposed = port.is_none()
            && !listeners.iter().copied().any(is_plain)
            && (0..all.len()).any(|index| is_plain(index) && self.serves(index));
        exposed || !listeners.iter().all(|&listener| self.is_attached(route, listener))
    }
}

fn not_found() -> Decided {
    Decided { rule: None, answer: Answer::status(404) }
}
