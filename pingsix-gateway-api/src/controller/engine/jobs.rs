//! Translations, beside the task that owns the picture.
//!
//! Each owner has one at a time, and what happens meanwhile to what it may see makes one more after that, however much it is.
//! So they are made, and come to their ends, in order. How many run at once, and whose, follows from [`Slots`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use pingsix_translate::ObjectKey;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tracing::{Span, info_span};

use crate::reconcile::{Done, Job, Room, Slots};

/// What translates; tests put something else in its place.
type Run = Arc<dyn Fn(Job) -> Done + Send + Sync>;

/// Translations that run, and those that wait for their own end.
pub(super) struct Jobs {
    slots: Slots,
    running: JoinSet<(Done, Duration)>,
    flights: BTreeMap<ObjectKey, Flight>,
    owners: HashMap<Id, ObjectKey>,
    pub(super) run: Run,
}

/// A translation that runs.
#[derive(Debug)]
pub(super) struct Flight {
    /// Whether its owner was cheap when it began.
    pub(super) is_cheap: bool,
    /// When its owner had its turn.
    pub(super) started: Instant,
    /// What preparing it took.
    pub(super) took: Duration,
    /// The reconsideration.
    pub(super) span: Span,
    /// Whether the owner has to be reconsidered once more.
    pub(super) is_stale: bool,
}

/// What came of a translation: it is done, or it has panicked.
#[derive(Debug)]
pub(super) struct Landing {
    pub(super) owner: ObjectKey,
    /// With what it took altogether.
    pub(super) flight: Flight,
    pub(super) done: Option<Done>,
}

impl Jobs {
    /// As many at once as there are processors.
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::of(available_parallelism().map_or(1, usize::from)),
            running: JoinSet::new(),
            flights: BTreeMap::new(),
            owners: HashMap::new(),
            run: Arc::new(Job::run),
        }
    }

    /// Who may begin; `None` when nobody may.
    pub(super) const fn room(&self) -> Option<Room> {
        self.slots.room()
    }

    /// How many run.
    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// The owners whose translations run.
    pub(super) fn owners(&self) -> impl Iterator<Item = &ObjectKey> {
        self.flights.keys()
    }

    /// Whether a translation of an owner runs.
    pub(super) fn is_running(&self, owner: &ObjectKey) -> bool {
        self.flights.contains_key(owner)
    }

    /// Has an owner reconsidered once more when its translation ends. Returns whether one runs.
    pub(super) fn outdate(&mut self, owner: &ObjectKey) -> bool {
        let flight = self.flights.get_mut(owner);
        flight.map(|flight| flight.is_stale = true).is_some()
    }

    /// Begins a translation. None of the same owner runs.
    pub(super) fn begin(&mut self, job: Job, flight: Flight) {
        let (owner, run) = (job.owner().clone(), Arc::clone(&self.run));
        let span = info_span!(parent: &flight.span, "translate");
        let task = self.running.spawn_blocking(move || {
            let started = Instant::now();
            let done = span.in_scope(|| run(job));
            (done, started.elapsed())
        });
        self.slots.take(flight.is_cheap);
        self.owners.insert(task.id(), owner.clone());
        self.flights.insert(owner, flight);
    }

    /// Waits for the end of a translation, for ever when none runs. Nothing is lost when this is dropped.
    pub(super) async fn ended(&mut self) -> Landing {
        loop {
            let (id, done) = match self.running.join_next_with_id().await {
                Some(Ok((id, done))) => (id, Some(done)),
                Some(Err(error)) => (error.id(), None),
                None => std::future::pending().await,
            };
            let Some(owner) = self.owners.remove(&id) else { continue };
            let Some(mut flight) = self.flights.remove(&owner) else { continue };
            self.slots.free(flight.is_cheap);
            let (done, took) =
                done.map_or((None, flight.started.elapsed()), |(done, took)| (Some(done), took));
            flight.took += took;
            return Landing { owner, flight, done };
        }
    }
}
