//! Inputs of watches: the owners that they concern, their queue, and their translations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_translate::status::Problem;
use pingsix_translate::{Kind, ObjectKey};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::jobs::{JobOutcome, Jobs, RunningJob};
use super::shared::Shared;
use super::{Message, Messages};
use crate::metrics::Outcome;
use crate::reconcile::{Job, NextStep, Pace, Queue, Reconciled, Turn};
use crate::watch::{Availability, Input, Presence, presence};
use crate::world::{Effects, World};

/// The number of objects in one line of the log.
const MAX_NAMED_OBJECTS: usize = 8;

/// The message for an owner whose translation has panicked.
const PANICKED: &str =
    "the controller has failed to translate it, which is a fault of the controller; its log says more";

/// Queued and running owners, and the state of the objects that they depend on.
pub(super) struct Ingest {
    pub(super) queue: Queue,
    pub(super) jobs: Jobs,
    availability: BTreeMap<Kind, Availability>,
    /// The problems of the objects that cannot be decoded.
    pub(super) undecodable: BTreeMap<ObjectKey, Problem>,
    /// Owners that refer to objects without an answer of the API server, and those objects.
    waiting: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// The time of the first change of an owner since its last reconciliation.
    since: BTreeMap<ObjectKey, Instant>,
    /// Whether all initial lists have ended.
    pub(super) is_known: bool,
    /// Whether all Secrets are listed as any other kind, instead of the referenced ones.
    lists_secrets: bool,
}

/// The result of an owner's turn.
pub(super) struct Reconciliation {
    pub(super) owner: ObjectKey,
    pub(super) reconciled: Reconciled,
    pub(super) is_ours: bool,
    /// The time of the turn.
    pub(super) started: Instant,
    /// The present time without the processor time of the turn so far.
    pub(super) busy_since: Instant,
}

/// The end of an owner's publications.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub(super) is_ours: bool,
    /// Whether a publication needs a retry.
    pub(super) has_failed: bool,
    /// The time of the first change in the publications.
    pub(super) since: Option<Instant>,
}

impl Ingest {
    pub(super) fn new(pace: Pace, lists_secrets: bool) -> Self {
        Self {
            queue: Queue::new(pace),
            jobs: Jobs::new(),
            availability: BTreeMap::new(),
            undecodable: BTreeMap::new(),
            waiting: BTreeMap::new(),
            since: BTreeMap::new(),
            is_known: false,
            lists_secrets,
        }
    }

    /// Applies an input.
    pub(super) fn apply(&mut self, shared: &mut Shared, input: Input) -> Messages {
        let reconciler = &mut shared.reconciler;
        let mut effects = match input {
            Input::Event(event) => {
                let (kind, is_change) = (event.kind(), !event.is_from_list());
                let effects = reconciler.apply(event);
                if is_change && let Some(metrics) = &shared.metrics {
                    metrics.event(kind, effects.owners.len());
                }
                effects
            }
            Input::Gone(key) => reconciler.remove(&key),
            Input::Released(key) => reconciler.unwatched(&key),
            Input::Answered { key, .. } => Effects { owners: reconciler.answered(key), ..Effects::default() },
            Input::Availability { kind, availability } => {
                self.availability.insert(kind, availability);
                Effects::default()
            }
        };
        let removed = effects.removed.iter().map(|key| (key, None));
        let touched = effects.touched.iter().map(|key| (key, effects.undecodable.get(key)));
        let decoded =
            removed.chain(touched).filter(|(key, problem)| self.record_decode_problem(key, *problem));
        let decoded = decoded.map(|(key, problem)| (key.clone(), problem.cloned())).collect();
        let owners = std::mem::take(&mut effects.owners);
        let now = Instant::now();
        for owner in &owners {
            self.since.entry(owner.clone()).or_insert(now);
        }
        let followed =
            shared.managed.owners_of(&effects.sliced).into_iter().cloned().map(Message::Parameters);
        followed.chain([Message::Changed(effects, decoded), Message::Reconcile(owners)]).collect()
    }

    /// Queues owners. An owner with a running translation is queued after it.
    pub(super) fn push(&mut self, owners: BTreeSet<ObjectKey>) {
        let now = Instant::now();
        for owner in owners {
            if !self.jobs.mark_stale(&owner) {
                self.queue.push(owner, now);
            }
        }
    }

    /// Queues an owner again after a failure, with back-off, unless its translation runs.
    pub(super) fn retry(&mut self, owner: &ObjectKey) {
        if !self.jobs.is_running(owner) {
            self.queue.retry(owner.clone(), Instant::now());
        }
    }

    /// The time of the next turn; `None` without one.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        let capacity = self.jobs.capacity().filter(|_| self.is_known)?;
        self.queue.next_turn(capacity)
    }

    /// Begins the turn of the next owner, if one is due and a slot is free.
    pub(super) fn take_turn(&mut self, shared: &mut Shared) -> Option<Message> {
        let now = Instant::now();
        let capacity = self.jobs.capacity().filter(|_| self.is_known)?;
        let Turn { owner, due, is_light } = self.queue.turn(now, capacity)?;
        let span = span_of(&owner);
        let prepared = span.in_scope(|| self.prepare(shared, &owner, now));
        if let Some(metrics) = &shared.metrics {
            metrics.turn(now.duration_since(due));
        }
        let messages = prepared.unwrap_or_else(|job| {
            let (took, span) = (now.elapsed(), span.clone());
            self.jobs.begin(*job, RunningJob { is_light, started: now, took, span, is_stale: false });
            self.count_jobs(shared);
            Messages::new()
        });
        Some(Message::InSpan(span, messages))
    }

    /// Withdraws the documents of a deleted owner, without a translation.
    pub(super) fn withdraw_gone(&mut self, shared: &mut Shared, owner: &ObjectKey) -> Message {
        let span = span_of(owner);
        let prepared = span.in_scope(|| self.prepare(shared, owner, Instant::now()));
        Message::InSpan(span, prepared.unwrap_or_default())
    }

    /// Prepares an owner.
    ///
    /// # Errors
    ///
    /// The translation of the owner has to run first.
    pub(super) fn prepare(
        &mut self,
        shared: &mut Shared,
        owner: &ObjectKey,
        started: Instant,
    ) -> Result<Messages, Box<Job>> {
        match shared.reconciler.prepare(owner, jiff::Timestamp::now()) {
            NextStep::Job(job) => Err(job),
            NextStep::Waiting(missing) => {
                self.awaits(owner, missing);
                Span::current().record("outcome", Outcome::Waiting.as_str());
                shared.count(owner, Outcome::Waiting, started);
                Ok(Messages::new())
            }
            NextStep::Withdrawn(reconciled) => Ok(self.reconciled(Reconciliation {
                owner: owner.clone(),
                reconciled,
                is_ours: false,
                started,
                busy_since: started,
            })),
        }
    }

    /// Handles the end of a translation.
    pub(super) fn job_ended(&mut self, shared: &mut Shared, ended: JobOutcome) -> Message {
        let JobOutcome { owner, running_job, result } = ended;
        let now = Instant::now();
        let RunningJob { started, took, span, is_stale, .. } = running_job;
        self.count_jobs(shared);
        let mut messages = span.in_scope(|| match result.map(|result| shared.reconciler.finish(result)) {
            Some(Some(reconciled)) => {
                let (owner, busy_since) = (owner.clone(), now - took);
                self.reconciled(Reconciliation { owner, reconciled, is_ours: true, started, busy_since })
            }
            // A later change has outdated the translation.
            Some(None) => {
                Span::current().record("outcome", Outcome::Superseded.as_str());
                shared.count(&owner, Outcome::Superseded, started);
                self.queue.rest(&owner, now, took);
                self.queue.push(owner.clone(), now);
                Messages::new()
            }
            None => self.record_panic(shared, &owner, started, took),
        });
        messages.extend(is_stale.then(|| Message::Reconcile([owner].into())));
        Message::InSpan(span, messages)
    }

    /// Takes in the result of an owner.
    pub(super) fn reconciled(&mut self, reconciliation: Reconciliation) -> Messages {
        let owner = reconciliation.owner.clone();
        self.awaits(&owner, reconciliation.reconciled.awaited.clone());
        vec![Message::Parameters(owner), Message::Publish(Box::new(reconciliation))]
    }

    /// Handles a panic of a translation: the previous publication stays, and the caches of the owner are gone.
    fn record_panic(
        &mut self,
        shared: &mut Shared,
        owner: &ObjectKey,
        started: Instant,
        took: Duration,
    ) -> Messages {
        tracing::error!(%owner, "translation panicked (a bug); previous configuration stays");
        Span::current().record("outcome", Outcome::Panicked.as_str());
        shared.count(owner, Outcome::Panicked, started);
        for data_plane in shared.reconciler.data_planes(owner) {
            shared.deliveries.failed(&data_plane, PANICKED.to_owned());
        }
        let now = Instant::now();
        self.queue.rest(owner, now, took);
        self.queue.retry(owner.clone(), now);
        vec![Message::DeliveryAgain(owner.clone())]
    }

    fn count_jobs(&self, shared: &Shared) {
        if let Some(metrics) = &shared.metrics {
            metrics.translations(self.jobs.len());
        }
    }

    /// Lets an owner rest for the processor time that it has used.
    pub(super) fn rest(&mut self, owner: &ObjectKey, busy_since: Instant) {
        let now = Instant::now();
        self.queue.rest(owner, now, now - busy_since);
    }

    /// The queued owners and those with a running translation.
    pub(super) fn waiting_or_running(&self) -> impl Iterator<Item = &ObjectKey> {
        self.queue.waiting().map(|(owner, ..)| owner).chain(self.jobs.owners())
    }

    /// Takes the time of the first change in a reconciliation that begins.
    pub(super) fn take_since(&mut self, owner: &ObjectKey) -> Option<Instant> {
        self.since.remove(owner)
    }

    /// Handles the end of an owner's publications.
    pub(super) fn concluded(&mut self, shared: &Shared, owner: &ObjectKey, conclusion: &Conclusion) {
        let Conclusion { is_ours, has_failed, since } = *conclusion;
        if has_failed {
            if let Some(since) = since {
                // The changes are not live yet.
                let waiting = self.since.entry(owner.clone()).or_insert(since);
                *waiting = since.min(*waiting);
            }
            return;
        }
        if let (Some(metrics), Some(since)) = (&shared.metrics, since) {
            metrics.live(since.elapsed());
        }
        self.queue.succeeded(owner);
        // The owner may have come back since.
        if !is_ours && !self.queue.contains(owner) && !self.jobs.is_running(owner) {
            self.queue.forget(owner);
        }
    }

    /// Records the references of an owner without an answer.
    fn awaits(&mut self, owner: &ObjectKey, awaited: BTreeSet<ObjectKey>) {
        if awaited.is_empty() {
            self.waiting.remove(owner);
        } else {
            self.waiting.insert(owner.clone(), awaited);
        }
    }

    /// Whether an owner has a reference without an answer.
    pub(super) fn is_waiting(&self, owner: &ObjectKey) -> bool {
        self.waiting.contains_key(owner)
    }

    /// All referenced objects without an answer of the API server.
    pub(super) fn awaited(&self) -> BTreeSet<ObjectKey> {
        self.waiting.values().flatten().cloned().collect()
    }

    /// Ends waits for answers that have taken too long.
    pub(super) fn end_waits(&self, shared: &mut Shared, now: Instant) -> Message {
        let owners = shared.reconciler.end_waits(now, self.is_api_server_answering());
        for owner in &owners {
            let awaited = self.waiting.get(owner).into_iter().flatten();
            let named: Vec<String> =
                awaited.clone().take(MAX_NAMED_OBJECTS).map(ToString::to_string).collect();
            tracing::warn!(
                %owner, objects = awaited.count(), ?named,
                "the API server does not answer for these objects; their references fail closed"
            );
        }
        Message::Reconcile(owners)
    }

    /// Whether the API server answers. Services serve as the probe: the API server stores them itself, as it does
    /// Secrets and ConfigMaps. Other kinds may fail alone.
    fn is_api_server_answering(&self) -> bool {
        !matches!(self.availability.get(&Kind::Service), Some(Availability::Unreachable { .. }))
    }

    /// Updates the metrics that are too expensive for each change.
    pub(super) fn update_metrics(&self, shared: &Shared) {
        let Shared { reconciler, deliveries, metrics: Some(metrics), .. } = shared else { return };
        metrics.queue(self.queue.len(), self.queue.next_due());
        let deliveries: Vec<_> = deliveries.data_planes().map(|plane| deliveries.delivery(plane)).collect();
        metrics.deliveries(&deliveries);
        metrics.budget_charged(reconciler.most_charged());
        metrics.problems(reconciler.all_problems().chain(self.undecodable.values()));
    }

    /// Records the decode problem of an object. Returns whether the problem changed.
    fn record_decode_problem(&mut self, object: &ObjectKey, problem: Option<&Problem>) -> bool {
        if self.undecodable.get(object) == problem {
            return false;
        }
        match problem {
            Some(problem) => {
                tracing::warn!(%object, field = %problem.field, error = problem.message, "object cannot be decoded; it is ignored");
                self.undecodable.insert(object.clone(), problem.clone());
            }
            None => {
                self.undecodable.remove(object);
            }
        }
        true
    }

    /// The kinds that have to be listed first, each with the reason.
    pub(super) fn unknown_kinds(&self, world: &World) -> BTreeMap<Kind, String> {
        let kinds = Kind::ALL.iter().filter(|_| !self.is_known);
        kinds.filter_map(|kind| Some((*kind, self.unknown(world, *kind)?))).collect()
    }

    /// The reason for which the view of a kind is incomplete; `None` if it is complete.
    fn unknown(&self, world: &World, kind: Kind) -> Option<String> {
        let is_listed = presence(kind) != Presence::Referenced || kind == Kind::Secret && self.lists_secrets;
        if !is_listed || world.is_complete(kind) {
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
}

/// The span of a reconciliation.
fn span_of(owner: &ObjectKey) -> Span {
    info_span!("reconcile", %owner, outcome = Empty)
}
