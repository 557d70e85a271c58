//! The writer of statuses.

mod queue;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use pingsix_translate::status::StatusMerge;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tracing::field::Empty;
use tracing::{Instrument as _, debug, info, info_span, warn};

use self::queue::{Outcome, StatusQueue};
use super::board::StatusBoard;
use super::live::{LiveObject, Readers};
use super::pace::Pacing;
use super::wanted::StatusEntry;
use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::clock::Clock;
use crate::leader::Leadership;

/// The number of merges after conflicts before the write counts as a failure.
const MAX_MERGES: usize = 4;

/// The number of consecutive checks after which the task yields.
const CHECKS_PER_YIELD: usize = 64;

/// The options of status writes.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The controller name of our entries in `parents` and `ancestors`.
    pub controller_name: String,
    /// `fieldManager` of our writes.
    pub field_manager: String,
    /// The number of concurrent requests.
    pub concurrency: usize,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The pace of writes to one object.
    pub(crate) pacing: Pacing,
    /// The longest time that a store may lag behind our own write before the store counts again.
    pub lag: Duration,
    /// The clock of `lastTransitionTime`.
    pub clock: Clock,
}

impl WriterOptions {
    /// The options for a controller name.
    pub fn new(controller_name: impl Into<String>) -> Self {
        let controller_name = controller_name.into();
        Self {
            // The API server accepts at most 128 characters.
            field_manager: controller_name.replace('/', "-").chars().take(128).collect(),
            controller_name,
            concurrency: 16,
            timeout: Duration::from_secs(10),
            pacing: Pacing::default(),
            lag: Duration::from_secs(30),
            clock: Clock::default(),
        }
    }
}

/// The counters of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// Written statuses.
    pub written: u64,
    /// Checks of objects that needed no write.
    pub suppressed: u64,
    /// Conflicts with a newer version of the object.
    pub conflicts: u64,
    /// Failed requests, conflicts excluded.
    pub failures: u64,
}

/// Writes the statuses of a board while this replica leads.
#[derive(Clone)]
pub struct StatusWriter {
    client: Client,
    readers: Readers,
    board: StatusBoard,
    options: Arc<WriterOptions>,
    counts: Arc<Mutex<StatusCounts>>,
}

impl std::fmt::Debug for StatusWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusWriter")
            .field("options", &self.options)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl StatusWriter {
    /// A writer for a board.
    pub fn new(client: Client, readers: Readers, board: StatusBoard, options: WriterOptions) -> Self {
        Self { client, readers, board, options: Arc::new(options), counts: Arc::default() }
    }

    /// The counters of writes, of all clones together.
    pub fn counts(&self) -> StatusCounts {
        *self.counts.lock()
    }

    fn count(&self, counter: fn(&mut StatusCounts) -> &mut u64) {
        *counter(&mut self.counts.lock()) += 1;
    }

    /// Writes until it is dropped. A loss of leadership abandons writes in flight, and a gain checks all objects.
    pub async fn run(self, leadership: Leadership) {
        let mut gained = leadership.clone();
        loop {
            tokio::select! {
                () = gained.gained() => {}
                () = self.board.marked() => {
                    // A new leader checks all objects.
                    self.board.take_marks();
                    continue;
                }
            }
            info!("writing statuses");
            self.board.mark_all();
            leadership.while_held(self.lead()).await;
            info!("the leader writes statuses; this replica stops");
        }
    }

    /// Writes forever.
    async fn lead(&self) {
        let mut queue = StatusQueue::new(self.options.pacing);
        let mut writing = FuturesUnordered::new();
        let mut checks = 0;
        loop {
            let now = Instant::now();
            for key in self.board.take_marks() {
                queue.schedule(ObjectKey::clone(&key), now);
            }
            while writing.len() < self.options.concurrency.max(1) {
                let Some(key) = queue.next_due(Instant::now()) else { break };
                if let Some(live) = self.check(&mut queue, &key) {
                    queue.started(&key);
                    writing.push(self.write(key, live));
                }
                checks += 1;
                if checks % CHECKS_PER_YIELD == 0 {
                    tokio::task::yield_now().await;
                }
            }
            let has_room = writing.len() < self.options.concurrency.max(1);
            let due = queue.due().filter(|_| has_room);
            tokio::select! {
                Some((key, outcome)) = writing.next(), if !writing.is_empty() => {
                    self.finish(&mut queue, key, outcome);
                }
                () = self.board.marked() => {}
                () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
            }
        }
    }

    /// The live object, if its status needs a write.
    fn check(&self, queue: &mut StatusQueue, key: &ObjectKey) -> Option<LiveObject> {
        let Some(entry) = self.board.entry(key) else {
            queue.forget(key);
            return None;
        };
        // An object outside of the store is deleted or not known yet: either way an event follows.
        let live = self.readers.live(key)?;
        let live = queue.newest(key, live, self.options.lag);
        if self.merged(&entry, &live).is_some_and(|status| !queue.was_pruned(key, &status, &live.status)) {
            return Some(live);
        }
        self.count(|counts| &mut counts.suppressed);
        queue.settled(key, Instant::now());
        if entry.is_one_time_release() {
            self.board.finish_release(key, &entry);
            // The board no longer has the object, so its deletion would cause no check.
            queue.forget(key);
        }
        None
    }

    /// The merged status, if it differs from the live status.
    fn merged(&self, entry: &StatusEntry, live: &LiveObject) -> Option<Value> {
        if entry.is_held || entry.is_behind(&self.options.controller_name, live) {
            return None;
        }
        let merge = StatusMerge::new(&self.options.controller_name, &Time(self.options.clock.now()));
        let status = entry.merge(&merge, live);
        (status != live.status).then_some(status)
    }

    async fn write(&self, key: ObjectKey, live: LiveObject) -> (ObjectKey, Outcome) {
        let span = info_span!("status", object = %key, outcome = Empty);
        let outcome = self.try_write(&key, live).instrument(span.clone()).await;
        let outcome = outcome.unwrap_or_else(Outcome::Failed);
        span.record("outcome", outcome.as_str());
        (key, outcome)
    }

    /// Merges the newest wanted status and writes it. Conflicts repeat the merge, up to a limit.
    async fn try_write(&self, key: &ObjectKey, mut live: LiveObject) -> Result<Outcome, ApiError> {
        let Some(api) = self.readers.api(&self.client, key) else { return Ok(Outcome::Abandoned) };
        let mut conflict = None;
        for _ in 0..MAX_MERGES {
            if let Some(error) = conflict {
                self.count(|counts| &mut counts.conflicts);
                debug!(error = %error, "conflict with another writer; merging again");
                live = LiveObject::of(within(self.options.timeout, api.get(&key.name.name)).await?);
            }
            let Some(entry) = self.board.entry(key) else { return Ok(Outcome::Abandoned) };
            let Some(status) = self.merged(&entry, &live) else { return Ok(Outcome::Settled(live)) };
            match within(self.options.timeout, self.patch(&api, key, &live, &status)).await {
                Ok(object) => {
                    self.count(|counts| &mut counts.written);
                    debug!("status written");
                    return Ok(Outcome::Stored { sent: status, stored: LiveObject::of(object) });
                }
                Err(error) if error.category == ApiErrorCategory::Conflict => conflict = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(conflict.unwrap_or_else(ApiError::conflict))
    }

    /// Replaces the status alone. A PUT would need fields that the store drops, and a merge patch cannot remove entries
    /// of lists.
    async fn patch(
        &self,
        api: &Api<DynamicObject>,
        key: &ObjectKey,
        live: &LiveObject,
        status: &Value,
    ) -> Result<DynamicObject, kube::Error> {
        let patch = json!([
            // The API server responds with 409 if the object has another version.
            { "op": "replace", "path": "/metadata/resourceVersion", "value": live.version },
            { "op": "add", "path": "/status", "value": status },
        ]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch).map_err(kube::Error::SerdeError)?);
        let params =
            PatchParams { field_manager: Some(self.options.field_manager.clone()), ..PatchParams::default() };
        api.patch_status(&key.name.name, &params, &patch).await
    }

    fn finish(&self, queue: &mut StatusQueue, key: ObjectKey, outcome: Outcome) {
        let now = Instant::now();
        if let Outcome::Failed(error) = &outcome {
            self.count(|counts| &mut counts.failures);
            self.log_failure(queue, &key, error);
        }
        // A deleted object needs no retry. An object in the store may exist in spite of a 404.
        let is_gone = self.readers.live(&key).is_none();
        // One more check completes a release.
        let is_released = self.board.entry(&key).is_some_and(|entry| entry.is_one_time_release());
        queue.ended(&key, outcome, now);
        if is_gone {
            queue.forget(&key);
        } else if is_released {
            queue.schedule(key, now);
        }
    }

    /// Logs a failure. Repetitions for other objects of the kind have the level `debug`.
    fn log_failure(&self, queue: &mut StatusQueue, key: &ObjectKey, error: &ApiError) {
        let category = error.category.as_str();
        let is_first = queue.is_first_failure(key.kind, error.category);
        if error.category == ApiErrorCategory::NotFound || !is_first {
            debug!(object = %key, category, error = %error, "the status was not written");
        } else if error.category == ApiErrorCategory::Forbidden {
            let resource = self.readers.resource(key.kind);
            let resource =
                resource.map_or_else(String::new, |resource| format!("{}/status", resource.plural));
            warn!(object = %key, %resource, error = %error, "not allowed to patch statuses of this kind");
        } else {
            warn!(object = %key, category, error = %error, "the status was not written; trying again");
        }
    }
}
