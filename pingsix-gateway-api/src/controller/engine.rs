//! The one task that owns the picture, and what happens in it.
//!
//! ```text
//! Input ──► Ingest: owners to reconsider, by turns ──► Job: translation ──► Publish: publications ──► Report: statuses
//!              ▲                                                                  │                     ▲
//!              └── changed elsewhere, to be retried, to be searched ◄─────────────┴── Deliveries ───────┘
//! ```
//!
//! - [`Ingest`] takes inputs into the picture, and has the queue of owners and their translations.
//! - [`Publish`] has what was made of owners, until it is published or withdrawn.
//! - [`Report`] says how far that has come, to the boards of statuses and Events and to readiness.
//! - [`Managed`] has data planes run, where the controller runs them, and hears what has become of them.
//!
//! Each owns its fields. The methods of [`Engine`] lead from one to the next.

mod acceptance;
mod delivered;
mod encryption;
mod ingest;
mod jobs;
mod parameters;
mod parts;
mod peers;
mod provisioning;
mod publishing;
mod readiness;
mod report;
mod settling;
mod sinks;
mod start;
#[cfg(test)]
mod tests;
mod withdrawing;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_translate::status::Problem;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::ControllerError;
use crate::delivery::Deliveries;
use crate::delivery::reception::PageReader;
use crate::leader::Leadership;
use crate::metrics::Outcome;
use crate::operations::debug::{DebugRequest, DebugState};
use crate::reconcile::{Job, Prepared, Reconciled, Turn};
use crate::replicas::Replicas;
use crate::wait::changed;
use crate::watch::{Input, Watches};
use crate::world::Effects;
use ingest::Ingest;
use jobs::{JobOutcome, RunningJob};
use parts::Shared;
pub(super) use parts::{Parts, Sources};
use peers::Peers;
use provisioning::Managed;
pub(super) use provisioning::Provisioning;
use publishing::Publish;
use report::{Report, View};

/// The number of inputs in one batch, before other work of the task.
const BATCH: usize = 512;

/// The number of owners, and of finished translations, in one batch, before other work of the task.
const TURNS: usize = 8;

/// The interval of reconciliations without a change, for certificates that become valid and for repaired targets.
const RECONSIDER: Duration = Duration::from_hours(1);

/// The interval of metrics, and the longest time between two beats.
const BEAT: Duration = Duration::from_secs(1);

/// The message for an owner whose translation has panicked.
const PANICKED: &str =
    "the controller has failed to translate it, which is a fault of the controller; its log says more";

/// The picture, what was made of it, and how far that has come.
pub(super) struct Engine {
    parts: Shared,
    ingest: Ingest,
    publish: Publish,
    report: Report,
    managed: Managed,
    deliveries: Deliveries,
    /// The status pages of data planes over time.
    pages: BTreeMap<DataPlaneKey, PageReader>,
    others: Peers,
}

/// The time that a reconsideration has taken so far.
#[derive(Clone, Copy, Debug)]
struct ProcessorTimer {
    /// When it began.
    started: Instant,
    /// Processor time until it went on.
    before: Duration,
    /// When it went on.
    since: Instant,
}

impl ProcessorTimer {
    fn from(started: Instant) -> Self {
        Self { started, before: Duration::ZERO, since: started }
    }

    /// Processor time.
    fn by(&self, now: Instant) -> Duration {
        self.before + now.duration_since(self.since)
    }
}

/// The inputs of a report, beside a part of the engine that changes.
macro_rules! view {
    ($engine:expr) => {
        $crate::controller::engine::View {
            reconciler: &$engine.parts.reconciler,
            deliveries: &$engine.deliveries,
            managed: &$engine.managed,
        }
    };
}
use view;

impl Engine {
    pub(super) async fn run(
        mut self,
        mut sources: Sources,
        watches: &Watches,
    ) -> Result<(), ControllerError> {
        let mut readers = self.parts.sinks.readers_changed();
        let mut replicas = self.parts.sinks.replicas().map(Replicas::changes);
        let mut addresses = self.report.addresses.clone();
        let mut bundles = self.report.bundles.clone();
        let provisioning = self.managed.provisioning.as_ref();
        let mut provisioned = provisioning.map(|provisioning| provisioning.provisioned.clone());
        let mut key = provisioning.map(|provisioning| provisioning.key.clone());
        let (mut leadership, mut leads) = (self.parts.leadership.clone(), false);
        let mut reconsider = Instant::now() + RECONSIDER;
        let interval = self.parts.health.as_ref().map_or(BEAT, |health| health.interval().min(BEAT));
        let mut beats = tokio::time::interval(interval);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.ingest.next_turn();
            tokio::select! {
                () = sources.stop.cancelled() => return self.drain().await,
                input = sources.inputs.recv() => {
                    let Some(input) = input else {
                        // The watches end on the same signal, and nobody is to blame for that.
                        return if sources.stop.is_cancelled() { self.drain().await } else { Err(ControllerError::Watches) };
                    };
                    self.take_in(input);
                    for _ in 1..BATCH {
                        let Ok(input) = sources.inputs.try_recv() else { break };
                        self.take_in(input);
                    }
                }
                () = at(due) => {}
                () = at(Some(reconsider)) => {
                    reconsider = Instant::now() + RECONSIDER;
                    self.reconsider();
                }
                () = turn(&mut leadership, leads) => {
                    leads = !leads;
                    if leads { self.take_over() } else { self.hand_over() }
                }
                ended = self.ingest.jobs.ended() => {
                    self.job_ended(ended);
                    for _ in 1..TURNS {
                        let Some(ended) = self.ingest.jobs.try_ended() else { break };
                        self.job_ended(ended);
                    }
                }
                attempt = self.publish.publisher.ended() => self.record_attempt(attempt.map_err(ControllerError::Task)?),
                () = changed(readers.as_mut()) => self.refresh_readers(),
                () = changed(replicas.as_mut()) => self.refresh_replicas(),
                Some((data_plane, instances)) = sources.pages.recv() => self.observe_status_pages(&data_plane, instances),
                Some(scope) = sources.drifted.recv() => self.repair(&scope),
                Some(orphans) = sources.orphans.recv() => self.withdraw(orphans),
                Ok(()) = addresses.changed() => self.refresh_addresses(),
                () = changed(provisioned.as_mut()) => self.apply_provisioned(),
                () = changed(key.as_mut()) => self.refresh_all_instances(),
                Ok(()) = bundles.changed() => {
                    // An absent kind may have come with the new definitions.
                    watches.look_again();
                    self.report.tell_classes(self.view());
                }
                Some(request) = asked(sources.debug.as_mut()) => self.answer(request),
                _ = beats.tick() => self.beat(),
            }
            for _ in 0..TURNS {
                if !self.take_turn() {
                    break;
                }
            }
            if let Some(references) = self.parts.reconciler.take_references() {
                watches.refer(references);
            }
            self.advance();
        }
    }

    /// Takes an input into the picture, and queues the owners that it concerns.
    fn take_in(&mut self, input: Input) {
        let metrics = self.parts.metrics.as_deref();
        let effects = self.ingest.apply(&mut self.parts.reconciler, metrics, input);
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        let Effects { owners, classes, touched, removed, mut undecodable, sliced } = effects;
        self.refresh_instances_of_services(&sliced);
        for key in &removed {
            self.report.status.removed(key);
            self.record_decode_problem(key, None);
        }
        for class in &classes {
            self.report.tell_class(self.view(), class);
        }
        for key in touched.iter().filter(|key| key.kind == Kind::PingsixProxy) {
            self.report.tell_proxy(self.view(), key);
        }
        for key in &touched {
            self.record_decode_problem(key, undecodable.remove(key));
        }
        self.report.touched(self.view(), &touched);
        self.ingest.changed(owners);
    }

    /// Takes note of whether an object can be decoded, and has whoever made it told if it cannot.
    fn record_decode_problem(&mut self, object: &ObjectKey, problem: Option<Problem>) {
        if self.ingest.record_decode_problem(object, problem.as_ref()) {
            self.report.events.undecodable(object, problem);
        }
    }

    /// Begins the translation of the next owner, if one is due and there is capacity. Returns whether that is so.
    fn take_turn(&mut self) -> bool {
        let now = Instant::now();
        let Some(Turn { owner, due, is_light }) = self.ingest.turn(now) else { return false };
        let span = info_span!("reconcile", %owner, outcome = Empty);
        let job = span.in_scope(|| self.prepare(&owner, now));
        if let Some(metrics) = &self.parts.metrics {
            metrics.turn(now.duration_since(due));
        }
        if let Some(job) = job {
            let took = now.elapsed();
            self.ingest.jobs.begin(job, RunningJob { is_light, started: now, took, span, is_stale: false });
            self.count_jobs();
        }
        true
    }

    /// Withdraws what is published of an owner that is gone. That takes no translation.
    fn withdraw_gone(&mut self, owner: &ObjectKey) {
        let span = info_span!("reconcile", %owner, outcome = Empty);
        span.in_scope(|| drop(self.prepare(owner, Instant::now())));
    }

    /// Does what can be done for an owner without a translation, or returns the translation.
    fn prepare(&mut self, owner: &ObjectKey, started: Instant) -> Option<Job> {
        match self.parts.reconciler.prepare(owner, jiff::Timestamp::now()) {
            Prepared::Job(job) => return Some(*job),
            Prepared::Waiting(missing) => {
                self.ingest.awaits(owner, missing);
                Span::current().record("outcome", Outcome::Waiting.as_str());
                self.count(owner, Outcome::Waiting, started);
            }
            Prepared::Withdrawn(reconciled) => {
                self.ingest.awaits(owner, reconciled.awaited.clone());
                self.follow_parameters(owner);
                self.publish_owner(owner, reconciled, false, ProcessorTimer::from(started));
            }
        }
        None
    }

    /// A translation has ended.
    fn job_ended(&mut self, ended: JobOutcome) {
        let JobOutcome { owner, running_job, done } = ended;
        let now = Instant::now();
        let RunningJob { started, took, span, is_stale, .. } = running_job;
        self.count_jobs();
        let _of_the_reconsideration = span.enter();
        let reconciled = done.map(|done| self.parts.reconciler.finish(done));
        match reconciled {
            Some(Some(reconciled)) => {
                self.act_on(&owner, reconciled, ProcessorTimer { started, before: took, since: now });
            }
            // A later change has outdated the translation.
            Some(None) => {
                Span::current().record("outcome", Outcome::Superseded.as_str());
                self.count(&owner, Outcome::Superseded, started);
                self.ingest.queue.rest(&owner, now, took);
                self.ingest.queue.push(owner.clone(), now);
            }
            None => self.survive(&owner, started, took),
        }
        if is_stale {
            self.ingest.queue.push(owner, now);
        }
    }

    /// Does what follows from what was made of an owner.
    fn act_on(&mut self, owner: &ObjectKey, reconciled: Reconciled, taken: ProcessorTimer) {
        self.ingest.awaits(owner, reconciled.awaited.clone());
        self.follow_parameters(owner);
        self.publish_owner(owner, reconciled, true, taken);
    }

    /// A translation has panicked: what was published before stays, and nothing is left that the panic could have spoilt.
    fn survive(&mut self, owner: &ObjectKey, started: Instant, took: Duration) {
        tracing::error!(%owner, "translation panicked (a bug); previous configuration stays");
        Span::current().record("outcome", Outcome::Panicked.as_str());
        self.count(owner, Outcome::Panicked, started);
        for data_plane in self.parts.reconciler.data_planes(owner) {
            self.deliveries.failed(&data_plane, PANICKED.to_owned());
        }
        self.report.tell_later(owner);
        self.tell_delivery(owner);
        let now = Instant::now();
        self.ingest.queue.rest(owner, now, took);
        self.ingest.queue.retry(owner.clone(), now);
    }

    /// Reconsiders everything, and tries what is still to be withdrawn.
    fn reconsider(&mut self) {
        let mut owners = self.parts.reconciler.ours();
        owners.extend(self.publish.withdrawals.keys().cloned());
        self.push(owners);
    }

    /// Counts a reconsideration.
    fn count(&self, owner: &ObjectKey, outcome: Outcome, started: Instant) {
        if let Some(metrics) = &self.parts.metrics {
            metrics.reconciled(owner.kind, outcome, started.elapsed());
        }
    }

    fn count_jobs(&self) {
        if let Some(metrics) = &self.parts.metrics {
            metrics.translations(self.ingest.jobs.len());
        }
    }

    fn push(&mut self, owners: BTreeSet<ObjectKey>) {
        self.ingest.push(owners);
    }

    fn view(&self) -> View<'_> {
        view!(self)
    }

    /// Says how far the data planes of an owner have come.
    fn tell_delivery(&self, owner: &ObjectKey) {
        self.report.tell_delivery(self.view(), owner);
    }

    fn answer(&self, request: DebugRequest) {
        request.answer(&DebugState {
            reconciler: &self.parts.reconciler,
            queue: &self.ingest.queue,
            deliveries: &self.deliveries,
            etcd: self.parts.sinks.embedded(),
            replicas: self.parts.sinks.replicas(),
            now: Instant::now(),
        });
    }

    /// Says that it lives, and how things stand that would cost too much to say at every change.
    fn beat(&mut self) {
        let now = Instant::now();
        let leads = self.parts.leadership.is_held();
        self.report.settle(view!(self), leads, now);
        self.catch_up();
        self.stop_listening();
        self.advance_trials(now);
        self.ingest.end_waits(&mut self.parts.reconciler, now);
        self.explain_delays(now);
        if let Some(health) = &self.parts.health {
            health.beat();
        }
        if let Some(metrics) = &self.parts.metrics {
            metrics.queue(self.ingest.queue.len(), self.ingest.queue.next_due());
            let deliveries: Vec<_> =
                self.deliveries.data_planes().map(|plane| self.deliveries.delivery(plane)).collect();
            metrics.deliveries(&deliveries);
            metrics.problems(self.parts.reconciler.all_problems().chain(self.ingest.undecodable.values()));
        }
    }
}

/// Waits for a moment, for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of being a leader, or of being none.
async fn turn(leadership: &mut Leadership, leads: bool) {
    if leads { leadership.lost().await } else { leadership.gained().await }
}

/// Waits for a request, for ever if nobody can ask.
async fn asked(receiver: Option<&mut mpsc::Receiver<DebugRequest>>) -> Option<DebugRequest> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}
