//! The writer of Events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use pingsix_translate::ObjectKey;
use pingsix_translate::status::Problem;
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::board::{EventBoard, PendingReport};
use super::note::{Reporter, namespace};
use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::clock::Clock;
use crate::leader::Leadership;
use crate::status::live::Readers;
use crate::status::pace::{Pace, Pacing};

/// The options of Events.
#[derive(Clone, Debug)]
pub struct EventOptions {
    /// The name of the reporting controller.
    pub controller_name: String,
    /// The name of the replica, for example of its Pod.
    pub instance: String,
    /// The number of concurrent requests.
    pub concurrency: usize,
    /// The number of Events that an object may get at once.
    pub burst: u32,
    /// The interval of further Events of an object.
    pub interval: Duration,
    /// The shortest time between two Events of any objects.
    pub gap: Duration,
    /// The interval of reports of a current problem. API servers delete Events, by default after an hour
    /// (`--event-ttl`).
    pub renewal: Duration,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The delays after failures.
    pub(crate) pacing: Pacing,
    /// The clock of Events.
    pub clock: Clock,
}

impl EventOptions {
    /// The options for a replica of a controller.
    pub fn new(controller_name: impl Into<String>, instance: impl Into<String>) -> Self {
        Self {
            controller_name: controller_name.into(),
            instance: instance.into(),
            concurrency: 4,
            burst: 10,
            interval: Duration::from_secs(10),
            gap: Duration::from_millis(20),
            renewal: Duration::from_mins(30),
            timeout: Duration::from_secs(10),
            pacing: Pacing::default(),
            clock: Clock::default(),
        }
    }
}

/// Writes the Events of a board while this replica leads. Events are informative: an Event that the API server refuses
/// is dropped.
#[derive(Clone)]
pub struct EventWriter {
    client: Client,
    readers: Readers,
    board: EventBoard,
    options: Arc<EventOptions>,
    reporter: Reporter,
}

impl std::fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventWriter").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The objects with pending reports.
#[derive(Debug, Default)]
struct Queue {
    objects: BTreeMap<ObjectKey, ObjectState>,
    due: BTreeSet<(Instant, ObjectKey)>,
}

#[derive(Debug, Default)]
struct ObjectState {
    is_queued: bool,
    is_being_written: bool,
    pace: Pace,
    /// The time at which the object has its whole burst again.
    refilled_at: Option<Instant>,
}

impl ObjectState {
    /// The earliest time of the next Event.
    fn next(&self, now: Instant, options: &EventOptions) -> Instant {
        let allowance = options.interval * options.burst.saturating_sub(1);
        let refilled_at =
            self.refilled_at.map_or(now, |refilled_at| refilled_at.checked_sub(allowance).unwrap_or(now));
        self.pace.next().unwrap_or(now).max(refilled_at).max(now)
    }

    fn reported(&mut self, now: Instant, options: &EventOptions) {
        self.refilled_at =
            Some(self.refilled_at.map_or(now, |refilled_at| refilled_at.max(now)) + options.interval);
    }
}

impl Queue {
    fn push(&mut self, object: ObjectKey, now: Instant, options: &EventOptions) {
        let state = self.objects.entry(object.clone()).or_default();
        if !state.is_queued && !state.is_being_written {
            state.is_queued = true;
            self.due.insert((state.next(now, options), object));
        }
    }

    fn pop(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.due.first()?.0 > now {
            return None;
        }
        let (_, object) = self.due.pop_first()?;
        if let Some(state) = self.objects.get_mut(&object) {
            state.is_queued = false;
        }
        Some(object)
    }

    /// Removes objects without reports that have their whole burst again.
    fn remove_idle(&mut self, now: Instant) {
        self.objects.retain(|_, state| {
            state.is_queued
                || state.is_being_written
                || state.refilled_at.is_some_and(|refilled_at| refilled_at > now)
        });
    }
}

impl EventWriter {
    /// A writer for a board.
    pub fn new(client: Client, readers: Readers, board: EventBoard, options: EventOptions) -> Self {
        let reporter = Reporter::new(&options.controller_name, &options.instance);
        Self { client, readers, board, options: Arc::new(options), reporter }
    }

    /// Writes Events until it is dropped.
    pub async fn run(self, leadership: Leadership) {
        let mut gained = leadership.clone();
        loop {
            gained.gained().await;
            leadership.while_held(self.lead()).await;
        }
    }

    /// Writes forever.
    async fn lead(&self) {
        let options = &*self.options;
        let mut queue = Queue::default();
        let mut logged_failures = BTreeSet::new();
        let mut writing = FuturesUnordered::new();
        let mut next_slot = Instant::now();
        for object in self.board.pending_objects() {
            queue.push(object, next_slot, options);
        }
        loop {
            let now = Instant::now();
            if let Some(reported_until) = now.checked_sub(options.renewal) {
                self.board.renew(reported_until);
            }
            for object in self.board.take_changed() {
                queue.push(object, now, options);
            }
            let has_room = writing.len() < options.concurrency.max(1);
            if has_room
                && next_slot <= now
                && let Some(object) = queue.pop(now)
            {
                if let Some(pending) = self.board.pending(&object) {
                    next_slot = now + options.gap;
                    queue.objects.entry(object).or_default().is_being_written = true;
                    writing.push(self.write(pending));
                }
                continue;
            }
            let due = queue.due.first().map(|(due, _)| next_slot.max(*due)).filter(|_| has_room);
            let renewal = self.board.oldest().map(|reported| reported + options.renewal);
            let next = due.into_iter().chain(renewal).min();
            tokio::select! {
                Some((problem, outcome)) = writing.next(), if !writing.is_empty() => {
                    self.finish(&mut queue, &mut logged_failures, &problem, outcome);
                }
                () = self.board.changed() => queue.remove_idle(now),
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }

    fn finish(
        &self,
        queue: &mut Queue,
        logged_failures: &mut BTreeSet<(String, ApiErrorCategory)>,
        problem: &Arc<Problem>,
        outcome: Result<(), ApiError>,
    ) {
        let now = Instant::now();
        let object = ObjectKey::clone(&problem.object);
        // Permission in one namespace does not include another.
        let namespace = namespace(&object);
        let state = queue.objects.entry(object.clone()).or_default();
        state.is_being_written = false;
        match outcome {
            Ok(()) => {
                logged_failures.retain(|(logged, _)| logged != namespace);
                state.reported(now, &self.options);
                state.pace = Pace::default();
                self.board.reported(problem, now);
            }
            Err(error) => {
                let category = error.category.as_str();
                if logged_failures.insert((namespace.to_owned(), error.category)) {
                    warn!(object = %object, category, error = %error, "an Event was not written");
                } else {
                    debug!(object = %object, category, error = %error, "an Event was not written");
                }
                // A retry would get the same response. Statuses and logs have the problem, too.
                let is_final = matches!(
                    error.category,
                    ApiErrorCategory::Forbidden | ApiErrorCategory::NotFound | ApiErrorCategory::Refused
                );
                if is_final {
                    self.board.reported(problem, now);
                } else {
                    state.pace.failed(now, error.retry_after, &self.options.pacing);
                }
            }
        }
        if self.board.pending(&object).is_some() {
            queue.push(object, now, &self.options);
        }
    }

    async fn write(&self, pending: PendingReport) -> (Arc<Problem>, Result<(), ApiError>) {
        let outcome = self.try_write(&pending).await;
        (pending.problem, outcome)
    }

    /// Creates an Event, or increments the count of an existing one.
    async fn try_write(&self, PendingReport { problem, is_known }: &PendingReport) -> Result<(), ApiError> {
        let object = &*problem.object;
        // A deleted object has no `describe` to show the Event.
        let (Some(live), Some(resource)) = (self.readers.live(object), self.readers.resource(object.kind))
        else {
            return Ok(());
        };
        let event = self.reporter.event(problem, &resource, &live.uid, self.options.clock.now());
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace(object));
        // An earlier Event most likely exists, unless the API server has deleted it.
        let existing = if *is_known { self.existing(&api, &event).await? } else { None };
        if let Some(existing) = existing {
            return self.count(&api, &event, existing).await;
        }
        match within(self.options.timeout, api.create(&PostParams::default(), &event)).await {
            Ok(_) => Ok(()),
            // Another replica or an earlier process has created the Event.
            Err(error) if error.category == ApiErrorCategory::Conflict => {
                match self.existing(&api, &event).await? {
                    Some(existing) => self.count(&api, &event, existing).await,
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn existing(&self, api: &Api<Event>, event: &Event) -> Result<Option<Event>, ApiError> {
        within(self.options.timeout, api.get_opt(&event.name_any())).await
    }

    async fn count(&self, api: &Api<Event>, event: &Event, existing: Event) -> Result<(), ApiError> {
        let times = existing.series.map_or(1, |series| series.count);
        let series = json!({ "series": {
            "count": times.saturating_add(1),
            "lastObservedTime": event.event_time,
        }});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&series));
        within(self.options.timeout, api.patch(&event.name_any(), &params, &patch)).await.map(|_| ())
    }
}
