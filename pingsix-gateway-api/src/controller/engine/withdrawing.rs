//! Withdrawals of data planes without an owner, including those at a shutdown and those of earlier processes.

use std::collections::BTreeSet;

use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::timeout;

use super::Engine;
use super::publishing::Publish;
use crate::bridge::withdrawn;
use crate::controller::ControllerError;
use crate::controller::orphans::Orphan;
use crate::reconcile::Publication;

impl Publish {
    /// Plans the withdrawals of an owner; each remains until it is published. Returns them, and the data planes
    /// without a publication, which need none.
    pub(super) fn plan_withdrawals(
        &mut self,
        owner: &ObjectKey,
        current: &BTreeSet<DataPlaneKey>,
        withdrawn: Vec<Publication>,
    ) -> (Vec<Publication>, Vec<DataPlaneKey>) {
        let mut withdrawals = self.withdrawals.remove(owner).unwrap_or_default();
        withdrawals
            .extend(withdrawn.into_iter().map(|Publication { data_plane, desired }| (data_plane, desired)));
        withdrawals.retain(|data_plane, _| !current.contains(data_plane));
        let mut nowhere = Vec::new();
        withdrawals.retain(|data_plane, _| {
            let was_unpublished = self.sinks.take_unpublished(data_plane);
            if was_unpublished {
                nowhere.push(data_plane.clone());
            }
            !was_unpublished
        });
        if !withdrawals.is_empty() {
            self.withdrawals.insert(owner.clone(), withdrawals.clone());
        }
        let withdrawals =
            withdrawals.into_iter().map(|(data_plane, desired)| Publication { data_plane, desired });
        (withdrawals.collect(), nowhere)
    }
}

impl Engine {
    /// Withdraws the publications of an earlier process that have no owner.
    pub(super) fn withdraw(&mut self, orphans: Vec<Orphan>) {
        let ours = self.parts.reconciler.ours();
        for orphan in orphans {
            let Orphan { ref data_plane, is_gone, .. } = orphan;
            let owner = data_plane.owner();
            let planes = self.parts.reconciler.data_planes(&owner);
            let is_orphan = if ours.contains(&owner) {
                // The layout is known. A PingSIX of another layout may still read the former documents.
                let has_ports = planes.iter().any(|plane| plane.port().is_some());
                let is_of_port = has_ports && data_plane.port().is_some();
                is_of_port
                    && !planes.contains(data_plane)
                    && !self.ingest.is_waiting(&owner)
                    && self.is_at_own_sink(&orphan, &planes)
            } else {
                is_gone && planes.is_empty() && !self.parts.reconciler.world().contains(&owner)
            };
            let Ok(desired) = withdrawn(data_plane, self.parts.reconciler.options()) else { continue };
            if !is_orphan || !self.parts.leadership.is_held() || !self.attach_orphan(&orphan) {
                continue;
            }
            tracing::info!(%data_plane, "withdrawing orphaned documents of an earlier process");
            self.publish.withdrawals.entry(owner.clone()).or_default().insert(data_plane.clone(), desired);
            self.push([owner].into());
        }
    }

    /// Completes running publications. Withdrawals of deleted owners come first, because a later process would not
    /// know them.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Task`]: a publication panicked.
    pub(super) async fn drain(&mut self) -> Result<(), ControllerError> {
        if self.ingest.is_known {
            let ours = self.parts.reconciler.ours();
            // A running translation would end too late.
            let concerned = self.ingest.waiting_or_running().chain(self.publish.withdrawals.keys());
            let gone: BTreeSet<ObjectKey> =
                concerned.filter(|owner| !ours.contains(*owner)).cloned().collect();
            for owner in gone {
                self.withdraw_gone(&owner);
            }
            let left = self.publish.withdrawals.clone().into_iter().filter(|(owner, _)| ours.contains(owner));
            for (owner, withdrawals) in left {
                for (data_plane, desired) in withdrawals {
                    self.submit(&owner, Publication { data_plane, desired });
                }
            }
        }
        let limit = self.parts.drain;
        let all = async {
            while self.publish.publisher.pending().next().is_some() {
                let attempt = self.publish.publisher.ended().await.map_err(ControllerError::Task)?;
                self.record_attempt(attempt);
            }
            Ok(())
        };
        if let Ok(drained) = timeout(limit, all).await {
            return drained;
        }
        let data_planes: Vec<String> = self.publish.publisher.pending().map(ToString::to_string).collect();
        tracing::warn!(?data_planes, ?limit, "shutdown timed out; publications were abandoned");
        Ok(())
    }
}
