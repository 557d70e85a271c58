//! The listeners of a data plane, and the listeners of a request.

use std::fmt;
use std::net::SocketAddr;

use pingsix_translate::infrastructure::{INGRESS_PORTS, PortProtocol};
use pingsix_translate::pingsix::Request;
use pingsix_translate::pingsix::process::h2c_obstacle;
use pingsix_translate::status::{ConditionType, Conditions, ListenerVerdict, ParentVerdict, Verdicts};
use pingsix_translate::{DataPlaneKey, Hostname, Kind, ObjectKey};
use serde::Serialize;

use super::Plane;

/// A listener of a data plane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listener {
    /// `spec.listeners[].name`.
    pub name: String,
    /// The port.
    pub port: i32,
    /// The protocol.
    pub protocol: String,
    /// The hostname; `None` for every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

impl Listener {
    pub(super) fn of(verdict: &ListenerVerdict) -> Self {
        Self {
            name: verdict.name.clone(),
            port: verdict.port,
            protocol: verdict.protocol.clone(),
            hostname: verdict.hostname.clone(),
        }
    }

    /// Whether it is for HTTP over TLS.
    pub fn has_tls(&self) -> bool {
        self.protocol == "HTTPS"
    }

    /// Whether the listener is for the protocol, the port and the host of a request.
    pub(super) fn serves(&self, request: &Request, port: Option<u16>) -> bool {
        let host = request.routing_host().unwrap_or_default();
        self.fits(request, port) && covers(self.hostname.as_deref(), host)
    }

    fn precedence(&self) -> u32 {
        precedence(self.hostname.as_deref())
    }

    /// Whether a request fits the protocol and the port of the listener.
    fn fits(&self, request: &Request, port: Option<u16>) -> bool {
        let protocol = if request.tls { "HTTPS" } else { "HTTP" };
        self.protocol == protocol && port.is_none_or(|port| i32::from(port) == self.port)
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port, protocol, hostname } = self;
        let hostname = hostname.as_deref().unwrap_or("any host");
        write!(f, "{name} ({protocol} port {port}, {hostname})")
    }
}

/// The listeners of a data plane, in the order of the spec. For an IngressClass, its ports take the place of listeners.
pub fn listeners(plane: &Plane<'_>) -> Vec<Listener> {
    match plane.key {
        DataPlaneKey::Gateway { .. } | DataPlaneKey::Stream { .. } => plane
            .verdicts
            .listeners()
            .filter(|listener| listener.data_plane.as_ref() == Some(plane.key))
            .map(Listener::of)
            .collect(),
        DataPlaneKey::Ingress { port: own, .. } => INGRESS_PORTS
            .into_iter()
            .filter(|(port, _)| own.is_none_or(|own| own == *port))
            .map(|(port, protocol)| {
                let protocol = match protocol {
                    PortProtocol::Plaintext => "HTTP",
                    PortProtocol::Tls | PortProtocol::Fronted => "HTTPS",
                };
                Listener {
                    name: protocol.to_ascii_lowercase(),
                    port: port.into(),
                    protocol: protocol.to_owned(),
                    hostname: None,
                }
            })
            .collect(),
    }
}

/// Whether an HTTP or HTTPS listener of the plane's owner, served or not, has a port. A data plane for one port has
/// that port alone.
pub fn has_port(plane: &Plane<'_>, port: u16) -> bool {
    if plane.key.port().is_some_and(|own| own != port) {
        return false;
    }
    let at = |number: i32| number == i32::from(port);
    match plane.key {
        DataPlaneKey::Gateway { .. } => plane
            .verdicts
            .listeners()
            .any(|listener| at(listener.port) && matches!(&*listener.protocol, "HTTP" | "HTTPS")),
        DataPlaneKey::Ingress { .. } | DataPlaneKey::Stream { .. } => {
            listeners(plane).iter().any(|listener| at(listener.port))
        }
    }
}

/// Whether one of the listeners has a port for the request, for any host.
pub(super) fn is_open(listeners: &[Listener], request: &Request, port: Option<u16>) -> bool {
    listeners.iter().any(|listener| listener.fits(request, port))
}

/// Whether the sidecar terminates TLS in front of a data plane.
pub(super) fn is_fronted(plane: &Plane<'_>) -> bool {
    let mut listeners = plane.verdicts.listeners();
    listeners.any(|listener| listener.data_plane.as_ref() == Some(plane.key) && listener.front.is_some())
}

/// The request as PingSIX gets it: in plaintext, at the address of the listener for the server name, if the sidecar
/// terminates TLS in front of the data plane. The error is the reason why the connection is closed.
pub(super) fn arrival(plane: &Plane<'_>, request: &Request) -> Result<Request, String> {
    if !request.tls || !is_fronted(plane) {
        return Ok(request.clone());
    }
    let name = request.server_name.as_deref().or_else(|| request.routing_host()).unwrap_or_default();
    let named = plane.verdicts.listeners().filter(|listener| {
        listener.keeps_hosts
            && matches!(&*listener.protocol, "HTTPS" | "TLS")
            && plane.key.port().is_none_or(|port| i32::from(port) == listener.port)
            && covers(listener.hostname.as_deref(), name)
    });
    let best = named.max_by_key(|listener| precedence(listener.hostname.as_deref()));
    match best {
        Some(ListenerVerdict { front: Some(front), .. }) => {
            let local = Some(SocketAddr::V4(front.address));
            Ok(Request { tls: false, server_name: None, local, ..request.clone() })
        }
        Some(listener) => Err(format!(
            "The server name {name} is that of listener {}, whose connections do not go to PingSIX.",
            Listener::of(listener)
        )),
        None => Err(format!("No listener has the server name {name}.")),
    }
}

/// The cause of a closed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ClosedCause {
    /// No listener accepts it.
    Listener,
    /// It speaks HTTP/2 without TLS, and the process of PingSIX also has ports with TLS.
    Http2WithoutTls,
}

/// The reason why a connection is closed.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) cause: ClosedCause,
    /// The reasons, in sentences.
    pub(super) why: String,
    /// Whether a refused listener fits the request, and the data plane serves other listeners. A PingSIX instance may
    /// still have the port open, and answers there.
    pub(super) may_be_open: bool,
}

/// The object with a name as explanations write it.
fn object_named(text: &str) -> Option<ObjectKey> {
    let (kind, name) = text.split_once(' ')?;
    let kind = Kind::ALL.iter().copied().find(|known| known.as_str() == kind)?;
    let (namespace, name) = name.split_once('/')?;
    Some(ObjectKey::new(kind, namespace, name))
}

/// The reasons for which a request cannot reach a data plane without a port for it.
pub(super) fn closed(plane: &Plane<'_>, request: &Request, port: Option<u16>) -> Closed {
    let protocol = if request.tls { "HTTPS" } else { "HTTP" };
    let at = port.map(|port| format!(" on port {port}")).unwrap_or_default();
    let known: Vec<String> = listeners(plane).iter().map(ToString::to_string).collect();
    let served = if known.is_empty() { "none".to_owned() } else { known.join("; ") };
    let of_gateway = plane.verdicts.listeners().filter(|listener| {
        Listener::of(listener).fits(request, port)
            && plane.key.port().is_none_or(|own| i32::from(own) == listener.port)
    });
    let refused: Vec<String> = of_gateway.map(|listener| not_served(listener, plane.verdicts)).collect();
    let mut sentences = vec![format!("No listener serves {protocol}{at}. Served: {served}.")];
    let may_be_open = !refused.is_empty() && !known.is_empty();
    sentences.extend(refused);
    Closed { cause: ClosedCause::Listener, why: sentences.join(" "), may_be_open }
}

/// The reason for which PingSIX closes a connection over HTTP/2 without TLS ([`h2c_obstacle`]).
pub(super) fn closed_http2(plane: &Plane<'_>, request: &Request) -> Option<Closed> {
    if !request.http2 || request.tls || plane.key.port().is_some() {
        return None;
    }
    let tls = h2c_obstacle(listeners(plane), Listener::has_tls)?;
    let why = format!(
        "PingSIX closes connections over HTTP/2 without TLS, because its process also has ports with TLS, such as {}. Use \
         layout perPort, or a process of its own for the ports without TLS (pingsix-config --ports).",
        tls.port
    );
    Some(Closed { cause: ClosedCause::Http2WithoutTls, why, may_be_open: true })
}

/// Whether requests of this scheme and port may arrive for a route: it is attached to a listener for them, or its
/// attachment is unknown.
pub(super) fn may_arrive(plane: &Plane<'_>, route: &str, request: &Request, port: Option<u16>) -> bool {
    let Some((key, verdict)) = object_named(route).and_then(|key| {
        let verdict = plane.verdicts.routes.get(&key)?;
        Some((key, verdict))
    }) else {
        return true;
    };
    let of_parent = |ParentVerdict { parent_ref, .. }: &ParentVerdict| {
        let Some(owner) = parent_ref.target(&key.name.namespace) else { return true };
        let of_gateway = plane.verdicts.gateway.iter().filter(|gateway| *gateway.key == owner);
        let of_set = plane.verdicts.listener_sets.iter().filter(|(set, _)| ***set == owner);
        let of_gateway = of_gateway.flat_map(|gateway| &gateway.listeners);
        of_gateway.chain(of_set.flat_map(|(_, set)| &set.listeners)).any(|listener| {
            parent_ref.selects(&listener.name, listener.port) && Listener::of(listener).fits(request, port)
        })
    };
    verdict.parents.iter().any(of_parent)
}

/// The statement that a listener is not served, with the reason, in sentences.
pub(super) fn not_served(listener: &ListenerVerdict, verdicts: &Verdicts) -> String {
    let refused = |conditions: &Conditions, kind| {
        let condition = conditions.get(kind).filter(|_| !conditions.is_true(kind));
        condition.map(|condition| format!(" {}", condition.message))
    };
    let of_gateway = || refused(&verdicts.gateway.as_ref()?.conditions, ConditionType::Accepted);
    let why = refused(&listener.conditions, ConditionType::Accepted)
        .or_else(|| refused(&listener.conditions, ConditionType::ResolvedRefs))
        .or_else(of_gateway)
        .unwrap_or_default();
    format!("Listener {} is not served.{why}", Listener::of(listener))
}

/// On each port that fits, the listener with the most specific hostname that covers the request's host.
pub(crate) fn serving_listeners(plane: &Plane<'_>, request: &Request, port: Option<u16>) -> Vec<Listener> {
    serving(&listeners(plane), request, port)
}

/// Those of the listeners that [`serving_listeners`] returns.
pub(super) fn serving(listeners: &[Listener], request: &Request, port: Option<u16>) -> Vec<Listener> {
    let mut best: Vec<&Listener> = Vec::new();
    for listener in listeners.iter().filter(|listener| listener.serves(request, port)) {
        match best.iter_mut().find(|held| held.port == listener.port) {
            Some(held) if held.precedence() >= listener.precedence() => {}
            Some(held) => *held = listener,
            None => best.push(listener),
        }
    }
    best.into_iter().cloned().collect()
}

/// The most specific listener hostname that covers the request's host, on any port. The outer option is `None` without
/// such a listener, and the inner one for a listener without a hostname.
#[expect(clippy::option_option, reason = "no listener is not the same as a listener without hostname")]
pub(super) fn zone(plane: &Plane<'_>, request: &Request) -> Option<Option<String>> {
    let host = request.routing_host().unwrap_or_default();
    let covering = listeners(plane).into_iter().filter(|listener| covers(listener.hostname.as_deref(), host));
    covering.max_by_key(Listener::precedence).map(|listener| listener.hostname)
}

/// Whether a hostname covers a host.
pub(super) fn covers(hostname: Option<&str>, host: &str) -> bool {
    hostname.is_none_or(|name| Hostname::parse(name).is_ok_and(|name| name.matches(host)))
}

/// The rank of a listener's hostname among those that cover one host.
fn precedence(hostname: Option<&str>) -> u32 {
    hostname.and_then(|name| Hostname::parse(name).ok()).map_or(0, |name| name.precedence())
}
