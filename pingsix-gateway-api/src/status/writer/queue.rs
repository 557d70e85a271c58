//! The writer's queue, and its state of each object.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use pingsix_translate::{Kind, ObjectKey};
use serde_json::Value;
use tokio::time::Instant;

use crate::api_error::{ApiError, ApiErrorCategory};
use crate::status::live::LiveObject;
use crate::status::pace::{Pace, Pacing};

/// The outcome of a write.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The API server accepted the write.
    Stored {
        /// The status that was sent.
        sent: Value,
        /// The stored object.
        stored: LiveObject,
    },
    /// The newest version needs no write.
    Settled(LiveObject),
    /// The object has no wanted status any more.
    Abandoned,
    /// The write failed.
    Failed(ApiError),
}

impl Outcome {
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Self::Stored { .. } => "stored",
            Self::Settled(_) => "settled",
            Self::Abandoned => "abandoned",
            Self::Failed(_) => "failed",
        }
    }
}

/// The objects to check by time, and the state of each object.
#[derive(Debug)]
pub(super) struct StatusQueue {
    pacing: Pacing,
    progress: BTreeMap<ObjectKey, Progress>,
    /// All kinds that are not in `parents`.
    queue: BTreeSet<(Instant, ObjectKey)>,
    /// GatewayClasses, Gateways and ListenerSets. They take turns with all other objects, so they do not wait behind a
    /// thousand routes that come at once, and routes do not wait behind Gateways that change all the time.
    parents: BTreeSet<(Instant, ObjectKey)>,
    /// Whether the last object was one of `parents`.
    was_parent: bool,
    logged_failures: BTreeSet<(Kind, ApiErrorCategory)>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The time of the object in the queue.
    due: Option<Instant>,
    is_being_written: bool,
    /// Whether the object was marked during the write.
    is_marked: bool,
    pace: Pace,
    /// The newest version that the store may not have yet, and the time of its response.
    newest: Option<(LiveObject, Instant)>,
    pruned: Option<Pruned>,
}

/// A pruned write: older CRDs lack fields, so the API server stores less than it was sent. The record prevents a
/// repetition of the write at each check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pruned {
    sent: u64,
    stored: u64,
}

impl Pruned {
    fn of(sent: &Value, stored: &Value) -> Self {
        let digest = |status: &Value| {
            let mut hasher = DefaultHasher::new();
            status.to_string().hash(&mut hasher);
            hasher.finish()
        };
        Self { sent: digest(sent), stored: digest(stored) }
    }
}

impl StatusQueue {
    pub(super) fn new(pacing: Pacing) -> Self {
        Self {
            pacing,
            progress: BTreeMap::new(),
            queue: BTreeSet::new(),
            parents: BTreeSet::new(),
            was_parent: false,
            logged_failures: BTreeSet::new(),
        }
    }

    /// Adds an object that changed to the queue, or moves it back.
    pub(super) fn schedule(&mut self, key: ObjectKey, now: Instant) {
        let progress = self.progress.entry(key.clone()).or_default();
        if progress.is_being_written {
            progress.is_marked = true;
            return;
        }
        let due = progress.pace.due(now, &self.pacing);
        let before = progress.due.replace(due);
        let queue = self.queue_of(key.kind);
        if let Some(before) = before {
            queue.remove(&(before, key.clone()));
        }
        queue.insert((due, key));
    }

    /// The queue of a kind.
    const fn queue_of(&mut self, kind: Kind) -> &mut BTreeSet<(Instant, ObjectKey)> {
        let is_parent = matches!(kind, Kind::GatewayClass | Kind::Gateway | Kind::ListenerSet);
        if is_parent { &mut self.parents } else { &mut self.queue }
    }

    /// The earliest time of an object in the queue.
    pub(super) fn due(&self) -> Option<Instant> {
        let first = [&self.parents, &self.queue].into_iter().filter_map(BTreeSet::first);
        first.map(|(due, _)| *due).min()
    }

    /// Removes the next object from the queue if one is due.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<ObjectKey> {
        let is_due =
            |queue: &BTreeSet<(Instant, ObjectKey)>| queue.first().is_some_and(|(due, _)| *due <= now);
        let is_parent = is_due(&self.parents) && !(self.was_parent && is_due(&self.queue));
        let queue = if is_parent { &mut self.parents } else { &mut self.queue };
        if !is_due(queue) {
            return None;
        }
        let (_, key) = queue.pop_first()?;
        self.was_parent = is_parent;
        if let Some(progress) = self.progress.get_mut(&key) {
            progress.due = None;
        }
        Some(key)
    }

    /// The newest known version of an object: the stored one, unless the store lags behind a response.
    pub(super) fn newest(&mut self, key: &ObjectKey, stored: LiveObject, lag: Duration) -> LiveObject {
        let Some(progress) = self.progress.get_mut(key) else { return stored };
        match &progress.newest {
            // A longer lag means another history, such as a restored backup.
            Some((newest, since)) if since.elapsed() < lag && is_older(&stored.version, &newest.version) => {
                newest.clone()
            }
            Some(_) | None => {
                progress.newest = None;
                stored
            }
        }
    }

    /// Whether an earlier write of this status resulted in the live status.
    pub(super) fn was_pruned(&self, key: &ObjectKey, status: &Value, live: &Value) -> bool {
        let pruned = self.progress.get(key).and_then(|progress| progress.pruned);
        pruned.is_some_and(|pruned| pruned == Pruned::of(status, live))
    }

    /// Records that no write was necessary, and drops the state of an object at rest.
    pub(super) fn settled(&mut self, key: &ObjectKey, now: Instant) {
        let Some(progress) = self.progress.get_mut(key) else { return };
        progress.pace.settled();
        let is_at_rest =
            progress.newest.is_none() && progress.pruned.is_none() && progress.pace.is_at_rest(now);
        if is_at_rest && !progress.is_being_written && progress.due.is_none() {
            self.progress.remove(key);
        }
    }

    pub(super) fn started(&mut self, key: &ObjectKey) {
        self.progress.entry(key.clone()).or_default().is_being_written = true;
    }

    /// Records the end of a write. The object is queued again after a mark or a failure.
    pub(super) fn ended(&mut self, key: &ObjectKey, outcome: Outcome, now: Instant) {
        let progress = self.progress.entry(key.clone()).or_default();
        progress.is_being_written = false;
        let mut is_queued_again = std::mem::take(&mut progress.is_marked);
        match outcome {
            Outcome::Stored { sent, stored } => {
                progress.pace.wrote(now, &self.pacing);
                progress.pruned = (sent != stored.status).then(|| Pruned::of(&sent, &stored.status));
                progress.newest = Some((stored, now));
                self.logged_failures.retain(|(kind, _)| *kind != key.kind);
            }
            Outcome::Settled(live) => {
                progress.pace.settled();
                progress.newest = Some((live, now));
            }
            Outcome::Abandoned => {}
            Outcome::Failed(error) => {
                progress.pace.failed(now, error.retry_after, &self.pacing);
                is_queued_again = true;
            }
        }
        if is_queued_again {
            self.schedule(key.clone(), now);
        }
    }

    /// Drops the state of an object.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if let Some(Progress { due: Some(due), .. }) = self.progress.remove(key) {
            self.queue_of(key.kind).remove(&(due, key.clone()));
        }
    }

    /// Records a logged failure. Returns whether it is the first of its category since the last success for the kind.
    pub(super) fn is_first_failure(&mut self, kind: Kind, category: ApiErrorCategory) -> bool {
        self.logged_failures.insert((kind, category))
    }
}

/// Whether a version is older than another. Versions are growing numbers; other texts have no order.
fn is_older(version: &str, other: &str) -> bool {
    matches!((version.parse::<u64>(), other.parse::<u64>()), (Ok(version), Ok(other)) if version < other)
}

#[cfg(test)]
mod tests {
    use pingsix_translate::ObjectName;

    use super::*;

    fn key(kind: Kind, name: &str) -> ObjectKey {
        ObjectKey { kind, name: ObjectName::new("shop", name) }
    }

    #[test]
    fn parents_take_turns_with_other_objects() {
        let (mut queue, now) = (StatusQueue::new(Pacing::default()), Instant::now());
        let later = now + Duration::from_millis(1);
        for name in ["a", "b", "c"] {
            queue.schedule(key(Kind::HttpRoute, name), now);
        }
        let mut parents = [Kind::GatewayClass, Kind::Gateway, Kind::ListenerSet].map(|kind| key(kind, "web"));
        parents.sort();
        for parent in &parents {
            // The second time replaces the first.
            queue.schedule(parent.clone(), now);
            queue.schedule(parent.clone(), later);
        }
        assert_eq!(queue.next_due(now), Some(key(Kind::HttpRoute, "a")), "no parent is due yet");
        let mut time = later;
        for expected in [&parents[0], &key(Kind::HttpRoute, "b"), &parents[1], &key(Kind::HttpRoute, "c")] {
            assert_eq!(queue.next_due(time).as_ref(), Some(expected));
            // One parent changes all the time.
            time += Duration::from_millis(1);
            queue.schedule(parents[0].clone(), time);
        }
        assert_eq!(queue.due(), Some(later));
        queue.forget(&parents[0]);
        assert_eq!(queue.next_due(time).as_ref(), Some(&parents[2]));
        assert_eq!((queue.next_due(time), queue.due()), (None, None));
    }
}
