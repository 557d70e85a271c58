//! The limit of sessions.
//!
//! All ports have their sessions within one limit. If the limit is reached, the port with the most sessions gives one
//! up: a port with many clients, or with many made-up ones, takes no place from a port with few.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// All places.
#[derive(Debug)]
pub(in crate::stream) struct Places {
    limit: usize,
    taken: AtomicUsize,
    shares: Mutex<Vec<Arc<Share>>>,
}

/// The places of one port.
#[derive(Debug, Default)]
pub(super) struct Share {
    held: AtomicUsize,
    owed: AtomicUsize,
    wake: Notify,
}

impl Places {
    pub(in crate::stream) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), taken: AtomicUsize::new(0), shares: Mutex::default() })
    }

    /// The places taken. For a moment, they are more than the limit: until another port has given up those it owes.
    pub(in crate::stream) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// A port without places.
    pub(super) fn join(&self) -> Arc<Share> {
        let share = Arc::default();
        self.shares.lock().push(Arc::clone(&share));
        share
    }

    /// The port takes no more places.
    pub(super) fn leave(&self, share: &Arc<Share>) {
        self.shares.lock().retain(|other| !Arc::ptr_eq(other, share));
    }

    /// A place for a new session. `None` if the port has to give up one of its own first.
    pub(super) fn enter(self: &Arc<Self>, share: &Arc<Share>) -> Option<Place> {
        let below = |taken: usize| (taken < self.limit).then_some(taken + 1);
        if self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).is_err() {
            let shares = self.shares.lock();
            let most = shares.iter().max_by_key(|share| share.left())?;
            if most.left() <= share.left() {
                return None;
            }
            most.owed.fetch_add(1, Ordering::AcqRel);
            most.wake.notify_one();
            self.taken.fetch_add(1, Ordering::AcqRel);
        }
        share.held.fetch_add(1, Ordering::AcqRel);
        Some(Place { places: Arc::clone(self), share: Arc::clone(share) })
    }
}

impl Share {
    /// Returns when the port owes places.
    pub(super) async fn owes(&self) {
        self.wake.notified().await;
    }

    /// The number of places that the port has to give up now.
    pub(super) fn take_owed(&self) -> usize {
        self.owed.swap(0, Ordering::AcqRel)
    }

    fn left(&self) -> usize {
        self.held.load(Ordering::Acquire).saturating_sub(self.owed.load(Ordering::Acquire))
    }
}

/// The place of one session; free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    share: Arc<Share>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.share.held.fetch_sub(1, Ordering::AcqRel);
        self.places.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_has_all_places() {
        let places = Places::new(3);
        let share = places.join();
        let held: Vec<_> = (0..3).map(|_| places.enter(&share).unwrap()).collect();
        assert!(places.enter(&share).is_none());
        drop(held);
        assert_eq!((places.taken(), share.left()), (0, 0));
        assert!(places.enter(&share).is_some());
    }

    #[test]
    fn the_port_with_the_most_gives_up() {
        let places = Places::new(10);
        let (many, few) = (places.join(), places.join());
        let mut of_many: Vec<_> = (0..10).map(|_| places.enter(&many).unwrap()).collect();
        let mut of_few = Vec::new();
        while let Some(place) = places.enter(&few) {
            of_few.push(place);
        }
        assert_eq!(of_few.len(), 5, "as many as are left to the other one");
        let owed = many.take_owed();
        assert_eq!((owed, many.take_owed()), (5, 0));
        of_many.truncate(10 - owed);
        assert_eq!(places.taken(), 10);
        assert!(places.enter(&many).is_none() && places.enter(&few).is_none());
        drop(of_many);
        places.leave(&many);
        assert!(places.enter(&few).is_some());
    }
}
