//! The options of the stream role.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use pingsix_translate::stream::listening_ports;

/// The options of [`Streams`](super::Streams); the defaults are meant for a Pod.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The address of all listeners. The unspecified IPv6 address takes IPv4 too, and stands for the unspecified IPv4
    /// address on machines without IPv6.
    pub address: IpAddr,
    /// Whether each listener has the port of its documents, also below 1024. Without that, port 53 is on 10053.
    pub low_ports: bool,
    /// The ports that other processes of the Pod listen on. A listener whose port is taken gets the next free one. With
    /// `low_ports` it has no effect.
    pub taken_ports: BTreeSet<u16>,
    /// The most connections. The limit of file descriptors can allow fewer: two for each, besides 256.
    pub max_connections: usize,
    /// The most connections whose `ClientHello` or TLS handshake is incomplete, or that have not begun a request of HTTP.
    /// The oldest one gives way to another.
    pub max_unrouted: usize,
    /// The time for a complete `ClientHello`, from the accept.
    pub hello_timeout: Duration,
    /// The time for a TLS handshake after the `ClientHello`, with the wait for its beginning.
    pub handshake_timeout: Duration,
    /// The time for the beginning of a request of HTTP, from the end of the TLS handshake.
    pub request_timeout: Duration,
    /// The most unfinished TLS handshakes. Others wait; a handshake that has had a second then gives way.
    pub max_handshakes: usize,
    /// The time for a connection to one node. All attempts together have 10 seconds.
    pub connect_timeout: Duration,
    /// The time that connections have after the removal of their listener.
    pub removed_grace: Duration,
    /// The most sessions of UDP clients. The limit of file descriptors can allow fewer: a quarter of those besides 256.
    pub max_sessions: usize,
    /// The time without a datagram in either direction after which a session ends.
    pub session_idle: Duration,
    /// The most new sessions of one port in a second, and at once.
    pub new_sessions_per_second: u32,
    /// Whether nodes may have loopback, link-local and other special addresses. For tests: authors of
    /// EndpointSlices could otherwise reach servers on the loopback address of the Pod.
    pub local_nodes: bool,
    /// Whether bulk data may pass through pipes in the kernel (`splice`), where the system has them.
    pub splice: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            low_ports: false,
            taken_ports: BTreeSet::new(),
            max_connections: 20_000,
            max_unrouted: 4_096,
            hello_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_mins(1),
            max_handshakes: 256,
            connect_timeout: Duration::from_secs(3),
            removed_grace: Duration::from_mins(5),
            max_sessions: 16_384,
            session_idle: Duration::from_mins(1),
            new_sessions_per_second: 10_000,
            local_nodes: false,
            splice: true,
        }
    }
}

impl StreamOptions {
    /// The port that is listened on for each port of documents.
    pub(super) fn listening(&self, ports: impl IntoIterator<Item = u16>) -> BTreeMap<u16, u16> {
        if self.low_ports {
            return ports.into_iter().map(|port| (port, port)).collect();
        }
        listening_ports(ports, self.taken_ports.clone())
    }
}
