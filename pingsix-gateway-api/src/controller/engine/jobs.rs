//! Translations outside of the engine's task.
//!
//! An owner has one translation at a time. A change of its objects during that translation causes one more. So the
//! translations of an owner begin and end in order. [`JobSlots`] bounds the number of translations at once.
//!
//! Threads take jobs of light owners from one queue until it is empty. A change that concerns hundreds of Gateways therefore
//! wakes a thread once, and not for each of them. A job of a heavy owner has a thread of its own with a lower priority: on
//! Linux, other threads of the process get three times as much of a busy processor.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::Mutex;
use pingsix_translate::ObjectKey;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::{Span, info_span};

use crate::clock::thread_time;
use crate::reconcile::{Capacity, Job, JobResult, JobSlots};

/// The function that translates. Tests replace it.
type TranslateFn = Arc<dyn Fn(Job) -> JobResult + Send + Sync>;

/// The processor time that the current thread has used. Tests whose clock is paused use none: a rest would not end.
type ProcessorTime = fn() -> Duration;

/// Running translations, and ended ones that are not collected.
pub(super) struct Jobs {
    slots: JobSlots,
    queue: Arc<Mutex<JobQueue>>,
    running: BTreeMap<ObjectKey, RunningJob>,
    finished: mpsc::UnboundedReceiver<FinishedJob>,
    sender: mpsc::UnboundedSender<FinishedJob>,
    pub(super) run: TranslateFn,
    pub(super) processor_time: ProcessorTime,
}

/// Jobs of light owners that wait for a thread.
#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<QueuedJob>,
    /// The number of threads.
    threads: usize,
}

struct QueuedJob {
    job: Job,
    run: TranslateFn,
    span: Span,
}

/// The end of a translation.
struct FinishedJob {
    owner: ObjectKey,
    /// `None` after a panic.
    result: Option<JobResult>,
    took: Duration,
}

/// A running translation.
#[derive(Debug)]
pub(super) struct RunningJob {
    /// Whether its owner was light at the begin.
    pub(super) is_light: bool,
    /// The time of the owner's turn.
    pub(super) started: Instant,
    /// The processor time so far.
    pub(super) took: Duration,
    /// The span of the reconciliation.
    pub(super) span: Span,
    /// Whether the owner needs another reconciliation.
    pub(super) is_stale: bool,
}

/// The result of a translation: the finished job, or a panic.
#[derive(Debug)]
pub(super) struct JobOutcome {
    pub(super) owner: ObjectKey,
    /// The processor time of the whole translation.
    pub(super) running_job: RunningJob,
    pub(super) result: Option<JobResult>,
}

impl Jobs {
    /// Slots for as many threads as there are processors.
    pub(super) fn new() -> Self {
        let (sender, finished) = mpsc::unbounded_channel();
        Self {
            slots: JobSlots::of(available_parallelism().map_or(1, usize::from)),
            queue: Arc::default(),
            running: BTreeMap::new(),
            finished,
            sender,
            run: Arc::new(Job::run),
            processor_time: thread_time,
        }
    }

    /// The owners that may begin; `None` without a free slot.
    pub(super) const fn capacity(&self) -> Option<Capacity> {
        self.slots.capacity()
    }

    /// The number of running jobs.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// The owners with a running translation.
    pub(super) fn owners(&self) -> impl Iterator<Item = &ObjectKey> {
        self.running.keys()
    }

    /// Whether a translation of an owner runs.
    pub(super) fn is_running(&self, owner: &ObjectKey) -> bool {
        self.running.contains_key(owner)
    }

    /// Marks a running translation of an owner as outdated. Returns whether there is one.
    pub(super) fn mark_stale(&mut self, owner: &ObjectKey) -> bool {
        let running_job = self.running.get_mut(owner);
        running_job.map(|running_job| running_job.is_stale = true).is_some()
    }

    /// Begins a translation. The owner must not have another one.
    pub(super) fn begin(&mut self, job: Job, running_job: RunningJob) {
        let span = info_span!(parent: &running_job.span, "translate");
        let is_light = running_job.is_light;
        self.slots.take(is_light);
        self.running.insert(job.owner().clone(), running_job);
        let job = QueuedJob { job, run: Arc::clone(&self.run), span };
        let (sender, processor_time) = (self.sender.clone(), self.processor_time);
        if !is_light {
            spawn_with_low_priority(move || job.run(&sender, processor_time));
            return;
        }
        let mut queue = self.queue.lock();
        queue.jobs.push_back(job);
        if queue.threads < self.slots.threads() {
            queue.threads += 1;
            let queue = Arc::clone(&self.queue);
            spawn_blocking(move || work(&queue, &sender, processor_time));
        }
    }

    /// Waits for the end of a translation; without one, for ever. Cancel safe.
    pub(super) async fn ended(&mut self) -> JobOutcome {
        loop {
            let Some(finished) = self.finished.recv().await else { return std::future::pending().await };
            if let Some(outcome) = self.take(finished) {
                return outcome;
            }
        }
    }

    /// An ended translation, if there is one.
    pub(super) fn try_ended(&mut self) -> Option<JobOutcome> {
        let finished = self.finished.try_recv().ok()?;
        self.take(finished)
    }

    fn take(&mut self, FinishedJob { owner, result, took }: FinishedJob) -> Option<JobOutcome> {
        let mut running_job = self.running.remove(&owner)?;
        self.slots.free(running_job.is_light);
        running_job.took += took;
        Some(JobOutcome { owner, running_job, result })
    }
}

impl Drop for Jobs {
    /// A shutdown begins no translation and waits for none.
    fn drop(&mut self) {
        self.queue.lock().jobs.clear();
    }
}

/// Runs a job on a thread with a low priority. A thread may not raise its priority again, so it is no thread of the blocking
/// pool.
fn spawn_with_low_priority(job: impl FnOnce() + Send + 'static) {
    /// The difference of nice values that gives other threads three times as much time.
    #[cfg(target_os = "linux")]
    const NICE_INCREMENT: i32 = 5;
    let begin = move || {
        // Linux has a nice value for each thread. Elsewhere, this call would be for the whole process.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(NICE_INCREMENT);
        job();
    };
    std::thread::Builder::new()
        .name("heavy-translation".to_owned())
        .spawn(begin)
        .expect("there are threads, as the runtime needs them, too");
}

/// Runs jobs until none is left.
fn work(
    queue: &Mutex<JobQueue>,
    finished: &mpsc::UnboundedSender<FinishedJob>,
    processor_time: ProcessorTime,
) {
    loop {
        let next = {
            let mut queue = queue.lock();
            let Some(next) = queue.jobs.pop_front() else {
                queue.threads -= 1;
                return;
            };
            next
        };
        next.run(finished, processor_time);
    }
}

impl QueuedJob {
    fn run(self, finished: &mpsc::UnboundedSender<FinishedJob>, processor_time: ProcessorTime) {
        let Self { job, run, span } = self;
        // Processor time: an owner does not rest longer because other programs are busy.
        let (owner, before) = (job.owner().clone(), processor_time());
        // A panic drops the job with its caches.
        let result = catch_unwind(AssertUnwindSafe(|| span.in_scope(|| run(job)))).ok();
        drop(span);
        // The receiver is gone after a shutdown.
        let _ = finished.send(FinishedJob { owner, result, took: processor_time().saturating_sub(before) });
    }
}
