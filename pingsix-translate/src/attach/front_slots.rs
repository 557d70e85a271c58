//! The slots of fronted listeners, which are their addresses at PingSIX.
//!
//! The sidecar passes the decrypted bytes on to PingSIX, to another address for each listener. So PingSIX can tell from
//! the address whether a request came in by the listener that its Host belongs to. An address has a **slot** of its
//! port, which follows from the hostname of the listener.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::conflict::claimed_protocol;
use super::{Listener, Protocol};
use crate::model::{Capability, Hostname};
use crate::stream::FRONT_SLOTS;

/// Gives the fronted listeners their slots, in order of precedence, so that no later listener moves an earlier one.
pub(super) fn assign_slots(listeners: &mut [Listener]) {
    let mut taken: BTreeMap<u16, BTreeSet<u8>> = BTreeMap::new();
    for listener in listeners {
        let has_claim = claimed_protocol(listener) == Some(Protocol::Https);
        let Some(front) = listener.front.as_mut().filter(|_| has_claim) else { continue };
        let of_port = taken.entry(listener.port).or_default();
        let is_undetected = !front.detects && !of_port.is_empty();
        let first = first_slot(listener.hostname.as_ref());
        let slot = (first..=FRONT_SLOTS).chain(1..first).find(|slot| !of_port.contains(slot));
        front.slot = Some(slot.unwrap_or(first));
        of_port.insert(slot.unwrap_or(first));
        let at = listener.at().child("port");
        let limitation = if is_undetected {
            Capability::MisdirectedRequests.limit(at)
        } else if slot.is_none() {
            Capability::MisdirectedBeyondSlots.limit_with(at, &[&FRONT_SLOTS.to_string()])
        } else {
            continue;
        };
        listener.limitations.push(limitation);
    }
}

/// The first slot that a listener with this hostname tries, from 1.
fn first_slot(hostname: Option<&Hostname>) -> u8 {
    let hash = Sha256::digest(hostname.map_or("", Hostname::as_str));
    hash.first().copied().unwrap_or_default() % FRONT_SLOTS + 1
}

#[cfg(test)]
mod tests;
