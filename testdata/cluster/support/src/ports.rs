//! Ports of loopback that nobody uses.

use std::net::{Ipv4Addr, TcpListener};

use rand::Rng;

/// How many ports are tried before a process is given up.
const TRIES: usize = 8;

/// Ports to try one after the other.
///
/// They lie below those that systems hand out by themselves, so that a port stays free while its owner is stopped, and
/// are picked at random, so that tests beside each other seldom want the same one. When they do, the loser tries on.
pub(crate) fn candidates() -> impl Iterator<Item = u16> {
    std::iter::repeat_with(|| rand::rng().random_range(20_000..30_000))
        .filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .take(TRIES)
}
