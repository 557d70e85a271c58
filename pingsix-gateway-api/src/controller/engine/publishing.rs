//! Hands the documents of an owner to the publisher and receives the outcomes.
//!
//! Until all of them are published, [`Report`](super::report::Report) holds back the statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_sink::{Desired, Published, Scope, SinkError};
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::Instant;
use tracing::Span;

use super::encryption::SecretEncryptions;
use super::ingest::{Conclusion, Reconciliation};
use super::readiness::ReadinessTracker;
use super::shared::Shared;
use super::sinks::Sinks;
use super::{Message, Messages};
use crate::acceptance::{AcceptanceOutcome, DraftNumber};
use crate::controller::SinkRouter;
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
    draft: Option<DraftNumber>,
    started: Instant,
    /// The span of the reconciliation.
    span: Span,
    /// The end, so far.
    conclusion: Conclusion,
}

impl PendingPublication {
    /// Records a failure that may pass. One retry serves all that fail together.
    fn fail(&mut self, owner: &ObjectKey) -> Messages {
        let has_failed = std::mem::replace(&mut self.conclusion.has_failed, true);
        if has_failed { Messages::new() } else { vec![Message::Retry(owner.clone())] }
    }
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

    /// Publishes the documents of an owner. `current` has all its data planes, and `since` is the time of the first change
    /// in the documents.
    pub(super) fn publish(
        &mut self,
        shared: &mut Shared,
        reconciliation: Reconciliation,
        current: BTreeSet<DataPlaneKey>,
        since: Option<Instant>,
    ) -> Messages {
        let Reconciliation { owner, reconciled, is_ours, started, busy_since } = reconciliation;
        let Reconciled { publications, unpublished, draft, trial, .. } = reconciled;
        self.encryptions.update_owner(&shared.reconciler, &shared.managed, &owner);
        self.sinks.attach_owner(shared, &owner);
        shared.limit_cpu(&owner);
        let earlier = self.end(shared, &owner, Outcome::Superseded);
        let since = earlier.and_then(|earlier| earlier.since).into_iter().chain(since).min();
        let is_withheld = self.encryptions.is_unknown(&owner);
        let pending = PendingPublication {
            tickets: BTreeMap::new(),
            draft,
            started,
            span: Span::current(),
            // The owner is reconciled again when the keys are known, and outstanding until then.
            conclusion: Conclusion { is_ours, has_failed: is_withheld, since },
        };
        self.pending.insert(owner.clone(), pending);
        self.readiness.reconsidered(&owner, is_withheld);
        shared.explain_refusal(&owner);
        if let Some(trial) = &trial {
            tracing::info!(
                %owner,
                cause = trial.cause.as_str(),
                trial = trial.number,
                suspects = trial.suspects,
                "publishing a trial, which PingSIX may refuse"
            );
            if let Some(metrics) = &shared.metrics {
                metrics.trial(trial.cause);
            }
        }
        for (data_plane, error) in unpublished {
            tracing::error!(%data_plane, %error, "publish failed; previous configuration stays");
            shared.deliveries.failed(&data_plane, error.to_string());
        }
        // Only this publication still names the data planes of a deleted owner.
        let (publications, withdrawn): (Vec<_>, Vec<_>) =
            publications.into_iter().partition(|publication| current.contains(&publication.data_plane));
        let withdrawals = self.plan_withdrawals(shared, &owner, &current, withdrawn);
        let mut messages = Messages::new();
        for publication in publications {
            let data_plane = publication.data_plane.clone();
            let opened = opened(shared, publication.desired.scope());
            let fit = match self.sinks.errors.get(&owner) {
                Some(why) => Err(why.to_string()),
                None => self.encryptions.seal(&owner, publication).map_err(|why| why.to_string()),
            };
            match fit {
                Ok(publication) => {
                    self.readiness.awaits(&owner, &data_plane, opened);
                    messages.extend(self.submit(shared, &owner, publication));
                }
                Err(why) if is_withheld => {
                    tracing::debug!(%data_plane, why, "publish postponed; previous configuration stays");
                }
                Err(why) => {
                    tracing::error!(%data_plane, why, "publish failed; previous configuration stays");
                    shared.deliveries.failed(&data_plane, why.trim_end_matches('.').to_owned());
                }
            }
        }
        for publication in withdrawals {
            messages.extend(self.submit(shared, &owner, publication));
        }
        tracing::debug!(elapsed = ?started.elapsed(), "reconciled");
        let problems = self.sinks.problems_of(shared, &owner);
        messages.extend([
            Message::Readers(current),
            Message::Problems(owner.clone(), problems),
            Message::Rest(owner.clone(), busy_since),
            Message::Settle(owner),
        ]);
        messages
    }

    /// Ends the publications of an owner, with this outcome unless one has failed.
    fn end(&mut self, shared: &Shared, owner: &ObjectKey, outcome: Outcome) -> Option<Conclusion> {
        let PendingPublication { conclusion, span, started, .. } = self.pending.remove(owner)?;
        let outcome = if conclusion.has_failed { Outcome::Failed } else { outcome };
        span.record("outcome", outcome.as_str());
        shared.count(owner, outcome, started);
        Some(conclusion)
    }

    /// Publishes the withdrawals of existing owners again.
    pub(super) fn submit_withdrawals(&mut self, shared: &mut Shared, ours: &BTreeSet<ObjectKey>) -> Messages {
        let mut messages = Messages::new();
        let left = self.withdrawals.clone().into_iter().filter(|(owner, _)| ours.contains(owner));
        for (owner, withdrawals) in left {
            for (data_plane, desired) in withdrawals {
                messages.extend(self.submit(shared, &owner, Publication { data_plane, desired }));
            }
        }
        messages
    }

    fn submit(&mut self, shared: &mut Shared, owner: &ObjectKey, publication: Publication) -> Messages {
        // Certificates of data planes that the controller runs name the UID of the owner as well.
        let infrastructure = shared.reconciler.infrastructure(owner);
        let uid = infrastructure.and_then(|infrastructure| infrastructure.uid.clone());
        let publication = Publication { desired: publication.desired.owned_by(uid), ..publication };
        let data_plane = publication.data_plane.clone();
        let reach = shared.sinks.publish_scope(publication.desired.scope());
        if reach != PublishScope::All {
            self.left.insert(owner.clone());
        }
        if reach == PublishScope::Nothing {
            return Messages::new();
        }
        let (ticket, attempts) = self.publisher.submit(publication);
        if let Some(pending) = self.pending.get_mut(owner) {
            pending.tickets.insert(data_plane.clone(), (ticket, reach));
        }
        if !attempts.iter().any(|attempt| matches!(attempt.stage, Stage::Ended(_))) {
            shared.deliveries.begun(&data_plane);
        }
        let messages = attempts.into_iter().flat_map(|attempt| self.record(shared, owner, attempt)).collect();
        shared.publish_revision(&data_plane);
        messages
    }

    /// Handles the end of a publication.
    pub(super) fn record_attempt(&mut self, shared: &mut Shared, attempt: Attempt) -> Message {
        let (owner, data_plane) = (attempt.data_plane.owner(), attempt.data_plane.clone());
        let span = self.pending.get(&owner).map_or_else(Span::none, |pending| pending.span.clone());
        let mut messages = span.in_scope(|| self.record(shared, &owner, attempt));
        shared.publish_revision(&data_plane);
        if shared.reconciler.data_planes(&owner).contains(&data_plane) {
            messages.push(Message::Readers([data_plane].into()));
        }
        messages.push(Message::Settle(owner));
        Message::InSpan(span, messages)
    }

    /// Records the outcome or the progress of a publication.
    fn record(&mut self, shared: &mut Shared, owner: &ObjectKey, attempt: Attempt) -> Messages {
        let Attempt { data_plane, ticket, settled, stage } = attempt;
        self.readiness.settled(owner, &data_plane, settled);
        if let Stage::Ended(result) = &stage {
            log(&data_plane, result);
        }
        let Some(pending) = self.pending.get_mut(owner) else { return Messages::new() };
        let newest = pending.tickets.get(&data_plane).copied();
        let Some((_, reach)) = newest.filter(|(newest, _)| *newest == ticket) else {
            // A newer publication determines the state.
            return Messages::new();
        };
        let is_current = shared.reconciler.data_planes(owner).contains(&data_plane);
        let mut outcome = AcceptanceOutcome::Nothing;
        let result = match stage {
            Stage::Ended(result) => result,
            Stage::Primary(published) => {
                // PingSIX may report on it while another target takes long.
                if let Some(draft) = pending.draft.filter(|_| is_current) {
                    shared.deliveries.reached(&data_plane, published.revision);
                    outcome = shared.reconciler.published(owner, draft, &data_plane, published.revision);
                }
                return shared.apply_acceptance(owner, outcome);
            }
            Stage::Secondary => return Messages::new(),
            Stage::Failing { why, is_retryable } => {
                tracing::warn!(%data_plane, why, "publish to one target failed; its previous configuration stays");
                shared.deliveries.failed(&data_plane, why);
                return if is_retryable { pending.fail(owner) } else { Messages::new() };
            }
        };
        pending.tickets.remove(&data_plane);
        let is_done = match &result {
            Ok(published) => {
                shared.deliveries.published(&data_plane, published.revision);
                if let Some(draft) = pending.draft.filter(|_| is_current) {
                    outcome = shared.reconciler.published(owner, draft, &data_plane, published.revision);
                }
                true
            }
            Err(error) => {
                shared.deliveries.failed(&data_plane, error.to_string());
                !error.is_retryable()
            }
        };
        // A target without the documents needs no withdrawal. A failed withdrawal is retried, even after an hour,
        // because the target may have recovered.
        let is_withdrawn = !is_current && result.as_ref().err().is_none_or(SinkError::holds_nothing);
        if is_withdrawn {
            shared.deliveries.forget(&data_plane);
            // The leader may end before the withdrawal.
            if reach == PublishScope::All {
                if let Some(withdrawals) = self.withdrawals.get_mut(owner) {
                    withdrawals.remove(&data_plane);
                }
                if let Some(scope) = shared.scope(&data_plane) {
                    shared.sinks.forget(&scope);
                }
            }
            self.withdrawals.retain(|_, withdrawals| !withdrawals.is_empty());
        }
        let mut messages = if is_done { Messages::new() } else { pending.fail(owner) };
        messages.extend(shared.apply_acceptance(owner, outcome));
        if is_withdrawn && reach == PublishScope::All {
            messages.extend(self.sinks.orphans.remove(&data_plane).map(Message::Withdraw));
        }
        messages
    }

    /// Concludes the publications of an owner if they have ended.
    pub(super) fn settle(&mut self, shared: &Shared, owner: ObjectKey) -> Option<Message> {
        self.readiness.update_owner(&owner);
        let pending = self.pending.get(&owner)?;
        if !pending.tickets.is_empty() {
            return Some(Message::Overdue(owner));
        }
        let outcome = if pending.conclusion.is_ours { Outcome::Current } else { Outcome::Withdrawn };
        let conclusion = self.end(shared, &owner, outcome)?;
        Some(Message::Concluded(owner, conclusion))
    }

    /// Takes over the publications that were left to the former leader.
    pub(super) fn take_over(&mut self) -> Message {
        Message::Reconcile(std::mem::take(&mut self.left))
    }

    /// Marks the shared publications as outdated: another leader may change them, and this replica publishes them
    /// again when it leads.
    pub(super) fn hand_over(&mut self, shared: &Shared) {
        for owner in shared.reconciler.ours() {
            let planes = shared.reconciler.data_planes(&owner);
            let mut scopes = planes.iter().filter_map(|plane| shared.scope(plane));
            if scopes.any(|scope| shared.sinks.publish_scope(&scope) != PublishScope::All) {
                self.left.insert(owner);
            }
        }
    }
}

/// The targets of a scope to which this replica publishes and for which the feed waits.
fn opened(shared: &Shared, scope: &Scope) -> Vec<usize> {
    let sinks = &shared.sinks;
    sinks.targets(scope).into_iter().filter(|target| sinks.opens(scope, *target)).collect()
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
