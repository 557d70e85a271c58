//! Listeners that cannot be told apart (Gateway API, "Distinct Listeners").
//!
//! Listeners of one protocol can be told apart by their hostnames. TLS listeners that pass through and TLS listeners that
//! terminate share a port, because one program reads the server name before either begins. HTTPS listeners share the port
//! with them if that program terminates TLS for them, too. Otherwise different programs serve HTTPS and TLS.
//!
//! In one Gateway or ListenerSet, all listeners that cannot be told apart lose. Between several, the first listener wins:
//! those of the Gateway come first, then those of ListenerSets, the oldest first. A listener that has lost, or is refused
//! for another reason, claims nothing, so a mistake in one object takes no port or hostname away from another.

use std::collections::BTreeMap;
use std::ops::Range;

use super::listener::{Listener, ListenerState};
use super::protocol::Protocol;
use crate::model::{Hostname, Kind, Reason, Refusal};

/// Marks the listeners that lose. Each range has the listeners of one owner, in order of precedence.
pub(super) fn mark_conflicts(listeners: &mut [Listener], owners: impl Iterator<Item = Range<usize>>) {
    let mut taken: BTreeMap<Socket, PortClaim> = BTreeMap::new();
    for owner in owners {
        let later: Vec<(usize, Refusal)> = owner
            .clone()
            .filter_map(|index| Some((index, taken.get(&Socket::wanted(&listeners[index])?)?)))
            .filter_map(|(index, taken)| Some((index, taken.conflict(&listeners[index], listeners)?)))
            .collect();
        mark(listeners, later);
        let mut own: BTreeMap<Socket, Vec<usize>> = BTreeMap::new();
        for index in owner {
            if let Some(socket) = Socket::claimed(&listeners[index]) {
                own.entry(socket).or_default().push(index);
            }
        }
        let among: Vec<(usize, Refusal)> =
            own.values().flat_map(|indices| conflicts_among(indices, listeners)).collect();
        mark(listeners, among);
        for (socket, indices) in own {
            for index in indices {
                if Socket::claimed(&listeners[index]).is_some() {
                    taken
                        .entry(socket)
                        .or_insert_with(|| PortClaim::new(index))
                        .add(index, &listeners[index]);
                }
            }
        }
    }
}

fn mark(listeners: &mut [Listener], conflicts: Vec<(usize, Refusal)>) {
    for (index, refusal) in conflicts {
        listeners[index].state = ListenerState::Conflicted { refusal };
    }
}

/// The socket of a listener. UDP has port numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Socket {
    transport: Transport,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Transport {
    Tcp,
    Udp,
}

impl Socket {
    fn of(protocol: Protocol, port: u16) -> Self {
        let transport = match protocol {
            Protocol::Http | Protocol::Https | Protocol::Tls | Protocol::Tcp => Transport::Tcp,
            Protocol::Udp => Transport::Udp,
        };
        Self { transport, port }
    }

    /// The socket of an accepted listener.
    fn claimed(listener: &Listener) -> Option<Self> {
        claimed_protocol(listener).map(|protocol| Self::of(protocol, listener.port))
    }

    /// The socket that a listener asks for. In a ListenerSet, listeners with an unsupported protocol have one, too: a
    /// conflict about the port is the more useful message.
    fn wanted(listener: &Listener) -> Option<Self> {
        wanted_protocol(listener).map(|protocol| Self::of(protocol, listener.port))
    }
}

/// The protocol with which a listener occupies its port, also without a usable certificate.
pub(crate) fn claimed_protocol(listener: &Listener) -> Option<Protocol> {
    match &listener.state {
        ListenerState::Served { .. } | ListenerState::Unresolved => listener.protocol,
        ListenerState::Refused { .. } | ListenerState::Conflicted { .. } | ListenerState::Excluded { .. } => {
            None
        }
    }
}

/// A use of a port that listeners can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortUse {
    /// One program has the port for this protocol.
    Alone(Protocol),
    /// The stream proxy reads the server names of connections.
    ByServerName,
}

/// The use that a listener makes of its port.
fn wanted_use(listener: &Listener) -> Option<PortUse> {
    Some(match wanted_protocol(listener)? {
        Protocol::Tls => PortUse::ByServerName,
        Protocol::Https if listener.is_fronted() => PortUse::ByServerName,
        protocol @ (Protocol::Http | Protocol::Https | Protocol::Tcp | Protocol::Udp) => {
            PortUse::Alone(protocol)
        }
    })
}

fn wanted_protocol(listener: &Listener) -> Option<Protocol> {
    if let ListenerState::Refused { refusal } = &listener.state
        && refusal.reason == Reason::UnsupportedProtocol
        && listener.owner.kind == Kind::ListenerSet
    {
        return Protocol::known(&listener.written_protocol);
    }
    claimed_protocol(listener)
}

/// The hostname that distinguishes listeners with the same use of a port.
fn distinction(listener: &Listener) -> Option<&Hostname> {
    match wanted_protocol(listener)? {
        Protocol::Http | Protocol::Https | Protocol::Tls => listener.hostname.as_ref(),
        // Streams have no hostname.
        Protocol::Tcp | Protocol::Udp => None,
    }
}

/// The listeners that have claimed a port.
struct PortClaim {
    /// The first of them; the others use the port alike.
    first: usize,
    by_hostname: BTreeMap<Option<Hostname>, usize>,
}

impl PortClaim {
    fn new(first: usize) -> Self {
        Self { first, by_hostname: BTreeMap::new() }
    }

    fn add(&mut self, index: usize, listener: &Listener) {
        self.by_hostname.insert(distinction(listener).cloned(), index);
    }

    /// The conflict of a later listener with these.
    fn conflict(&self, listener: &Listener, listeners: &[Listener]) -> Option<Refusal> {
        let first = &listeners[self.first];
        if wanted_use(first) != wanted_use(listener) {
            return Some(protocol_conflict(listener, first));
        }
        let rival = *self.by_hostname.get(&distinction(listener).cloned())?;
        Some(hostname_conflict(listener, &listeners[rival]))
    }
}

/// The conflicts among the listeners of one owner on a port; all of them lose.
fn conflicts_among(indices: &[usize], listeners: &[Listener]) -> Vec<(usize, Refusal)> {
    let (Some(&first), Some(&last)) = (indices.first(), indices.last()) else { return Vec::new() };
    let different = |one: usize, other: usize| wanted_use(&listeners[one]) != wanted_use(&listeners[other]);
    if let Some(&odd) = indices.iter().find(|&&index| different(index, first)) {
        return indices
            .iter()
            .map(|&index| {
                let rival = if different(index, first) { first } else { odd };
                (index, protocol_conflict(&listeners[index], &listeners[rival]))
            })
            .collect();
    }
    if first == last {
        return Vec::new();
    }
    let mut by_hostname: BTreeMap<Option<&Hostname>, Vec<usize>> = BTreeMap::new();
    for &index in indices {
        by_hostname.entry(distinction(&listeners[index])).or_default().push(index);
    }
    let shared = by_hostname.values().filter(|indices| indices.len() > 1);
    shared
        .flat_map(|indices| {
            indices.iter().enumerate().filter_map(|(position, &index)| {
                let rival = *indices.get(usize::from(position == 0))?;
                Some((index, hostname_conflict(&listeners[index], &listeners[rival])))
            })
        })
        .collect()
}

fn protocol_conflict(listener: &Listener, rival: &Listener) -> Refusal {
    let message =
        format!("{} uses port {} with another protocol.", described(rival, listener), listener.port);
    Refusal::new(listener.at().child("protocol"), Reason::ProtocolConflict, message)
}

fn hostname_conflict(listener: &Listener, rival: &Listener) -> Refusal {
    let rival = described(rival, listener);
    let (field, message) = match wanted_protocol(listener) {
        Some(Protocol::Tcp | Protocol::Udp) => {
            ("port", format!("{rival} has the same port {} and protocol.", listener.port))
        }
        Some(Protocol::Http | Protocol::Https | Protocol::Tls) | None => {
            ("hostname", format!("{rival} has the same port {} and hostname.", listener.port))
        }
    };
    Refusal::new(listener.at().child(field), Reason::HostnameConflict, message)
}

/// The name of a listener in a message to the author of another.
fn described(listener: &Listener, reader: &Listener) -> String {
    if listener.owner == reader.owner {
        format!("Listener \"{}\"", listener.name)
    } else if listener.owner.kind == Kind::ListenerSet && !listener.owner.is_known_to(&reader.owner) {
        format!("A listener of {}", listener.owner.named_to(&reader.owner))
    } else {
        // A ListenerSet names its Gateway itself.
        format!("Listener \"{}\" of {}", listener.name, listener.owner)
    }
}
