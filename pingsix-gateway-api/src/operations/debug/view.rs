//! The model of the pages, from the state of the controller.

use std::collections::BTreeMap;

use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::status::Problems;
use pingsix_translate::{DataPlaneKey, Kind, Object, ObjectKey};

use super::DebugState;
use super::dump::message;
use crate::delivery::Instances;
use crate::delivery::status_page::{PageError, StatusPage, StatusUrl};
use crate::view::{DataPlaneView, Finding, FindingLevel, Instance, Model, OwnerView, PlaneDocuments};
use crate::world::{KindVisitor, Stored, World, with_kind};

/// The option with which `pingsix-gatewayctl` reads the same objects.
const INPUT: &str = "--cluster";

impl DebugState<'_> {
    /// The model of the pages. Objects and documents are shared with the state. Verdicts and problems are copied.
    pub(crate) fn model(&self) -> Model {
        let world = self.reconciler.world();
        let objects = Model::kinds().flat_map(|kind| with_kind(&Decoded(kind), kind, world));
        let options = self.reconciler.options().clone();
        let mut model = Model::new(options, vec![INPUT.to_owned()], objects);
        // Several owners have the same problem of an object.
        let mut problems = Problems::new();
        for owner in self.reconciler.ours() {
            problems.extend(self.reconciler.problems(&owner).iter().cloned());
            if let Some(view) = self.owner(&owner) {
                model.add_owner(owner, view);
            }
        }
        model.add_findings(problems.iter().map(Finding::from));
        let undecodable = world.undecodable().into_iter().map(|(key, error)| Finding {
            level: FindingLevel::Error,
            object: key.to_string(),
            message: format!(
                "The object does not match the schema of its kind: {}.",
                message(key.kind, &error)
            ),
            key: Some(key),
            place: String::new(),
            field: String::new(),
        });
        model.add_findings(undecodable);
        model
    }

    /// `None` before the first translation.
    fn owner(&self, owner: &ObjectKey) -> Option<OwnerView> {
        let keys = self.reconciler.data_planes(owner);
        let verdicts = self.reconciler.all_verdicts(owner, &self.deliveries.of(&keys))?;
        let data_planes: BTreeMap<DataPlaneKey, DataPlaneView> =
            keys.into_iter().filter_map(|key| Some((key.clone(), self.data_plane(owner, &key)?))).collect();
        Some(OwnerView { verdicts, data_planes })
    }

    fn data_plane(&self, owner: &ObjectKey, key: &DataPlaneKey) -> Option<DataPlaneView> {
        let plane = self.reconciler.data_plane(owner, key).map(|plane| PlaneDocuments::Requests {
            config: plane.config.clone(),
            provenance: plane.provenance.clone(),
        });
        let streams = self.reconciler.stream_plane(owner, key).cloned().map(PlaneDocuments::Streams);
        let documents = plane.or(streams)?;
        let (instances, connections) = match self.deliveries.instances(key) {
            Some(Instances::Pages(pages)) => (pages.iter().map(instance).collect(), None),
            Some(Instances::Connected(count)) => (Vec::new(), Some(*count)),
            Some(Instances::Unknown | Instances::AtRestart) | None => (Vec::new(), None),
        };
        Some(DataPlaneView {
            documents,
            revision: self.deliveries.revision(key).map(pingsix_sink::Revision::get),
            delivery: self.deliveries.delivery(key),
            instances,
            connections,
        })
    }
}

fn instance((url, page): (&StatusUrl, &Result<StatusPage, PageError>)) -> Instance {
    let name = url.to_string();
    let page = match page {
        Ok(page) => page,
        Err(error) => return Instance { name, revision: None, remark: error.to_string(), is_faulty: true },
    };
    let error = page.refusal().map(str::to_owned).or_else(|| page.faults.first().map(ToString::to_string));
    let is_faulty = error.is_some();
    let elsewhere = match (page.is_elsewhere, page.is_confirmed) {
        (false, _) => "",
        (true, true) => "reads from another replica, which reports the desired documents",
        (true, false) => "reads from another replica",
    };
    Instance {
        name,
        revision: (!page.is_elsewhere).then_some(page.published_revision),
        remark: error.unwrap_or_else(|| elsewhere.to_owned()),
        is_faulty,
    }
}

/// The decodable objects of a kind.
struct Decoded(Kind);

impl KindVisitor for Decoded {
    type Output = Vec<Object>;

    fn run<K: Stored>(&self, world: &World) -> Vec<Object> {
        let names = K::store(world).objects().into_iter().map(|object| object.key().name);
        names.filter_map(|name| world.object(&ObjectKey { kind: self.0, name })).collect()
    }
}
