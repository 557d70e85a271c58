//! Whether a request may have been answered as it was.

use super::backend::Received;
use super::reading::{Reading, readings};
use super::site::{Site, Visitor};

/// A request that reached a backend against the will of an author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) kind: ViolationKind,
    /// The index of the part whose demand was not met.
    pub(super) part: usize,
    pub(super) reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ViolationKind {
    /// The backend of a protected part got a request that it may understand as one for the part.
    Reached,
    /// A backend that serves no such host got a request for the host of a protected part.
    Astray,
}

/// Judges what a backend has received.
pub(super) fn judge(site: &Site, visitor: &Visitor, received: &Received) -> Option<Violation> {
    let service = received.service.as_str();
    let readings = readings(received);
    for reading in &readings {
        let Some(part) = site.part_of(&reading.host, &reading.path, &reading.method) else { continue };
        let holder = &site.parts[part];
        if holder.admits(part, visitor, &reading.method) {
            continue;
        }
        let kind = if holder.service == service {
            ViolationKind::Reached
        } else if !holder.hosts.is_empty() && !site.serves_host(service, &reading.host) {
            ViolationKind::Astray
        } else {
            continue;
        };
        return Some(Violation { kind, part, reading: reading.clone() });
    }
    // A Service of protected parts alone serves no other request, in any spelling.
    let mut owners = site.parts.iter().enumerate().filter(|(_, part)| part.service == service);
    let first = owners.clone().next()?.0;
    let is_for_nobody = owners.all(|(index, part)| !part.admits(index, visitor, &received.method));
    is_for_nobody.then(|| Violation {
        kind: ViolationKind::Reached,
        part: first,
        reading: readings[0].clone(),
    })
}
