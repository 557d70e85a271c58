//! Listeners that cannot be told apart (Gateway API, "Distinct Listeners").

use std::collections::BTreeMap;

use super::listener::{Listener, ListenerState, Protocol};
use crate::field::FieldPath;
use crate::route::Refusal;
use crate::verdict::Reason;

/// Listeners of one Gateway that cannot be told apart all lose: there is no winner among them.
pub(super) fn mark_conflicts(listeners: &mut [Listener]) {
    let mut by_port: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (index, listener) in listeners.iter().enumerate() {
        if claimed_protocol(listener).is_some() {
            by_port.entry(listener.port).or_default().push(index);
        }
    }
    let mut conflicts = Vec::new();
    for indices in by_port.values() {
        conflicts.extend(
            indices.iter().filter_map(|&index| Some((index, conflict_of(index, indices, listeners)?))),
        );
    }
    for (index, refusal) in conflicts {
        listeners[index].state = ListenerState::Conflicted { refusal };
    }
}

/// Why a listener cannot be told from one of those on its port.
fn conflict_of(index: usize, on_port: &[usize], listeners: &[Listener]) -> Option<Refusal> {
    let listener = &listeners[index];
    let rivals = || on_port.iter().filter(|other| **other != index).map(|other| &listeners[*other]);
    let at = FieldPath::new("spec").child("listeners").index(index);
    if let Some(rival) = rivals().find(|rival| claimed_protocol(rival) != claimed_protocol(listener)) {
        return Some(Refusal::new(
            at.child("protocol"),
            Reason::ProtocolConflict,
            format!("Listener \"{}\" uses port {} with another protocol.", rival.name, listener.port),
        ));
    }
    let rival = rivals().find(|rival| rival.hostname == listener.hostname)?;
    Some(Refusal::new(
        at.child("hostname"),
        Reason::HostnameConflict,
        format!("Listener \"{}\" has the same port {} and hostname.", rival.name, listener.port),
    ))
}

/// The protocol a listener occupies its port with, whether or not it has a certificate to be served with.
pub(super) fn claimed_protocol(listener: &Listener) -> Option<Protocol> {
    match &listener.state {
        ListenerState::Served { .. } | ListenerState::Unresolved => listener.protocol,
        ListenerState::Refused { .. } | ListenerState::Conflicted { .. } => None,
    }
}
