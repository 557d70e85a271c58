//! Translations, beside the task that owns the picture.
//!
//! Each owner has one at a time, and what happens meanwhile to what it may see makes one more after that, however much it is.
//! So they are made, and come to their ends, in order. How many run at once, and whose, follows from [`JobSlots`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use pingsix_translate::ObjectKey;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tracing::{Span, info_span};

use crate::reconcile::{Capacity, Done, Job, JobSlots};

/// What translates; tests put something else in its place.
type Run = Arc<dyn Fn(Job) -> Done + Send + Sync>;

/// Translations that run, and those that wait for their own end.
pub(super) struct Jobs {
    slots: JobSlots,
    tasks: JoinSet<(Done, Duration)>,
    running: BTreeMap<ObjectKey, RunningJob>,
    owners: HashMap<Id, ObjectKey>,
    pub(super) run: Run,
}

/// A translation that runs.
#[derive(Debug)]
pub(super) struct RunningJob {
    /// Whether its owner was light when it began.
    pub(super) is_light: bool,
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
pub(super) struct JobOutcome {
    pub(super) owner: ObjectKey,
    /// With what it took altogether.
    pub(super) running_job: RunningJob,
    pub(super) done: Option<Done>,
}

impl Jobs {
    /// As many at once as there are processors.
    pub(super) fn new() -> Self {
        Self {
            slots: JobSlots::of(available_parallelism().map_or(1, usize::from)),
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            owners: HashMap::new(),
            run: Arc::new(Job::run),
        }
    }

    /// Who may begin; `None` when nobody may.
    pub(super) const fn capacity(&self) -> Option<Capacity> {
        self.slots.capacity()
    }

    /// How many run.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// The owners whose translations run.
    pub(super) fn owners(&self) -> impl Iterator<Item = &ObjectKey> {
        self.running.keys()
    }

    /// Whether a translation of an owner runs.
    pub(super) fn is_running(&self, owner: &ObjectKey) -> bool {
        self.running.contains_key(owner)
    }

    /// Has an owner reconsidered once more when its translation ends. Returns whether one runs.
    pub(super) fn outdate(&mut self, owner: &ObjectKey) -> bool {
        let running_job = self.running.get_mut(owner);
        running_job.map(|running_job| running_job.is_stale = true).is_some()
    }

    /// Begins a translation. None of the same owner runs.
    pub(super) fn begin(&mut self, job: Job, running_job: RunningJob) {
        let (owner, run) = (job.owner().clone(), Arc::clone(&self.run));
        let span = info_span!(parent: &running_job.span, "translate");
        let task = self.tasks.spawn_blocking(move || {
            let started = Instant::now();
            let done = span.in_scope(|| run(job));
            (done, started.elapsed())
        });
        self.slots.take(running_job.is_light);
        self.owners.insert(task.id(), owner.clone());
        self.running.insert(owner, running_job);
    }

    /// Waits for the end of a translation, for ever when none runs. Nothing is lost when this is dropped.
    pub(super) async fn ended(&mut self) -> JobOutcome {
        loop {
            let (id, done) = match self.tasks.join_next_with_id().await {
                Some(Ok((id, done))) => (id, Some(done)),
                Some(Err(error)) => (error.id(), None),
                None => std::future::pending().await,
            };
            let Some(owner) = self.owners.remove(&id) else { continue };
            let Some(mut running_job) = self.running.remove(&owner) else { continue };
            self.slots.free(running_job.is_light);
            let (done, took) =
                done.map_or((None, running_job.started.elapsed()), |(done, took)| (Some(done), took));
            running_job.took += took;
            return JobOutcome { owner, running_job, done };
        }
    }
}
