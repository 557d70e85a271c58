//! Hands the documents of an owner to the publisher and receives the outcomes.
//!
//! Until all of them are published, [`Report`](super::report::Report) holds back the statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_sink::{Desired, Published, Scope, SinkError};
use pingsix_translate::{DataPlaneKey, ObjectKey};
use thiserror::Error;
use tokio::time::Instant;
use tracing::Span;

use super::encryption::{EncryptionError, SecretEncryptions};
use super::readiness::ReadinessTracker;
use super::sinks::Sinks;
use super::{Engine, ProcessorTimer, view};
use crate::acceptance::{AcceptanceOutcome, DraftNumber};
use crate::controller::SinkRouter;
use crate::controller::attached_sinks::AttachError;
use crate::controller::publisher::{Attempt, Publisher, Stage, Ticket};
use crate::controller::router::PublishScope;
use crate::metrics::Outcome;
use crate::reconcile::{Publication, Reconciled};

/// Pending publications, running publications, and publications that are left to other replicas.
pub(super) struct Publish {
    pub(super) publisher: Publisher,
    /// The pending publications, by owner.
    pub(super) pending: BTreeMap<ObjectKey, PendingPublication>,
    /// Withdrawals that are not published yet, by owner. The data planes of a deleted owner are recorded here alone.
    pub(super) withdrawals: BTreeMap<ObjectKey, BTreeMap<DataPlaneKey, Desired>>,
    /// Owners with a publication that is left to the leader.
    left: BTreeSet<ObjectKey>,
    pub(super) readiness: ReadinessTracker,
    pub(super) encryptions: SecretEncryptions,
    pub(super) sinks: Sinks,
}

/// The documents of an owner until all of them are published.
#[derive(Debug)]
pub(super) struct PendingPublication {
    /// The newest publication of each data plane that has not ended.
    tickets: BTreeMap<DataPlaneKey, (Ticket, PublishScope)>,
    is_ours: bool,
    draft: Option<DraftNumber>,
    /// Whether a publication needs a retry.
    has_failed: bool,
    started: Instant,
    /// The time of the first change in the publication.
    since: Option<Instant>,
    /// The span of the reconciliation.
    span: Span,
}

/// The reason for which a publication is withheld.
#[derive(Debug, Error)]
enum WithholdReason {
    #[error(transparent)]
    Sink(AttachError),
    #[error(transparent)]
    Encryption(EncryptionError),
}

impl Publish {
    pub(super) fn new(sinks: Arc<SinkRouter>) -> Self {
        Self {
            publisher: Publisher::new(sinks),
            pending: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
            left: BTreeSet::new(),
            readiness: ReadinessTracker::default(),
            encryptions: SecretEncryptions::default(),
            sinks: Sinks::default(),
        }
    }
}

impl Engine {
    /// Publishes the documents of an owner.
    pub(super) fn publish_owner(
        &mut self,
        owner: &ObjectKey,
        reconciled: Reconciled,
        is_ours: bool,
        timer: ProcessorTimer,
    ) {
        let Reconciled { publications, unpublished, changed_verdicts, draft, trial, awaited: _ } = reconciled;
        self.publish.encryptions.update_owner(&self.parts.reconciler, &self.managed, owner);
        self.managed.provide(&self.parts.reconciler, &self.ingest, owner);
        self.reconcile_sink(owner);
        let current: BTreeSet<DataPlaneKey> = self.parts.reconciler.data_planes(owner).into_iter().collect();
        let pending =
            PendingPublication { draft, ..self.begin(owner, changed_verdicts, is_ours, timer.started) };
        self.publish.pending.insert(owner.clone(), pending);
        self.publish.readiness.reconsidered(owner, self.publish.encryptions.is_unknown(owner));
        self.explain_refusal(owner);
        if let Some(trial) = &trial {
            tracing::info!(
                %owner,
                cause = trial.cause.as_str(),
                trial = trial.number,
                suspects = trial.suspects,
                "publishing a trial, which PingSIX may refuse"
            );
            if let Some(metrics) = &self.parts.metrics {
                metrics.trial(trial.cause);
            }
        }
        for (data_plane, error) in unpublished {
            tracing::error!(%data_plane, %error, "publish failed; previous configuration stays");
            self.deliveries.failed(&data_plane, error.to_string());
        }
        // Only this publication still names the data planes of a deleted owner.
        let (publications, withdrawn): (Vec<_>, Vec<_>) =
            publications.into_iter().partition(|publication| current.contains(&publication.data_plane));
        self.record_contents(owner, &current, &publications);
        let (withdrawals, nowhere) = self.publish.plan_withdrawals(owner, &current, withdrawn);
        for data_plane in &nowhere {
            self.deliveries.forget(data_plane);
        }
        if self.publish.encryptions.is_unknown(owner)
            && let Some(pending) = self.publish.pending.get_mut(owner)
        {
            // The owner is reconciled again when the keys are known, and outstanding until then.
            pending.has_failed = true;
        }
        for publication in publications {
            let data_plane = publication.data_plane.clone();
            let documents = publication.desired.documents().len();
            if self.is_polled(&data_plane) {
                self.pages.entry(data_plane.clone()).or_default().expects(documents);
            }
            let opened = self.opened(publication.desired.scope());
            let fit = match self.publish.sinks.failure(owner) {
                Some(why) => Err(WithholdReason::Sink(why)),
                None => self.publish.encryptions.seal(owner, publication).map_err(WithholdReason::Encryption),
            };
            match fit {
                Ok(publication) => {
                    self.publish.readiness.awaits(owner, &data_plane, opened);
                    self.submit(owner, publication);
                }
                Err(why) if self.publish.encryptions.is_unknown(owner) => {
                    tracing::debug!(%data_plane, %why, "publish postponed; previous configuration stays");
                }
                Err(why) => {
                    tracing::error!(%data_plane, %why, "publish failed; previous configuration stays");
                    self.deliveries.failed(&data_plane, why.to_string().trim_end_matches('.').to_owned());
                }
            }
        }
        for publication in withdrawals {
            self.submit(owner, publication);
        }
        self.refresh_readers_of(current);
        self.report.events.set(owner, self.problems_of(owner));
        let now = Instant::now();
        tracing::debug!(elapsed = ?(now - timer.started), "reconciled");
        self.ingest.queue.rest(owner, now, timer.by(now));
        self.update_owner(owner);
    }

    /// Takes over the publications in progress of an owner.
    fn begin(
        &mut self,
        owner: &ObjectKey,
        changed: BTreeSet<Arc<ObjectKey>>,
        is_ours: bool,
        started: Instant,
    ) -> PendingPublication {
        let mut since = self.ingest.take_since(owner);
        if let Some(earlier) = self.publish.pending.remove(owner) {
            let outcome = if earlier.has_failed { Outcome::Failed } else { Outcome::Superseded };
            earlier.span.record("outcome", outcome.as_str());
            self.count(owner, outcome, earlier.started);
            since = earlier.since.into_iter().chain(since).min();
        }
        let planes = self.parts.reconciler.data_planes(owner);
        self.report.defer_statuses(owner, changed, self.deliveries.of(&planes), started);
        PendingPublication {
            tickets: BTreeMap::new(),
            is_ours,
            draft: None,
            has_failed: false,
            started,
            since,
            span: Span::current(),
        }
    }

    pub(super) fn submit(&mut self, owner: &ObjectKey, publication: Publication) {
        // Certificates of data planes that the controller runs name the UID of the owner as well.
        let infrastructure = self.parts.reconciler.infrastructure(owner);
        let uid = infrastructure.and_then(|infrastructure| infrastructure.uid.clone());
        let publication = Publication { desired: publication.desired.owned_by(uid), ..publication };
        let data_plane = publication.data_plane.clone();
        let reach = self.parts.sinks.publish_scope(publication.desired.scope());
        if reach != PublishScope::All {
            self.publish.left.insert(owner.clone());
        }
        if reach == PublishScope::Nothing {
            return;
        }
        let (ticket, attempts) = self.publish.publisher.submit(publication);
        if let Some(pending) = self.publish.pending.get_mut(owner) {
            pending.tickets.insert(data_plane.clone(), (ticket, reach));
        }
        if !attempts.iter().any(|attempt| matches!(attempt.stage, Stage::Ended(_))) {
            self.deliveries.begun(&data_plane);
        }
        for attempt in attempts {
            self.record(owner, attempt);
        }
        self.publish_revision(&data_plane);
    }

    /// The targets of a scope to which this replica publishes and for which the feed waits.
    fn opened(&self, scope: &Scope) -> Vec<usize> {
        let sinks = &self.parts.sinks;
        sinks.targets(scope).into_iter().filter(|target| sinks.opens(scope, *target)).collect()
    }

    /// Handles the end of a publication.
    pub(super) fn record_attempt(&mut self, attempt: Attempt) {
        let (owner, data_plane) = (attempt.data_plane.owner(), attempt.data_plane.clone());
        let span = self.publish.pending.get(&owner).map_or_else(Span::none, |pending| pending.span.clone());
        let _of_the_reconsideration = span.enter();
        self.record(&owner, attempt);
        if self.parts.reconciler.data_planes(&owner).contains(&data_plane) {
            self.refresh_readers_of([data_plane.clone()].into());
        }
        self.publish_revision(&data_plane);
        self.update_owner(&owner);
    }

    /// Records the outcome or the progress of a publication.
    fn record(&mut self, owner: &ObjectKey, attempt: Attempt) {
        let Attempt { data_plane, ticket, settled, stage } = attempt;
        self.publish.readiness.settled(owner, &data_plane, settled);
        if let Stage::Ended(result) = &stage {
            log(&data_plane, result);
        }
        let Some(pending) = self.publish.pending.get_mut(owner) else { return };
        let newest = pending.tickets.get(&data_plane).copied();
        let Some((_, reach)) = newest.filter(|(newest, _)| *newest == ticket) else {
            // A newer publication determines the state.
            return;
        };
        let is_current = self.parts.reconciler.data_planes(owner).contains(&data_plane);
        let mut outcome = AcceptanceOutcome::Nothing;
        let result = match stage {
            Stage::Ended(result) => result,
            Stage::Primary(published) => {
                // PingSIX may report on it while another target takes long.
                if let Some(draft) = pending.draft.filter(|_| is_current) {
                    self.deliveries.reached(&data_plane, published.revision);
                    outcome = self.parts.reconciler.published(owner, draft, &data_plane, published.revision);
                }
                self.apply_acceptance(owner, outcome);
                return;
            }
            Stage::Secondary => return,
            Stage::Failing { why, is_retryable } => {
                tracing::warn!(%data_plane, why, "publish to one target failed; its previous configuration stays");
                self.deliveries.failed(&data_plane, why);
                if is_retryable && !std::mem::replace(&mut pending.has_failed, true) {
                    self.ingest.retry(owner);
                }
                return;
            }
        };
        pending.tickets.remove(&data_plane);
        let is_done = match &result {
            Ok(published) => {
                self.deliveries.published(&data_plane, published.revision);
                if let Some(draft) = pending.draft.filter(|_| is_current) {
                    outcome = self.parts.reconciler.published(owner, draft, &data_plane, published.revision);
                }
                true
            }
            Err(error) => {
                self.deliveries.failed(&data_plane, error.to_string());
                !error.is_retryable()
            }
        };
        // A target without the documents needs no withdrawal. A failed withdrawal is retried, even after an hour,
        // because the target may have recovered.
        let is_withdrawn = !is_current && result.as_ref().err().is_none_or(SinkError::holds_nothing);
        if is_withdrawn {
            self.deliveries.forget(&data_plane);
            // The leader may end before the withdrawal.
            if reach == PublishScope::All {
                if let Some(withdrawals) = self.publish.withdrawals.get_mut(owner) {
                    withdrawals.remove(&data_plane);
                }
                if let Ok(scope) = Scope::new(data_plane.prefix(&self.parts.reconciler.options().root)) {
                    self.parts.sinks.forget(&scope);
                }
            }
            self.publish.withdrawals.retain(|_, withdrawals| !withdrawals.is_empty());
        }
        // One report for all that fail together.
        if !is_done && !std::mem::replace(&mut pending.has_failed, true) {
            self.ingest.retry(owner);
        }
        self.apply_acceptance(owner, outcome);
        if is_withdrawn && reach == PublishScope::All {
            self.withdraw_next(&data_plane);
        }
    }

    /// Reports the delivery of an owner if its publications have ended or taken too long.
    fn update_owner(&mut self, owner: &ObjectKey) {
        self.publish.readiness.update_owner(owner);
        let Some(pending) = self.publish.pending.get(owner) else { return };
        if !pending.tickets.is_empty() {
            self.report.release_overdue(view!(self), owner);
        } else if let Some(pending) = self.publish.pending.remove(owner) {
            self.conclude(owner, pending);
        }
    }

    /// Handles the end of all publications of an owner.
    fn conclude(&mut self, owner: &ObjectKey, pending: PendingPublication) {
        let PendingPublication { is_ours, has_failed, started, since, span, .. } = pending;
        self.report.release_deferred(view!(self), owner);
        let outcome = match (has_failed, is_ours) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::Current,
            (false, false) => Outcome::Withdrawn,
        };
        span.record("outcome", outcome.as_str());
        self.count(owner, outcome, started);
        if has_failed {
            if let Some(since) = since {
                self.ingest.still_since(owner, since);
            }
            return;
        }
        if let (Some(metrics), Some(since)) = (&self.parts.metrics, since) {
            metrics.live(since.elapsed());
        }
        self.ingest.succeeded(owner, is_ours);
    }

    /// Publishes a scope again after a change by another client.
    pub(super) fn repair(&mut self, scope: &Scope) {
        let planes = self.deliveries.data_planes();
        let changed = planes.filter(|plane| self.scope(plane).as_ref() == Some(scope));
        let owners = changed.map(DataPlaneKey::owner).collect();
        tracing::info!(%scope, "published documents were changed by another writer; publishing again");
        self.push(owners);
    }

    /// Takes over the publications that were left to the former leader.
    pub(super) fn take_over(&mut self) {
        let left = std::mem::take(&mut self.publish.left);
        self.push(left);
    }

    /// Repeats these publications after a short loss of leadership, during which no other replica took over.
    pub(super) fn catch_up(&mut self) {
        if self.parts.leadership.is_held() {
            self.take_over();
        }
    }

    /// Marks the shared publications as outdated: another leader may change them, and this replica publishes them
    /// again when it leads.
    pub(super) fn hand_over(&mut self) {
        for owner in self.parts.reconciler.ours() {
            let planes = self.parts.reconciler.data_planes(&owner);
            let mut scopes = planes.iter().filter_map(|plane| self.scope(plane));
            if scopes.any(|scope| self.parts.sinks.publish_scope(&scope) != PublishScope::All) {
                self.publish.left.insert(owner);
            }
        }
    }

    /// Logs slow publications, at intervals.
    pub(super) fn explain_delays(&mut self, now: Instant) {
        for owner in self.report.take_overdue(now) {
            self.update_owner(&owner);
        }
    }
}

fn log(data_plane: &DataPlaneKey, result: &Result<Published, SinkError>) {
    match result {
        Ok(published) if published.changed.is_empty() => {}
        Ok(published) => {
            tracing::info!(%data_plane, revision = published.revision.get(), changed = %published.changed, "published");
        }
        Err(error) => tracing::warn!(%data_plane, %error, "publish failed; previous configuration stays"),
    }
}
