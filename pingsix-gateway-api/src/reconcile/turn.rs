//! The turn of an owner: its translation is prepared, and the result is recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_translate::selection::Extract;
use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::status::Verdicts;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, Translation};

use super::Reconciler;
use super::hold_back::hold_back;
use super::job::{BridgeOutput, Job, JobOutput, JobResult, Publication};
use crate::BridgeError;
use crate::acceptance::{DraftNumber, PriorStatuses, Trial};

/// The state of an owner after a reconciliation. Each variant needs another action, so matches are exhaustive.
#[derive(Debug)]
pub enum ReconcileOutcome {
    /// The owner is ours, with documents to publish.
    Current(Reconciled),
    /// The owner is deleted or no longer ours: its data planes become empty.
    Withdrawn(Reconciled),
    /// The owner was never translated, and refers to objects without an answer of the API server. Publications of an
    /// earlier process stay.
    Waiting(BTreeSet<ObjectKey>),
}

/// The result of a reconciliation.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Reconciled {
    /// The publications, in the order of the data planes. Publications without a change are among them.
    pub publications: Vec<Publication>,
    /// Data planes that keep their documents, because the new ones cannot be published.
    pub unpublished: Vec<(DataPlaneKey, BridgeError)>,
    /// Objects with a changed verdict.
    pub changed_verdicts: BTreeSet<Arc<ObjectKey>>,
    /// The draft that [`Acceptance`](crate::acceptance::Acceptance) follows by the revisions of these publications.
    pub draft: Option<DraftNumber>,
    /// Set for a trial after a refusal by PingSIX. A trial changes no report.
    pub(crate) trial: Option<Trial>,
    /// References without an answer of the API server. The objects that refer to them count as in the last
    /// translation, and fail closed after a time limit.
    pub awaited: BTreeSet<ObjectKey>,
}

/// The next step of an owner in its turn.
#[derive(Debug)]
pub(crate) enum NextStep {
    /// As [`ReconcileOutcome::Withdrawn`].
    Withdrawn(Reconciled),
    /// As [`ReconcileOutcome::Waiting`].
    Waiting(BTreeSet<ObjectKey>),
    /// A translation to run on any thread. The owner is not prepared again until the job is
    /// [finished](Reconciler::finish).
    Job(Box<Job>),
}

impl Reconciler {
    /// Reconsiders an owner.
    pub fn reconcile(&mut self, owner: &ObjectKey, now: Timestamp) -> ReconcileOutcome {
        match self.prepare(owner, now) {
            NextStep::Withdrawn(reconciled) => ReconcileOutcome::Withdrawn(reconciled),
            NextStep::Waiting(missing) => ReconcileOutcome::Waiting(missing),
            // The call is synchronous, so the job cannot be outdated.
            NextStep::Job(job) => ReconcileOutcome::Current(self.finish(job.run()).unwrap_or_default()),
        }
    }

    /// Prepares the translation of an owner.
    pub(crate) fn prepare(&mut self, owner: &ObjectKey, now: Timestamp) -> NextStep {
        let extract = if self.is_ours(owner) { self.extract(owner) } else { None };
        let Some(extract) = extract else {
            return NextStep::Withdrawn(self.withdraw(owner));
        };
        let is_known = |key: &ObjectKey| self.answered.contains(key) || self.world.is_complete(key.kind);
        let missing: BTreeSet<ObjectKey> =
            extract.referenced.iter().filter(|key| !is_known(key)).cloned().collect();
        let entry = self.owners.entry(owner.clone()).or_default();
        if entry.referenced != extract.referenced {
            self.references_changed = true;
            entry.referenced.clone_from(&extract.referenced);
        }
        let mut snapshot = entry.extract.insert(extract).snapshot.clone();
        snapshot.referents_mut().own_addresses.clone_from(&entry.own_addresses);
        if missing.is_empty() {
            entry.waits.end(BTreeSet::new());
        } else {
            let referrers = self.world.referrers(&snapshot, &missing);
            match &entry.translated_snapshot {
                Some(before) => {
                    let held = entry.waits.set(referrers);
                    hold_back(&self.world, &mut snapshot, before, &held);
                }
                // Data planes still serve the publications of an earlier process. The wait is bounded for the owner as a
                // whole, because new references do not extend it.
                None if !entry.waits.set([owner.clone()].into()).is_empty() => {
                    return NextStep::Waiting(missing);
                }
                None => entry.waits.end(referrers),
            }
            snapshot.referents_mut().pending = missing.iter().map(|key| (key.clone(), ())).collect();
        }
        NextStep::Job(Box::new(self.job(owner, snapshot, missing, now)))
    }

    fn job(
        &mut self,
        owner: &ObjectKey,
        snapshot: OwnerSnapshot,
        awaited: BTreeSet<ObjectKey>,
        now: Timestamp,
    ) -> Job {
        let entry = self.owners.entry(owner.clone()).or_default();
        if entry.acceptance.is_new() {
            let status = |key: &ObjectKey| self.world.status(key);
            let prior_statuses = PriorStatuses::of(&snapshot, &self.options.controller_name, status);
            entry.acceptance.set_prior_statuses(prior_statuses);
        }
        entry.acceptance.apply_quarantines(owner, &self.quarantines, &snapshot);
        let draft = entry.acceptance.draft(entry.translated_snapshot.insert(snapshot));
        Job {
            owner: owner.clone(),
            draft,
            options: Arc::clone(&self.options),
            before: entry.planes.clone(),
            cache: std::mem::take(&mut entry.cache),
            now,
            awaited,
        }
    }

    /// Records the result of a job. Returns `None` for an outdated result; the owner then has to be prepared again.
    pub(crate) fn finish(&mut self, done: JobResult) -> Option<Reconciled> {
        let JobResult { owner, number, trial, cache, awaited, output, bridged } = done;
        let is_ours = self.is_ours(&owner);
        let entry = self.owners.get_mut(&owner)?;
        entry.cache = cache;
        // The withdrawal is imminent, or the search of the trial has ended.
        if !is_ours || trial.is_some() && !entry.acceptance.is_current(number) {
            return None;
        }
        let reconciled = match output {
            JobOutput::InvalidTrial => bridged.reconciled(),
            JobOutput::Trial(planes) => {
                // A trial changes neither the statuses of the owner nor data planes outside of the trial.
                entry.tried = planes;
                bridged.reconciled()
            }
            JobOutput::Kept(verdicts) => {
                return Some(Reconciled { awaited, ..self.keep(&owner, *verdicts, bridged) });
            }
            JobOutput::Translation(translation) => self.take(&owner, *translation, bridged),
        };
        if let Some(entry) = self.owners.get_mut(&owner) {
            let planes = reconciled.publications.iter().map(|publication| publication.data_plane.clone());
            entry.acceptance.expects(number, planes.filter(|key| entry.planes.contains_key(key)));
        }
        Some(Reconciled { draft: Some(number), trial, awaited, ..reconciled })
    }

    /// The objects that the owner may use now.
    fn extract(&mut self, owner: &ObjectKey) -> Option<Extract> {
        let kept = self.owners.get_mut(owner).and_then(|entry| {
            let changed = std::mem::take(&mut entry.changed);
            Some((entry.extract.take()?, changed))
        });
        if let Some((mut extract, changed)) = kept
            && extract.refresh(&self.world, &changed)
        {
            return Some(extract);
        }
        Extract::new(&self.world, owner)
    }

    fn take(&mut self, owner: &ObjectKey, translation: Translation, mut bridged: BridgeOutput) -> Reconciled {
        let Translation {
            data_planes,
            stream_planes,
            infrastructure,
            attached,
            feed_cpu_percent,
            mut verdicts,
            has_unusable_parameters: _,
        } = translation;
        let entry = self.owners.entry(owner.clone()).or_default();
        if let Some(extract) = &entry.extract {
            entry.acceptance.amend(&extract.snapshot, &mut verdicts.routes);
        }
        let mut problems = verdicts.problems.clone();
        problems.extend(bridged.problems.drain(..).chain(entry.acceptance.problems()));
        let gone = entry.planes.keys().chain(entry.streams.keys());
        let gone: BTreeSet<&DataPlaneKey> =
            gone.filter(|key| !data_planes.contains_key(*key) && !stream_planes.contains_key(*key)).collect();
        for key in &gone {
            entry.acceptance.forget(key);
        }
        bridged.withdraw(gone, &self.options);
        let mut changed_verdicts =
            self.owner_index.replace(&Arc::new(owner.clone()), entry.verdicts.as_ref(), Some(&verdicts));
        if entry.attached != attached || entry.infrastructure.is_some() != infrastructure.is_some() {
            // The addresses of its data planes may have changed.
            let gateway = (owner.kind == Kind::Gateway).then(|| Arc::new(owner.clone()));
            changed_verdicts.extend(gateway.into_iter().chain(verdicts.ingresses.keys().cloned()));
        }
        entry.infrastructure = infrastructure;
        entry.attached = attached;
        entry.feed_cpu_percent = Some(feed_cpu_percent);
        entry.verdicts = Some(verdicts);
        entry.problems = problems;
        entry.planes = data_planes;
        entry.streams = stream_planes.into_iter().map(|(key, plane)| (key, Arc::new(plane))).collect();
        entry.tried.clear();
        entry.is_kept = false;
        Reconciled { changed_verdicts, ..bridged.reconciled() }
    }

    /// Keeps the publications and processes of an owner whose parameters cannot be used, because its documents are
    /// unknown. An owner without a publication of this process publishes nothing: its readers keep the documents from
    /// elsewhere.
    fn keep(&mut self, owner: &ObjectKey, mut verdicts: Verdicts, bridged: BridgeOutput) -> Reconciled {
        let entry = self.owners.entry(owner.clone()).or_default();
        if let Some(before) = &entry.verdicts {
            verdicts.ingresses.clone_from(&before.ingresses);
        }
        let changed_verdicts =
            self.owner_index.replace(&Arc::new(owner.clone()), entry.verdicts.as_ref(), Some(&verdicts));
        entry.problems.clone_from(&verdicts.problems);
        entry.verdicts = Some(verdicts);
        entry.tried.clear();
        entry.is_kept = true;
        Reconciled { changed_verdicts, ..bridged.reconciled() }
    }

    /// Empties the data planes of an owner that is deleted or not ours, and ends its reports.
    fn withdraw(&mut self, owner: &ObjectKey) -> Reconciled {
        let Some(entry) = self.owners.remove(owner) else { return Reconciled::default() };
        self.references_changed |= !entry.referenced.is_empty();
        let mut bridged = BridgeOutput::default();
        bridged.withdraw(entry.planes.keys().chain(entry.streams.keys()), &self.options);
        let changed_verdicts =
            self.owner_index.replace(&Arc::new(owner.clone()), entry.verdicts.as_ref(), None);
        Reconciled { changed_verdicts, ..bridged.reconciled() }
    }
}

impl BridgeOutput {
    fn reconciled(self) -> Reconciled {
        let Self { publications, unpublished, problems: _ } = self;
        Reconciled { publications, unpublished, ..Reconciled::default() }
    }
}
