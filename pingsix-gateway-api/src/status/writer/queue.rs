//! The writer's state of each object, beside the board and the stores.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use pingsix_translate::{Kind, ObjectKey};
use serde_json::Value;
use tokio::time::Instant;

use crate::fault::{Fault, FaultCategory};
use crate::status::live::Live;
use crate::status::pace::{Pace, Pacing};

/// The outcome of a write.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The API server took it.
    Stored {
        /// The status that was sent.
        sent: Value,
        /// The object as it was stored.
        stored: Live,
    },
    /// The newest version needs no write.
    Settled(Live),
    /// There is nothing to say any more, or not for us.
    Abandoned,
    /// The write failed.
    Failed(Fault),
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

/// Which objects are to be looked at when, and what is known of them.
#[derive(Debug)]
pub(super) struct StatusQueue {
    pacing: Pacing,
    progress: BTreeMap<ObjectKey, Progress>,
    queue: BTreeSet<(Instant, ObjectKey)>,
    complaints: BTreeSet<(Kind, FaultCategory)>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Its place in the queue.
    due: Option<Instant>,
    is_being_written: bool,
    /// There is news since that began.
    is_marked: bool,
    pace: Pace,
    /// The newest version, where the store may lag behind it, and since when it is known.
    newest: Option<(Live, Instant)>,
    pruned: Option<Pruned>,
}

/// The API server does not store all that is sent: older CRDs lack fields. Without this, every look would lead to the same
/// write again.
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
        Self { pacing, progress: BTreeMap::new(), queue: BTreeSet::new(), complaints: BTreeSet::new() }
    }

    /// Puts an object into the queue: at once, or as soon as it may be written again.
    pub(super) fn schedule(&mut self, key: ObjectKey, now: Instant) {
        let progress = self.progress.entry(key.clone()).or_default();
        if progress.is_being_written {
            progress.is_marked = true;
        } else if progress.due.is_none() {
            let due = progress.pace.next().map_or(now, |next| next.max(now));
            progress.due = Some(due);
            self.queue.insert((due, key));
        }
    }

    /// When the first of the queue is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Takes the first out of the queue if it is due.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.due()? > now {
            return None;
        }
        let (_, key) = self.queue.pop_first()?;
        if let Some(progress) = self.progress.get_mut(&key) {
            progress.due = None;
        }
        Some(key)
    }

    /// The newest version of an object that is known: the store's, unless it lags behind what we have written or read.
    pub(super) fn newest(&mut self, key: &ObjectKey, stored: Live, lag: Duration) -> Live {
        let Some(progress) = self.progress.get_mut(key) else { return stored };
        match &progress.newest {
            // A store that lags for so long belongs to another history, such as that of a backup.
            Some((newest, since)) if since.elapsed() < lag && is_older(&stored.version, &newest.version) => {
                newest.clone()
            }
            Some(_) | None => {
                progress.newest = None;
                stored
            }
        }
    }

    /// Whether this was sent before, and became what the status is.
    pub(super) fn was_pruned(&self, key: &ObjectKey, status: &Value, live: &Value) -> bool {
        let pruned = self.progress.get(key).and_then(|progress| progress.pruned);
        pruned.is_some_and(|pruned| pruned == Pruned::of(status, live))
    }

    /// There is nothing to write. What need not be remembered is not.
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

    /// A write has ended; the object is queued again if there is news, or if it failed.
    pub(super) fn ended(&mut self, key: &ObjectKey, outcome: Outcome, now: Instant) {
        let progress = self.progress.entry(key.clone()).or_default();
        progress.is_being_written = false;
        let mut again = std::mem::take(&mut progress.is_marked);
        match outcome {
            Outcome::Stored { sent, stored } => {
                progress.pace.wrote(now, &self.pacing);
                progress.pruned = (sent != stored.status).then(|| Pruned::of(&sent, &stored.status));
                progress.newest = Some((stored, now));
                self.complaints.retain(|(kind, _)| *kind != key.kind);
            }
            Outcome::Settled(live) => {
                progress.pace.settled();
                progress.newest = Some((live, now));
            }
            Outcome::Abandoned => {}
            Outcome::Failed(fault) => {
                progress.pace.failed(now, fault.retry_after, &self.pacing);
                again = true;
            }
        }
        if again {
            self.schedule(key.clone(), now);
        }
    }

    /// The object is gone, or there is nothing to say of it.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if let Some(Progress { due: Some(due), .. }) = self.progress.remove(key) {
            self.queue.remove(&(due, key.clone()));
        }
    }

    /// Notes a complaint; whether it is a new one.
    pub(super) fn complains(&mut self, kind: Kind, category: FaultCategory) -> bool {
        self.complaints.insert((kind, category))
    }
}

/// Whether a version comes before another one. They are numbers that grow; what is none is not judged.
fn is_older(version: &str, other: &str) -> bool {
    matches!((version.parse::<u64>(), other.parse::<u64>()), (Ok(version), Ok(other)) if version < other)
}
