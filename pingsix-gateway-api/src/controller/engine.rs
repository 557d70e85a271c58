//! The single task that owns the reconciler and publishes its results.
//!
//! ```text
//! Input ──► Ingest: owners to reconsider, by turns ──► Job: translation ──► Publish: publications ──► Report: statuses
//!              ▲                                                                  │                     ▲
//!              └── changed elsewhere, to be retried, to be searched ◄─────────────┴── Deliveries ───────┘
//! ```
//!
//! - [`Ingest`] applies inputs, and holds the queue of owners and their translations.
//! - [`Publish`] holds the documents of owners until they are published or withdrawn.
//! - [`Report`] reports the progress to the boards of statuses and Events, and to readiness.
//! - [`Managed`] passes infrastructure to the provisioner, if the controller runs data planes, and receives its
//!   reports.
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

use pingsix_translate::selection::{ObjectSource as _, Target};
use pingsix_translate::status::Problem;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::ControllerError;
use super::orphans::CollectorEvent;
use crate::delivery::Deliveries;
use crate::delivery::reception::PageReader;
use crate::leader::Leadership;
use crate::metrics::Outcome;
use crate::operations::debug::{DebugRequest, DebugState};
use crate::reconcile::{Job, NextStep, Reconciled, Reconciler, Turn};
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
use report::Report;

/// The number of inputs in one batch, before other work of the task.
const MAX_INPUTS_PER_BATCH: usize = 512;

/// The number of owners, and of finished translations, in one batch, before other work of the task.
const MAX_OWNERS_PER_BATCH: usize = 8;

/// The interval of reconciliations without a change, for certificates that become valid and for repaired targets.
const RECONCILE_INTERVAL: Duration = Duration::from_hours(1);

/// The interval of metrics, and the longest time between two ticks.
const MAX_TICK_INTERVAL: Duration = Duration::from_secs(1);

/// The message for an owner whose translation has panicked.
const PANICKED: &str =
    "the controller has failed to translate it, which is a fault of the controller; its log says more";

/// The stages of reconciliation with their shared parts.
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

/// The duration of a reconciliation.
#[derive(Clone, Copy, Debug)]
struct ProcessorTimer {
    /// The time of its begin.
    started: Instant,
    /// The processor time up to `since`.
    before: Duration,
    /// The begin of the current part.
    since: Instant,
}

impl ProcessorTimer {
    fn from(started: Instant) -> Self {
        Self { started, before: Duration::ZERO, since: started }
    }

    /// The processor time.
    fn by(&self, now: Instant) -> Duration {
        self.before + now.duration_since(self.since)
    }
}

/// Read access to the inputs of reports.
#[derive(Clone, Copy)]
struct View<'e> {
    reconciler: &'e Reconciler,
    deliveries: &'e Deliveries,
    managed: &'e Managed,
}

impl<'e> View<'e> {
    /// The owner whose translation has the verdict on a Gateway, a ListenerSet or an Ingress.
    fn judging_owner(self, object: &ObjectKey) -> Option<&'e ObjectKey> {
        self.reconciler.judging_owners(object).next()
    }
}

/// Read access for reports, while another part of the engine is borrowed mutably.
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
        let mut reconsider = Instant::now() + RECONCILE_INTERVAL;
        let interval = self
            .parts
            .health
            .as_ref()
            .map_or(MAX_TICK_INTERVAL, |health| health.interval().min(MAX_TICK_INTERVAL));
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.ingest.next_turn();
            tokio::select! {
                () = sources.stop.cancelled() => return self.drain().await,
                input = sources.inputs.recv() => {
                    let Some(input) = input else {
                        // The watches end on the same signal.
                        return if sources.stop.is_cancelled() { self.drain().await } else { Err(ControllerError::Watches) };
                    };
                    self.take_in(input);
                    for _ in 1..MAX_INPUTS_PER_BATCH {
                        let Ok(input) = sources.inputs.try_recv() else { break };
                        self.take_in(input);
                    }
                }
                () = at(due) => {}
                () = at(Some(reconsider)) => {
                    reconsider = Instant::now() + RECONCILE_INTERVAL;
                    self.reconsider();
                }
                () = turn(&mut leadership, leads) => {
                    leads = !leads;
                    if leads { self.take_over() } else { self.hand_over() }
                }
                ended = self.ingest.jobs.ended() => {
                    self.job_ended(ended);
                    for _ in 1..MAX_OWNERS_PER_BATCH {
                        let Some(ended) = self.ingest.jobs.try_ended() else { break };
                        self.job_ended(ended);
                    }
                }
                attempt = self.publish.publisher.ended() => self.record_attempt(attempt.map_err(ControllerError::Task)?),
                () = changed(readers.as_mut()) => self.refresh_readers(),
                () = changed(replicas.as_mut()) => self.refresh_replicas(),
                Some((data_plane, instances)) = sources.pages.recv() => self.observe_status_pages(&data_plane, instances),
                Some(scope) = sources.drifted.recv() => self.repair(&scope),
                Some(event) = sources.collector.recv() => match event {
                    CollectorEvent::MarksBegin => self.reconsider(),
                    CollectorEvent::Found(orphans) => self.withdraw(orphans),
                },
                Ok(()) = addresses.changed() => self.refresh_addresses(),
                () = changed(provisioned.as_mut()) => self.apply_provisioned(),
                () = changed(key.as_mut()) => self.refresh_all_instances(),
                Ok(()) = bundles.changed() => {
                    // An absent kind may have come with the new definitions.
                    watches.rediscover();
                    self.report.update_classes(self.view());
                }
                Some(request) = debug_request(sources.debug.as_mut()) => self.answer(request),
                _ = ticks.tick() => self.tick(),
            }
            for _ in 0..MAX_OWNERS_PER_BATCH {
                if !self.take_turn() {
                    break;
                }
            }
            if let Some(references) = self.parts.reconciler.take_references() {
                watches.set_references(references);
            }
            self.advance();
        }
    }

    /// Applies an input, and queues the owners that it concerns.
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
            self.report.update_class(self.view(), class);
        }
        for key in touched.iter().filter(|key| key.kind == Kind::PingsixProxy) {
            self.report.update_proxy(self.view(), key);
        }
        for key in &touched {
            self.record_decode_problem(key, undecodable.remove(key));
        }
        self.report.touched(self.view(), &touched);
        let world = self.parts.reconciler.world();
        let mut policies = BTreeSet::new();
        for key in touched.into_iter().chain(removed) {
            policies.extend(world.policies_of(&Target::Object(key.clone())));
            policies.extend(key.kind.is_policy().then_some(key));
        }
        for policy in &policies {
            self.report.update_policy(self.view(), policy);
        }
        self.ingest.changed(owners);
    }

    /// Records the decode problem of an object, and has an Event written about it.
    fn record_decode_problem(&mut self, object: &ObjectKey, problem: Option<Problem>) {
        if self.ingest.record_decode_problem(object, problem.as_ref()) {
            self.report.events.undecodable(object, problem);
        }
    }

    /// Begins the translation of the next owner, if one is due and a slot is free. Returns whether it began.
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

    /// Withdraws the documents of a deleted owner, without a translation.
    fn withdraw_gone(&mut self, owner: &ObjectKey) {
        let span = info_span!("reconcile", %owner, outcome = Empty);
        span.in_scope(|| drop(self.prepare(owner, Instant::now())));
    }

    /// Prepares an owner. Returns its translation, or handles an owner without one.
    fn prepare(&mut self, owner: &ObjectKey, started: Instant) -> Option<Job> {
        match self.parts.reconciler.prepare(owner, jiff::Timestamp::now()) {
            NextStep::Job(job) => return Some(*job),
            NextStep::Waiting(missing) => {
                self.ingest.awaits(owner, missing);
                Span::current().record("outcome", Outcome::Waiting.as_str());
                self.count(owner, Outcome::Waiting, started);
            }
            NextStep::Withdrawn(reconciled) => {
                self.ingest.awaits(owner, reconciled.awaited.clone());
                self.follow_parameters(owner);
                self.publish_owner(owner, reconciled, false, ProcessorTimer::from(started));
            }
        }
        None
    }

    /// Handles the end of a translation.
    fn job_ended(&mut self, ended: JobOutcome) {
        let JobOutcome { owner, running_job, result } = ended;
        let now = Instant::now();
        let RunningJob { started, took, span, is_stale, .. } = running_job;
        self.count_jobs();
        let _entered = span.enter();
        let reconciled = result.map(|result| self.parts.reconciler.finish(result));
        match reconciled {
            Some(Some(reconciled)) => {
                self.publish_result(&owner, reconciled, ProcessorTimer { started, before: took, since: now });
            }
            // A later change has outdated the translation.
            Some(None) => {
                Span::current().record("outcome", Outcome::Superseded.as_str());
                self.count(&owner, Outcome::Superseded, started);
                self.ingest.queue.rest(&owner, now, took);
                self.ingest.queue.push(owner.clone(), now);
            }
            None => self.record_panic(&owner, started, took),
        }
        if is_stale {
            self.ingest.queue.push(owner, now);
        }
    }

    /// Publishes the result of an owner's translation.
    fn publish_result(&mut self, owner: &ObjectKey, reconciled: Reconciled, taken: ProcessorTimer) {
        self.ingest.awaits(owner, reconciled.awaited.clone());
        self.follow_parameters(owner);
        self.publish_owner(owner, reconciled, true, taken);
    }

    /// Handles a panic of a translation: the previous publication stays, and the caches of the owner are gone.
    fn record_panic(&mut self, owner: &ObjectKey, started: Instant, took: Duration) {
        tracing::error!(%owner, "translation panicked (a bug); previous configuration stays");
        Span::current().record("outcome", Outcome::Panicked.as_str());
        self.count(owner, Outcome::Panicked, started);
        for data_plane in self.parts.reconciler.data_planes(owner) {
            self.deliveries.failed(&data_plane, PANICKED.to_owned());
        }
        self.report.forget_reported_delivery(owner);
        self.update_delivery(owner);
        let now = Instant::now();
        self.ingest.queue.rest(owner, now, took);
        self.ingest.queue.retry(owner.clone(), now);
    }

    /// Queues all owners, and repeats pending withdrawals.
    fn reconsider(&mut self) {
        let mut owners = self.parts.reconciler.ours();
        owners.extend(self.publish.withdrawals.keys().cloned());
        self.push(owners);
    }

    /// Counts a reconciliation.
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

    /// Reports the delivery of an owner's data planes.
    fn update_delivery(&self, owner: &ObjectKey) {
        self.report.update_delivery(self.view(), owner);
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

    /// Signals liveness, and updates the metrics that are too expensive for each change.
    fn tick(&mut self) {
        let now = Instant::now();
        let leads = self.parts.leadership.is_held();
        self.report.settle(view!(self), leads, now);
        self.catch_up();
        self.stop_searches();
        self.advance_trials(now);
        self.ingest.end_waits(&mut self.parts.reconciler, now);
        self.explain_delays(now);
        if let Some(health) = &self.parts.health {
            health.record_heartbeat();
        }
        if let Some(metrics) = &self.parts.metrics {
            metrics.queue(self.ingest.queue.len(), self.ingest.queue.next_due());
            let deliveries: Vec<_> =
                self.deliveries.data_planes().map(|plane| self.deliveries.delivery(plane)).collect();
            metrics.deliveries(&deliveries);
            metrics.budget_charged(self.parts.reconciler.most_charged());
            metrics.problems(self.parts.reconciler.all_problems().chain(self.ingest.undecodable.values()));
        }
    }
}

/// Waits until a time, or for ever without a time.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next change of leadership.
async fn turn(leadership: &mut Leadership, leads: bool) {
    if leads { leadership.lost().await } else { leadership.gained().await }
}

/// Waits for a request; without a sender, for ever.
async fn debug_request(receiver: Option<&mut mpsc::Receiver<DebugRequest>>) -> Option<DebugRequest> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}
