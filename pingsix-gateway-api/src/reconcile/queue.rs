//! The queue of owners: due times, and the order of turns.
//!
//! Among due owners, the one with the least recent processor time goes first. The processor time of an owner is a
//! debt, which it pays off at a quarter of a processor ([`SHARE_DIVISOR`]). An owner that becomes due in debt is
//! **heavy**, and any other owner is **light**. The turn of a light owner is its due time. The turn of a heavy owner
//! is the end of its debt. Owners go in the order of turns, so light owners go first, in the order of their due times.
//! Each turn moves the next turn of the same owner back, so every owner has its turn at last. A heavy owner does not
//! wait while the queue has no other owner.
//!
//! The queue reads no clock; callers pass the time.
//!

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_sink::backoff::doubled;
use pingsix_translate::ObjectKey;
use tokio::time::Instant;

/// The divisor of processor time that an owner may use without debt.
const SHARE_DIVISOR: u32 = 4;

/// The longest debt. Processor time beyond it is forgiven.
const MAX_DEBT: Duration = Duration::from_mins(1);

/// The pace of reconciliations of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The duration of a reconciliation times this factor is the rest after it. A storm of changes thus costs a
    /// bounded share of a processor, and a single change has no delay.
    pub rest_factor: u32,
    /// The longest rest.
    pub longest_rest: Duration,
    /// The delay of the first retry. Each further failure doubles the delay.
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

/// A set of owners that wait for their turn.
#[derive(Debug, Default)]
pub struct Queue {
    pace: Pace,
    waiting: BTreeMap<ObjectKey, Waiting>,
    /// The owners that are not due, by due time.
    later: BTreeSet<QueueEntry>,
    /// The due owners by turn.
    light: BTreeSet<QueueEntry>,
    heavy: BTreeSet<QueueEntry>,
    arrivals: u64,
    /// The end of each owner's rest.
    resting: BTreeMap<ObjectKey, Instant>,
    /// The end of each owner's debt.
    debts: BTreeMap<ObjectKey, Instant>,
    /// The next time at which paid debts are dropped.
    audit: Option<Instant>,
    failures: BTreeMap<ObjectKey, u32>,
}

/// A time, the number of an arrival, and the owner.
type QueueEntry = (Instant, u64, ObjectKey);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    arrival: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Later,
    Light,
    /// Heavy, with its turn.
    Heavy(Instant),
}

/// The owners that may have a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    Any,
    /// Owners that are light.
    LightOnly,
}

/// The turn of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) owner: ObjectKey,
    /// The time from which the owner was due.
    pub(crate) due: Instant,
    /// Whether the owner was in no debt at that time.
    pub(crate) is_light: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// Queues an owner: for now, or for the end of its rest.
    pub fn push(&mut self, owner: ObjectKey, now: Instant) {
        let at = self.resting.get(&owner).copied().filter(|rest| *rest > now).unwrap_or(now);
        self.schedule(owner, at);
    }

    /// Queues an owner again after a failure, with a growing delay.
    pub fn retry(&mut self, owner: ObjectKey, now: Instant) {
        let failures = self.failures.entry(owner.clone()).or_default();
        *failures = failures.saturating_add(1);
        let delay = doubled(self.pace.first_retry, *failures, self.pace.longest_retry);
        self.schedule(owner, now + delay);
    }

    /// Removes and returns the next owner.
    pub fn pop(&mut self, now: Instant) -> Option<ObjectKey> {
        self.turn(now, Capacity::Any).map(|turn| turn.owner)
    }

    /// Removes and returns the next owner that the capacity allows.
    pub(crate) fn turn(&mut self, now: Instant, capacity: Capacity) -> Option<Turn> {
        self.make_ready(now);
        let turn = |place: Option<&QueueEntry>| place.map(|(turn, ..)| *turn);
        let (light, heavy) = (turn(self.light.first()), turn(self.heavy.first()));
        let is_light = match (light, heavy.filter(|_| capacity == Capacity::Any)) {
            (Some(light), Some(heavy)) => light <= heavy,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return None,
        };
        let ready = if is_light { &mut self.light } else { &mut self.heavy };
        let (_, _, owner) = ready.pop_first()?;
        let due = self.waiting.remove(&owner).map_or(now, |waiting| waiting.due);
        Some(Turn { owner, due, is_light })
    }

    /// Sorts owners that have become due into light and heavy ones.
    fn make_ready(&mut self, now: Instant) {
        while self.later.first().is_some_and(|(due, ..)| *due <= now) {
            let Some((due, arrival, owner)) = self.later.pop_first() else { return };
            let stage = match self.debts.get(&owner).copied() {
                Some(paid) if paid > due => Stage::Heavy(paid),
                Some(_) | None => Stage::Light,
            };
            if let Some(waiting) = self.waiting.get_mut(&owner) {
                waiting.stage = stage;
            }
            match stage {
                Stage::Heavy(turn) => self.heavy.insert((turn, arrival, owner)),
                Stage::Light | Stage::Later => self.light.insert((due, arrival, owner)),
            };
        }
    }

    /// The time of the next [turn](Self::turn); `None` if the queue is empty.
    pub(crate) fn next_turn(&self, capacity: Capacity) -> Option<Instant> {
        let first = |places: &BTreeSet<QueueEntry>| {
            let (.., owner) = places.first()?;
            Some(self.waiting.get(owner)?.due)
        };
        let heavy = first(&self.heavy).filter(|_| capacity == Capacity::Any);
        [first(&self.later), first(&self.light), heavy].into_iter().flatten().min()
    }

    /// Charges an owner for the processor time of a reconciliation: with a rest in proportion, and with debt.
    pub fn rest(&mut self, owner: &ObjectKey, now: Instant, took: Duration) {
        let rest = took.saturating_mul(self.pace.rest_factor).min(self.pace.longest_rest);
        self.resting.insert(owner.clone(), now + rest);
        let paid = self.debts.get(owner).map_or(now, |paid| now.max(*paid));
        let paid = (paid + took.saturating_mul(SHARE_DIVISOR).min(MAX_DEBT)).min(now + MAX_DEBT);
        self.debts.insert(owner.clone(), paid);
        // A debt outlives its owner, so that a deleted and recreated owner keeps it.
        if *self.audit.get_or_insert(now + MAX_DEBT) <= now {
            self.debts.retain(|_, paid| *paid > now);
            self.audit = None;
        }
    }

    /// Ends the series of failures of an owner.
    pub fn succeeded(&mut self, owner: &ObjectKey) {
        self.failures.remove(owner);
    }

    /// Whether the queue contains an owner.
    pub fn contains(&self, owner: &ObjectKey) -> bool {
        self.waiting.contains_key(owner)
    }

    /// Removes a deleted owner.
    pub fn forget(&mut self, owner: &ObjectKey) {
        self.resting.remove(owner);
        self.failures.remove(owner);
        self.take_out(owner);
    }

    /// The time at which the next owner is due; `None` if the queue is empty. Linear in the number of heavy owners.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let heavy = self.heavy.iter().filter_map(|(.., owner)| Some(self.waiting.get(owner)?.due));
        let others = [&self.light, &self.later].into_iter().filter_map(|places| Some(places.first()?.0));
        others.chain(heavy).min()
    }

    /// The waiting owners, with the time of their wait and the number of failures. For dumps.
    pub fn waiting(&self) -> impl Iterator<Item = (&ObjectKey, Instant, u32)> {
        self.light.iter().chain(&self.heavy).chain(&self.later).filter_map(|(.., owner)| {
            let failures = self.failures.get(owner).copied().unwrap_or_default();
            Some((owner, self.waiting.get(owner)?.due, failures))
        })
    }

    /// The number of waiting owners.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps the earlier of two times.
    fn schedule(&mut self, owner: ObjectKey, due: Instant) {
        if self.waiting.get(&owner).is_some_and(|waiting| waiting.stage != Stage::Later || waiting.due <= due)
        {
            return;
        }
        self.take_out(&owner);
        self.arrivals += 1;
        self.waiting.insert(owner.clone(), Waiting { due, arrival: self.arrivals, stage: Stage::Later });
        self.later.insert((due, self.arrivals, owner));
    }

    fn take_out(&mut self, owner: &ObjectKey) {
        let Some(Waiting { due, arrival, stage }) = self.waiting.remove(owner) else { return };
        match stage {
            Stage::Later => self.later.remove(&(due, arrival, owner.clone())),
            Stage::Light => self.light.remove(&(due, arrival, owner.clone())),
            Stage::Heavy(turn) => self.heavy.remove(&(turn, arrival, owner.clone())),
        };
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
        // A very long turn causes a rest of one second at most.
        queue.rest(&owner("one"), rested, Duration::from_secs(9));
        queue.push(owner("one"), rested);
        assert_eq!(queue.next_due(), Some(rested + Duration::from_secs(1)));
    }

    #[test]
    fn a_resting_owner_does_not_keep_others_waiting() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.rest(&owner("one"), now, Duration::from_secs(1));
        queue.push(owner("one"), now);
        queue.push(owner("two"), now);
        assert_eq!(queue.pop(now), Some(owner("two")));
    }

    #[test]
    fn failures_are_retried_at_growing_intervals_and_a_change_does_not_wait() {
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
    fn the_owner_that_took_less_lately_goes_first_and_every_owner_is_served() {
        let (mut queue, now) = (queue(), Instant::now());
        let second = Duration::from_secs(1);
        queue.rest(&owner("heavy"), now, second);
        queue.rest(&owner("heavier"), now, 2 * second);
        let rested = now + second;
        for name in ["heavier", "heavy", "light"] {
            queue.push(owner(name), rested);
        }
        let due = rested;
        assert_eq!(queue.next_turn(Capacity::LightOnly), Some(rested));
        assert_eq!(
            queue.turn(rested, Capacity::LightOnly),
            Some(Turn { owner: owner("light"), due, is_light: true })
        );
        assert_eq!(queue.turn(rested, Capacity::LightOnly), None);
        assert_eq!((queue.next_due(), queue.next_turn(Capacity::Any)), (Some(rested), Some(rested)));
        assert_eq!(queue.next_turn(Capacity::LightOnly), None, "waiting makes nobody light");
        assert_eq!(queue.turn(rested, Capacity::Any).unwrap().owner, owner("heavy"));
        // The owner has paid its debt after four times its run time. Owners that become due later come after it.
        let late = now + 8 * second;
        queue.push(owner("before"), late - second);
        queue.push(owner("after"), late + second);
        let order: Vec<Turn> = std::iter::from_fn(|| queue.turn(late + second, Capacity::Any)).collect();
        let names: Vec<&str> = order.iter().map(|turn| &*turn.owner.name.name).collect();
        assert_eq!(names, ["before", "heavier", "after"]);
        assert_eq!(order.iter().map(|turn| turn.is_light).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn debts_are_bounded_and_outlive_their_owners() {
        let (mut queue, now) = (queue(), Instant::now());
        let minute = Duration::from_mins(1);
        let is_light = |queue: &mut Queue, at| {
            queue.push(owner("one"), at);
            queue.turn(at, Capacity::Any).unwrap().is_light
        };
        for _ in 0..3 {
            queue.rest(&owner("one"), now, Duration::from_hours(1));
            queue.forget(&owner("one"));
        }
        assert!(!is_light(&mut queue, now + minute - Duration::from_millis(1)));
        assert!(is_light(&mut queue, now + minute));
        queue.rest(&owner("two"), now + 3 * minute, Duration::from_secs(1));
        assert_eq!(queue.debts.len(), 1, "those that are paid are not kept");
    }

    #[test]
    fn a_forgotten_owner_waits_no_more() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.push(owner("one"), now);
        queue.forget(&owner("one"));
        assert!(queue.is_empty() && queue.pop(now).is_none());
    }
}
