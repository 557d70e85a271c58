//! The ports that an unprivileged proxy listens on.

use std::collections::{BTreeMap, BTreeSet};

/// The lowest unprivileged port.
const FIRST_PORT: u16 = 1024;
/// The number of unprivileged ports.
const PORT_COUNT: u16 = u16::MAX - FIRST_PORT + 1;

/// The distance from a privileged port of clients to the port that stands for it in a Pod: port 80 is on 10080.
pub const LOW_PORT_OFFSET: u16 = 10_000;

/// The port in a Pod for a port of clients, while it is free.
pub const fn unprivileged(port: u16) -> u16 {
    if port < FIRST_PORT { port + LOW_PORT_OFFSET } else { port }
}

/// The unprivileged port at a distance; the lowest one follows the last one.
pub fn port_after(port: u16, steps: u16) -> u16 {
    let index = (u32::from(port.saturating_sub(FIRST_PORT)) + u32::from(steps)) % u32::from(PORT_COUNT);
    FIRST_PORT + u16::try_from(index).unwrap_or_default()
}

/// The next port that is not taken.
pub fn free_port(taken: &BTreeSet<u16>, wanted: u16) -> u16 {
    if !taken.contains(&wanted) {
        return wanted;
    }
    (0..PORT_COUNT)
        .map(|steps| port_after(wanted, steps))
        .find(|port| !taken.contains(port))
        .unwrap_or(wanted)
}

/// The port to listen on for each port of clients. Of two that lead to the same, the lower one has it, and the other one
/// gets the next free port, so a higher port never affects a lower one. `taken` are the ports of other processes of the
/// Pod.
pub fn listening_ports(ports: impl IntoIterator<Item = u16>, mut taken: BTreeSet<u16>) -> BTreeMap<u16, u16> {
    let ports: BTreeSet<u16> = ports.into_iter().collect();
    let listen = |port: u16| {
        let free = free_port(&taken, unprivileged(port));
        taken.insert(free);
        (port, free)
    };
    ports.into_iter().map(listen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileged_ports_are_moved_and_taken_ones_evaded() {
        let listening = |ports: &[u16], taken: &[u16]| -> Vec<u16> {
            let taken = taken.iter().copied().collect();
            listening_ports(ports.iter().copied(), taken).into_values().collect()
        };
        assert_eq!(listening(&[53, 5432], &[]), [10_053, 5432]);
        assert_eq!(listening(&[53, 10_053, 10_054], &[]), [10_053, 10_054, 10_055]);
        assert_eq!(listening(&[10_080], &[10_080, 10_081]), [10_082], "port 80 of another process has it");
        assert_eq!(listening(&[u16::MAX], &[u16::MAX]), [1024]);
    }
}
