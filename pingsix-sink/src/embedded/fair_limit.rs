//! A fair limit for connections, watch streams and watches.
//!
//! Below the limit, every client gets a place. At the limit, a newcomer takes a place of the client with the most, if
//! the newcomer has at least two fewer:
//!
//! 1. by [identity](Identity): the identity with the most places loses its newest;
//! 2. else by address, because one client may have any number of certificates: the address with the most places loses
//!    the newest place of an identity that has more places than the newcomer's.
//!
//! An identity is therefore admitted as long as another one has two more, and loses nothing to an identity with as
//! many. The connection of a lost place is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::stats::Counters;
use crate::document::Digest;

/// Limit of the places of an address that are examined for one to take.
const MAX_EXAMINED_PLACES: usize = 64;

/// The identity to which a place is charged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    /// Clients with certificates of one subject and the same alternative names.
    Certificate(Digest),
    /// Clients without a certificate.
    Address(Network),
}

/// The network of a client: for IPv6 the first 64 bits, because one host usually has all addresses with this prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The holder of a place.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) identity: Identity,
    pub(super) network: Network,
}

/// A limited number of places. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct FairLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    counters: Arc<Counters>,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    last: u64,
    occupied: BTreeMap<u64, OccupiedSlot>,
    /// The numbers of places, which grow with time.
    identities: BTreeMap<Identity, BTreeSet<u64>>,
    networks: BTreeMap<Network, BTreeSet<u64>>,
}

#[derive(Debug)]
struct OccupiedSlot {
    holder: Holder,
    close: CancellationToken,
}

/// A place, until the guard is dropped or a client with fewer takes it.
#[derive(Debug)]
pub(super) struct FairPermit {
    fair_limit: FairLimit,
    number: u64,
}

impl FairLimit {
    pub(super) fn new(limit: usize, counters: Arc<Counters>) -> Self {
        Self(Arc::new(Inner { limit, counters, slots: Mutex::default() }))
    }

    /// The number of occupied places.
    pub(super) fn occupied(&self) -> u64 {
        self.0.slots.lock().occupied.len() as u64
    }

    /// Takes a place; `None` when none is free for this holder. `close` closes its connection.
    pub(super) fn take(&self, holder: Holder, close: CancellationToken) -> Option<FairPermit> {
        let mut slots = self.0.slots.lock();
        let displaced = if slots.occupied.len() < self.0.limit {
            None
        } else {
            let number = slots.displaced_by(&holder)?;
            slots.release(number)
        };
        slots.last += 1;
        let number = slots.last;
        slots.take(number, OccupiedSlot { holder, close });
        drop(slots);
        if let Some(displaced) = displaced {
            self.0.counters.update(|stats| stats.connections_displaced += 1);
            displaced.close.cancel();
        }
        Some(FairPermit { fair_limit: self.clone(), number })
    }
}

impl Slots {
    /// The place that a newcomer takes over at the limit.
    fn displaced_by(&self, newcomer: &Holder) -> Option<u64> {
        let count = self.identities.get(&newcomer.identity).map_or(0, BTreeSet::len);
        if let Some(slots) = largest(&self.identities, count) {
            return slots.last().copied();
        }
        let at_address = self.networks.get(&newcomer.network).map_or(0, BTreeSet::len);
        let slots = largest(&self.networks, at_address)?;
        let has_more = |number: &&u64| {
            let holder = self.occupied.get(number).map(|occupied| &occupied.holder.identity);
            holder.and_then(|holder| self.identities.get(holder)).is_some_and(|slots| slots.len() > count)
        };
        slots.iter().rev().take(MAX_EXAMINED_PLACES).find(has_more).copied()
    }

    fn take(&mut self, number: u64, occupied: OccupiedSlot) {
        self.identities.entry(occupied.holder.identity.clone()).or_default().insert(number);
        self.networks.entry(occupied.holder.network).or_default().insert(number);
        self.occupied.insert(number, occupied);
    }

    fn release(&mut self, number: u64) -> Option<OccupiedSlot> {
        let occupied = self.occupied.remove(&number)?;
        remove(&mut self.identities, &occupied.holder.identity, number);
        remove(&mut self.networks, &occupied.holder.network, number);
        Some(occupied)
    }
}

/// The places of the holder with the most, if they are at least two more than `own`.
fn largest<K: Ord>(all: &BTreeMap<K, BTreeSet<u64>>, own: usize) -> Option<&BTreeSet<u64>> {
    all.values().max_by_key(|slots| slots.len()).filter(|largest| largest.len() > own + 1)
}

fn remove<K: Ord>(all: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    if let Some(numbers) = all.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            all.remove(key);
        }
    }
}

impl FairPermit {
    /// Frees the place.
    pub(super) fn release(&self) {
        self.fair_limit.0.slots.lock().release(self.number);
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn network(number: u8) -> Network {
        IpAddr::from(Ipv4Addr::new(10, 0, 0, number)).into()
    }

    fn client(name: &str, at: u8) -> Holder {
        Holder { identity: Identity::Certificate(Digest::of(name.as_bytes())), network: network(at) }
    }

    /// A place and the token that closes its connection.
    type Open = (FairPermit, CancellationToken);

    fn open(fair_limit: &FairLimit, holder: &Holder) -> Option<Open> {
        let close = CancellationToken::new();
        Some((fair_limit.take(holder.clone(), close.clone())?, close))
    }

    fn is_open((_, close): &Open) -> bool {
        !close.is_cancelled()
    }

    #[test]
    fn a_client_with_all_slots_gives_its_newest_only_to_clients_with_fewer() {
        let fair_limit = FairLimit::new(6, Arc::default());
        let heavy: Vec<Open> = (0..6).map(|_| open(&fair_limit, &client("greedy", 1)).unwrap()).collect();
        assert!(open(&fair_limit, &client("greedy", 1)).is_none() && heavy.iter().all(is_open));
        let other_clients: Vec<Open> =
            (0..3).map(|_| open(&fair_limit, &client("other", 1)).unwrap()).collect();
        assert_eq!(heavy.iter().map(is_open).collect::<Vec<_>>(), [true, true, true, false, false, false]);
        // Both have three now.
        assert!(
            open(&fair_limit, &client("other", 1)).is_none()
                && open(&fair_limit, &client("greedy", 2)).is_none()
        );
        assert!(other_clients.iter().all(is_open) && fair_limit.occupied() == 6);
        // A lost place is not freed twice.
        drop(heavy);
        assert_eq!(fair_limit.occupied(), 3);
    }

    #[test]
    fn an_address_with_many_identities_gives_way_to_another_address() {
        let fair_limit = FairLimit::new(4, Arc::default());
        let many: Vec<Open> =
            ["a", "b", "c", "d"].iter().map(|name| open(&fair_limit, &client(name, 1)).unwrap()).collect();
        assert!(open(&fair_limit, &client("e", 1)).is_none());
        let other = open(&fair_limit, &client("victim", 2)).unwrap();
        assert_eq!(many.iter().map(is_open).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(open(&fair_limit, &client("f", 1)).is_none() && is_open(&other));
    }

    #[test]
    fn hosts_are_distinguished_by_addresses_that_they_cannot_choose() {
        let network = |address: &str| Network::from(address.parse::<IpAddr>().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:0:0:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.2"), network("10.0.0.1"));
    }

    proptest! {
        /// A client below its share is admitted and keeps its places, whatever others do.
        #[test]
        fn an_identity_below_its_share_is_let_in_and_loses_nothing(
            limit in 4usize..40,
            own in 0usize..10,
            happenings in prop::collection::vec((0u8..6, 0u8..3, any::<bool>()), 0..300),
        ) {
            let fair_limit = FairLimit::new(limit, Arc::default());
            // At most six others.
            let share = limit / 7;
            let victim = client("victim", 99);
            let mut kept = Vec::new();
            let mut other_clients: Vec<Open> = Vec::new();
            for (at, (who, address, opens)) in happenings.into_iter().enumerate() {
                if opens {
                    other_clients.extend(open(&fair_limit, &client(&who.to_string(), address)));
                } else if !other_clients.is_empty() {
                    other_clients.swap_remove(at % other_clients.len());
                }
                if kept.len() < own.min(share) {
                    let place = open(&fair_limit, &victim);
                    prop_assert!(place.is_some(), "{} of {}", kept.len(), limit);
                    kept.extend(place);
                }
                let open = other_clients.iter().chain(&kept).filter(|open| is_open(open)).count();
                prop_assert_eq!(fair_limit.occupied(), open as u64);
                prop_assert!(open <= limit);
                prop_assert!(kept.iter().all(is_open));
            }
        }
    }
}
