//! Sources that get no session.
//!
//! The source of a datagram can be made up. An answer to such a source reaches a third party, and if this is a backend
//! or a port of this proxy, it answers in turn, and so on without an end.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use parking_lot::RwLock;

use super::super::backends::{Backends, canonical};

/// The addresses that are no clients.
#[derive(Debug)]
pub(super) struct Sources {
    /// The ports that this proxy listens on.
    ports: RwLock<BTreeSet<u16>>,
    backends: Arc<Backends>,
}

impl Sources {
    pub(super) fn new(backends: Arc<Backends>) -> Self {
        Self { ports: RwLock::default(), backends }
    }

    /// This port is listened on.
    pub(super) fn listen(&self, port: u16) {
        self.ports.write().insert(port);
    }

    /// This port is no longer listened on.
    pub(super) fn close(&self, port: u16) {
        self.ports.write().remove(&port);
    }

    /// Whether datagrams of this source, for this address of the machine, are dropped.
    pub(super) fn refuses(&self, source: SocketAddr, asked: Option<IpAddr>) -> bool {
        source.port() == 0
            || !is_of_one_host(source.ip())
            // Answers cannot come from the address of a group.
            || asked.is_some_and(|asked| !is_of_one_host(asked))
            || self.backends.contains(source)
            || self.is_ours(source)
    }

    /// Whether this proxy listens on an address.
    pub(super) fn is_ours(&self, address: SocketAddr) -> bool {
        self.ports.read().contains(&address.port()) && is_local(address)
    }
}

fn is_of_one_host(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !(v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0),
        IpAddr::V6(v6) => !(v6.is_multicast() || v6.is_unspecified()),
    }
}

/// Whether an address is one of this machine: others cannot be bound. An address that cannot be checked counts as one.
fn is_local(address: SocketAddr) -> bool {
    let mut address = canonical(address);
    address.set_port(0);
    UdpSocket::bind(address)
        .map_or_else(|error| error.kind() != std::io::ErrorKind::AddrNotAvailable, |_| true)
}

#[cfg(test)]
mod tests {
    use super::super::super::upstream::Upstream;
    use super::*;

    #[test]
    fn clients_are_neither_backends_nor_ports_of_this_proxy_nor_groups() {
        let upstream = Upstream::default();
        upstream.set(&[("10.0.0.1:53".parse().unwrap(), 1)].into());
        let backends = Arc::<Backends>::default();
        backends.replace(None, upstream.nodes().as_deref());
        let sources = Sources::new(backends);
        sources.listen(5_353);
        let refuses = |source: &str| sources.refuses(source.parse().unwrap(), None);
        for source in [
            "10.0.0.1:53",
            "[::ffff:10.0.0.1]:53",
            "127.0.0.1:5353",
            "127.0.0.9:5353",
            "[::ffff:127.0.0.1]:5353",
            "192.0.2.1:0",
            "224.0.0.1:9",
            "255.255.255.255:9",
            "0.0.0.0:9",
            "[ff02::1]:9",
            "[::]:9",
        ] {
            assert!(refuses(source), "{source}");
        }
        for source in ["10.0.0.1:54", "10.0.0.2:53", "127.0.0.1:5354", "192.0.2.1:5353", "[2001:db8::1]:5353"]
        {
            assert!(!refuses(source), "{source}");
        }
        let group = Some("224.0.0.1".parse().unwrap());
        assert!(sources.refuses("192.0.2.1:9".parse().unwrap(), group));
        sources.close(5_353);
        assert!(!refuses("127.0.0.1:5353"));
    }
}
