//! The progress of publications.

use std::collections::BTreeSet;

use pingsix_sink::{Effect, Revision, Scope};
use pingsix_translate::DataPlaneKey;
use pingsix_translate::status::Delivery;

use super::Engine;
use crate::delivery::Instances;
use crate::delivery::status_page::{InstancePages, PageError, StatusPage};

impl Engine {
    /// Sets the revision that polls of status pages wait for.
    pub(super) fn publish_revision(&self, data_plane: &DataPlaneKey) {
        if let Some(revision) = self.deliveries.revision(data_plane) {
            self.parts.targets.publish(data_plane, revision);
        }
    }

    /// Whether the instances of a data plane have status pages.
    pub(super) fn is_polled(&self, data_plane: &DataPlaneKey) -> bool {
        self.parts.targets.contains(data_plane)
    }

    pub(super) fn refresh_readers(&mut self) {
        let planes: BTreeSet<DataPlaneKey> = self.deliveries.data_planes().cloned().collect();
        self.refresh_readers_of(planes);
    }

    pub(super) fn refresh_readers_of(&mut self, planes: BTreeSet<DataPlaneKey>) {
        for data_plane in planes {
            let Some(scope) = self.scope(&data_plane) else { continue };
            if self.parts.sinks.effect(&scope) == Effect::OnRestart {
                self.observe(&data_plane, Instances::AtRestart);
            } else if !self.is_polled(&data_plane) {
                let readers = self.parts.sinks.readers_of(&scope);
                self.observe(&data_plane, readers.map_or(Instances::Unknown, Instances::Connected));
            }
        }
    }

    /// Records the status pages of instances that follow the sink.
    pub(super) fn observe_status_pages(&mut self, data_plane: &DataPlaneKey, mut pages: Instances) {
        let Some(scope) = self.scope(data_plane) else { return };
        // The instances may have confirmed the revision before this record.
        if self.parts.sinks.effect(&scope) == Effect::OnRestart || !self.is_polled(data_plane) {
            return;
        }
        if let Instances::Pages(pages) = &mut pages {
            for page in pages.values_mut().flatten() {
                let read = Revision::new(page.observed_revision);
                page.is_elsewhere = read.is_some_and(|read| !self.parts.sinks.issued(&scope, read));
            }
            self.compare(data_plane, &scope, pages);
            self.log_other_versions(data_plane, pages);
        }
        self.observe(data_plane, pages);
    }

    /// Logs each instance of another version than the supported one, once.
    fn log_other_versions(&self, data_plane: &DataPlaneKey, pages: &InstancePages) {
        let known = self.deliveries.instances(data_plane);
        let known = if let Some(Instances::Pages(pages)) = known { Some(pages) } else { None };
        for (url, page) in pages {
            let difference = |page: &Result<StatusPage, PageError>| page.as_ref().ok()?.difference;
            let Some(found) = difference(page) else { continue };
            if known.and_then(|known| difference(known.get(url)?)) != Some(found) {
                tracing::warn!(%data_plane, %url, instance = %found, "an instance has another version of PingSIX");
            }
        }
    }

    /// The scope of a data plane.
    pub(super) fn scope(&self, data_plane: &DataPlaneKey) -> Option<Scope> {
        Scope::new(data_plane.prefix(&self.parts.reconciler.options().root)).ok()
    }

    pub(super) fn observe(&mut self, data_plane: &DataPlaneKey, instances: Instances) {
        let pages = if let Instances::Pages(pages) = &instances { Some(pages.clone()) } else { None };
        let is_news = self.deliveries.observe(data_plane, instances);
        // The same report contains the consequences.
        if let Some(pages) = pages {
            self.record_status_pages(data_plane, &pages);
        }
        if is_news {
            self.update_progress(data_plane);
        }
    }

    /// Records instances again, without new pages.
    pub(super) fn weigh(&mut self, data_plane: &DataPlaneKey, instances: Instances) {
        if self.deliveries.observe(data_plane, instances) {
            self.update_progress(data_plane);
        }
    }

    fn update_progress(&mut self, data_plane: &DataPlaneKey) {
        if let Some(metrics) = &self.parts.metrics
            && matches!(
                self.deliveries.delivery(data_plane),
                Delivery::Confirmed | Delivery::ConfirmedInPart(_) | Delivery::ConfirmedByOtherVersion(_)
            )
            && let Some(revision) = self.deliveries.revision(data_plane)
        {
            metrics.confirmed(revision);
        }
        self.update_delivery(&data_plane.owner());
    }
}
