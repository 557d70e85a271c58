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
mod ingest;
mod jobs;
mod opening;
mod others;
mod parameters;
mod provisioning;
mod publishing;
mod report;
mod sealing;
mod settling;
mod sinks;
mod start;
#[cfg(test)]
mod tests;
mod translating;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::Scope;
use pingsix_translate::verdict::{Address, Problem};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tokio_util::sync::CancellationToken;

use super::bundles::Bundles;
use super::destinations::Destinations;
use super::instances::{AskedPages, Pages, PublishedRevisions};
use super::observers::Gates;
use super::orphans::Orphan;
use super::{ControllerError, Feed, Progress};
use crate::delivery::Deliveries;
use crate::delivery::reception::PageReader;
use crate::delivery::status_page::StatusUrl;
use crate::health::Health;
use crate::leader::Leadership;
use crate::metrics::{Metrics, Outcome};
use crate::operations::debug::{DebugRequest, DebugState};
use crate::reconcile::{Pace, Reconciler};
use crate::replicas::Replicas;
use crate::status::{EventBoard, Readers, StatusBoard};
use crate::wait::changed;
use crate::watch::{Input, Watches};
use crate::world::Effects;
use ingest::Ingest;
use others::Others;
use provisioning::Managed;
pub(super) use provisioning::Provisioning;
use publishing::Publish;
use report::{Report, View};

/// How many inputs are taken in before others get their turn.
const BATCH: usize = 512;

/// How often everything is reconsidered though nothing has changed: certificates come of age, and targets are mended.
const RECONSIDER: Duration = Duration::from_hours(1);

/// How often metrics are told how things stand, and the longest time between two beats.
const BEAT: Duration = Duration::from_secs(1);

/// What an engine is made of.
pub(super) struct Parts<F> {
    pub(super) reconciler: Reconciler,
    pub(super) feed: Arc<F>,
    /// What is not published to the feed.
    pub(super) destinations: Destinations,
    pub(super) status: StatusBoard,
    pub(super) events: EventBoard,
    pub(super) readers: Readers,
    pub(super) progress: watch::Sender<Progress>,
    /// Whether this replica writes.
    pub(super) leadership: Leadership,
    pub(super) published: watch::Sender<PublishedRevisions>,
    pub(super) addresses: watch::Receiver<Option<Vec<Address>>>,
    pub(super) bundles: watch::Receiver<Bundles>,
    pub(super) gates: Option<Gates>,
    pub(super) health: Option<Health>,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) pace: Pace,
    /// The status pages of the options.
    pub(super) fixed_pages: BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    /// Those that are asked.
    pub(super) asked: watch::Sender<AskedPages>,
    /// How data planes are run; `None` when others run all of them.
    pub(super) provisioning: Option<Provisioning>,
    /// Whether all Secrets are listed, as any other kind, and not only those that are referred to.
    pub(super) lists_secrets: bool,
    /// How long what is being published may take to come to its end when everything stops.
    pub(super) drain: Duration,
}

/// Where an engine hears from.
pub(super) struct Sources {
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) pages: mpsc::Receiver<Pages>,
    /// Scopes that somebody else has changed.
    pub(super) drifted: mpsc::Receiver<Scope>,
    /// What an earlier process has left.
    pub(super) orphans: mpsc::Receiver<Vec<Orphan>>,
    pub(super) debug: Option<mpsc::Receiver<DebugRequest>>,
    pub(super) stop: CancellationToken,
}

/// The picture, what was made of it, and how far that has come.
pub(super) struct Engine<F> {
    parts: Shared<F>,
    ingest: Ingest,
    publish: Publish<F>,
    report: Report,
    managed: Managed,
    deliveries: Deliveries,
    /// What the status pages of data planes have said.
    pages: BTreeMap<DataPlaneKey, PageReader>,
    others: Others,
}

/// What all stages use.
struct Shared<F> {
    reconciler: Reconciler,
    feed: Arc<F>,
    destinations: Destinations,
    leadership: Leadership,
    published: watch::Sender<PublishedRevisions>,
    health: Option<Health>,
    metrics: Option<Arc<Metrics>>,
    fixed_pages: BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    asked: watch::Sender<AskedPages>,
    drain: Duration,
}

/// What an engine reports on, beside a part of it that changes.
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

impl<F: Feed + 'static> Engine<F> {
    pub(super) fn new(parts: Parts<F>) -> Self {
        let boards = (parts.status, parts.events, parts.readers);
        Self {
            ingest: Ingest::new(parts.pace, parts.lists_secrets),
            publish: Publish::new(Arc::clone(&parts.feed)),
            report: Report::new(boards, parts.addresses, parts.bundles, parts.progress, parts.gates),
            managed: Managed::new(parts.provisioning),
            parts: Shared {
                reconciler: parts.reconciler,
                feed: parts.feed,
                destinations: parts.destinations,
                leadership: parts.leadership,
                published: parts.published,
                health: parts.health,
                metrics: parts.metrics,
                fixed_pages: parts.fixed_pages,
                asked: parts.asked,
                drain: parts.drain,
            },
            deliveries: Deliveries::default(),
            pages: BTreeMap::new(),
            others: Others::default(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut sources: Sources,
        watches: &Watches,
    ) -> Result<(), ControllerError> {
        let mut readers = self.parts.feed.readers_changed();
        let mut receptions = self.parts.feed.receptions_changed();
        let mut replicas = self.parts.feed.replicas().map(Replicas::changes);
        let mut addresses = self.report.addresses.clone();
        let mut bundles = self.report.bundles.clone();
        let provisioning = self.managed.provisioning.as_ref();
        let mut standings = provisioning.map(|provisioning| provisioning.standings.clone());
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
                ended = self.ingest.jobs.ended() => self.job_ended(ended),
                attempt = self.publish.publisher.ended() => self.hear_of(attempt.map_err(ControllerError::Task)?),
                () = changed(readers.as_mut()) => self.look_at_readers(),
                () = changed(receptions.as_mut()) => self.look_at_receptions(),
                () = changed(replicas.as_mut()) => self.look_at_replicas(),
                Some((data_plane, instances)) = sources.pages.recv() => self.look_at_pages(&data_plane, instances),
                Some(scope) = sources.drifted.recv() => self.repair(&scope),
                Some(orphans) = sources.orphans.recv() => self.withdraw(orphans),
                Ok(()) = addresses.changed() => self.look_at_addresses(),
                () = changed(standings.as_mut()) => self.look_at_standings(),
                () = changed(key.as_mut()) => self.look_at_all_instances(),
                Ok(()) = bundles.changed() => {
                    // What was absent may have come with them.
                    watches.look_again();
                    self.report.tell_classes(self.view());
                }
                Some(request) = asked(sources.debug.as_mut()) => self.answer(request),
                _ = beats.tick() => self.beat(),
            }
            self.take_turn();
            if let Some(references) = self.parts.reconciler.take_references() {
                watches.refer(references);
            }
            self.advance();
        }
    }

    fn take_in(&mut self, input: Input) {
        let metrics = self.parts.metrics.as_deref();
        let effects = self.ingest.apply(&mut self.parts.reconciler, metrics, input);
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        let Effects { owners, classes, touched, removed, mut undecodable, sliced } = effects;
        self.look_at_sliced(&sliced);
        for key in &removed {
            self.report.status.removed(key);
            self.note_shape(key, None);
        }
        for class in &classes {
            self.report.tell_class(self.view(), class);
        }
        for key in touched.iter().filter(|key| key.kind == Kind::PingsixProxy) {
            self.report.tell_proxy(self.view(), key);
        }
        for key in &touched {
            self.note_shape(key, undecodable.remove(key));
        }
        self.report.touched(self.view(), &touched);
        self.ingest.changed(owners);
    }

    /// Takes note of whether an object can be decoded, and has whoever made it told if it cannot.
    fn note_shape(&mut self, object: &ObjectKey, problem: Option<Problem>) {
        if self.ingest.note_shape(object, problem.as_ref()) {
            self.report.events.undecodable(object, problem);
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

    fn answer(&self, request: DebugRequest) {
        request.answer(&DebugState {
            reconciler: &self.parts.reconciler,
            queue: &self.ingest.queue,
            deliveries: &self.deliveries,
            etcd: self.parts.feed.embedded(),
            replicas: self.parts.feed.replicas(),
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
        self.look_at_trials(now);
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
