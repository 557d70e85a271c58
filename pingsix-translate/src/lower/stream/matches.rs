//! Matches of connections, and their contenders.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attach::{Listener, Protocol, served_names};
use crate::lower::plane::{most_specific, ports};
use crate::lower::rows::RouteInput;
use crate::model::{Hostname, compare_age, hostname_precedence, wider_hostnames};
use crate::stream::StreamProtocol;

/// A match that a route, or PingSIX, can have: the connections of a port, or those for one server name on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamMatch {
    pub(super) port: u16,
    pub(super) protocol: StreamProtocol,
    /// The server name; `None` with [`StreamProtocol::Tls`] is any.
    pub(super) name: Option<Hostname>,
    /// The listener whose place it is: a function of the other fields.
    pub(super) listener: usize,
}

/// The outcome of a match.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchOutcome {
    /// The contenders, winner first: the most specific hostname, then age, then name.
    pub(super) contenders: Vec<Contender>,
    /// Whether listeners with a wider hostname do not get the match although it has no contender.
    pub(super) is_guarded: bool,
    /// Whether the connections go to PingSIX. There is no contender then.
    pub(super) is_front: bool,
}

/// A route that wants a place.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    /// Index of the route.
    pub(super) route: usize,
    /// The hostname by which it does; the more specific one wins.
    original: Option<Hostname>,
}

/// Every match with a contender or a guard, and every match of a fronted listener.
pub(super) fn stream_matches(
    listeners: &[Listener],
    routes: &[Arc<RouteInput>],
) -> BTreeMap<StreamMatch, MatchOutcome> {
    let mut stream_matches: BTreeMap<StreamMatch, MatchOutcome> = BTreeMap::new();
    // The stream proxy reads the server names of their connections.
    let reads_names = |listener: &Listener| listener.protocol == Some(Protocol::Tls) || listener.is_fronted();
    let served = |index: &usize| listeners[*index].is_served() && reads_names(&listeners[*index]);
    let tls: Vec<usize> = (0..listeners.len()).filter(served).collect();
    let ports = ports(listeners, &tls, reads_names);
    for (&number, port) in &ports {
        for (hostname, &listener) in port {
            let is_guarded = wider_hostnames(hostname.as_ref()).any(|wider| port.contains_key(&wider));
            let is_front = listeners[listener].is_fronted() && listeners[listener].is_served();
            if is_guarded || is_front {
                let name = hostname.clone();
                let stream_match =
                    StreamMatch { port: number, protocol: StreamProtocol::Tls, name, listener };
                let outcome = MatchOutcome { contenders: Vec::new(), is_guarded, is_front };
                stream_matches.insert(stream_match, outcome);
            }
        }
    }
    let protocols: BTreeMap<usize, StreamProtocol> = stream_listeners(listeners).collect();
    for (route, input) in routes.iter().enumerate() {
        for index in input.attached.listeners() {
            let Some(&protocol) = protocols.get(&index) else { continue };
            let listener = &listeners[index];
            let mut want = |name, original| {
                let stream_match = StreamMatch { port: listener.port, protocol, name, listener: index };
                stream_matches
                    .entry(stream_match)
                    .or_default()
                    .contenders
                    .push(Contender { route, original });
            };
            if protocol != StreamProtocol::Tls {
                want(None, None);
                continue;
            }
            let Some(port) = ports.get(&listener.port) else { continue };
            for name in served_names(&input.route.hostnames, listener.hostname.as_ref()) {
                // The names of a narrower listener are that one's alone.
                let is_own = most_specific(port, name.served.as_ref()) == Some(index);
                if is_own && name.served.is_some() {
                    want(name.served, name.original);
                }
            }
        }
    }
    for wanted in stream_matches.values_mut() {
        wanted.contenders.sort_by(|left, right| {
            let rank = |contender: &Contender| Reverse(hostname_precedence(contender.original.as_ref()));
            let (one, other) = (&routes[left.route].route, &routes[right.route].route);
            rank(left)
                .cmp(&rank(right))
                .then_with(|| compare_age((one.age, &one.key), (other.age, &other.key)))
        });
    }
    stream_matches
}

/// The served listeners whose routes become stream documents.
pub(super) fn stream_listeners(listeners: &[Listener]) -> impl Iterator<Item = (usize, StreamProtocol)> + '_ {
    listeners.iter().enumerate().filter(|(_, listener)| listener.is_served()).filter_map(
        |(index, listener)| {
            let protocol = match listener.protocol? {
                Protocol::Http | Protocol::Https => return None,
                Protocol::Tls => StreamProtocol::Tls,
                Protocol::Tcp => StreamProtocol::Tcp,
                Protocol::Udp => StreamProtocol::Udp,
            };
            Some((index, protocol))
        },
    )
}
