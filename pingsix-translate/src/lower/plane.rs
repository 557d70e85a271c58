//! Data planes of a Gateway, and the hosts of each listener there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;

use super::redirect::EntryPort;
use super::ssl::{ServedCertificate, ServedCertificates, certificates};
use crate::attach::{Listener, Protocol, claimed_protocol};
use crate::infrastructure::INGRESS_PORTS;
use crate::model::{
    Age, DataPlaneKey, Hostname, Layout, ObjectKey, ObjectName, compare_age, hostname_and_wider,
    wider_hostnames,
};
use crate::parameters::PlaneSettings;
use crate::small_set::SmallSet;

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
    pub(crate) settings: PlaneSettings,
}

/// The hosts for which one listener hostname is the most specific, and who serves them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ZoneListeners {
    pub(crate) hostname: Option<Hostname>,
    /// Whether the zone has a guard: a wider zone exists, or requests may come in by other listeners.
    pub(crate) guarded: bool,
    /// The requests that came in by other listeners and are answered with 421.
    pub(crate) misdirected: Option<Misdirected>,
    /// The oldest Gateway or ListenerSet with a listener of this hostname; an IngressClass has none.
    pub(crate) owner: Option<(Age, Arc<ObjectKey>)>,
    /// Indices of the listeners whose hosts these are, one per port. A route is served exactly if it is attached
    /// to all of them; PingSIX cannot tell ports apart.
    pub(crate) listeners: Vec<usize>,
    /// Whether a listener of the zone is served. A zone without a served listener answers nothing, and its hosts never
    /// fall to a wider listener, which may admit more clients.
    pub(crate) is_served: bool,
    /// The ports of its requests: those of the listeners, in their order.
    pub(crate) entrances: Vec<EntryPort>,
    /// A plaintext port of the data plane on which the zone would be served although all its listeners speak
    /// HTTPS.
    pub(crate) exposed_on: Option<u16>,
}

/// The status for a request whose host belongs to another listener than its connection (RFC 9110, 15.5.20).
pub(super) const MISDIRECTED: u16 = 421;

/// Requests for a zone that came in by a connection to another listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misdirected {
    /// Requests at any other address.
    UnlessAt(SocketAddrV4),
    /// All requests: no listener of PingSIX serves the zone.
    All,
}

impl ZoneListeners {
    /// The address at which the requests of the zone come in; `None` if the address does not matter.
    pub(crate) fn address(&self) -> Option<SocketAddrV4> {
        match self.misdirected? {
            Misdirected::UnlessAt(address) => Some(address),
            Misdirected::All => None,
        }
    }

    /// Whether, of the zone's listeners, these are the ones with a protocol: all of them, and no others.
    pub(crate) fn is_attached_by(&self, protocol: Protocol, listeners: &SmallSet<usize>) -> bool {
        let speaks = |entry_port: &EntryPort| entry_port.protocol == protocol;
        let mut members = self.listeners.iter().zip(&self.entrances);
        self.entrances.iter().any(speaks)
            && members.all(|(listener, entry_port)| listeners.contains(listener) == speaks(entry_port))
    }
}

impl Plane {
    /// The served listeners of its zones, of all of the Gateway.
    pub(crate) fn served_listeners(&self, all: &[Listener]) -> impl Iterator<Item = usize> {
        let listeners = self.zones.iter().flat_map(|zone| &zone.listeners).copied();
        listeners.filter(|&listener| all.get(listener).is_some_and(Listener::is_served))
    }

    /// Whether routes are placed and admitted as in another one, whatever certificates are shown.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        self.key == other.key && self.zones == other.zones && self.settings == other.settings
    }
}

/// The data planes of a Gateway, by key.
pub(crate) fn planes(
    gateway: &ObjectName,
    listeners: &[Listener],
    layout: Layout,
    settings: &PlaneSettings,
) -> Vec<Plane> {
    // A port whose listeners are all refused has a data plane too: it must come to hold nothing.
    let ports: BTreeSet<u16> = listeners
        .iter()
        .filter(|listener| listener.protocol.is_some_and(Protocol::is_http) && listener.port > 0)
        .map(|listener| listener.port)
        .collect();
    by_layout(layout, ports, |port| {
        let is_on_port = |index: &usize| port.is_none_or(|port| listeners[*index].port == port);
        let served: Vec<usize> = served(listeners).filter(is_on_port).collect();
        let zones = zones(listeners, &served);
        // The sidecar shows the certificates of fronted listeners.
        let own: Vec<usize> = served.into_iter().filter(|&index| !listeners[index].is_fronted()).collect();
        let certificates = certificates(listeners, &own);
        Plane { key: key(gateway, port), zones, certificates, settings: settings.clone() }
    })
}

/// The data planes of an IngressClass, by key. Each has one zone with every host. The indices of [`INGRESS_PORTS`]
/// replace those of listeners.
pub(crate) fn ingress_planes(
    class: &Arc<str>,
    layout: Layout,
    certificates: &[ServedCertificate],
    settings: &PlaneSettings,
) -> Vec<Plane> {
    by_layout(layout, INGRESS_PORTS.map(|(port, _)| port), |port| {
        let is_on_port = |of_class: u16| port.is_none_or(|port| of_class == port);
        let ports = INGRESS_PORTS.into_iter().enumerate().filter(|(_, (port, _))| is_on_port(*port));
        let (listeners, entrances): (Vec<usize>, Vec<EntryPort>) = ports
            .map(|(index, (port, protocol))| {
                (index, EntryPort { protocol: protocol.into(), port, is_fronted: false })
            })
            .unzip();
        let has_tls = entrances.iter().any(|entry_port| entry_port.protocol == Protocol::Https);
        let served = if has_tls { certificates.to_vec() } else { Vec::new() };
        let zone = ZoneListeners {
            hostname: None,
            guarded: false,
            misdirected: None,
            owner: None,
            listeners,
            entrances,
            is_served: true,
            exposed_on: None,
        };
        Plane {
            key: DataPlaneKey::Ingress { class: class.clone(), port },
            zones: vec![zone],
            certificates: ServedCertificates { served, limitations: Vec::new() },
            settings: settings.clone(),
        }
    })
}

/// One data plane for all ports, or one for each.
fn by_layout(
    layout: Layout,
    ports: impl IntoIterator<Item = u16>,
    plane: impl Fn(Option<u16>) -> Plane,
) -> Vec<Plane> {
    match layout {
        Layout::Shared => vec![plane(None)],
        Layout::PerPort => ports.into_iter().map(|port| plane(Some(port))).collect(),
    }
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

fn entry_port(listener: &Listener) -> Option<EntryPort> {
    let is_fronted = listener.is_fronted();
    Some(EntryPort { protocol: listener.protocol?, port: listener.port, is_fronted })
}

fn zones(listeners: &[Listener], served: &[usize]) -> Vec<ZoneListeners> {
    let is_of_pingsix = |listener: &Listener| listener.protocol.is_some_and(Protocol::is_http);
    let mut ports = ports(listeners, served, is_of_pingsix);
    add_tls_listeners(&mut ports, listeners, served);
    let hostnames: BTreeSet<&Option<Hostname>> = ports.values().flat_map(BTreeMap::keys).collect();
    let plaintext_port = served
        .iter()
        .map(|index| &listeners[*index])
        .find(|listener| listener.protocol == Some(Protocol::Http))
        .map(|listener| listener.port);
    hostnames
        .iter()
        .map(|&hostname| {
            // Being covered by the zone's hostname, none of its hosts has a more specific listener.
            let members: Vec<usize> =
                ports.values().filter_map(|port| most_specific(port, hostname.as_ref())).collect();
            let (members, others): (Vec<usize>, Vec<usize>) =
                members.into_iter().partition(|&index| is_of_pingsix(&listeners[index]));
            let served =
                || members.iter().map(|&index| &listeners[index]).filter(|listener| listener.is_served());
            let misdirected = misdirected(&ports, listeners, members.first().copied());
            let all_https = served().all(|listener| listener.protocol == Some(Protocol::Https));
            ZoneListeners {
                hostname: hostname.clone(),
                // A wider listener of another port is a member too, and did not ask for the zone.
                owner: members
                    .iter()
                    .chain(&others)
                    .map(|&index| &listeners[index])
                    .filter(|listener| listener.hostname == *hostname)
                    .map(|listener| (listener.age, &listener.owner))
                    .min_by(|one, other| compare_age((one.0, one.1), (other.0, other.1)))
                    .map(|(age, owner)| (age, owner.clone())),
                guarded: misdirected.is_some()
                    || wider_hostnames(hostname.as_ref()).any(|wider| hostnames.contains(&wider)),
                misdirected,
                entrances: members.iter().filter_map(|&index| entry_port(&listeners[index])).collect(),
                exposed_on: plaintext_port.filter(|_| all_https),
                is_served: served().next().is_some(),
                listeners: members,
            }
        })
        .collect()
}

/// Adds the listeners for TLS of fronted ports: hosts of these are theirs, and PingSIX serves none of them.
fn add_tls_listeners(ports: &mut BTreeMap<u16, Port>, listeners: &[Listener], served: &[usize]) {
    let fronted: BTreeSet<u16> = served
        .iter()
        .map(|&index| &listeners[index])
        .filter(|listener| listener.is_fronted())
        .map(|listener| listener.port)
        .collect();
    for (index, listener) in listeners.iter().enumerate() {
        let is_of_port =
            claimed_protocol(listener) == Some(Protocol::Tls) && fronted.contains(&listener.port);
        if let Some(port) = ports.get_mut(&listener.port).filter(|_| is_of_port) {
            port.entry(listener.hostname.clone()).or_insert(index);
        }
    }
}

/// The misdirected requests for a zone of a listener; `None` if connections to other listeners reach no PingSIX, or if
/// PingSIX cannot tell.
fn misdirected(
    ports: &BTreeMap<u16, Port>,
    listeners: &[Listener],
    listener: Option<usize>,
) -> Option<Misdirected> {
    // A fronted data plane has one port.
    let port = ports.values().next()?;
    let is_fronted = port.values().any(|&index| listeners[index].is_fronted());
    if !is_fronted || port.len() == 1 {
        return None;
    }
    let own = listener.map(|index| &listeners[index]).filter(|listener| listener.is_served());
    match own.and_then(|listener| listener.front.as_ref().zip(listener.front_address())) {
        Some((front, address)) => front.detects.then_some(Misdirected::UnlessAt(address)),
        None => Some(Misdirected::All),
    }
}

/// The listeners of a port by hostname.
pub(super) type Port = BTreeMap<Option<Hostname>, usize>;

/// The listeners of each port: the served ones, and such ones that are not served but keep their hosts from wider ones.
pub(super) fn ports(
    listeners: &[Listener],
    served: &[usize],
    is_such: impl Fn(&Listener) -> bool,
) -> BTreeMap<u16, Port> {
    let mut ports: BTreeMap<u16, Port> = BTreeMap::new();
    for &index in served {
        let listener = &listeners[index];
        ports.entry(listener.port).or_default().entry(listener.hostname.clone()).or_insert(index);
    }
    let is_kept = |listener: &Listener| !listener.is_served() && listener.keeps_hosts() && is_such(listener);
    let mut kept = Vec::new();
    for (index, listener) in listeners.iter().enumerate().filter(|(_, listener)| is_kept(listener)) {
        if let Some(port) = ports.get(&listener.port)
            && wider_hostnames(listener.hostname.as_ref()).any(|wider| port.contains_key(&wider))
        {
            kept.push((index, listener));
        }
    }
    for (index, listener) in kept {
        ports.entry(listener.port).or_default().entry(listener.hostname.clone()).or_insert(index);
    }
    ports
}

/// The listener of a port with the longest hostname that covers this one.
pub(super) fn most_specific(port: &Port, hostname: Option<&Hostname>) -> Option<usize> {
    hostname_and_wider(hostname).find_map(|name| port.get(&name).copied())
}

#[cfg(test)]
mod tests;
