//! The addresses of all backends.

use std::collections::HashMap;
use std::net::SocketAddr;

use parking_lot::RwLock;

use super::upstream::Nodes;

/// The nodes of all upstreams, each with the number of upstreams that have it.
#[derive(Debug, Default)]
pub(super) struct Backends(RwLock<HashMap<SocketAddr, usize>>);

impl Backends {
    /// The nodes of an upstream are replaced.
    pub(super) fn replace(&self, before: Option<&Nodes>, after: Option<&Nodes>) {
        let mut counts = self.0.write();
        for address in after.into_iter().flat_map(Nodes::addresses) {
            *counts.entry(canonical(address)).or_default() += 1;
        }
        for address in before.into_iter().flat_map(Nodes::addresses) {
            let address = canonical(address);
            if let Some(count) = counts.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&address);
                }
            }
        }
    }

    /// Whether a node has this address.
    pub(super) fn contains(&self, address: SocketAddr) -> bool {
        self.0.read().contains_key(&canonical(address))
    }
}

/// IPv4 addresses as such, and not within IPv6 addresses.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::super::upstream::Upstream;
    use super::*;

    fn upstream(nodes: &[&str]) -> Upstream {
        let upstream = Upstream::default();
        upstream.set(&nodes.iter().map(|node| (node.parse().unwrap(), 1)).collect());
        upstream
    }

    #[test]
    fn a_node_counts_while_an_upstream_has_it() {
        let contains = |backends: &Backends, address: &str| backends.contains(address.parse().unwrap());
        let backends = Backends::default();
        let (one, other) = (upstream(&["10.0.0.1:53", "10.0.0.2:53"]), upstream(&["10.0.0.2:53"]));
        let (one, other) = (one.nodes(), other.nodes());
        backends.replace(None, one.as_deref());
        backends.replace(None, other.as_deref());
        assert!(contains(&backends, "10.0.0.1:53") && contains(&backends, "[::ffff:10.0.0.2]:53"));
        assert!(!contains(&backends, "10.0.0.1:54"));
        backends.replace(one.as_deref(), other.as_deref());
        assert!(!contains(&backends, "10.0.0.1:53") && contains(&backends, "10.0.0.2:53"));
        backends.replace(other.as_deref(), None);
        assert!(contains(&backends, "10.0.0.2:53"));
        backends.replace(other.as_deref(), None);
        assert!(!contains(&backends, "10.0.0.2:53"));
    }
}
