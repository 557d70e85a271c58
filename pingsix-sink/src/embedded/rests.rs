//! How far the watches at rest have been told.
//!
//! A watch that rests will be told later what changes meanwhile, so the deletions since then must stay known. A client that
//! leaves a response unread does not rest: its watch keeps nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The watches at rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Rests(Arc<Mutex<BTreeMap<i64, usize>>>);

impl Rests {
    /// Notes that a watch rests which has seen everything below `next`, until what is returned is dropped.
    pub(super) fn enter(&self, next: i64) -> Rest {
        *self.0.lock().entry(next).or_default() += 1;
        Rest { rests: self.clone(), next }
    }

    /// The first revision that a watch at rest has not seen; the highest number when none rests.
    pub(super) fn earliest(&self) -> i64 {
        self.0.lock().first_key_value().map_or(i64::MAX, |(next, _)| *next)
    }
}

/// A watch at rest.
#[derive(Debug)]
pub(super) struct Rest {
    rests: Rests,
    next: i64,
}

impl Drop for Rest {
    fn drop(&mut self) {
        let mut rests = self.rests.0.lock();
        if let Some(watches) = rests.get_mut(&self.next) {
            *watches -= 1;
            if *watches == 0 {
                rests.remove(&self.next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_rest_counts_until_it_ends() {
        let rests = Rests::default();
        assert_eq!(rests.earliest(), i64::MAX);
        let later = rests.enter(7);
        let earlier = [rests.enter(3), rests.enter(3)];
        assert_eq!(rests.earliest(), 3);
        let [one, other] = earlier;
        drop(one);
        assert_eq!(rests.earliest(), 3);
        drop(other);
        assert_eq!(rests.earliest(), 7);
        drop(later);
        assert_eq!(rests.earliest(), i64::MAX);
    }
}
