//! The one task that owns the picture: what it hears, and what it does about it.

mod acceptance;
mod delivered;
mod jobs;
mod opening;
mod others;
mod parameters;
mod provisioning;
mod publishing;
mod sealing;
mod settling;
mod sinks;
mod start;
mod telling;
#[cfg(test)]
mod tests;
mod translating;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::{Desired, Scope};
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
use super::publisher::Publisher;
use super::{ControllerError, Feed, Progress};
use crate::delivery::Deliveries;
use crate::delivery::reception::PageReader;
use crate::delivery::status_page::StatusUrl;
use crate::leader::Leadership;
use crate::news::changed;
use crate::operations::debug::{DebugRequest, Holdings};
use crate::operations::health::Health;
use crate::operations::metrics::{Metrics, Outcome};
use crate::reconcile::{Pace, Queue, Reconciler};
use crate::replicas::Replicas;
use crate::status::{EventBoard, Readers, StatusBoard};
use crate::watch::{Availability, Input, Watches};
use crate::world::Effects;
use jobs::Jobs;
use opening::Opening;
use others::Others;
use provisioning::Managed;
pub(super) use provisioning::Provisioning;
use publishing::UnderWay;
use sealing::Seals;
use settling::Settling;
use sinks::Sinks;

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
    parts: Parts<F>,
    queue: Queue,
    jobs: Jobs,
    publisher: Publisher<F>,
    /// What was made of owners and is not published yet.
    under_way: BTreeMap<ObjectKey, UnderWay>,
    deliveries: Deliveries,
    /// What the status pages of data planes have said.
    pages: BTreeMap<DataPlaneKey, PageReader>,
    availability: BTreeMap<Kind, Availability>,
    /// What is wrong with the objects that cannot be decoded.
    undecodable: BTreeMap<ObjectKey, Problem>,
    /// Owners that refer to objects about which there is no answer yet, and those objects.
    waiting: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Since when an owner has changes that were not reconsidered.
    since: BTreeMap<ObjectKey, Instant>,
    /// Withdrawals that are not published yet, by owner: nothing else remembers the data planes of one that is gone.
    withdrawals: BTreeMap<ObjectKey, BTreeMap<DataPlaneKey, Desired>>,
    /// Owners of which something was left to the replica that leads.
    left: BTreeSet<ObjectKey>,
    opening: Opening,
    managed: Managed,
    others: Others,
    seals: Seals,
    sinks: Sinks,
    /// Everything that is watched has been read once.
    is_known: bool,
    /// Until when readiness waits for owners of which it is not known what to publish.
    ready_by: Option<Instant>,
    /// Everything is published that this replica is waited for.
    is_ready: bool,
    /// There is something to say of every owner that was there at the start.
    is_complete: bool,
    settling: Settling,
    /// How often the verdicts of an owner were put together.
    #[cfg(test)]
    put_together: std::sync::atomic::AtomicUsize,
}

impl<F: Feed + 'static> Engine<F> {
    pub(super) fn new(parts: Parts<F>) -> Self {
        Self {
            queue: Queue::new(parts.pace),
            jobs: Jobs::new(),
            publisher: Publisher::new(Arc::clone(&parts.feed)),
            under_way: BTreeMap::new(),
            parts,
            deliveries: Deliveries::default(),
            pages: BTreeMap::new(),
            availability: BTreeMap::new(),
            undecodable: BTreeMap::new(),
            waiting: BTreeMap::new(),
            since: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
            left: BTreeSet::new(),
            opening: Opening::default(),
            managed: Managed::default(),
            others: Others::default(),
            seals: Seals::default(),
            sinks: Sinks::default(),
            is_known: false,
            ready_by: None,
            is_ready: false,
            is_complete: false,
            settling: Settling::default(),
            #[cfg(test)]
            put_together: std::sync::atomic::AtomicUsize::default(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut sources: Sources,
        watches: &Watches,
    ) -> Result<(), ControllerError> {
        let mut readers = self.parts.feed.readers_changed();
        let mut replicas = self.parts.feed.replicas().map(Replicas::changes);
        let mut addresses = self.parts.addresses.clone();
        let mut bundles = self.parts.bundles.clone();
        let provisioning = self.parts.provisioning.as_ref();
        let mut standings = provisioning.map(|provisioning| provisioning.standings.clone());
        let mut key = provisioning.map(|provisioning| provisioning.key.clone());
        let (mut leadership, mut leads) = (self.parts.leadership.clone(), false);
        let mut reconsider = Instant::now() + RECONSIDER;
        let interval = self.parts.health.as_ref().map_or(BEAT, |health| health.interval().min(BEAT));
        let mut beats = tokio::time::interval(interval);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let room = self.jobs.room().filter(|_| self.is_known);
            let due = room.and_then(|room| self.queue.next_turn(room));
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
                landing = self.jobs.ended() => self.land(landing),
                attempt = self.publisher.ended() => self.hear_of(attempt.map_err(ControllerError::Task)?),
                () = changed(readers.as_mut()) => self.look_at_readers(),
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
                    self.tell_classes();
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
        let effects = match input {
            Input::Event(event) => {
                let (kind, is_change) = (event.kind(), !event.is_of_a_list());
                let effects = self.parts.reconciler.apply(event);
                if is_change && let Some(metrics) = &self.parts.metrics {
                    metrics.event(kind, effects.owners.len());
                }
                effects
            }
            Input::Gone(key) => self.parts.reconciler.remove(&key),
            Input::Released(key) => self.parts.reconciler.unwatched(&key),
            Input::Answered { key, .. } => {
                Effects { owners: self.parts.reconciler.answered(key), ..Effects::default() }
            }
            Input::Availability { kind, availability } => {
                self.availability.insert(kind, availability);
                Effects::default()
            }
        };
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        let Effects { owners, classes, touched, removed, mut undecodable, sliced } = effects;
        self.look_at_sliced(&sliced);
        for key in &removed {
            self.parts.status.removed(key);
            self.note_shape(key, None);
        }
        for class in &classes {
            self.tell_class(class);
        }
        for key in touched.iter().filter(|key| key.kind == Kind::PingsixProxy) {
            self.tell_proxy(key);
        }
        for key in &touched {
            self.note_shape(key, undecodable.remove(key));
        }
        let mut unsaid = Vec::new();
        for key in &touched {
            if self.is_too_early(key) {
                // Its status says something else than this replica would.
                self.parts.status.hold(key);
            } else if self.parts.status.contains(key) {
                self.parts.status.touched(key);
            } else {
                unsaid.push(key);
            }
        }
        for (key, wanted) in self.wanted(unsaid) {
            // It was replaced by another of its name before anybody looked: what is to be said of it is the same as before,
            // so nobody would. Or it was too early until now.
            if let Some(wanted) = wanted {
                self.say(key, wanted);
            }
        }
        let now = Instant::now();
        for owner in &owners {
            self.since.entry(owner.clone()).or_insert(now);
        }
        self.push(owners);
    }

    fn push(&mut self, owners: BTreeSet<ObjectKey>) {
        let now = Instant::now();
        for owner in owners {
            if !self.jobs.outdate(&owner) {
                self.queue.push(owner, now);
            }
        }
    }

    /// Reconsiders everything, and tries what is still to be withdrawn.
    fn reconsider(&mut self) {
        let mut owners = self.parts.reconciler.ours();
        owners.extend(self.withdrawals.keys().cloned());
        self.push(owners);
    }

    /// Counts a reconsideration.
    fn count(&self, owner: &ObjectKey, outcome: Outcome, started: Instant) {
        if let Some(metrics) = &self.parts.metrics {
            metrics.reconciled(owner.kind, outcome, started.elapsed());
        }
    }

    fn answer(&self, request: DebugRequest) {
        request.answer(&Holdings {
            reconciler: &self.parts.reconciler,
            queue: &self.queue,
            deliveries: &self.deliveries,
            etcd: self.parts.feed.embedded(),
            replicas: self.parts.feed.replicas(),
            now: Instant::now(),
        });
    }

    /// Says that it lives, and how things stand that would cost too much to say at every change.
    fn beat(&mut self) {
        let now = Instant::now();
        self.settle(now);
        self.catch_up();
        self.stop_listening();
        self.look_at_trials(now);
        self.end_waits(now);
        self.explain_delays(now);
        if let Some(health) = &self.parts.health {
            health.beat();
        }
        if let Some(metrics) = &self.parts.metrics {
            metrics.queue(self.queue.len(), self.queue.next_due());
            let deliveries: Vec<_> =
                self.deliveries.data_planes().map(|plane| self.deliveries.delivery(plane)).collect();
            metrics.deliveries(&deliveries);
            metrics.problems(self.parts.reconciler.all_problems().chain(self.undecodable.values()));
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
