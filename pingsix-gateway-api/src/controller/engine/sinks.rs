//! The sink of an owner's parameters.
//!
//! A replaced sink keeps its documents, because a PingSIX may still read them. While a sink is unusable, its data planes are
//! published nowhere. Withdrawals still go to the last sink.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{Gateway, Secret};
use pingsix_translate::status::Problems;
use pingsix_translate::{DataPlaneKey, ObjectKey};

use super::shared::Shared;
use crate::controller::attached_sinks::{AttachError, SinkId};
use crate::controller::orphans::Orphan;

/// The state of the sinks that parameters name.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    /// Owners with an unusable sink, and the error.
    pub(super) errors: BTreeMap<ObjectKey, AttachError>,
    /// Data planes that were never published because of an error. Their withdrawal is empty.
    pub(super) unpublished: BTreeSet<DataPlaneKey>,
    /// Orphans of one data plane at several sinks, which are withdrawn one after the other.
    pub(super) orphans: BTreeMap<DataPlaneKey, Vec<Orphan>>,
}

impl Sinks {
    /// Attaches the data planes of an owner to the sink of its parameters, before their publication.
    pub(super) fn attach_owner(&mut self, shared: &Shared, owner: &ObjectKey) {
        let planes = shared.reconciler.data_planes(owner);
        let attached = shared.reconciler.attached(owner);
        let sink = attached.and_then(|attached| attached.sink.clone());
        if sink.is_none() && shared.reconciler.is_kept(owner) {
            // The publication of an earlier process stays at its sink.
            self.errors.remove(owner);
            return;
        }
        let opened = sink.filter(|_| !planes.is_empty()).map(|sink| open_sink(shared, &sink)).transpose();
        match opened {
            Ok(id) => {
                self.errors.remove(owner);
                for data_plane in &planes {
                    self.unpublished.remove(data_plane);
                    attach(shared, data_plane, id);
                }
            }
            Err(why) => {
                self.errors.insert(owner.clone(), why);
                for data_plane in planes {
                    if shared.deliveries.revision(&data_plane).is_none()
                        && attached_to(shared, &data_plane).is_none()
                    {
                        self.unpublished.insert(data_plane);
                    }
                }
            }
        }
    }

    /// The problems of an owner, with those of its sink.
    pub(super) fn problems_of(&self, shared: &Shared, owner: &ObjectKey) -> Problems {
        let reconciler = &shared.reconciler;
        let mut problems = reconciler.problems(owner);
        let sink = reconciler.attached(owner).and_then(|attached| attached.sink.as_ref());
        if let Some((sink, error)) = sink.zip(self.errors.get(owner)) {
            let gateway = reconciler.world().get::<Gateway>(&owner.name);
            problems.add(sink.problem(owner, gateway.as_deref(), &error.to_string()));
        }
        problems
    }
}

fn open_sink(shared: &Shared, sink: &SinkParameters) -> Result<SinkId, AttachError> {
    let world = shared.reconciler.world();
    let secret = sink.credentials.as_ref().and_then(|name| world.get::<Secret>(name));
    let credentials = SinkCredentials::read(sink, secret.as_deref())?;
    shared.sinks.attached().open(sink, credentials)
}

/// Publishes a data plane to a sink of parameters from now on, or with `None` to the other sinks.
pub(super) fn attach(shared: &Shared, data_plane: &DataPlaneKey, id: Option<SinkId>) {
    if let Some(scope) = shared.scope(data_plane) {
        shared.sinks.attach(&scope, id);
    }
}

/// The sink of parameters to which a data plane is published.
fn attached_to(shared: &Shared, data_plane: &DataPlaneKey) -> Option<SinkId> {
    shared.sinks.attached().id_of(&shared.scope(data_plane)?)
}

/// Whether an orphan is at the sink of its owner.
pub(super) fn is_at_own_sink(shared: &Shared, orphan: &Orphan, planes: &[DataPlaneKey]) -> bool {
    planes.iter().find_map(|data_plane| attached_to(shared, data_plane)) == orphan.at
}
