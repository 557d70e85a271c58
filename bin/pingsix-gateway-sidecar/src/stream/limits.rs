//! Limits of connections.
//!
//! Each connection has a [`Place`] from its accept to its end. One that has no route yet, because its `ClientHello` is
//! incomplete, waits with its place in a queue: if the queue or all places are full, the oldest loses its place to the
//! newest. So clients that send nothing cannot keep others out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The descriptors that are left for everything but the two of each connection.
const RESERVED_FILES: u64 = 256;
/// The most pipes.
const MAX_PIPES: u64 = 256;

/// All places.
#[derive(Debug)]
pub(super) struct Limits {
    places: usize,
    unrouted: usize,
    taken: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    place: Place,
    evicted: CancellationToken,
}

impl Limits {
    /// At most `places` connections, of which at most `unrouted` without a route.
    pub(super) fn new(places: usize, unrouted: usize) -> Arc<Self> {
        let taken = AtomicUsize::new(0);
        Arc::new(Self { places, unrouted: unrouted.max(1), taken, queue: Mutex::default() })
    }

    /// A place for a new connection; `None` if all are taken by connections that have a route.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let below = |taken: usize| (taken < self.places).then_some(taken + 1);
        if self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).is_ok() {
            return Some(Place(Arc::clone(self)));
        }
        self.evict()
    }

    /// Takes the place of the oldest connection without a route.
    fn evict(&self) -> Option<Place> {
        let (_, oldest) = self.queue.lock().waiting.pop_first()?;
        oldest.evicted.cancel();
        Some(oldest.place)
    }

    /// Queues a connection without a route.
    pub(super) fn wait(self: &Arc<Self>, place: Place) -> Unrouted {
        let evicted = CancellationToken::new();
        let (ticket, oldest) = {
            let mut queue = self.queue.lock();
            let full = queue.waiting.len() >= self.unrouted;
            let oldest = if full { queue.waiting.pop_first() } else { None };
            let ticket = queue.next;
            queue.next += 1;
            queue.waiting.insert(ticket, Waiting { place, evicted: evicted.clone() });
            (ticket, oldest)
        };
        if let Some((_, oldest)) = oldest {
            oldest.evicted.cancel();
        }
        Unrouted { limits: Arc::clone(self), ticket, evicted }
    }

    /// The places taken.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Limits>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection without a route; dropped, it loses its place.
#[derive(Debug)]
pub(super) struct Unrouted {
    limits: Arc<Limits>,
    ticket: u64,
    evicted: CancellationToken,
}

impl Unrouted {
    /// Returns when the connection has lost its place.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// The connection has a route; `None` if it has lost its place.
    pub(super) fn routed(self) -> Option<Place> {
        self.leave()
    }

    fn leave(&self) -> Option<Place> {
        let waiting = self.limits.queue.lock().waiting.remove(&self.ticket);
        waiting.map(|waiting| waiting.place)
    }
}

impl Drop for Unrouted {
    fn drop(&mut self) {
        // The lock is released before the place is.
        drop(self.leave());
    }
}

/// The number of connections for which a process with so many file descriptors has room.
pub(super) fn places_for_files(files: Option<u64>) -> usize {
    part_of_files(files, 2)
}

/// The number of UDP sessions, of one file descriptor each, that such a process may have besides its connections.
pub(super) fn sessions_for_files(files: Option<u64>) -> usize {
    part_of_files(files, 4)
}

fn part_of_files(files: Option<u64>, divisor: u64) -> usize {
    let Some(files) = files else { return usize::MAX };
    let spare = files.saturating_sub(RESERVED_FILES).max(files / 2);
    usize::try_from(spare / divisor).unwrap_or(usize::MAX).max(1)
}

/// The number of pipes, of two file descriptors each, that such a process may have besides its connections.
pub(super) fn pipes_for_files(files: Option<u64>) -> usize {
    let pipes = files.map_or(MAX_PIPES, |files| (files / 256).clamp(1, MAX_PIPES));
    usize::try_from(pipes).unwrap_or_default()
}

/// The most file descriptors of this process; `None` without a limit.
pub(super) fn file_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_can_be_taken_and_are_freed() {
        let limits = Limits::new(2, 10);
        let one = limits.enter().unwrap();
        let _two = limits.enter().unwrap();
        assert!(limits.enter().is_none());
        drop(one);
        assert!(limits.enter().is_some());
        assert_eq!(limits.taken(), 1);
    }

    #[test]
    fn the_oldest_without_a_route_gives_way() {
        let limits = Limits::new(3, 2);
        let wait = || limits.wait(limits.enter().unwrap());
        let (first, second) = (wait(), wait());
        let third = wait();
        assert!(first.evicted.is_cancelled() && !second.evicted.is_cancelled());
        assert!(first.routed().is_none());
        let kept = (second.routed().unwrap(), limits.enter().unwrap());
        assert_eq!(limits.taken(), 3);
        let newest = limits.enter().unwrap();
        assert!(third.evicted.is_cancelled() && limits.taken() == 3);
        assert!(limits.enter().is_none(), "routed connections stay");
        drop((third, kept, newest));
        assert_eq!(limits.taken(), 0);
    }

    #[test]
    fn a_dropped_wait_frees_its_place() {
        let limits = Limits::new(1, 1);
        drop(limits.wait(limits.enter().unwrap()));
        assert_eq!((limits.taken(), limits.queue.lock().waiting.len()), (0, 0));
    }

    #[test]
    fn places_follow_file_descriptors() {
        for (files, places) in [(20_512, 10_128), (1_024, 384), (128, 32), (2, 1), (0, 1)] {
            assert_eq!(places_for_files(Some(files)), places, "{files}");
        }
        assert_eq!(places_for_files(None), usize::MAX);
        assert_eq!((sessions_for_files(Some(20_512)), sessions_for_files(Some(128))), (5_064, 16));
    }
}
