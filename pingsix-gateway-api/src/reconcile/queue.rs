//! Which owners are due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_translate::ObjectKey;
use tokio::time::Instant;

/// How often one owner is reconsidered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// After a reconsideration, the owner rests this many times as long as it took, so that a storm of changes costs a
    /// bounded share of a processor, and a single change is not delayed at all.
    pub rest_factor: u32,
    /// The longest rest.
    pub longest_rest: Duration,
    /// How long after a failure it is tried again; doubled with each further one.
    pub first_retry: Duration,
    /// The longest time between two tries.
    pub longest_retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            rest_factor: 2,
            longest_rest: Duration::from_secs(1),
            first_retry: Duration::from_millis(100),
            longest_retry: Duration::from_secs(30),
        }
    }
}

/// Owners that wait for their turn, each once, the longest waiting first. Knows no clock: times are given.
#[derive(Debug, Default)]
pub struct Queue {
    pace: Pace,
    /// When each is due, and in which order they came.
    due: BTreeMap<ObjectKey, (Instant, u64)>,
    order: BTreeSet<(Instant, u64, ObjectKey)>,
    arrivals: u64,
    /// Until when an owner rests.
    resting: BTreeMap<ObjectKey, Instant>,
    failures: BTreeMap<ObjectKey, u32>,
}

impl Queue {
    /// An empty queue.
    pub fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// An owner is to be reconsidered: now, or when its rest is over.
    pub fn push(&mut self, owner: ObjectKey, now: Instant) {
        let at = self.resting.get(&owner).copied().filter(|rest| *rest > now).unwrap_or(now);
        self.schedule(owner, at);
    }

    /// An owner could not be dealt with, and is to be tried again.
    pub fn retry(&mut self, owner: ObjectKey, now: Instant) {
        let failures = self.failures.entry(owner.clone()).or_default();
        let delay = self.pace.first_retry.saturating_mul(2_u32.saturating_pow(*failures));
        *failures = failures.saturating_add(1);
        self.schedule(owner, now + delay.min(self.pace.longest_retry));
    }

    /// The owner that is due and has waited longest. It is no longer in the queue.
    pub fn pop(&mut self, now: Instant) -> Option<ObjectKey> {
        let (at, ..) = self.order.first()?;
        if *at > now {
            return None;
        }
        let (_, _, owner) = self.order.pop_first()?;
        self.due.remove(&owner);
        Some(owner)
    }

    /// An owner was reconsidered, and rests in proportion to what that took.
    pub fn rest(&mut self, owner: &ObjectKey, now: Instant, took: Duration) {
        let rest = took.saturating_mul(self.pace.rest_factor).min(self.pace.longest_rest);
        self.resting.insert(owner.clone(), now + rest);
    }

    /// An owner has been dealt with: a later failure is the first.
    pub fn succeeded(&mut self, owner: &ObjectKey) {
        self.failures.remove(owner);
    }

    /// Whether an owner waits.
    pub fn contains(&self, owner: &ObjectKey) -> bool {
        self.due.contains_key(owner)
    }

    /// An owner is gone.
    pub fn forget(&mut self, owner: &ObjectKey) {
        self.resting.remove(owner);
        self.failures.remove(owner);
        if let Some((at, arrival)) = self.due.remove(owner) {
            self.order.remove(&(at, arrival, owner.clone()));
        }
    }

    /// When the next owner is due; `None` when nobody waits.
    pub fn next_due(&self) -> Option<Instant> {
        self.order.first().map(|(at, ..)| *at)
    }

    /// Who waits, in the order of their turns, until when, and how often it failed before. For dumps.
    pub fn waiting(&self) -> impl Iterator<Item = (&ObjectKey, Instant, u32)> {
        self.order
            .iter()
            .map(|(at, _, owner)| (owner, *at, self.failures.get(owner).copied().unwrap_or_default()))
    }

    /// How many owners wait.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Keeps the earlier of two times.
    fn schedule(&mut self, owner: ObjectKey, at: Instant) {
        if let Some((earlier, arrival)) = self.due.get(&owner).copied() {
            if earlier <= at {
                return;
            }
            self.order.remove(&(earlier, arrival, owner.clone()));
        }
        self.arrivals += 1;
        self.due.insert(owner.clone(), (at, self.arrivals));
        self.order.insert((at, self.arrivals, owner));
    }
}

#[cfg(test)]
mod tests {
    use pingsix_translate::Kind;

    use super::*;

    fn owner(name: &str) -> ObjectKey {
        ObjectKey::new(Kind::Gateway, "infra", name)
    }

    fn queue() -> Queue {
        Queue::new(Pace::default())
    }

    #[test]
    fn an_owner_waits_once_however_often_it_changes() {
        let (mut queue, now) = (queue(), Instant::now());
        for name in ["one", "two", "one", "one"] {
            queue.push(owner(name), now);
        }
        assert_eq!(
            (queue.pop(now), queue.pop(now), queue.pop(now)),
            (Some(owner("one")), Some(owner("two")), None)
        );
    }

    #[test]
    fn a_single_change_does_not_wait_and_a_storm_does() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.push(owner("one"), now);
        assert_eq!(queue.next_due(), Some(now));
        queue.pop(now);
        queue.rest(&owner("one"), now, Duration::from_millis(20));
        queue.push(owner("one"), now);
        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_millis(40)));
        let rested = now + Duration::from_millis(40);
        assert_eq!(queue.pop(rested), Some(owner("one")));
        // What took very long rests no longer than a second.
        queue.rest(&owner("one"), rested, Duration::from_secs(9));
        queue.push(owner("one"), rested);
        assert_eq!(queue.next_due(), Some(rested + Duration::from_secs(1)));
    }

    #[test]
    fn one_that_rests_does_not_keep_others_waiting() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.rest(&owner("one"), now, Duration::from_secs(1));
        queue.push(owner("one"), now);
        queue.push(owner("two"), now);
        assert_eq!(queue.pop(now), Some(owner("two")));
    }

    #[test]
    fn failures_are_tried_again_at_growing_distances_and_a_change_does_not_wait_for_that() {
        let (mut queue, now) = (queue(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..12 {
            queue.retry(owner("one"), now);
            let at = queue.next_due().unwrap();
            delays.push(at - now);
            assert_eq!(queue.pop(at), Some(owner("one")));
        }
        assert_eq!(delays[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(delays[11], Duration::from_secs(30));
        assert!(queue.waiting().next().is_none());
        queue.retry(owner("one"), now);
        assert_eq!(queue.waiting().collect::<Vec<_>>(), [(&owner("one"), now + Duration::from_secs(30), 13)]);
        queue.push(owner("one"), now);
        assert_eq!(queue.pop(now), Some(owner("one")));
        queue.succeeded(&owner("one"));
        queue.retry(owner("one"), now);
        assert_eq!(queue.next_due(), Some(now + Duration::from_millis(100)), "a success ends the series");
    }

    #[test]
    fn what_is_gone_waits_no_more() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.push(owner("one"), now);
        queue.forget(&owner("one"));
        assert!(queue.is_empty() && queue.pop(now).is_none());
    }
}
