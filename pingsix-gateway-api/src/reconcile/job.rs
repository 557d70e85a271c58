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
use pingsix_translate::{DataPlane, DataPlaneKey, ObjectKey, Options, Translation, Translator};

use crate::acceptance::{Draft, DraftNumber, Trial};
use crate::bridge::Bridge;
use crate::{BridgeError, bridge_stream, outdated_certificates, outdated_stream_certificates};

/// The documents of a data plane.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Publication {
    /// The key of the data plane.
    pub data_plane: DataPlaneKey,
    /// The desired documents; none for a data plane that is gone.
    pub desired: Desired,
}

/// The caches of an owner from its last translation.
#[derive(Debug, Default)]
pub(super) struct OwnerCache {
    translator: Option<Translator>,
    bridges: BTreeMap<DataPlaneKey, Bridge>,
}

/// The inputs of a translation and its bridge.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) owner: ObjectKey,
    pub(super) draft: Draft,
    pub(super) options: Arc<Options>,
    /// The data planes of the last translation.
    pub(super) before: BTreeMap<DataPlaneKey, DataPlane>,
    pub(super) cache: OwnerCache,
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
    pub(super) cache: OwnerCache,
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
        let translator = cache.translator.get_or_insert_with(|| Translator::new((*options).clone()));
        let translation = translator.translate_owner(&snapshot);
        let mut bridged = BridgeOutput::default();
        let output = match (&trial, translation.has_unusable_parameters) {
            (Some(_), true) => JobOutput::InvalidTrial,
            (Some(_), false) => {
                let mut planes = translation.data_planes;
                planes.retain(|key, _| before.contains_key(key));
                bridged.planes(&planes, &mut cache, &options);
                // A trial reports no problems.
                bridged.problems.clear();
                JobOutput::Trial(planes)
            }
            (None, true) => {
                // A trial may equal the last publication.
                bridged.planes(&before, &mut cache, &options);
                bridged.problems.clear();
                JobOutput::Kept(Box::new(translation.verdicts))
            }
            (None, false) => {
                bridged.all(&translation, &mut cache, &options, now);
                JobOutput::Translation(Box::new(translation))
            }
        };
        JobResult { owner, number, trial, cache, awaited, output, bridged }
    }
}

impl BridgeOutput {
    fn all(&mut self, translation: &Translation, cache: &mut OwnerCache, options: &Options, now: Timestamp) {
        let Translation { data_planes, stream_planes, verdicts, .. } = translation;
        self.problems.clone_from(&verdicts.problems);
        self.planes(data_planes, cache, options);
        self.problems.extend(data_planes.values().flat_map(|plane| outdated_certificates(plane, now)));
        for (key, plane) in stream_planes {
            self.problems.extend(outdated_stream_certificates(plane, now));
            let bridged = bridge_stream(key, plane, options);
            self.add(key, bridged.map(|bridged| (bridged.desired, bridged.problems)));
        }
        cache.bridges.retain(|key, _| data_planes.contains_key(key));
        self.problems.sort();
        self.problems.dedup();
    }

    fn planes(
        &mut self,
        planes: &BTreeMap<DataPlaneKey, DataPlane>,
        cache: &mut OwnerCache,
        options: &Options,
    ) {
        for (key, plane) in planes {
            let bridged = cache.bridges.entry(key.clone()).or_default().bridge(key, plane, options);
            self.add(key, bridged.map(|bridged| (bridged.desired, bridged.problems)));
        }
    }

    fn add(&mut self, key: &DataPlaneKey, bridged: Result<(Desired, Vec<Problem>), BridgeError>) {
        match bridged {
            Ok((desired, problems)) => {
                self.problems.extend(problems);
                self.publications.push(Publication { data_plane: key.clone(), desired });
            }
            Err(error) => self.unpublished.push((key.clone(), error)),
        }
    }

    /// Adds empty publications for removed data planes.
    pub(super) fn withdraw<'k>(
        &mut self,
        gone: impl IntoIterator<Item = &'k DataPlaneKey>,
        options: &Options,
    ) {
        for key in gone {
            self.add(key, crate::bridge::withdrawn(key, options).map(|desired| (desired, Vec::new())));
        }
    }
}
