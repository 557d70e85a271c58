//! Which data planes a Gateway has, and which hosts each listener serves there.

use std::collections::{BTreeMap, BTreeSet};

use super::redirect::Entrance;
use super::ssl::{ServedCertificates, certificates};
use crate::attach::{Hostname, Listener, Protocol, hostname_covers, hostname_precedence};
use crate::object::ObjectName;
use crate::options::Layout;
use crate::translation::DataPlaneKey;

/// A rule of the translation: index of the route, index of the rule in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleRef {
    pub(crate) route: usize,
    pub(crate) rule: usize,
}

/// A data plane and its zones.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) key: DataPlaneKey,
    pub(crate) zones: Vec<ZoneListeners>,
    pub(crate) certificates: ServedCertificates,
}

/// The hosts for which one listener hostname is the most specific, and who serves them.
#[derive(Debug)]
pub(crate) struct ZoneListeners {
    pub(crate) hostname: Option<Hostname>,
    /// Whether a wider zone exists.
    pub(crate) guarded: bool,
    /// Indices of the listeners that serve the zone, one per port. A route is served exactly if it is attached
    /// to all of them; PingSIX cannot tell ports apart.
    pub(crate) listeners: Vec<usize>,
    /// The ports its requests come in by.
    pub(crate) entrances: Vec<Entrance>,
    /// A plaintext port of the data plane on which the zone would be served although all its listeners speak
    /// HTTPS.
    pub(crate) exposed_on: Option<u16>,
}

/// The data planes of a Gateway, by key.
pub(crate) fn planes(gateway: &ObjectName, listeners: &[Listener], layout: Layout) -> Vec<Plane> {
    match layout {
        Layout::Shared => {
            let served: Vec<usize> = served(listeners).collect();
            vec![plane(key(gateway, None), listeners, &served)]
        }
        Layout::PerPort => {
            // A port whose listeners are all refused has a data plane too: it must come to hold nothing.
            let ports: BTreeSet<u16> = listeners
                .iter()
                .filter(|listener| listener.protocol.is_some_and(Protocol::is_http) && listener.port > 0)
                .map(|listener| listener.port)
                .collect();
            ports
                .into_iter()
                .map(|port| {
                    let served: Vec<usize> =
                        served(listeners).filter(|index| listeners[*index].port == port).collect();
                    plane(key(gateway, Some(port)), listeners, &served)
                })
                .collect()
        }
    }
}

fn plane(key: DataPlaneKey, listeners: &[Listener], served: &[usize]) -> Plane {
    Plane { key, zones: zones(listeners, served), certificates: certificates(listeners, served) }
}

/// The data plane that serves a listener.
pub(crate) fn data_plane_of(
    gateway: &ObjectName,
    listener: &Listener,
    layout: Layout,
) -> Option<DataPlaneKey> {
    if !listener.is_served() {
        return None;
    }
    let protocol = listener.protocol?;
    Some(if protocol.is_http() {
        key(gateway, (layout == Layout::PerPort).then_some(listener.port))
    } else {
        DataPlaneKey::Stream { gateway: gateway.clone() }
    })
}

fn key(gateway: &ObjectName, port: Option<u16>) -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: gateway.clone(), port }
}

fn served(listeners: &[Listener]) -> impl Iterator<Item = usize> + '_ {
    let by_pingsix =
        |listener: &Listener| listener.is_served() && listener.protocol.is_some_and(Protocol::is_http);
    (0..listeners.len()).filter(move |index| by_pingsix(&listeners[*index]))
}

fn entrance(listener: &Listener) -> Option<Entrance> {
    Some(Entrance { protocol: listener.protocol?, port: listener.port })
}

fn zones(listeners: &[Listener], served: &[usize]) -> Vec<ZoneListeners> {
    let hostnames: BTreeSet<Option<&Hostname>> =
        served.iter().map(|index| listeners[*index].hostname.as_ref()).collect();
    let plaintext_port = served
        .iter()
        .map(|index| &listeners[*index])
        .find(|listener| listener.protocol == Some(Protocol::Http))
        .map(|listener| listener.port);
    hostnames
        .iter()
        .map(|&hostname| {
            // Per port, the most specific listener that serves the zone's hosts. Being covered by the zone's
            // hostname, none of its hosts has a more specific one.
            let mut by_port: BTreeMap<u16, usize> = BTreeMap::new();
            for &index in served {
                let listener = &listeners[index];
                if !hostname_covers(listener.hostname.as_ref(), hostname) {
                    continue;
                }
                let rank = |index: usize| hostname_precedence(listeners[index].hostname.as_ref());
                let best = by_port.entry(listener.port).or_insert(index);
                if rank(index) > rank(*best) {
                    *best = index;
                }
            }
            let members: Vec<usize> = by_port.into_values().collect();
            let all_https = members.iter().all(|index| listeners[*index].protocol == Some(Protocol::Https));
            ZoneListeners {
                hostname: hostname.cloned(),
                guarded: hostnames.iter().any(|&wider| wider != hostname && hostname_covers(wider, hostname)),
                entrances: members.iter().filter_map(|index| entrance(&listeners[*index])).collect(),
                exposed_on: plaintext_port.filter(|_| all_https),
                listeners: members,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
