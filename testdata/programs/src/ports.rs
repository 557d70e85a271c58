//! Ports of loopback that stay free until the program comes that they are for.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Below are the ports of well-known servers.
const FIRST_PORT: u16 = 10_000;

/// The number of ports that are locked at a time.
const PORTS_PER_BLOCK: u16 = 32;

/// The usual range of kernels, if this one does not report its own.
const DEFAULT_RANGE: RangeInclusive<u16> = 32_768..=u16::MAX;

/// An address of this machine with a [free port](free_port).
pub fn free_address() -> SocketAddr {
    loopback(free_port())
}

/// A port of loopback that nobody has, and that nobody gets unasked while this process runs.
///
/// A port that was bound and given back does not stay free: the kernel hands it out again, to whoever binds port 0 and
/// to outgoing connections, and one that asks for just this port may be connected with itself. So the ports given here
/// are none that the kernel hands out; none is given twice; and other processes that call this function get others.
/// Where the kernel hands out every port from 10,000 on, the first of these three does not hold.
///
/// # Panics
///
/// If there is none left.
pub fn free_port() -> u16 {
    // Each process begins elsewhere, so that a port seldom changes hands while clients of its last owner still ask for it.
    static PORTS: LazyLock<Mutex<Ports>> =
        LazyLock::new(|| Mutex::new(Ports::of(blocks(&handed_out(), RandomState::new().hash_one(())))));
    PORTS.lock().unwrap_or_else(PoisonError::into_inner).next().expect("a port is left")
}

/// Ports that are given one after the other.
struct Ports {
    blocks: std::vec::IntoIter<u16>,
    block: RangeInclusive<u16>,
    /// The UDP port by which a block begins is its lock. No file is left over by a process that is killed, and it holds
    /// exactly as far as the ports do: for every user and checkout, and in one network only.
    locks: Vec<UdpSocket>,
}

impl Ports {
    fn of(blocks: Vec<u16>) -> Self {
        Self { blocks: blocks.into_iter(), block: RangeInclusive::new(1, 0), locks: Vec::new() }
    }
}

impl Iterator for Ports {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        loop {
            // Somebody else may have chosen it, without having asked here.
            if let Some(port) = self.block.find(|port| TcpListener::bind(loopback(*port)).is_ok()) {
                return Some(port);
            }
            let lock = |first| UdpSocket::bind(loopback(first)).ok().map(|lock| (first, lock));
            let (first, lock) = self.blocks.find_map(lock)?;
            self.locks.push(lock);
            self.block = first + 1..=first + (PORTS_PER_BLOCK - 1);
        }
    }
}

/// The first ports of all blocks in which the kernel hands out nothing, beginning somewhere.
fn blocks(handed_out: &RangeInclusive<u16>, somewhere: u64) -> Vec<u16> {
    let all = (FIRST_PORT..=u16::MAX - (PORTS_PER_BLOCK - 1)).step_by(PORTS_PER_BLOCK.into());
    let (handed_out, kept): (Vec<u16>, Vec<u16>) = all.partition(|first| {
        *first <= *handed_out.end() && first + (PORTS_PER_BLOCK - 1) >= *handed_out.start()
    });
    let mut blocks = if kept.is_empty() { handed_out } else { kept };
    let beginning = somewhere % blocks.len() as u64;
    blocks.rotate_left(usize::try_from(beginning).unwrap_or_default());
    blocks
}

/// The ports that the kernel hands out by itself.
fn handed_out() -> RangeInclusive<u16> {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| {
            let mut ends = text.split_whitespace().map(str::parse);
            Some(ends.next()?.ok()?..=ends.next()?.ok()?)
        })
        .unwrap_or(DEFAULT_RANGE)
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn no_port_is_given_twice_also_to_threads_that_ask_at_once() {
        let threads: Vec<_> =
            (0..4).map(|_| thread::spawn(|| (0..50).map(|_| free_port()).collect::<Vec<_>>())).collect();
        let given: Vec<u16> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len(), "{given:?}");
    }

    #[test]
    fn the_kernel_hands_out_no_port_that_is_given() {
        let range = handed_out();
        let bound: Vec<TcpListener> = (0..20).map(|_| TcpListener::bind(loopback(0)).unwrap()).collect();
        for listener in &bound {
            let port = listener.local_addr().unwrap().port();
            assert!(range.contains(&port), "the kernel says {range:?}, and has given {port}");
        }
        if range.start() > &FIRST_PORT.saturating_add(PORTS_PER_BLOCK) {
            for _ in 0..50 {
                let port = free_port();
                assert!(!range.contains(&port) && port > FIRST_PORT, "{port} is in {range:?}");
            }
        }
    }

    #[test]
    fn ports_lie_beside_the_range_of_the_kernel_wherever_that_is() {
        for range in [32_768..=60_999, DEFAULT_RANGE, 15_000..=64_000, 1_024..=60_000, 12_345..=u16::MAX] {
            let blocks = blocks(&range, 7);
            assert!(!blocks.is_empty(), "{range:?}");
            let mut ports = blocks.iter().flat_map(|first| *first..=first + (PORTS_PER_BLOCK - 1));
            assert!(ports.all(|port| port >= FIRST_PORT && !range.contains(&port)), "{range:?}");
        }
        assert!(
            blocks(&(1_024..=u16::MAX), 7).len() > 1_000,
            "one that hands out everything leaves no choice"
        );
    }

    #[test]
    fn processes_begin_at_different_ports_and_have_the_same_ones() {
        let (mut some, mut other) = (blocks(&DEFAULT_RANGE, 7), blocks(&DEFAULT_RANGE, 300));
        assert_ne!(some[0], other[0]);
        some.sort_unstable();
        other.sort_unstable();
        assert_eq!(some, other);
    }

    #[test]
    fn a_block_has_one_owner_who_passes_over_what_somebody_has_taken() {
        let mut owner = Ports::of(blocks(&handed_out(), RandomState::new().hash_one(())));
        let port = owner.next().unwrap();
        let block = owner.locks[0].local_addr().unwrap().port();
        assert!(port > block && port < block + PORTS_PER_BLOCK);
        assert_eq!(Ports::of(vec![block]).next(), None, "what another process would get of it");
        let _taken = TcpListener::bind(loopback(port + 1));
        assert_ne!(owner.next(), Some(port + 1));
    }
}
