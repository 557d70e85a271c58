//! The sink of an owner's parameters.
//!
//! A replaced sink keeps its documents, because a PingSIX may still read them. While a sink is unusable, its data planes are
//! published nowhere. Withdrawals still go to the last sink.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::infrastructure::{SinkCredentials, SinkParameters};
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{Gateway, Secret};
use pingsix_translate::status::Problem;
use pingsix_translate::{DataPlaneKey, ObjectKey};

use super::Engine;
use crate::controller::attached_sinks::{AttachError, SinkId};
use crate::controller::orphans::Orphan;

/// The state of the sinks that parameters name.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    /// Owners with an unusable sink, and the error.
    errors: BTreeMap<ObjectKey, AttachError>,
    /// Data planes that were never published because of an error. Their withdrawal is empty.
    unpublished: BTreeSet<DataPlaneKey>,
    /// Orphans of one data plane at several sinks, which are withdrawn one after the other.
    orphans: BTreeMap<DataPlaneKey, Vec<Orphan>>,
}

impl Sinks {
    /// The error that keeps an owner from being published.
    pub(super) fn failure(&self, owner: &ObjectKey) -> Option<AttachError> {
        self.errors.get(owner).cloned()
    }

    /// Whether a data plane was never published. The first call clears the answer.
    pub(super) fn take_unpublished(&mut self, data_plane: &DataPlaneKey) -> bool {
        self.unpublished.remove(data_plane)
    }
}

impl Engine {
    /// Attaches the data planes of an owner to the sink of its parameters, before their publication.
    pub(super) fn reconcile_sink(&mut self, owner: &ObjectKey) {
        let planes = self.parts.reconciler.data_planes(owner);
        let attached = self.parts.reconciler.attached(owner);
        let sink = attached.and_then(|attached| attached.sink.clone());
        if sink.is_none() && self.parts.reconciler.is_kept(owner) {
            // The publication of an earlier process stays at its sink.
            self.publish.sinks.errors.remove(owner);
            return;
        }
        let opened = sink.filter(|_| !planes.is_empty()).map(|sink| self.open_sink(&sink)).transpose();
        match opened {
            Ok(id) => {
                self.publish.sinks.errors.remove(owner);
                for data_plane in &planes {
                    self.publish.sinks.unpublished.remove(data_plane);
                    self.attach(data_plane, id);
                }
            }
            Err(why) => {
                self.publish.sinks.errors.insert(owner.clone(), why);
                for data_plane in planes {
                    if self.deliveries.revision(&data_plane).is_none()
                        && self.attached_to(&data_plane).is_none()
                    {
                        self.publish.sinks.unpublished.insert(data_plane);
                    }
                }
            }
        }
    }

    fn open_sink(&self, sink: &SinkParameters) -> Result<SinkId, AttachError> {
        let world = self.parts.reconciler.world();
        let secret = sink.credentials.as_ref().and_then(|name| world.get::<Secret>(name));
        let credentials = SinkCredentials::read(sink, secret.as_deref())?;
        self.parts.sinks.attached().open(sink, credentials)
    }

    /// Publishes a data plane to a sink of parameters from now on, or with `None` to the other sinks.
    fn attach(&self, data_plane: &DataPlaneKey, id: Option<SinkId>) {
        if let Some(scope) = self.scope(data_plane) {
            self.parts.sinks.attach(&scope, id);
        }
    }

    /// The sink of parameters to which a data plane is published.
    fn attached_to(&self, data_plane: &DataPlaneKey) -> Option<SinkId> {
        self.parts.sinks.attached().id_of(&self.scope(data_plane)?)
    }

    /// Attaches the data plane of an orphan to the sink that holds the orphan. Returns whether the withdrawal can begin: the
    /// sink may be closed, and an orphan at another sink may come first.
    pub(super) fn attach_orphan(&mut self, orphan: &Orphan) -> bool {
        let Orphan { data_plane, at, .. } = orphan;
        let owner = data_plane.owner();
        if self
            .publish
            .withdrawals
            .get(&owner)
            .is_some_and(|withdrawals| withdrawals.contains_key(data_plane))
        {
            self.publish.sinks.orphans.entry(data_plane.clone()).or_default().push(orphan.clone());
            return false;
        }
        let is_open = at.is_none_or(|id| self.parts.sinks.attached().get(id).is_some());
        if is_open {
            self.attach(data_plane, *at);
        }
        is_open
    }

    /// Whether an orphan is at the sink of its owner.
    pub(super) fn is_at_own_sink(&self, orphan: &Orphan, planes: &[DataPlaneKey]) -> bool {
        planes.iter().find_map(|data_plane| self.attached_to(data_plane)) == orphan.at
    }

    /// Withdraws the orphans of a data plane at other sinks, after a withdrawal.
    pub(super) fn withdraw_next(&mut self, data_plane: &DataPlaneKey) {
        if let Some(orphans) = self.publish.sinks.orphans.remove(data_plane) {
            self.withdraw(orphans);
        }
    }

    /// The problems of an owner, with those of its sink.
    pub(super) fn problems_of(&self, owner: &ObjectKey) -> Vec<Problem> {
        let reconciler = &self.parts.reconciler;
        let mut problems = reconciler.problems(owner).to_vec();
        let sink = reconciler.attached(owner).and_then(|attached| attached.sink.as_ref());
        if let Some((sink, error)) = sink.zip(self.publish.sinks.errors.get(owner)) {
            let gateway = reconciler.world().get::<Gateway>(&owner.name);
            problems.push(sink.problem(owner, gateway.as_deref(), &error.to_string()));
        }
        problems
    }
}
