//! Positions of the resting watches.
//! A resting watch will receive later changes, so the store must keep the deletions since its position. A watch whose
//! client leaves a response unread does not rest, and nothing is kept for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The resting watches by position.
#[derive(Clone, Debug, Default)]
pub(super) struct RestingWatches(Arc<Mutex<BTreeMap<i64, usize>>>);

impl RestingWatches {
    /// Registers a resting watch that has seen everything below `next`, until the guard is dropped.
    pub(super) fn enter(&self, next: i64) -> RestGuard {
        *self.0.lock().entry(next).or_default() += 1;
        RestGuard { resting_watches: self.clone(), next }
    }

    /// The first revision that some resting watch has not seen; the highest number without any.
    pub(super) fn earliest(&self) -> i64 {
        self.0.lock().first_key_value().map_or(i64::MAX, |(next, _)| *next)
    }
}

/// Registration of a resting watch.
#[derive(Debug)]
pub(super) struct RestGuard {
    resting_watches: RestingWatches,
    next: i64,
}

impl Drop for RestGuard {
    fn drop(&mut self) {
        let mut resting_watches = self.resting_watches.0.lock();
        if let Some(watches) = resting_watches.get_mut(&self.next) {
            *watches -= 1;
            if *watches == 0 {
                resting_watches.remove(&self.next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_rest_counts_until_it_ends() {
        let resting_watches = RestingWatches::default();
        assert_eq!(resting_watches.earliest(), i64::MAX);
        let later = resting_watches.enter(7);
        let earlier = [resting_watches.enter(3), resting_watches.enter(3)];
        assert_eq!(resting_watches.earliest(), 3);
        let [one, other] = earlier;
        drop(one);
        assert_eq!(resting_watches.earliest(), 3);
        drop(other);
        assert_eq!(resting_watches.earliest(), 7);
        drop(later);
        assert_eq!(resting_watches.earliest(), i64::MAX);
    }
}
