//! The ports that containers listen on.
//!
//! Unprivileged processes cannot have ports below 1024, and all containers of a Pod share its address. Each port of a
//! listener maps to ports of its own, independent of other listeners: port 80 maps to 10080 for clients and 30080 for
//! the status page, and port 8080 to 8080 and 28080. The Service maps one to the other.
//!
//! Two listeners whose ports map to the same (80 and 10080, 8080 and 28080) are the exception: the lower one has the
//! mapped port, and the other one the next free port. So a higher port never affects a lower one.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::stream::{free_port, port_after, unprivileged};

/// The offset of the status page from the traffic port.
const STATUS_PORT_OFFSET: u16 = 20_000;

/// The ports of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessPorts {
    /// The port for clients; `None` behind the sidecar, where the process listens on loopback.
    pub(super) traffic: Option<u16>,
    /// The port of the status page.
    pub(super) status: u16,
    /// The port of metrics, if enabled.
    pub(super) metrics: Option<u16>,
}

impl ProcessPorts {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = u16> {
        self.traffic.into_iter().chain([self.status]).chain(self.metrics)
    }
}

/// The ports of the process of each listener port. The flag of a listener port says whether clients reach the process
/// through the sidecar. `taken` are other ports of the Pod; `metrics` is the first port for metrics, if enabled.
pub(super) fn allot(
    listeners: impl IntoIterator<Item = (u16, bool)>,
    taken: impl IntoIterator<Item = u16>,
    metrics: Option<u16>,
) -> BTreeMap<u16, ProcessPorts> {
    let listeners: BTreeMap<u16, bool> = listeners.into_iter().collect();
    let mut used: BTreeSet<u16> = taken.into_iter().collect();
    let mut allotted = BTreeMap::new();
    for (listener, is_fronted) in listeners {
        let wanted = unprivileged(listener);
        let traffic = (!is_fronted).then(|| claim(&mut used, wanted));
        let status = claim(&mut used, port_after(wanted, STATUS_PORT_OFFSET));
        allotted.insert(listener, ProcessPorts { traffic, status, metrics: None });
    }
    if let Some(first) = metrics {
        let mut wanted = first;
        for ports in allotted.values_mut() {
            let port = claim(&mut used, wanted);
            ports.metrics = Some(port);
            wanted = port_after(port, 1);
        }
    }
    allotted
}

/// The next free port. There are far fewer listeners than ports.
fn claim(used: &mut BTreeSet<u16>, wanted: u16) -> u16 {
    let port = free_port(used, wanted);
    used.insert(port);
    port
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    /// The ports of processes that clients reach directly.
    fn direct(listeners: &[u16], metrics: Option<u16>) -> BTreeMap<u16, ProcessPorts> {
        allot(listeners.iter().map(|port| (*port, false)), [8089], metrics)
    }

    fn traffic(listeners: &[u16]) -> Vec<u16> {
        direct(listeners, None).values().filter_map(|ports| ports.traffic).collect()
    }

    #[test]
    fn ports_are_what_people_expect() {
        let ports = direct(&[80, 443, 8080], Some(9091));
        let metrics = |port| Some(port);
        assert_eq!(
            ports[&80],
            ProcessPorts { traffic: Some(10_080), status: 30_080, metrics: metrics(9091) }
        );
        assert_eq!(
            ports[&443],
            ProcessPorts { traffic: Some(10_443), status: 30_443, metrics: metrics(9092) }
        );
        assert_eq!(
            ports[&8080],
            ProcessPorts { traffic: Some(8080), status: 28_080, metrics: metrics(9093) }
        );
        let ports = allot([(443, true), (10_443, false)], [8089], None);
        assert_eq!(ports[&443], ProcessPorts { traffic: None, status: 30_443, metrics: None });
        assert_eq!(ports[&10_443].traffic, Some(10_443));
    }

    #[test]
    fn of_ports_that_lead_to_the_same_the_lower_has_it() {
        assert_eq!(traffic(&[10_080, 80]), [10_080, 10_081]);
        assert_eq!(traffic(&[8089]), [8090], "the responder has it");
        let ports = direct(&[8080, 28_080, u16::MAX], Some(u16::MAX));
        assert_eq!((ports[&8080].status, ports[&28_080].traffic), (28_080, Some(28_081)));
        assert_eq!((ports[&u16::MAX].status, ports[&8080].metrics), (21_023, Some(1024)));
    }

    #[test]
    fn no_port_is_given_twice_and_higher_listeners_change_nothing() {
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..2_000 {
            let listeners: BTreeSet<u16> = (0..random.random_range(1..40))
                .map(|_| {
                    if random.random_bool(0.5) {
                        random.random_range(1..=65_535)
                    } else {
                        random.random_range(1..300) + 9_990
                    }
                })
                .collect();
            let listeners: Vec<u16> = listeners.into_iter().collect();
            let ports = direct(&listeners, Some(9091));
            let mut used: Vec<u16> = ports
                .values()
                .flat_map(|ports| [ports.traffic.unwrap(), ports.status, ports.metrics.unwrap()])
                .collect();
            assert!(used.iter().all(|port| *port >= 1024 && *port != 8089));
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), listeners.len() * 3);
            let without = direct(&listeners[..listeners.len() - 1], None);
            for (listener, ports_before) in without {
                let now = ProcessPorts { metrics: None, ..ports[&listener] };
                assert_eq!(now, ports_before);
            }
        }
    }
}
