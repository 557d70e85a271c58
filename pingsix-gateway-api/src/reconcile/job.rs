//! A translation, independent of later changes.
//!
//! A [`Job`] holds all inputs: an immutable snapshot, and the caches of the owner's last translation. A job therefore
//! runs on any thread, while other changes arrive. [`Reconciler::prepare`] creates the job, and [`Reconciler::finish`]
//! records its result.
//!
//! [`Reconciler::prepare`]: super::Reconciler::prepare
//! [`Reconciler::finish`]: super::Reconciler::finish

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_sink::Desired;
use pingsix_translate::status::{Problem, Verdicts};
use pingsix_translate::{DataPlane, DataPlaneKey, ObjectKey, Options, Translation};

use crate::acceptance::{Draft, DraftNumber, Trial};
use crate::bridge::{BridgeError, withdrawn};
use crate::pipeline::{BridgedOwner, OwnerRun};

/// The documents of a data plane.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Publication {
    /// The key of the data plane.
    pub data_plane: DataPlaneKey,
    /// The desired documents; none for a data plane that is gone.
    pub desired: Desired,
}

/// The inputs of a translation and its bridge.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) owner: ObjectKey,
    pub(super) draft: Draft,
    pub(super) options: Arc<Options>,
    /// The data planes of the last translation.
    pub(super) before: BTreeMap<DataPlaneKey, DataPlane>,
    pub(super) cache: OwnerRun,
    /// The time for the validity of certificates.
    pub(super) now: Timestamp,
    /// See [`Reconciled::awaited`](super::Reconciled::awaited).
    pub(super) awaited: BTreeSet<ObjectKey>,
}

/// The result of a job.
#[derive(Debug)]
pub(crate) struct JobResult {
    pub(super) owner: ObjectKey,
    pub(super) number: DraftNumber,
    pub(super) trial: Option<Trial>,
    pub(super) cache: OwnerRun,
    pub(super) awaited: BTreeSet<ObjectKey>,
    pub(super) output: JobOutput,
    pub(super) bridged: BridgeOutput,
}

/// The output of a job, by its purpose.
#[derive(Debug)]
pub(super) enum JobOutput {
    /// The trial, for the data planes of the owner.
    Trial(BTreeMap<DataPlaneKey, DataPlane>),
    /// A trial that cannot be published.
    InvalidTrial,
    /// The parameters cannot be used, so the previous publication stays.
    Kept(Box<Verdicts>),
    /// The translation, apart from the parts in [`JobResult::bridged`].
    Translation(Box<Translation>),
}

/// The results of the bridge, in the order of the data planes.
#[derive(Debug, Default)]
pub(super) struct BridgeOutput {
    pub(super) publications: Vec<Publication>,
    pub(super) unpublished: Vec<(DataPlaneKey, BridgeError)>,
    /// The problems besides those of the translation.
    pub(super) problems: Vec<Problem>,
}

impl Job {
    /// The owner.
    pub(crate) const fn owner(&self) -> &ObjectKey {
        &self.owner
    }

    /// Runs the translation.
    pub(crate) fn run(self) -> JobResult {
        let Self { owner, draft, options, before, mut cache, now, awaited } = self;
        let Draft { snapshot, number, trial } = draft;
        let translation = cache.translate(&snapshot, &options);
        let mut bridged = BridgeOutput::default();
        let output = match (&trial, translation.has_unusable_parameters) {
            (Some(_), true) => JobOutput::InvalidTrial,
            (Some(_), false) => {
                let mut planes = translation.data_planes;
                planes.retain(|key, _| before.contains_key(key));
                // A trial reports no problems.
                bridged.add(cache.bridge(&planes, &options), |bridged| (bridged.desired, Vec::new()));
                JobOutput::Trial(planes)
            }
            (None, true) => {
                // A trial may equal the last publication.
                bridged.add(cache.bridge(&before, &options), |bridged| (bridged.desired, Vec::new()));
                JobOutput::Kept(Box::new(translation.verdicts))
            }
            (None, false) => {
                let BridgedOwner { planes, streams, outdated } =
                    cache.bridge_all(&translation, &options, Some(now));
                bridged.problems.extend(outdated);
                bridged.add(planes, |bridged| (bridged.desired, bridged.problems));
                bridged.add(streams, |bridged| (bridged.desired, bridged.problems));
                JobOutput::Translation(Box::new(translation))
            }
        };
        JobResult { owner, number, trial, cache, awaited, output, bridged }
    }
}

impl BridgeOutput {
    fn add<B>(
        &mut self,
        bridged: impl IntoIterator<Item = (DataPlaneKey, Result<B, BridgeError>)>,
        parts: impl Fn(B) -> (Desired, Vec<Problem>),
    ) {
        for (data_plane, bridged) in bridged {
            match bridged.map(&parts) {
                Ok((desired, problems)) => {
                    self.problems.extend(problems);
                    self.publications.push(Publication { data_plane, desired });
                }
                Err(error) => self.unpublished.push((data_plane, error)),
            }
        }
    }

    /// Adds empty publications for removed data planes.
    pub(super) fn withdraw<'k>(
        &mut self,
        gone: impl IntoIterator<Item = &'k DataPlaneKey>,
        options: &Options,
    ) {
        let withdrawn = gone.into_iter().map(|key| (key.clone(), withdrawn(key, options)));
        self.add(withdrawn, |desired| (desired, Vec::new()));
    }
}
