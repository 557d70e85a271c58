//! Inputs of watches: the owners that they concern, their queue, and their translations.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::status::Problem;
use pingsix_translate::{Kind, ObjectKey};
use tokio::time::Instant;

use super::jobs::Jobs;
use crate::metrics::Metrics;
use crate::reconcile::{Pace, Queue, Reconciler, Turn};
use crate::watch::{Availability, Input, Presence, presence};
use crate::world::{Effects, World};

/// The number of objects in one line of the log.
const MAX_NAMED_OBJECTS: usize = 8;

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
    pub(super) fn apply(
        &mut self,
        reconciler: &mut Reconciler,
        metrics: Option<&Metrics>,
        input: Input,
    ) -> Effects {
        match input {
            Input::Event(event) => {
                let (kind, is_change) = (event.kind(), !event.is_from_list());
                let effects = reconciler.apply(event);
                if is_change && let Some(metrics) = metrics {
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
        }
    }

    /// Queues the owners of an input.
    pub(super) fn changed(&mut self, owners: BTreeSet<ObjectKey>) {
        let now = Instant::now();
        for owner in &owners {
            self.since.entry(owner.clone()).or_insert(now);
        }
        self.push(owners);
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

    /// The owner of the next turn, if a slot is free.
    pub(super) fn turn(&mut self, now: Instant) -> Option<Turn> {
        let capacity = self.jobs.capacity().filter(|_| self.is_known)?;
        self.queue.turn(now, capacity)
    }

    /// The queued owners and those with a running translation.
    pub(super) fn waiting_or_running(&self) -> impl Iterator<Item = &ObjectKey> {
        self.queue.waiting().map(|(owner, ..)| owner).chain(self.jobs.owners())
    }

    /// Takes the time of the first change in a reconciliation that begins.
    pub(super) fn take_since(&mut self, owner: &ObjectKey) -> Option<Instant> {
        self.since.remove(owner)
    }

    /// Restores this time, because the changes are not live yet.
    pub(super) fn still_since(&mut self, owner: &ObjectKey, since: Instant) {
        let waiting = self.since.entry(owner.clone()).or_insert(since);
        *waiting = since.min(*waiting);
    }

    /// Removes a reconciled owner.
    pub(super) fn succeeded(&mut self, owner: &ObjectKey, is_ours: bool) {
        self.queue.succeeded(owner);
        // The owner may have come back since.
        if !is_ours && !self.queue.contains(owner) && !self.jobs.is_running(owner) {
            self.queue.forget(owner);
        }
    }

    /// Records the references of an owner without an answer.
    pub(super) fn awaits(&mut self, owner: &ObjectKey, awaited: BTreeSet<ObjectKey>) {
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
    pub(super) fn end_waits(&mut self, reconciler: &mut Reconciler, now: Instant) {
        let owners = reconciler.end_waits(now, self.is_api_server_answering());
        for owner in &owners {
            let awaited = self.waiting.get(owner).into_iter().flatten();
            let named: Vec<String> =
                awaited.clone().take(MAX_NAMED_OBJECTS).map(ToString::to_string).collect();
            tracing::warn!(
                %owner, objects = awaited.count(), ?named,
                "the API server does not answer for these objects; their references fail closed"
            );
        }
        self.push(owners);
    }

    /// Whether the API server answers. Services serve as the probe: the API server stores them itself, as it does
    /// Secrets and ConfigMaps. Other kinds may fail alone.
    fn is_api_server_answering(&self) -> bool {
        !matches!(self.availability.get(&Kind::Service), Some(Availability::Unreachable { .. }))
    }

    /// Records the decode problem of an object. Returns whether the problem changed.
    pub(super) fn record_decode_problem(&mut self, object: &ObjectKey, problem: Option<&Problem>) -> bool {
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

    /// The kinds with an incomplete view, each with the reason.
    pub(super) fn unknown_kinds(&self, world: &World) -> BTreeMap<Kind, String> {
        Kind::ALL.iter().filter_map(|kind| Some((*kind, self.unknown(world, *kind)?))).collect()
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
