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
//!
//! An unauthenticated client on a server with authentication gives way to the next one of its address, as an
//! unfinished handshake does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::stats::Counter;
use crate::document::Digest;

/// Limit of the places of an address that are examined for one to take.
const MOST_LOOKED_AT: usize = 64;

/// The identity to which a place is charged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    /// Clients with certificates of one subject and the same alternative names.
    Certificate(Digest),
    /// A user with a valid token on the connection.
    User(Arc<str>),
    /// Clients without either, on a server without authentication.
    Address(Network),
    /// Clients that are not authenticated yet.
    Unproven(Network),
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
pub(super) struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    displaced: Counter,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    last: u64,
    taken: BTreeMap<u64, Taken>,
    /// The numbers of places, which grow with time.
    identities: BTreeMap<Identity, BTreeSet<u64>>,
    networks: BTreeMap<Network, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Taken {
    holder: Holder,
    cut: CancellationToken,
}

/// A place, until the guard is dropped or a client with fewer takes it.
#[derive(Debug)]
pub(super) struct Permit {
    shares: Shares,
    number: u64,
}

impl Shares {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Inner { limit, displaced: Counter::default(), places: Mutex::default() }))
    }

    /// The number of occupied places.
    pub(super) fn taken(&self) -> u64 {
        self.0.places.lock().taken.len() as u64
    }

    /// The number of places that clients with fewer took over.
    pub(super) fn displaced(&self) -> u64 {
        self.0.displaced.get()
    }

    /// Takes a place; `None` when none is free for this holder. `cut` closes its connection.
    pub(super) fn take(&self, holder: Holder, cut: CancellationToken) -> Option<Permit> {
        let mut places = self.0.places.lock();
        let displaced = if places.taken.len() < self.0.limit {
            None
        } else {
            let number = places.displaced_by(&holder)?;
            places.free(number)
        };
        places.last += 1;
        let number = places.last;
        places.take(number, Taken { holder, cut });
        drop(places);
        if let Some(displaced) = displaced {
            self.0.displaced.add(1);
            displaced.cut.cancel();
        }
        Some(Permit { shares: self.clone(), number })
    }
}

impl Places {
    /// The place that a newcomer takes over at the limit.
    fn displaced_by(&self, newcomer: &Holder) -> Option<u64> {
        let own = self.identities.get(&newcomer.identity);
        let count = own.map_or(0, BTreeSet::len);
        most(&self.identities, count)
            .and_then(|places| places.last().copied())
            .or_else(|| {
                let places =
                    most(&self.networks, self.networks.get(&newcomer.network).map_or(0, BTreeSet::len))?;
                let has_more = |number: &&u64| {
                    let holder = self.taken.get(number).map(|taken| &taken.holder.identity);
                    holder
                        .and_then(|holder| self.identities.get(holder))
                        .is_some_and(|places| places.len() > count)
                };
                places.iter().rev().take(MOST_LOOKED_AT).find(has_more).copied()
            })
            // A good client authenticates within milliseconds, so the oldest unauthenticated one is suspect.
            .or_else(|| own.filter(|_| matches!(newcomer.identity, Identity::Unproven(_)))?.first().copied())
    }

    fn take(&mut self, number: u64, taken: Taken) {
        self.identities.entry(taken.holder.identity.clone()).or_default().insert(number);
        self.networks.entry(taken.holder.network).or_default().insert(number);
        self.taken.insert(number, taken);
    }

    fn free(&mut self, number: u64) -> Option<Taken> {
        let taken = self.taken.remove(&number)?;
        remove(&mut self.identities, &taken.holder.identity, number);
        remove(&mut self.networks, &taken.holder.network, number);
        Some(taken)
    }
}

/// The places of the holder with the most, if they are at least two more than `own`.
fn most<K: Ord>(all: &BTreeMap<K, BTreeSet<u64>>, own: usize) -> Option<&BTreeSet<u64>> {
    all.values().max_by_key(|places| places.len()).filter(|most| most.len() > own + 1)
}

fn remove<K: Ord>(all: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    if let Some(numbers) = all.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            all.remove(key);
        }
    }
}

impl Permit {
    /// Charges the place to another identity.
    pub(super) fn pass_to(&self, identity: Identity) {
        let mut places = self.shares.0.places.lock();
        if let Some(taken) = places.free(self.number) {
            let holder = Holder { identity, ..taken.holder };
            places.take(self.number, Taken { holder, ..taken });
        }
    }

    /// Frees the place.
    pub(super) fn free(&self) {
        self.shares.0.places.lock().free(self.number);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.free();
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

    fn user(name: &str, at: u8) -> Holder {
        Holder { identity: Identity::User(name.into()), network: network(at) }
    }

    /// A place and the token that closes its connection.
    type Open = (Permit, CancellationToken);

    fn open(shares: &Shares, holder: &Holder) -> Option<Open> {
        let cut = CancellationToken::new();
        Some((shares.take(holder.clone(), cut.clone())?, cut))
    }

    fn is_open((_, cut): &Open) -> bool {
        !cut.is_cancelled()
    }

    #[test]
    fn one_that_has_everything_gives_the_newest_to_those_with_fewer_and_to_nobody_else() {
        let shares = Shares::new(6);
        let greedy: Vec<Open> = (0..6).map(|_| open(&shares, &user("greedy", 1)).unwrap()).collect();
        assert!(open(&shares, &user("greedy", 1)).is_none() && greedy.iter().all(is_open));
        let others: Vec<Open> = (0..3).map(|_| open(&shares, &user("other", 1)).unwrap()).collect();
        assert_eq!(greedy.iter().map(is_open).collect::<Vec<_>>(), [true, true, true, false, false, false]);
        // Both have three now.
        assert!(open(&shares, &user("other", 1)).is_none() && open(&shares, &user("greedy", 2)).is_none());
        assert!(others.iter().all(is_open) && shares.taken() == 6);
        // A lost place is not freed twice.
        drop(greedy);
        assert_eq!(shares.taken(), 3);
    }

    #[test]
    fn an_address_with_many_identities_gives_way_to_another_address() {
        let shares = Shares::new(4);
        let many: Vec<Open> =
            ["a", "b", "c", "d"].iter().map(|name| open(&shares, &user(name, 1)).unwrap()).collect();
        assert!(open(&shares, &user("e", 1)).is_none());
        let other = open(&shares, &user("victim", 2)).unwrap();
        assert_eq!(many.iter().map(is_open).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(open(&shares, &user("f", 1)).is_none() && is_open(&other));
    }

    #[test]
    fn who_has_not_proved_itself_gives_way_to_the_next_of_its_address() {
        let shares = Shares::new(3);
        let unproven = Holder { identity: Identity::Unproven(network(1)), network: network(1) };
        let silent: Vec<Open> = (0..3).map(|_| open(&shares, &unproven).unwrap()).collect();
        let honest = open(&shares, &unproven).unwrap();
        assert_eq!(silent.iter().map(is_open).collect::<Vec<_>>(), [false, true, true]);
        honest.0.pass_to(Identity::User("honest".into()));
        let _more: Vec<Open> = (0..9).map(|_| open(&shares, &unproven).unwrap()).collect();
        assert!(is_open(&honest));
    }

    #[test]
    fn hosts_are_told_apart_by_what_they_cannot_choose() {
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
            let shares = Shares::new(limit);
            // At most six others.
            let share = limit / 7;
            let victim = user("victim", 99);
            let mut kept = Vec::new();
            let mut others: Vec<Open> = Vec::new();
            for (at, (who, address, opens)) in happenings.into_iter().enumerate() {
                if opens {
                    others.extend(open(&shares, &user(&who.to_string(), address)));
                } else if !others.is_empty() {
                    others.swap_remove(at % others.len());
                }
                if kept.len() < own.min(share) {
                    let place = open(&shares, &victim);
                    prop_assert!(place.is_some(), "{} of {}", kept.len(), limit);
                    kept.extend(place);
                }
                let open = others.iter().chain(&kept).filter(|open| is_open(open)).count();
                prop_assert_eq!(shares.taken(), open as u64);
                prop_assert!(open <= limit);
                prop_assert!(kept.iter().all(is_open));
            }
        }
    }
}
