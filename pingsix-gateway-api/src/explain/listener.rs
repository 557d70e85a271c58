//! The listeners of a data plane, and which of them serve a request.

use std::fmt;

use pingsix_translate::pingsix::Request;
use pingsix_translate::{DataPlaneKey, Hostname};
use serde::Serialize;

use super::Plane;

/// A listener that a data plane serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listener {
    /// `spec.listeners[].name`
    pub name: String,
    /// Its port.
    pub port: i32,
    /// Its protocol.
    pub protocol: String,
    /// Its hostname; none is every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// Name, port and protocol of what every Ingress is served on (Kubernetes, `IngressSpec`).
const INGRESS_LISTENERS: [(&str, i32, &str); 2] = [("http", 80, "HTTP"), ("https", 443, "HTTPS")];

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port, protocol, hostname } = self;
        let hostname = hostname.as_deref().unwrap_or("any host");
        write!(f, "{name} ({protocol} port {port}, {hostname})")
    }
}

/// The listeners that a data plane serves, in the order of the spec. An IngressClass has none to write down; its data
/// plane has the two every Ingress is served on.
pub fn listeners(plane: &Plane<'_>) -> Vec<Listener> {
    match plane.key {
        DataPlaneKey::Gateway { .. } | DataPlaneKey::Stream { .. } => plane
            .verdicts
            .listeners()
            .filter(|listener| listener.data_plane.as_ref() == Some(plane.key))
            .map(|listener| Listener {
                name: listener.name.clone(),
                port: listener.port,
                protocol: listener.protocol.clone(),
                hostname: listener.hostname.clone(),
            })
            .collect(),
        DataPlaneKey::Ingress { .. } => INGRESS_LISTENERS
            .into_iter()
            .map(|(name, port, protocol)| Listener {
                name: name.to_owned(),
                port,
                protocol: protocol.to_owned(),
                hostname: None,
            })
            .collect(),
    }
}

/// Whether the data plane has a port for the request, whatever hosts are served there.
pub(super) fn is_open(plane: &Plane<'_>, request: &Request, port: Option<u16>) -> bool {
    listeners(plane).iter().any(|listener| fits(listener, request, port))
}

fn fits(listener: &Listener, request: &Request, port: Option<u16>) -> bool {
    let protocol = if request.tls { "HTTPS" } else { "HTTP" };
    listener.protocol == protocol && port.is_none_or(|port| i32::from(port) == listener.port)
}

/// On each port that fits, the listener with the most specific hostname that covers the request's host.
pub fn serving_listeners(plane: &Plane<'_>, request: &Request, port: Option<u16>) -> Vec<Listener> {
    let host = request.routing_host().unwrap_or_default();
    let mut best: Vec<Listener> = Vec::new();
    for listener in listeners(plane) {
        if !fits(&listener, request, port) || !covers(listener.hostname.as_deref(), host) {
            continue;
        }
        match best.iter_mut().find(|held| held.port == listener.port) {
            Some(held) if specificity(held) >= specificity(&listener) => {}
            Some(held) => *held = listener,
            None => best.push(listener),
        }
    }
    best
}

/// The listener hostname that rules a host, whatever the port: the most specific one that covers it. The outer option
/// is empty when none does.
#[expect(clippy::option_option, reason = "no listener is not the same as a listener without hostname")]
pub(super) fn zone(plane: &Plane<'_>, request: &Request) -> Option<Option<String>> {
    let host = request.routing_host().unwrap_or_default();
    let covering = listeners(plane).into_iter().filter(|listener| covers(listener.hostname.as_deref(), host));
    covering.max_by_key(specificity).map(|listener| listener.hostname)
}

/// Whether a hostname covers a host.
pub(super) fn covers(hostname: Option<&str>, host: &str) -> bool {
    hostname.is_none_or(|name| Hostname::parse(name).is_ok_and(|name| name.matches(host)))
}

/// Exact before wildcard, longer before shorter, anything before none.
fn specificity(listener: &Listener) -> (bool, usize) {
    let hostname = listener.hostname.as_deref().unwrap_or_default();
    (!hostname.is_empty() && !hostname.starts_with('*'), hostname.len())
}
