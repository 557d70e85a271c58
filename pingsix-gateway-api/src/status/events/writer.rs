//! From the board to `events.k8s.io`.

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
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::board::{EventBoard, Untold};
use super::note::{Reporter, namespace};
use crate::clock::Clock;
use crate::fault::{Fault, FaultCategory, within};
use crate::leader::Leadership;
use crate::status::live::Readers;
use crate::status::pace::{Pace, Pacing};

/// The options of Events.
#[derive(Clone, Debug)]
pub struct EventOptions {
    /// The name of the reporting controller.
    pub controller_name: String,
    /// Which replica reports, for example the name of its Pod.
    pub instance: String,
    /// The number of concurrent requests.
    pub concurrency: usize,
    /// The number of Events that an object may get at once.
    pub burst: u32,
    /// The interval of further Events of an object.
    pub interval: Duration,
    /// The shortest time between two Events, whatever their objects.
    pub gap: Duration,
    /// The interval of reports of a standing problem. API servers delete Events, by default after an hour
    /// (`--event-ttl`).
    pub renewal: Duration,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The delays after failures.
    pub pacing: Pacing,
    /// The clock of Events.
    pub clock: Clock,
}

impl EventOptions {
    /// For a replica of a controller.
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

/// Tells what the board says, while this replica leads. Events are for reading along: what cannot be told is dropped, and
/// delays nothing.
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

/// The objects that have something to be told of.
#[derive(Debug, Default)]
struct Queue {
    speakers: BTreeMap<ObjectKey, Speaker>,
    due: BTreeSet<(Instant, ObjectKey)>,
}

#[derive(Debug, Default)]
struct Speaker {
    is_queued: bool,
    is_being_told: bool,
    pace: Pace,
    /// When the object will have had no more Events than one per interval.
    even: Option<Instant>,
}

impl Speaker {
    /// When another Event may be made.
    fn next(&self, now: Instant, options: &EventOptions) -> Instant {
        let allowance = options.interval * options.burst.saturating_sub(1);
        let even = self.even.map_or(now, |even| even.checked_sub(allowance).unwrap_or(now));
        self.pace.next().unwrap_or(now).max(even).max(now)
    }

    fn told(&mut self, now: Instant, options: &EventOptions) {
        self.even = Some(self.even.map_or(now, |even| even.max(now)) + options.interval);
    }
}

impl Queue {
    fn push(&mut self, object: ObjectKey, now: Instant, options: &EventOptions) {
        let speaker = self.speakers.entry(object.clone()).or_default();
        if !speaker.is_queued && !speaker.is_being_told {
            speaker.is_queued = true;
            self.due.insert((speaker.next(now, options), object));
        }
    }

    fn pop(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.due.first()?.0 > now {
            return None;
        }
        let (_, object) = self.due.pop_first()?;
        if let Some(speaker) = self.speakers.get_mut(&object) {
            speaker.is_queued = false;
        }
        Some(object)
    }

    /// Forgets objects that had nothing to be told of for long enough.
    fn sweep(&mut self, now: Instant) {
        self.speakers.retain(|_, speaker| {
            speaker.is_queued || speaker.is_being_told || speaker.even.is_some_and(|even| even > now)
        });
    }
}

impl EventWriter {
    /// Of a board.
    pub fn new(client: Client, readers: Readers, board: EventBoard, options: EventOptions) -> Self {
        let reporter = Reporter::new(&options.controller_name, &options.instance);
        Self { client, readers, board, options: Arc::new(options), reporter }
    }

    /// Tells what is wrong until it is stopped.
    pub async fn run(self, leadership: Leadership, stop: CancellationToken) {
        let mut gained = leadership.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = gained.gained() => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                _ = leadership.while_held(self.lead()) => {}
            }
        }
    }

    /// Tells; never ends by itself.
    async fn lead(&self) {
        let options = &*self.options;
        let mut queue = Queue::default();
        let mut complaints = BTreeSet::new();
        let mut telling = FuturesUnordered::new();
        let mut free = Instant::now();
        for object in self.board.untold_objects() {
            queue.push(object, free, options);
        }
        loop {
            let now = Instant::now();
            if let Some(told_until) = now.checked_sub(options.renewal) {
                self.board.renew(told_until);
            }
            for object in self.board.take_news() {
                queue.push(object, now, options);
            }
            let has_room = telling.len() < options.concurrency.max(1);
            if has_room
                && free <= now
                && let Some(object) = queue.pop(now)
            {
                if let Some(untold) = self.board.untold(&object) {
                    free = now + options.gap;
                    queue.speakers.entry(object).or_default().is_being_told = true;
                    telling.push(self.tell(untold));
                }
                continue;
            }
            let due = queue.due.first().map(|(due, _)| free.max(*due)).filter(|_| has_room);
            let renewal = self.board.oldest().map(|told| told + options.renewal);
            let next = due.into_iter().chain(renewal).min();
            tokio::select! {
                Some((problem, outcome)) = telling.next(), if !telling.is_empty() => {
                    self.conclude(&mut queue, &mut complaints, &problem, outcome);
                }
                () = self.board.changed() => queue.sweep(now),
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }

    fn conclude(
        &self,
        queue: &mut Queue,
        complaints: &mut BTreeSet<(String, FaultCategory)>,
        problem: &Arc<Problem>,
        outcome: Result<(), Fault>,
    ) {
        let now = Instant::now();
        let object = ObjectKey::clone(&problem.object);
        // Permission in one namespace does not include another.
        let namespace = namespace(&object);
        let speaker = queue.speakers.entry(object.clone()).or_default();
        speaker.is_being_told = false;
        match outcome {
            Ok(()) => {
                complaints.retain(|(complained_of, _)| complained_of != namespace);
                speaker.told(now, &self.options);
                speaker.pace = Pace::default();
                self.board.told(problem, now);
            }
            Err(fault) => {
                let category = fault.category.as_str();
                if complaints.insert((namespace.to_owned(), fault.category)) {
                    warn!(object = %object, category, error = %fault, "an Event was not written");
                } else {
                    debug!(object = %object, category, error = %fault, "an Event was not written");
                }
                match fault.category {
                    // The next attempt would be answered alike; what is wrong is in the statuses and logs as well.
                    FaultCategory::Forbidden | FaultCategory::NotFound | FaultCategory::Refused => {
                        self.board.told(problem, now);
                    }
                    FaultCategory::Unauthorized
                    | FaultCategory::Conflict
                    | FaultCategory::Expired
                    | FaultCategory::Throttled
                    | FaultCategory::Server
                    | FaultCategory::Timeout
                    | FaultCategory::Transport
                    | FaultCategory::Malformed => {
                        speaker.pace.failed(now, fault.retry_after, &self.options.pacing);
                    }
                }
            }
        }
        if self.board.untold(&object).is_some() {
            queue.push(object, now, &self.options);
        }
    }

    async fn tell(&self, untold: Untold) -> (Arc<Problem>, Result<(), Fault>) {
        let outcome = self.try_tell(&untold).await;
        (untold.problem, outcome)
    }

    /// Creates an Event, or counts one more of those that are there.
    async fn try_tell(&self, Untold { problem, is_known }: &Untold) -> Result<(), Fault> {
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
            // Another replica has told it, or a process before this one.
            Err(fault) if fault.category == FaultCategory::Conflict => {
                match self.existing(&api, &event).await? {
                    Some(existing) => self.count(&api, &event, existing).await,
                    None => Err(fault),
                }
            }
            Err(fault) => Err(fault),
        }
    }

    async fn existing(&self, api: &Api<Event>, event: &Event) -> Result<Option<Event>, Fault> {
        within(self.options.timeout, api.get_opt(&event.name_any())).await
    }

    async fn count(&self, api: &Api<Event>, event: &Event, existing: Event) -> Result<(), Fault> {
        let times = existing.series.map_or(1, |series| series.count);
        let series = json!({ "series": {
            "count": times.saturating_add(1),
            "lastObservedTime": event.event_time,
        }});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&series));
        within(self.options.timeout, api.patch(&event.name_any(), &params, &patch)).await.map(|_| ())
    }
}
