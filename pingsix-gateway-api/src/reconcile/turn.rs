//! The turn of an owner: its translation is prepared, and the result is recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_sink::Desired;
use pingsix_translate::status::Verdicts;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, Translation};

use super::Reconciler;
use super::hold_back::hold_back;
use super::job::{Bridged, Done, Job, Made};
use crate::BridgeError;
use crate::acceptance::{DraftNumber, Recollection, Trial};
use crate::world::{Extract, OwnerSnapshot};

/// The documents of a data plane.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Publication {
    /// The key of the data plane.
    pub data_plane: DataPlaneKey,
    /// The desired documents; none for a data plane that is gone.
    pub desired: Desired,
}

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
    pub trial: Option<Trial>,
    /// References without an answer of the API server. The objects that refer to them count as in the last
    /// translation, and fail closed after a time limit.
    pub awaited: BTreeSet<ObjectKey>,
}

/// The next step of an owner in its turn.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// As [`ReconcileOutcome::Withdrawn`].
    Withdrawn(Reconciled),
    /// As [`ReconcileOutcome::Waiting`].
    Waiting(BTreeSet<ObjectKey>),
    /// A translation to run on any thread. The owner is not prepared again until the job is
    /// [finished](Reconciler::finish).
    Job(Box<Job>),
}

impl Reconciler {
    /// Prepares the translation of an owner.
    pub(crate) fn prepare(&mut self, owner: &ObjectKey, now: Timestamp) -> Prepared {
        let extract = if self.is_ours(owner) { self.extract(owner) } else { None };
        let Some(extract) = extract else {
            return Prepared::Withdrawn(self.withdraw(owner));
        };
        let is_known = |key: &ObjectKey| self.answered.contains(key) || self.world.is_complete(key.kind);
        let missing: BTreeSet<ObjectKey> =
            extract.referenced.iter().filter(|key| !is_known(key)).cloned().collect();
        let made = self.owners.entry(owner.clone()).or_default();
        if made.referenced != extract.referenced {
            self.references_changed = true;
            made.referenced.clone_from(&extract.referenced);
        }
        let mut snapshot = made.extract.insert(extract).snapshot.clone();
        snapshot.own_addresses().clone_from(&made.own_addresses);
        if missing.is_empty() {
            made.waits.end(BTreeSet::new());
        } else {
            let referrers = self.world.referrers(&snapshot, &missing);
            match &made.translated_snapshot {
                Some(before) => {
                    let held = made.waits.set(referrers);
                    hold_back(&self.world, &mut snapshot, before, &held);
                }
                // Publications of an earlier process are still served. One wait for the whole owner is bounded,
                // whichever references it gains.
                None if !made.waits.set([owner.clone()].into()).is_empty() => {
                    return Prepared::Waiting(missing);
                }
                None => made.waits.end(referrers),
            }
            *snapshot.pending() = missing.iter().map(|key| (key.clone(), ())).collect();
        }
        Prepared::Job(Box::new(self.job(owner, snapshot, missing, now)))
    }

    fn job(
        &mut self,
        owner: &ObjectKey,
        snapshot: OwnerSnapshot,
        awaited: BTreeSet<ObjectKey>,
        now: Timestamp,
    ) -> Job {
        let made = self.owners.entry(owner.clone()).or_default();
        if made.acceptance.is_new() {
            let status = |key: &ObjectKey| self.world.status(key);
            let recollection = Recollection::of(&snapshot, &self.options.controller_name, status);
            made.acceptance.recall(recollection);
        }
        made.acceptance.learn(owner, &self.findings, &snapshot);
        let draft = made.acceptance.draft(made.translated_snapshot.insert(snapshot));
        Job {
            owner: owner.clone(),
            draft,
            options: Arc::clone(&self.options),
            before: made.planes.clone(),
            cache: std::mem::take(&mut made.cache),
            now,
            awaited,
        }
    }

    /// Records the result of a job; `None` if it is outdated, and the owner has to be prepared again.
    pub(crate) fn finish(&mut self, done: Done) -> Option<Reconciled> {
        let Done { owner, number, trial, cache, awaited, made: came, bridged } = done;
        let is_ours = self.is_ours(&owner);
        let made = self.owners.get_mut(&owner)?;
        made.cache = cache;
        // The withdrawal is imminent, or the search of the trial has ended.
        if !is_ours || trial.is_some() && !made.acceptance.listens_for(number) {
            return None;
        }
        let reconciled = match came {
            Made::Nothing => bridged.reconciled(),
            Made::Trial(planes) => {
                // A trial changes neither the statuses of the owner nor data planes outside of the trial.
                made.tried = planes;
                bridged.reconciled()
            }
            Made::Kept(verdicts) => {
                return Some(Reconciled { awaited, ..self.keep(&owner, *verdicts, bridged) });
            }
            Made::All(translation) => self.take(&owner, *translation, bridged),
        };
        if let Some(made) = self.owners.get_mut(&owner) {
            let planes = reconciled.publications.iter().map(|publication| publication.data_plane.clone());
            made.acceptance.expects(number, planes.filter(|key| made.planes.contains_key(key)));
        }
        Some(Reconciled { draft: Some(number), trial, awaited, ..reconciled })
    }

    /// The objects that the owner may use now.
    fn extract(&mut self, owner: &ObjectKey) -> Option<Extract> {
        let kept = self.owners.get_mut(owner).and_then(|made| {
            let changed = std::mem::take(&mut made.changed);
            Some((made.extract.take()?, changed))
        });
        if let Some((mut extract, changed)) = kept
            && self.world.refresh(&mut extract, &changed)
        {
            return Some(extract);
        }
        self.world.extract(owner)
    }

    fn take(&mut self, owner: &ObjectKey, translation: Translation, mut bridged: Bridged) -> Reconciled {
        let Translation { data_planes, stream_planes, infrastructure, attached, mut verdicts, .. } =
            translation;
        let made = self.owners.entry(owner.clone()).or_default();
        if let Some(extract) = &made.extract {
            made.acceptance.amend(&extract.snapshot, &mut verdicts.routes);
        }
        let found = made.acceptance.problems();
        if !found.is_empty() {
            bridged.problems.extend(found);
            bridged.problems.sort();
            bridged.problems.dedup();
        }
        let gone = made.planes.keys().chain(&made.streams);
        let gone: BTreeSet<&DataPlaneKey> =
            gone.filter(|key| !data_planes.contains_key(*key) && !stream_planes.contains_key(*key)).collect();
        for key in &gone {
            made.acceptance.forget(key);
        }
        bridged.withdraw(gone, &self.options);
        let mut changed_verdicts =
            self.owner_index.replace(&Arc::new(owner.clone()), made.verdicts.as_ref(), Some(&verdicts));
        if made.attached != attached || made.infrastructure.is_some() != infrastructure.is_some() {
            // The addresses of its data planes may have changed.
            let gateway = (owner.kind == Kind::Gateway).then(|| Arc::new(owner.clone()));
            changed_verdicts.extend(gateway.into_iter().chain(verdicts.ingresses.keys().cloned()));
        }
        made.infrastructure = infrastructure;
        made.attached = attached;
        made.verdicts = Some(verdicts);
        made.problems = std::mem::take(&mut bridged.problems);
        made.planes = data_planes;
        made.streams = stream_planes.into_keys().collect();
        made.tried.clear();
        made.is_kept = false;
        Reconciled { changed_verdicts, ..bridged.reconciled() }
    }

    /// Keeps the publications and processes of an owner whose parameters cannot be used, because its documents are
    /// unknown. An owner without a publication of this process publishes nothing: its readers keep the documents from
    /// elsewhere.
    fn keep(&mut self, owner: &ObjectKey, mut verdicts: Verdicts, bridged: Bridged) -> Reconciled {
        let made = self.owners.entry(owner.clone()).or_default();
        if let Some(before) = &made.verdicts {
            verdicts.ingresses.clone_from(&before.ingresses);
        }
        let changed_verdicts =
            self.owner_index.replace(&Arc::new(owner.clone()), made.verdicts.as_ref(), Some(&verdicts));
        made.problems.clone_from(&verdicts.problems);
        made.verdicts = Some(verdicts);
        made.tried.clear();
        made.is_kept = true;
        Reconciled { changed_verdicts, ..bridged.reconciled() }
    }

    /// Empties the data planes of an owner that is deleted or not ours, and ends its reports.
    fn withdraw(&mut self, owner: &ObjectKey) -> Reconciled {
        let Some(made) = self.owners.remove(owner) else { return Reconciled::default() };
        self.references_changed |= !made.referenced.is_empty();
        let mut bridged = Bridged::default();
        bridged.withdraw(made.planes.keys().chain(&made.streams), &self.options);
        let changed_verdicts =
            self.owner_index.replace(&Arc::new(owner.clone()), made.verdicts.as_ref(), None);
        Reconciled { changed_verdicts, ..bridged.reconciled() }
    }
}

impl Bridged {
    fn reconciled(self) -> Reconciled {
        let Self { publications, unpublished, problems: _ } = self;
        Reconciled { publications, unpublished, ..Reconciled::default() }
    }
}
