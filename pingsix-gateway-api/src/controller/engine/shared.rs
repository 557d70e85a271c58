//! The state that all stages use: objects with their owners, deliveries, and the outside of the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::Scope;
use pingsix_translate::status::Address;
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::sync::watch;
use tokio::time::Instant;

use super::provisioning::Managed;
use crate::controller::SinkRouter;
use crate::controller::poll_targets::PollTargets;
use crate::delivery::Deliveries;
use crate::delivery::status_page::StatusUrl;
use crate::health::Health;
use crate::leader::Leadership;
use crate::metrics::{Metrics, Outcome};
use crate::reconcile::Reconciler;

/// The parts that all stages use.
pub(in crate::controller) struct Shared {
    pub(in crate::controller) reconciler: Reconciler,
    pub(in crate::controller) deliveries: Deliveries,
    pub(in crate::controller) managed: Managed,
    pub(in crate::controller) sinks: Arc<SinkRouter>,
    /// The leadership of this replica.
    pub(in crate::controller) leadership: Leadership,
    /// The addresses of data planes from the options.
    pub(in crate::controller) addresses: watch::Receiver<Option<Vec<Address>>>,
    pub(in crate::controller) health: Option<Health>,
    pub(in crate::controller) metrics: Option<Arc<Metrics>>,
    /// The status pages of the options.
    pub(in crate::controller) fixed_pages: BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    /// The instances whose status pages are polled.
    pub(in crate::controller) targets: PollTargets,
    /// The time for pending publications at a shutdown.
    pub(in crate::controller) drain: Duration,
}

impl Shared {
    /// The scope of a data plane.
    pub(super) fn scope(&self, data_plane: &DataPlaneKey) -> Option<Scope> {
        Scope::new(data_plane.prefix(&self.reconciler.options().root)).ok()
    }

    /// The owner whose translation has the verdict on a Gateway, a ListenerSet or an Ingress.
    pub(super) fn judging_owner(&self, object: &ObjectKey) -> Option<&ObjectKey> {
        self.reconciler.judging_owners(object).next()
    }

    /// Bounds the CPU that PingSIX spends on changes of an owner's data planes, as its parameters say.
    pub(super) fn limit_cpu(&self, owner: &ObjectKey) {
        let Some(percent) = self.reconciler.feed_cpu_percent(owner) else { return };
        let planes = self.reconciler.data_planes(owner);
        let planes = planes.iter().filter(|plane| !matches!(plane, DataPlaneKey::Stream { .. }));
        for scope in planes.filter_map(|plane| self.scope(plane)) {
            self.sinks.limit_cpu(&scope, percent);
        }
    }

    /// Sets the revision that polls of status pages wait for.
    pub(super) fn publish_revision(&self, data_plane: &DataPlaneKey) {
        if let Some(revision) = self.deliveries.revision(data_plane) {
            self.targets.publish(data_plane, revision);
        }
    }

    /// The addresses of an owner's data planes: those of its Service if the controller runs them, else those of its
    /// parameters, else those of the options. `None` while they are unknown. A controller that runs no data planes knows
    /// that there is no address, so those of former parameters do not stay.
    pub(super) fn addresses_of(&self, owner: &ObjectKey) -> Option<Vec<Address>> {
        if self.reconciler.infrastructure(owner).is_some() {
            let runs_none = self.managed.provisioning.is_none();
            return if runs_none { Some(Vec::new()) } else { self.managed.addresses(owner) };
        }
        let addresses = self.reconciler.attached(owner).map(|attached| &attached.addresses);
        let addresses = addresses.filter(|addresses| !addresses.is_empty()).cloned();
        addresses.or_else(|| self.addresses.borrow().clone())
    }

    /// Counts a reconciliation.
    pub(super) fn count(&self, owner: &ObjectKey, outcome: Outcome, started: Instant) {
        if let Some(metrics) = &self.metrics {
            metrics.reconciled(owner.kind, outcome, started.elapsed());
        }
    }

    /// The owners of the data planes at a scope.
    pub(super) fn owners_at(&self, scope: &Scope) -> BTreeSet<ObjectKey> {
        let planes = self.deliveries.data_planes();
        planes.filter(|plane| self.scope(plane).as_ref() == Some(scope)).map(DataPlaneKey::owner).collect()
    }
}
