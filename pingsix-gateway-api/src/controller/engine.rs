//! The single task that owns the reconciler and publishes its results.
//!
//! ```text
//! Input ──► Ingest: owners to reconsider, by turns ──► Job: translation ──► Publish: publications ──► Report: statuses
//!              ▲                                                                  │                     ▲
//!              └── changed elsewhere, to be retried, to be searched ◄─────────────┴── Observe ──────────┘
//! ```
//!
//! - [`Ingest`] applies inputs, and holds the queue of owners and their translations.
//! - [`Publish`] holds the documents of owners until they are published or withdrawn.
//! - [`Observe`] records how far instances have come, and exchanges that with other replicas.
//! - [`Report`] reports the progress to the boards of statuses and Events, and to readiness.
//! - [`Managed`] passes infrastructure to the provisioner, if the controller runs data planes, and receives its
//!   reports.
//!
//! A stage changes its own fields, and those of [`Shared`], which all stages read. What another stage has to do, it
//! returns as messages. [`Engine::handle`] passes each message on, and handles its consequences before the next one.

mod acceptance;
mod encryption;
mod ingest;
mod jobs;
mod observe;
mod parameters;
mod peers;
mod provisioning;
mod publishing;
mod readiness;
mod report;
mod settling;
mod shared;
mod sinks;
mod start;
#[cfg(test)]
mod tests;
mod withdrawing;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::Scope;
use pingsix_translate::status::{Problem, Problems};
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::ControllerError;
use super::instances::Pages;
use super::orphans::{CollectorEvent, Orphan};
use super::publisher::Attempt;
use crate::delivery::Instances;
use crate::leader::Leadership;
use crate::operations::debug::{DebugRequest, DebugState};
use crate::reconcile::Pace;
use crate::replicas::Replicas;
use crate::wait::changed;
use crate::watch::{Input, Watches};
use crate::world::Effects;
use ingest::{Conclusion, Ingest, Reconciliation};
use jobs::JobOutcome;
use observe::Observe;
pub(super) use provisioning::{Managed, Provisioning};
use publishing::Publish;
pub(super) use report::Report;
pub(super) use shared::Shared;

/// The number of inputs in one batch, before other work of the task.
const MAX_INPUTS_PER_BATCH: usize = 512;

/// The number of owners, and of finished translations, in one batch, before other work of the task.
const MAX_OWNERS_PER_BATCH: usize = 8;

/// The interval of reconciliations without a change, for certificates that become valid and for repaired targets.
const RECONCILE_INTERVAL: Duration = Duration::from_hours(1);

/// The interval of metrics, and the longest time between two ticks.
const MAX_TICK_INTERVAL: Duration = Duration::from_secs(1);

/// The stages of reconciliation with their shared parts.
pub(super) struct Engine {
    shared: Shared,
    ingest: Ingest,
    publish: Publish,
    observe: Observe,
    report: Report,
}

/// The inputs of an engine.
pub(super) struct Sources {
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) pages: mpsc::Receiver<Pages>,
    /// Scopes with drift.
    pub(super) drifted: mpsc::Receiver<Scope>,
    pub(super) collector: mpsc::Receiver<CollectorEvent>,
    pub(super) debug: Option<mpsc::Receiver<DebugRequest>>,
    pub(super) stop: CancellationToken,
}

/// An event for the engine, or the work that one stage leaves to another.
enum Message {
    // Events.
    Watched(Input),
    Translated(Box<JobOutcome>),
    Published(Attempt),
    Leads(bool),
    ReadersChanged,
    ReplicasChanged,
    AddressesChanged,
    BundlesChanged,
    KeyChanged,
    ProvisionerReported,
    Pages(DataPlaneKey, Instances),
    /// Another client has changed the documents of a scope.
    Drifted(Scope),
    /// All owners have to be reconciled, and pending withdrawals repeated.
    Reconsider,
    Tick,

    // Work for other stages.
    /// These belong to the reconciliation of the span.
    InSpan(Span, Messages),
    /// Objects have changed, and the problems of their decoding.
    Changed(Effects, Vec<(ObjectKey, Option<Problem>)>),
    Reconcile(BTreeSet<ObjectKey>),
    /// Reconcile an owner after a failure.
    Retry(ObjectKey),
    /// Let an owner rest for the processor time since then.
    Rest(ObjectKey, Instant),
    /// Follow the parameters of an owner and the addresses of its data planes.
    Parameters(ObjectKey),
    Publish(Box<Reconciliation>),
    /// Conclude the publications of an owner if they have ended.
    Settle(ObjectKey),
    Concluded(ObjectKey, Conclusion),
    /// The publications of an owner have not ended.
    Overdue(ObjectKey),
    /// Withdraw publications of an earlier process.
    Withdraw(Vec<Orphan>),
    /// Count the readers of data planes again.
    Readers(BTreeSet<DataPlaneKey>),
    /// PingSIX has accepted or refused a publication of an owner.
    AcceptanceChanged(ObjectKey),
    /// The infrastructure of an owner has changed.
    Provisioned(ObjectKey),
    /// Report the delivery of an owner's data planes.
    Delivery(ObjectKey),
    /// The same, even if the delivery is as it was.
    DeliveryAgain(ObjectKey),
    Problems(ObjectKey, Problems),
    Metrics,
}

/// Messages in the order in which [`Engine::handle`] passes them on.
type Messages = Vec<Message>;

impl Engine {
    pub(super) fn new(shared: Shared, report: Report, pace: Pace, lists_secrets: bool) -> Self {
        Self {
            ingest: Ingest::new(pace, lists_secrets),
            publish: Publish::new(Arc::clone(&shared.sinks)),
            observe: Observe::default(),
            report,
            shared,
        }
    }

    /// Passes a message on, then handles its consequences.
    fn handle(&mut self, message: Message) {
        let Self { shared, ingest, publish, observe, report } = self;
        let consequences = match message {
            Message::Watched(input) => ingest.apply(shared, input),
            Message::Translated(outcome) => vec![ingest.job_ended(shared, *outcome)],
            Message::Published(attempt) => vec![publish.record_attempt(shared, attempt)],
            Message::Leads(true) => vec![publish.take_over()],
            Message::Leads(false) => return publish.hand_over(shared),
            Message::ReadersChanged => {
                vec![Message::Readers(shared.deliveries.data_planes().cloned().collect())]
            }
            Message::ReplicasChanged => observe.apply_reports(shared),
            Message::AddressesChanged => {
                report.update_all_addresses(shared);
                shared.follow_all_addresses()
            }
            Message::BundlesChanged => return report.update_classes(shared),
            Message::KeyChanged => shared.managed.owners().cloned().map(Message::Parameters).collect(),
            Message::ProvisionerReported => shared.managed.apply_report(&shared.reconciler),
            Message::Pages(data_plane, pages) => observe.observe_status_pages(shared, &data_plane, pages),
            Message::Drifted(scope) => {
                tracing::info!(%scope, "published documents were changed by another writer; publishing again");
                vec![Message::Reconcile(shared.owners_at(&scope))]
            }
            Message::Reconsider => {
                let withdrawing = publish.withdrawals.keys().cloned();
                vec![Message::Reconcile(shared.reconciler.ours().into_iter().chain(withdrawing).collect())]
            }
            Message::Tick => {
                let now = Instant::now();
                if let Some(health) = &shared.health {
                    health.record_heartbeat();
                }
                report.settle(shared, now);
                // After a short loss of leadership, no other replica may have taken over.
                let left = shared.leadership.is_held().then(|| publish.take_over());
                let mut consequences: Messages = left.into_iter().collect();
                consequences.extend(observe.stop_searches(shared));
                consequences.extend(shared.advance_trials(now));
                consequences.push(ingest.end_waits(shared, now));
                consequences.extend(report.take_overdue(now).into_iter().map(Message::Settle));
                consequences.push(Message::Metrics);
                consequences
            }

            Message::InSpan(span, messages) => return span.in_scope(|| self.handle_all(messages)),
            Message::Changed(effects, decoded) => return report.changed(shared, effects, decoded),
            Message::Reconcile(owners) => return ingest.push(owners),
            Message::Retry(owner) => return ingest.retry(&owner),
            Message::Rest(owner, busy_since) => return ingest.rest(&owner, busy_since),
            Message::Parameters(owner) => observe.follow_parameters(shared, &owner),
            Message::Publish(mut reconciliation) => {
                let Reconciliation { owner, reconciled, started, .. } = &mut *reconciliation;
                let changed = std::mem::take(&mut reconciled.changed_verdicts);
                report.defer_statuses(shared, owner, changed, *started);
                shared.managed.provide(&shared.reconciler, &ingest.undecodable, owner);
                let current = shared.reconciler.data_planes(owner).into_iter().collect();
                observe.expect(shared, owner, &current, &reconciled.publications);
                let since = ingest.take_since(owner);
                publish.publish(shared, *reconciliation, current, since)
            }
            Message::Settle(owner) => publish.settle(shared, owner).into_iter().collect(),
            Message::Concluded(owner, conclusion) => {
                report.release_deferred(shared, &owner);
                return ingest.concluded(shared, &owner, &conclusion);
            }
            Message::Overdue(owner) => return report.release_overdue(shared, &owner),
            Message::Withdraw(orphans) => publish.withdraw(shared, ingest, orphans),
            Message::Readers(planes) => observe.refresh_readers(shared, planes),
            Message::AcceptanceChanged(owner) => {
                observe.peers.report_quarantines(shared, &owner);
                report.update_delivery(shared, &owner);
                // The next publication changes; the one in force stays.
                vec![Message::Reconcile([owner].into())]
            }
            Message::Provisioned(owner) => {
                report.provisioned(shared, &owner);
                shared.follow_own_addresses(&owner).into_iter().collect()
            }
            Message::Delivery(owner) => return report.update_delivery(shared, &owner),
            Message::DeliveryAgain(owner) => return report.update_delivery_again(shared, &owner),
            Message::Problems(owner, problems) => return report.events.set(&owner, problems),
            Message::Metrics => return ingest.update_metrics(shared),
        };
        self.handle_all(consequences);
    }

    fn handle_all(&mut self, messages: Messages) {
        for message in messages {
            self.handle(message);
        }
    }

    pub(super) async fn run(
        mut self,
        mut sources: Sources,
        watches: &Watches,
    ) -> Result<(), ControllerError> {
        let mut readers = self.shared.sinks.readers_changed();
        let mut replicas = self.shared.sinks.replicas().map(Replicas::changes);
        let mut addresses = self.shared.addresses.clone();
        let mut bundles = self.report.bundles.clone();
        let provisioning = self.shared.managed.provisioning.as_ref();
        let mut provisioned = provisioning.map(|provisioning| provisioning.provisioned.clone());
        let mut key = provisioning.map(|provisioning| provisioning.key.clone());
        let (mut leadership, mut leads) = (self.shared.leadership.clone(), false);
        let mut reconsider = interval_at(Instant::now() + RECONCILE_INTERVAL, RECONCILE_INTERVAL);
        reconsider.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let health = self.shared.health.as_ref();
        let pause = health.map_or(MAX_TICK_INTERVAL, |health| health.interval().min(MAX_TICK_INTERVAL));
        let mut ticks = interval(pause);
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
                    self.handle(Message::Watched(input));
                    for _ in 1..MAX_INPUTS_PER_BATCH {
                        let Ok(input) = sources.inputs.try_recv() else { break };
                        self.handle(Message::Watched(input));
                    }
                }
                Some(()) = async { sleep_until(due?).await; Some(()) } => {}
                _ = reconsider.tick() => self.handle(Message::Reconsider),
                () = turn(&mut leadership, leads) => {
                    leads = !leads;
                    self.handle(Message::Leads(leads));
                }
                ended = self.ingest.jobs.ended() => {
                    self.handle(Message::Translated(Box::new(ended)));
                    for _ in 1..MAX_OWNERS_PER_BATCH {
                        let Some(ended) = self.ingest.jobs.try_ended() else { break };
                        self.handle(Message::Translated(Box::new(ended)));
                    }
                }
                attempt = self.publish.publisher.ended() => {
                    self.handle(Message::Published(attempt.map_err(ControllerError::Task)?));
                }
                () = changed(readers.as_mut()) => self.handle(Message::ReadersChanged),
                () = changed(replicas.as_mut()) => {
                    self.handle(Message::ReadersChanged);
                    self.handle(Message::ReplicasChanged);
                }
                Some((data_plane, pages)) = sources.pages.recv() => self.handle(Message::Pages(data_plane, pages)),
                Some(scope) = sources.drifted.recv() => self.handle(Message::Drifted(scope)),
                Some(event) = sources.collector.recv() => self.handle(match event {
                    CollectorEvent::MarksBegin => Message::Reconsider,
                    CollectorEvent::Found(orphans) => Message::Withdraw(orphans),
                }),
                Ok(()) = addresses.changed() => self.handle(Message::AddressesChanged),
                () = changed(provisioned.as_mut()) => self.handle(Message::ProvisionerReported),
                () = changed(key.as_mut()) => self.handle(Message::KeyChanged),
                Ok(()) = bundles.changed() => {
                    // An absent kind may have come with the new definitions.
                    watches.rediscover();
                    self.handle(Message::BundlesChanged);
                }
                Some(request) = async { sources.debug.as_mut()?.recv().await } => self.answer(request),
                _ = ticks.tick() => self.handle(Message::Tick),
            }
            for _ in 0..MAX_OWNERS_PER_BATCH {
                let Some(turn) = self.ingest.take_turn(&mut self.shared) else { break };
                self.handle(turn);
            }
            if let Some(references) = self.shared.reconciler.take_references() {
                watches.set_references(references);
            }
            self.advance();
        }
    }

    /// Completes running publications. Withdrawals of deleted owners come first, because a later process would not
    /// know them.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Task`]: a publication panicked.
    async fn drain(&mut self) -> Result<(), ControllerError> {
        if self.ingest.is_known {
            let ours = self.shared.reconciler.ours();
            // A running translation would end too late.
            let concerned = self.ingest.waiting_or_running().chain(self.publish.withdrawals.keys());
            let gone: BTreeSet<ObjectKey> =
                concerned.filter(|owner| !ours.contains(*owner)).cloned().collect();
            for owner in gone {
                let withdrawal = self.ingest.withdraw_gone(&mut self.shared, &owner);
                self.handle(withdrawal);
            }
            let messages = self.publish.submit_withdrawals(&mut self.shared, &ours);
            self.handle_all(messages);
        }
        let limit = self.shared.drain;
        let all = async {
            while self.publish.publisher.pending().next().is_some() {
                let attempt = self.publish.publisher.ended().await.map_err(ControllerError::Task)?;
                self.handle(Message::Published(attempt));
            }
            Ok(())
        };
        if let Ok(drained) = timeout(limit, all).await {
            return drained;
        }
        let data_planes: Vec<String> = self.publish.publisher.pending().map(ToString::to_string).collect();
        tracing::warn!(?data_planes, ?limit, "shutdown timed out; publications were abandoned");
        Ok(())
    }

    fn answer(&self, request: DebugRequest) {
        request.answer(&DebugState {
            reconciler: &self.shared.reconciler,
            queue: &self.ingest.queue,
            deliveries: &self.shared.deliveries,
            etcd: self.shared.sinks.embedded(),
            replicas: self.shared.sinks.replicas(),
            now: Instant::now(),
        });
    }
}

/// Waits for the next change of leadership.
async fn turn(leadership: &mut Leadership, leads: bool) {
    if leads { leadership.lost().await } else { leadership.gained().await }
}
