//! How far publications have come.

use std::collections::BTreeSet;

use pingsix_translate::DataPlaneKey;
use pingsix_translate::verdict::Delivery;

use super::Engine;
use crate::bridge::withdrawn;
use crate::controller::Feed;
use crate::controller::instances::PublishedRevisions;
use crate::delivery::Instances;

impl<F: Feed + 'static> Engine<F> {
    /// Tells whoever reads status pages what to look for.
    pub(super) fn publish_revisions(&self) {
        if self.parts.paged.is_empty() {
            return;
        }
        let planes = self.deliveries.data_planes();
        let revisions: PublishedRevisions = planes
            .filter_map(|plane| Some((plane.clone(), self.deliveries.revision(plane)?.get())))
            .collect();
        self.parts.published.send_if_modified(|held| {
            let is_other = *held != revisions;
            *held = revisions;
            is_other
        });
    }

    pub(super) fn look_at_readers(&mut self) {
        let planes: BTreeSet<DataPlaneKey> = self.deliveries.data_planes().cloned().collect();
        self.look_at_readers_of(planes);
    }

    pub(super) fn look_at_readers_of(&mut self, planes: BTreeSet<DataPlaneKey>) {
        for data_plane in planes {
            if self.parts.paged.contains(&data_plane) {
                continue;
            }
            let desired = withdrawn(&data_plane, self.parts.reconciler.options());
            let readers = desired.ok().and_then(|desired| self.parts.feed.readers_of(desired.scope()));
            self.observe(&data_plane, readers.map_or(Instances::Unknown, Instances::Connected));
        }
    }

    pub(super) fn observe(&mut self, data_plane: &DataPlaneKey, instances: Instances) {
        if self.deliveries.observe(data_plane, instances) {
            if let Some(metrics) = &self.parts.metrics
                && self.deliveries.delivery(data_plane) == Delivery::Confirmed
                && let Some(revision) = self.deliveries.revision(data_plane)
            {
                metrics.confirmed(revision);
            }
            self.tell_delivery(&data_plane.owner());
        }
    }
}
