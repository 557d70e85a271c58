//! The limit of ports for a managed Gateway: each port is a process in its Pods, and authors of ListenerSets ask for ports
//! of a Gateway that belongs to somebody else.

use std::collections::BTreeSet;

use super::conflict::claimed_protocol;
use super::listener::{Listener, ListenerState};
use super::protocol::Protocol;
use crate::model::{Reason, Refusal};

/// The number of listeners that a Gateway can have of its own. These come first.
pub(crate) const MANAGED_PORTS: usize = 64;

/// Refuses the listeners on ports beyond the first `limit`; `listeners` are in order of precedence.
pub(super) fn limit_ports(listeners: &mut [Listener], limit: usize) {
    let mut ports = BTreeSet::new();
    for listener in listeners {
        if !matches!(claimed_protocol(listener), Some(Protocol::Http | Protocol::Https)) {
            continue;
        }
        if ports.len() < limit {
            ports.insert(listener.port);
        } else if !ports.contains(&listener.port) {
            let message =
                format!("A managed Gateway has at most {limit} ports, and earlier listeners use them.");
            let refusal = Refusal::new(listener.at().child("port"), Reason::PortUnavailable, message);
            listener.state = ListenerState::Refused { refusal };
        }
    }
}
