//! The one task that owns the picture.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_translate::snapshot::GatewayClass;
use pingsix_translate::verdict::{Address, Delivery};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use super::bundles::Bundles;
use super::instances::{Pages, PublishedRevisions};
use super::observers::Gates;
use super::{ControllerError, Feed, Progress};
use crate::bridge::withdrawn;
use crate::delivery::{Deliveries, Instances};
use crate::operations::debug::{DebugRequest, Holdings};
use crate::operations::health::Health;
use crate::operations::metrics::{Metrics, Outcome};
use crate::reconcile::{Pace, Publication, Queue, Reconciled, Reconciler, Standing};
use crate::status::{EventBoard, Readers, StatusBoard, Wanted};
use crate::watch::{Answer, Availability, Input, Presence, Watches, presence};
use crate::world::Effects;

/// How many inputs are taken in before others get their turn.
const BATCH: usize = 512;

/// How often everything is reconsidered though nothing has changed: certificates come of age.
const RECONSIDER: Duration = Duration::from_hours(1);

/// How often metrics are told how things stand, and the longest time between two beats.
const BEAT: Duration = Duration::from_secs(1);

/// What an engine is made of.
pub(super) struct Parts<F> {
    pub(super) reconciler: Reconciler,
    pub(super) feed: Arc<F>,
    pub(super) status: StatusBoard,
    pub(super) events: EventBoard,
    pub(super) readers: Readers,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) published: watch::Sender<PublishedRevisions>,
    pub(super) addresses: watch::Receiver<Option<Vec<Address>>>,
    pub(super) bundles: watch::Receiver<Bundles>,
    pub(super) gates: Option<Gates>,
    pub(super) health: Option<Health>,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) pace: Pace,
    /// Data planes whose instances have status pages.
    pub(super) paged: BTreeSet<DataPlaneKey>,
    /// Whether all Secrets are listed, as any other kind, and not only those that are referred to.
    pub(super) lists_secrets: bool,
}

/// Where an engine hears from.
pub(super) struct Sources {
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) pages: mpsc::Receiver<Pages>,
    pub(super) debug: Option<mpsc::Receiver<DebugRequest>>,
}

/// The picture, what was made of it, and how far that has come.
pub(super) struct Engine<F> {
    parts: Parts<F>,
    queue: Queue,
    deliveries: Deliveries,
    availability: BTreeMap<Kind, Availability>,
    /// Owners that refer to objects of which nothing is known yet, and those objects.
    waiting: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Since when an owner has changes that are not published.
    since: BTreeMap<ObjectKey, Instant>,
    /// Withdrawals that could not be published yet, by owner: nothing else remembers the data planes of one that is gone.
    withdrawals: BTreeMap<ObjectKey, Vec<Publication>>,
    /// Owners that were there when everything was known, and of which not everything is published yet.
    outstanding: BTreeSet<ObjectKey>,
    /// Everything that is watched has been read once.
    is_known: bool,
    /// And published.
    is_open: bool,
}

impl<F: Feed> Engine<F> {
    pub(super) fn new(parts: Parts<F>) -> Self {
        Self {
            queue: Queue::new(parts.pace),
            parts,
            deliveries: Deliveries::default(),
            availability: BTreeMap::new(),
            waiting: BTreeMap::new(),
            since: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
            outstanding: BTreeSet::new(),
            is_known: false,
            is_open: false,
        }
    }

    pub(super) async fn run(
        mut self,
        mut sources: Sources,
        watches: &Watches,
    ) -> Result<(), ControllerError> {
        let mut readers = self.parts.feed.readers_changed();
        let mut addresses = self.parts.addresses.clone();
        let mut bundles = self.parts.bundles.clone();
        let mut reconsider = Instant::now() + RECONSIDER;
        let interval = self.parts.health.as_ref().map_or(BEAT, |health| health.interval().min(BEAT));
        let mut beats = tokio::time::interval(interval);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.queue.next_due().filter(|_| self.is_known);
            tokio::select! {
                input = sources.inputs.recv() => {
                    self.take_in(input.ok_or(ControllerError::Watches)?);
                    for _ in 1..BATCH {
                        let Ok(input) = sources.inputs.try_recv() else { break };
                        self.take_in(input);
                    }
                }
                () = at(due) => {}
                () = at(Some(reconsider)) => {
                    reconsider = Instant::now() + RECONSIDER;
                    self.push(self.parts.reconciler.ours());
                }
                () = changed(readers.as_mut()) => self.look_at_readers(),
                Some((data_plane, instances)) = sources.pages.recv() => self.observe(&data_plane, instances),
                Ok(()) = addresses.changed() => self.tell_everybody(),
                Ok(()) = bundles.changed() => {
                    // What was absent may have come with them.
                    watches.look_again();
                    self.tell_classes();
                }
                Some(request) = asked(sources.debug.as_mut()) => self.answer(request),
                _ = beats.tick() => self.beat(),
            }
            if self.is_known
                && let Some(owner) = self.queue.pop(Instant::now())
            {
                self.reconcile(&owner).await;
                if let Some(references) = self.parts.reconciler.take_references() {
                    watches.refer(references);
                }
            }
            self.advance();
        }
    }

    fn take_in(&mut self, input: Input) {
        let effects = match input {
            Input::Event(event) => {
                let kind = event.kind();
                let effects = self.parts.reconciler.apply(event);
                if let Some(metrics) = &self.parts.metrics {
                    metrics.event(kind, effects.owners.len());
                }
                effects
            }
            Input::Gone(key) => self.parts.reconciler.remove(&key),
            Input::Released(key) => self.parts.reconciler.unwatched(&key),
            Input::Answered { key, answer } => {
                if let Answer::Forbidden { message } = answer {
                    tracing::warn!(object = %key, error = message, "an object that is referred to must not be read");
                }
                Effects { owners: self.parts.reconciler.answered(key), ..Effects::default() }
            }
            Input::Availability { kind, availability } => {
                report(kind, &availability);
                self.availability.insert(kind, availability);
                Effects::default()
            }
        };
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        let Effects { owners, classes, touched, removed, undecodable } = effects;
        for (object, fault) in undecodable {
            tracing::warn!(%object, error = fault, "an object cannot be decoded, and counts as not there");
        }
        for key in &removed {
            self.parts.status.removed(key);
        }
        for class in &classes {
            self.tell_class(class);
        }
        for key in &touched {
            if self.parts.status.contains(key) {
                self.parts.status.touched(key);
            } else if let Some(wanted) = self.wanted(key) {
                // It was replaced by another of its name before anybody looked: what is to be said of it is the same as
                // before, so nobody would.
                self.parts.status.set(key.clone(), wanted);
            }
        }
        self.push(owners);
    }

    fn push(&mut self, owners: BTreeSet<ObjectKey>) {
        let now = Instant::now();
        for owner in owners {
            self.since.entry(owner.clone()).or_insert(now);
            self.queue.push(owner, now);
        }
    }

    /// Goes from one stage of the start to the next, when it is time.
    fn advance(&mut self) {
        if self.is_open {
            return;
        }
        let unknown: BTreeMap<Kind, String> =
            Kind::ALL.iter().filter_map(|kind| Some((*kind, self.unknown(*kind)?))).collect();
        if !self.is_known && unknown.is_empty() {
            tracing::info!("everything that is watched has been read");
            if let Some(gates) = &self.parts.gates {
                gates.watches.open();
            }
            self.is_known = true;
            self.outstanding = self.parts.reconciler.ours();
            self.push(self.outstanding.clone());
        }
        // Not when the queue is empty: in a cluster where something changes all the time it never is.
        if self.is_known && self.outstanding.is_empty() {
            self.parts.feed.open();
            self.is_open = true;
            if let Some(gates) = &self.parts.gates {
                gates.published.open();
            }
            tracing::info!(data_planes = self.deliveries.data_planes().count(), "everything is published");
            self.release_what_is_left();
        }
        let awaited = self.waiting.values().flatten().cloned().collect();
        let progress = Progress { unknown, awaited, is_published: self.is_open };
        self.explain(&progress);
        self.parts.progress.send_if_modified(|held| {
            let is_other = *held != progress;
            *held = progress;
            is_other
        });
    }

    /// Has readiness say what is missing.
    fn explain(&self, progress: &Progress) {
        let Some(gates) = &self.parts.gates else { return };
        if !progress.unknown.is_empty() {
            let unknown = progress.unknown.iter().map(|(kind, why)| format!("{kind}: {why}"));
            gates.watches.close(unknown.collect::<Vec<_>>().join(" "));
        } else if !progress.awaited.is_empty() {
            let awaited = progress.awaited.iter().map(ToString::to_string).collect::<Vec<_>>();
            gates.published.close(format!("nothing is known yet of {}", awaited.join(", ")));
        }
    }

    /// Why not everything of a kind is known; `None` when it is.
    fn unknown(&self, kind: Kind) -> Option<String> {
        let is_listed =
            presence(kind) != Presence::Referenced || kind == Kind::Secret && self.parts.lists_secrets;
        if !is_listed || self.parts.reconciler.world().is_complete(kind) {
            return None;
        }
        match self.availability.get(&kind) {
            Some(Availability::Absent { .. }) if presence(kind) == Presence::Optional => None,
            Some(Availability::Absent { message }) => Some(message.clone()),
            Some(Availability::Forbidden { message } | Availability::Unreachable { message }) => {
                Some(message.clone())
            }
            Some(Availability::Watching) | None => Some("It is being listed.".to_owned()),
        }
    }

    /// What a process of ours has written and nobody stands for any more.
    fn release_what_is_left(&self) {
        let name = &self.parts.reconciler.options().controller_name;
        let told: BTreeSet<ObjectKey> = self.parts.status.keys().into_iter().collect();
        for key in self.parts.readers.with_entries_of(name) {
            if !told.contains(&key) {
                self.parts.status.set(key, Wanted::Released);
            }
        }
    }

    #[tracing::instrument(skip_all, fields(%owner))]
    async fn reconcile(&mut self, owner: &ObjectKey) {
        let started = Instant::now();
        let standing = self.parts.reconciler.reconcile(owner, jiff::Timestamp::now());
        let (reconciled, is_ours) = match standing {
            Standing::Waiting(missing) => {
                self.waiting.insert(owner.clone(), missing);
                self.count(owner, Outcome::Waiting, started);
                return;
            }
            Standing::Current(reconciled) => (reconciled, true),
            Standing::Withdrawn(reconciled) => (reconciled, false),
        };
        self.waiting.remove(owner);
        let Reconciled { mut publications, unpublished, told } = reconciled;
        let mut has_failed = false;
        for error in unpublished {
            tracing::error!(%error, "a data plane keeps what it has");
        }
        let current: BTreeSet<DataPlaneKey> = self.parts.reconciler.data_planes(owner).into_iter().collect();
        let left = self.withdrawals.remove(owner).unwrap_or_default();
        publications.extend(left.into_iter().filter(|left| !current.contains(&left.data_plane)));
        for publication in publications {
            let data_plane = publication.data_plane.clone();
            match self.parts.feed.publish(&publication.desired).await {
                Ok(published) => {
                    if !published.changed.is_empty() {
                        tracing::info!(%data_plane, revision = published.revision.get(), changed = %published.changed, "published");
                    }
                    if let Some(metrics) = &self.parts.metrics {
                        metrics.published(self.parts.feed.name(), &published);
                    }
                    if current.contains(&data_plane) {
                        self.deliveries.published(&data_plane, published.revision);
                    } else {
                        self.deliveries.forget(&data_plane);
                    }
                }
                Err(error) => {
                    tracing::warn!(%data_plane, %error, "a data plane cannot be published");
                    if let Some(metrics) = &self.parts.metrics {
                        metrics.publication_failed(self.parts.feed.name(), error.category());
                    }
                    self.deliveries.failed(&data_plane, error.to_string());
                    has_failed |= error.is_retryable();
                    if error.is_retryable() && !current.contains(&data_plane) {
                        self.withdrawals.entry(owner.clone()).or_default().push(publication);
                    }
                }
            }
        }
        self.look_at_readers_of(current);
        self.publish_revisions();
        self.parts.events.set(owner, self.parts.reconciler.problems(owner).to_vec());
        for object in told {
            self.tell(&object);
        }
        let now = Instant::now();
        tracing::debug!(elapsed = ?(now - started), "reconciled");
        let outcome = match (has_failed, is_ours) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::Current,
            (false, false) => Outcome::Withdrawn,
        };
        self.count(owner, outcome, started);
        if has_failed {
            self.queue.retry(owner.clone(), now);
        } else {
            self.outstanding.remove(owner);
            self.queue.done(owner, now, now - started);
        }
        if !is_ours && !has_failed {
            self.queue.forget(owner);
        }
    }

    /// Counts a reconsideration.
    fn count(&mut self, owner: &ObjectKey, outcome: Outcome, started: Instant) {
        let since = if matches!(outcome, Outcome::Current | Outcome::Withdrawn) {
            self.since.remove(owner)
        } else {
            None
        };
        if let Some(metrics) = &self.parts.metrics {
            metrics.reconciled(owner.kind, outcome, started.elapsed());
            if let Some(since) = since {
                metrics.live(since.elapsed());
            }
        }
    }

    /// Tells whoever reads status pages what to look for.
    fn publish_revisions(&self) {
        if self.parts.paged.is_empty() {
            return;
        }
        let planes = self.deliveries.data_planes();
        let revisions: PublishedRevisions = planes
            .filter_map(|plane| Some((plane.clone(), self.deliveries.revision(plane)?.get())))
            .collect();
        self.parts.published.send_if_modified(|held| {
            let is_other = *held != revisions;
            *held = revisions;
            is_other
        });
    }

    /// Says what there is to say about an object.
    fn tell(&self, object: &ObjectKey) {
        if !self.parts.reconciler.world().contains(object) || !gets_verdicts_of_owners(object.kind) {
            return;
        }
        self.parts.status.set(object.clone(), self.wanted(object).unwrap_or(Wanted::Released));
    }

    /// What there is to say about an object, if it is one that owners say something about.
    fn wanted(&self, object: &ObjectKey) -> Option<Wanted> {
        let reconciler = &self.parts.reconciler;
        match object.kind {
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => {
                reconciler.route(object).map(Wanted::Route)
            }
            Kind::BackendTlsPolicy => {
                Some(reconciler.policy(object)).filter(|v| !v.is_empty()).map(Wanted::Policy)
            }
            Kind::Gateway | Kind::ListenerSet | Kind::Ingress => self.wanted_by_owner(object),
            Kind::GatewayClass
            | Kind::ReferenceGrant
            | Kind::IngressClass
            | Kind::Service
            | Kind::EndpointSlice
            | Kind::Secret
            | Kind::ConfigMap
            | Kind::Namespace => None,
        }
    }

    fn wanted_by_owner(&self, object: &ObjectKey) -> Option<Wanted> {
        let reconciler = &self.parts.reconciler;
        let owner = reconciler.owners_that_speak_of(object).next()?;
        let addresses = self.parts.addresses.borrow().clone();
        if object.kind == Kind::Ingress {
            return addresses.map(|addresses| Wanted::Ingress { addresses });
        }
        let planes = reconciler.data_planes(owner);
        let verdicts = reconciler.verdicts(owner, &self.deliveries.of(&planes))?;
        if object.kind == Kind::Gateway {
            return verdicts.gateway.map(|verdict| Wanted::Gateway { verdict, addresses });
        }
        let set = verdicts.listener_sets.into_iter().find(|(key, _)| **key == *object);
        set.map(|(_, verdict)| Wanted::ListenerSet(verdict))
    }

    fn tell_class(&self, class: &ObjectKey) {
        if self.parts.reconciler.world().get::<GatewayClass>(&class.name).is_none() {
            return;
        }
        let verdict = self.parts.reconciler.class(class).cloned();
        let problems = verdict.as_ref().map(|verdict| verdict.problems.clone()).unwrap_or_default();
        self.parts.events.set(class, problems);
        if let Some(verdict) = verdict {
            let verdict = verdict.with_bundles(self.parts.bundles.borrow().as_ref());
            self.parts.status.set(class.clone(), Wanted::GatewayClass(verdict));
        }
    }

    fn tell_classes(&self) {
        for class in self.parts.reconciler.world().keys::<GatewayClass>() {
            self.tell_class(&class);
        }
    }

    /// Addresses are in the statuses of Gateways and Ingresses.
    fn tell_everybody(&self) {
        for key in self.parts.status.keys() {
            if matches!(key.kind, Kind::Gateway | Kind::Ingress) {
                self.tell(&key);
            }
        }
        // Ingresses of which nothing could be said without an address.
        for key in self.parts.reconciler.world().keys::<pingsix_translate::snapshot::Ingress>() {
            if self.parts.reconciler.owners_that_speak_of(&key).next().is_some() {
                self.tell(&key);
            }
        }
    }

    fn look_at_readers(&mut self) {
        let planes: BTreeSet<DataPlaneKey> = self.deliveries.data_planes().cloned().collect();
        self.look_at_readers_of(planes);
    }

    fn look_at_readers_of(&mut self, planes: BTreeSet<DataPlaneKey>) {
        for data_plane in planes {
            if self.parts.paged.contains(&data_plane) {
                continue;
            }
            let desired = withdrawn(&data_plane, self.parts.reconciler.options());
            let readers = desired.ok().and_then(|desired| self.parts.feed.readers_of(desired.scope()));
            self.observe(&data_plane, readers.map_or(Instances::Unknown, Instances::Connected));
        }
    }

    fn observe(&mut self, data_plane: &DataPlaneKey, instances: Instances) {
        if self.deliveries.observe(data_plane, instances) {
            if let Some(metrics) = &self.parts.metrics
                && self.deliveries.delivery(data_plane) == Delivery::Confirmed
                && let Some(revision) = self.deliveries.revision(data_plane)
            {
                metrics.confirmed(revision);
            }
            self.tell_delivery(&data_plane.owner());
        }
    }

    /// Says how far the data planes of an owner have come.
    fn tell_delivery(&self, owner: &ObjectKey) {
        if owner.kind != Kind::Gateway {
            return;
        }
        let planes = self.parts.reconciler.data_planes(owner);
        let Some(verdicts) = self.parts.reconciler.verdicts(owner, &self.deliveries.of(&planes)) else {
            return;
        };
        self.tell(owner);
        for (set, verdict) in verdicts.listener_sets {
            self.parts.status.set((*set).clone(), Wanted::ListenerSet(verdict));
        }
    }

    fn answer(&self, request: DebugRequest) {
        request.answer(&Holdings {
            reconciler: &self.parts.reconciler,
            queue: &self.queue,
            deliveries: &self.deliveries,
            etcd: self.parts.feed.embedded(),
            now: Instant::now(),
        });
    }

    /// Says that it lives, and how things stand that would cost too much to say at every change.
    fn beat(&self) {
        if let Some(health) = &self.parts.health {
            health.beat();
        }
        if let Some(metrics) = &self.parts.metrics {
            metrics.queue(self.queue.len(), self.queue.next_due());
            metrics.observe_world(self.parts.reconciler.world());
            let deliveries: Vec<_> =
                self.deliveries.data_planes().map(|plane| self.deliveries.delivery(plane)).collect();
            metrics.deliveries(&deliveries);
            metrics.problems(self.parts.reconciler.all_problems());
        }
    }
}

/// Whether what is to be said of an object of this kind comes from the owners it concerns.
const fn gets_verdicts_of_owners(kind: Kind) -> bool {
    match kind {
        Kind::Gateway
        | Kind::ListenerSet
        | Kind::HttpRoute
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::TcpRoute
        | Kind::UdpRoute
        | Kind::BackendTlsPolicy
        | Kind::Ingress => true,
        Kind::GatewayClass
        | Kind::ReferenceGrant
        | Kind::IngressClass
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Secret
        | Kind::ConfigMap
        | Kind::Namespace => false,
    }
}

/// Waits for a moment, for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Waits for a request, for ever if nobody can ask.
async fn asked(receiver: Option<&mut mpsc::Receiver<DebugRequest>>) -> Option<DebugRequest> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for a change, for ever if there is nothing that changes.
async fn changed(receiver: Option<&mut watch::Receiver<u64>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

fn report(kind: Kind, availability: &Availability) {
    match availability {
        Availability::Watching => tracing::info!(%kind, "watching"),
        Availability::Absent { message } => tracing::info!(%kind, reason = message, "not installed"),
        Availability::Forbidden { message } => {
            tracing::error!(%kind, error = message, "a kind must not be watched; what is known of it stays");
        }
        Availability::Unreachable { message } => {
            tracing::warn!(%kind, error = message, "a kind cannot be watched; what is known of it stays");
        }
    }
}
