//! Routes for TCP, UDP and TLS to stream documents.
//!
//! One document per port, or per port and server name: [`contenders`] finds who wants which place, the first of each
//! gets it, and the others are told. So no two documents can take one connection, and nothing depends on an order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::Ids;
use super::rows::{RouteInput, most_specific};
use crate::attach::{Hostname, Listener, Protocol, hostname_covers, hostname_precedence, served_names};
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey, ObjectName, compare_slashed};
use crate::options::Options;
use crate::provenance::{Origin, Section, StreamProvenance};
use crate::resolve::{Action, Backends, Target};
use crate::stream::{
    Destination, Rejection, StreamKey, StreamKind, StreamProtocol, StreamRoute, StreamSsl, StreamTarget,
    StreamUpstream, TlsMode,
};
use crate::translation::{DataPlaneKey, StreamPlane};
use crate::verdict::{Problem, Reason, Severity};

/// The stream documents of a Gateway. Routes that get nothing of what they ask for are named in `problems`.
pub(crate) fn lower_streams(
    gateway: &ObjectName,
    listeners: &[Listener],
    routes: &[RouteInput],
    backends: &Backends,
    options: &Options,
    problems: &mut Vec<Problem>,
) -> (DataPlaneKey, StreamPlane) {
    let key = DataPlaneKey::Stream { gateway: gateway.clone() };
    let mut writer = Writer { backends, ids: Ids::default(), plane: StreamPlane::default() };
    let mut losses = BTreeMap::new();
    for (place, contenders) in contenders(listeners, routes) {
        let Some((winner, others)) = contenders.split_first() else {
            writer.guard(&place, &listeners[place.listener]);
            continue;
        };
        let others: Vec<&Contender> =
            others.iter().filter(|contender| contender.route != winner.route).collect();
        let shadowed: BTreeSet<Origin> =
            others.iter().map(|contender| origin(&routes[contender.route])).collect();
        writer.route(&place, &listeners[place.listener], &routes[winner.route], shadowed);
        for other in others {
            let lost: &mut BTreeSet<Place> =
                losses.entry((other.route, place.listener, winner.route)).or_default();
            lost.insert(place.clone());
        }
    }
    problems.extend(losses.into_iter().map(|((loser, listener, winner), places)| {
        loss(&routes[loser], &listeners[listener], &routes[winner], &places)
    }));
    let mut plane = writer.plane;
    plane.size = plane.config.size_in_bytes(&key.prefix(&options.root));
    (key, plane)
}

/// What a route can have: the connections of a port, or those for one server name on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    port: u16,
    protocol: StreamProtocol,
    name: Option<Hostname>,
    /// The listener whose place it is: a function of the other fields.
    listener: usize,
}

/// A route that wants a place.
#[derive(Clone, Debug)]
struct Contender {
    /// Index of the route.
    route: usize,
    /// The hostname by which it does; the more specific one wins.
    original: Option<Hostname>,
}

/// Every place with those who want it, the winner first: the most specific hostname, then age, then name. A place
/// without any keeps the server names of a listener from those with a wider hostname.
fn contenders(listeners: &[Listener], routes: &[RouteInput]) -> BTreeMap<Place, Vec<Contender>> {
    let mut places: BTreeMap<Place, Vec<Contender>> = BTreeMap::new();
    let mut on_port: BTreeMap<u16, BTreeSet<&Hostname>> = BTreeMap::new();
    let tls = || stream_listeners(listeners).filter(|(_, _, protocol)| *protocol == StreamProtocol::Tls);
    for (_, listener, _) in tls() {
        on_port.entry(listener.port).or_default().extend(&listener.hostname);
    }
    for (index, listener, protocol) in stream_listeners(listeners) {
        let place = |name| Place { port: listener.port, protocol, name, listener: index };
        let attached = || routes.iter().enumerate().filter(|(_, input)| input.is_attached_to(index));
        let StreamProtocol::Tls = protocol else {
            let all: Vec<Contender> =
                attached().map(|(route, _)| Contender { route, original: None }).collect();
            // Without any, the port is not opened.
            if !all.is_empty() {
                places.insert(place(None), all);
            }
            continue;
        };
        let own = listener.hostname.as_ref();
        for (route, input) in attached() {
            for name in served_names(&input.route.hostnames, own) {
                // The names of a narrower listener are that one's alone.
                let narrower =
                    on_port.get(&listener.port).and_then(|all| most_specific(all, name.served.as_ref()));
                if narrower.as_ref() == own && name.served.is_some() {
                    let contender = Contender { route, original: name.original };
                    places.entry(place(name.served)).or_default().push(contender);
                }
            }
        }
        let is_wider = |other: &Listener| {
            other.port == listener.port
                && other.hostname.as_ref() != own
                && hostname_covers(other.hostname.as_ref(), own)
        };
        if own.is_some() && tls().any(|(_, other, _)| is_wider(other)) {
            places.entry(place(own.cloned())).or_default();
        }
    }
    for contenders in places.values_mut() {
        contenders.sort_by(|left, right| {
            let (one, other) = (&routes[left.route].route, &routes[right.route].route);
            let rank = |contender: &Contender| Reverse(hostname_precedence(contender.original.as_ref()));
            rank(left)
                .cmp(&rank(right))
                .then_with(|| one.age.cmp(&other.age))
                .then_with(|| compare_slashed(&one.key, &other.key))
        });
    }
    places
}

/// The served listeners whose routes become stream documents.
fn stream_listeners(listeners: &[Listener]) -> impl Iterator<Item = (usize, &Listener, StreamProtocol)> {
    listeners.iter().enumerate().filter(|(_, listener)| listener.is_served()).filter_map(
        |(index, listener)| {
            let protocol = match listener.protocol? {
                Protocol::Http | Protocol::Https => return None,
                Protocol::Tls => StreamProtocol::Tls,
                Protocol::Tcp => StreamProtocol::Tcp,
                Protocol::Udp => StreamProtocol::Udp,
            };
            Some((index, listener, protocol))
        },
    )
}

fn origin(input: &RouteInput) -> Origin {
    Origin { object: input.route.key.clone(), section: Section::Rule(0) }
}

/// Says that a route gets nothing of some places.
fn loss(loser: &RouteInput, listener: &Listener, winner: &RouteInput, places: &BTreeSet<Place>) -> Problem {
    let names: Vec<String> =
        places.iter().filter_map(|place| Some(place.name.as_ref()?.to_string())).collect();
    let name = named(listener);
    let (field, message) = if names.is_empty() {
        let message = format!("All traffic of {name} goes to {}, which is older.", winner.route.key);
        ("parentRefs", message)
    } else {
        let names = names.join(", ");
        let winner = &winner.route.key;
        let message = format!(
            "On {name}, connections for {names} go to {winner}, which is older or has a more specific \
             hostname."
        );
        ("hostnames", message)
    };
    Problem {
        object: loser.route.key.clone(),
        field: FieldPath::new("spec").child(field),
        severity: Severity::Warning,
        reason: Reason::Shadowed,
        message,
    }
}

/// A listener as the author of a route knows it.
fn named(listener: &Listener) -> String {
    if listener.owner.kind == Kind::ListenerSet {
        format!("listener \"{}\" of {}", listener.name, listener.owner)
    } else {
        format!("listener \"{}\"", listener.name)
    }
}

struct Writer<'a> {
    backends: &'a Backends,
    ids: Ids,
    plane: StreamPlane,
}

impl Writer<'_> {
    fn route(&mut self, place: &Place, listener: &Listener, input: &RouteInput, shadowed: BTreeSet<Origin>) {
        let targets = match input.rules.as_slice() {
            [rule] => self.targets(&rule.action),
            // Stream routes are normalised to one rule.
            _ => vec![rejecting(Rejection::Invalid)],
        };
        let mut route = unterminated(place, targets);
        route.ssl_ids = self.certificates(listener);
        if !route.ssl_ids.is_empty() {
            route.tls = Some(TlsMode::Terminate);
        }
        let provenance = StreamProvenance::Route {
            owner: listener.owner.clone(),
            listener: listener.name.clone(),
            origin: origin(input),
            shadowed: shadowed.into_iter().collect(),
        };
        self.write(place, route, provenance);
    }

    fn guard(&mut self, place: &Place, listener: &Listener) {
        let route = unterminated(place, vec![rejecting(Rejection::NoRoute)]);
        self.write(
            place,
            route,
            StreamProvenance::Guard { owner: listener.owner.clone(), listener: listener.name.clone() },
        );
    }

    fn write(&mut self, place: &Place, route: StreamRoute, provenance: StreamProvenance) {
        let name = place.name.as_ref().map(Hostname::as_str).unwrap_or_default();
        let id = self.ids.assign('r', &[place.protocol.as_str(), &place.port.to_string(), name]);
        self.plane.config.insert(id.clone(), route);
        self.plane.provenance.insert(StreamKey::new(StreamKind::StreamRoute, id), provenance);
    }

    /// Ids of the certificates of a listener, written when first asked for.
    fn certificates(&mut self, listener: &Listener) -> Vec<String> {
        let mut ids = Vec::new();
        for certificate in listener.terminates_with() {
            let secret = &certificate.secret;
            let id = self.ids.assign('s', &[&secret.namespace, &secret.name]);
            if ids.contains(&id) {
                continue;
            }
            if self.plane.config.ssl(&id).is_none() {
                let ssl = StreamSsl { cert: certificate.chain.to_string(), key: certificate.key.to_string() };
                self.plane.config.insert(id.clone(), ssl);
                let secret = Arc::new(ObjectKey { kind: Kind::Secret, name: secret.clone() });
                let key = StreamKey::new(StreamKind::Ssl, id.clone());
                self.plane.provenance.insert(key, StreamProvenance::Certificate { secret });
            }
            ids.push(id);
        }
        ids
    }

    fn targets(&mut self, action: &Action) -> Vec<StreamTarget> {
        action
            .targets
            .iter()
            .map(|&(target, weight)| StreamTarget { to: self.destination(target), weight })
            .collect()
    }

    fn destination(&mut self, target: Target) -> Destination {
        match target {
            Target::Status(503) => Destination::Reject(Rejection::NoEndpoints),
            // No rule of a stream route redirects.
            Target::Status(_) | Target::Redirect => Destination::Reject(Rejection::Invalid),
            Target::Backend(index) => {
                let backend = self.backends.get(index);
                let (service, port) = (&backend.key.service, backend.key.port);
                let id = self.ids.assign(
                    'u',
                    &[
                        &service.namespace,
                        &service.name,
                        &port.to_string(),
                        backend.key.usage.traffic.transport(),
                    ],
                );
                if self.plane.config.upstream(&id).is_none() {
                    let nodes = backend.endpoints.iter().map(|endpoint| (endpoint.to_string(), 1)).collect();
                    self.plane.config.insert(id.clone(), StreamUpstream { nodes });
                    let service = Arc::new(ObjectKey { kind: Kind::Service, name: service.clone() });
                    let key = StreamKey::new(StreamKind::Upstream, id.clone());
                    self.plane.provenance.insert(key, StreamProvenance::Backend { service, port });
                }
                Destination::Upstream(id)
            }
        }
    }
}

const fn rejecting(why: Rejection) -> StreamTarget {
    StreamTarget { to: Destination::Reject(why), weight: 1 }
}

/// The route of a place where TLS, if any, is left to others.
fn unterminated(place: &Place, targets: Vec<StreamTarget>) -> StreamRoute {
    StreamRoute {
        server_port: place.port,
        protocol: place.protocol,
        snis: place.name.iter().map(ToString::to_string).collect(),
        tls: (place.protocol == StreamProtocol::Tls).then_some(TlsMode::Passthrough),
        ssl_ids: Vec::new(),
        targets,
    }
}

#[cfg(test)]
mod tests;
