//! Withdrawals of data planes without an owner, including those of earlier processes.

use std::collections::BTreeSet;

use pingsix_translate::{DataPlaneKey, ObjectKey};

use super::ingest::Ingest;
use super::publishing::Publish;
use super::shared::Shared;
use super::sinks::{attach, is_at_own_sink};
use super::{Message, Messages};
use crate::bridge::withdrawn;
use crate::controller::orphans::Orphan;
use crate::reconcile::Publication;

impl Publish {
    /// Plans the withdrawals of an owner; each remains until it is published. Data planes without a publication
    /// need none.
    pub(super) fn plan_withdrawals(
        &mut self,
        shared: &mut Shared,
        owner: &ObjectKey,
        current: &BTreeSet<DataPlaneKey>,
        withdrawn: Vec<Publication>,
    ) -> Vec<Publication> {
        let mut withdrawals = self.withdrawals.remove(owner).unwrap_or_default();
        withdrawals
            .extend(withdrawn.into_iter().map(|Publication { data_plane, desired }| (data_plane, desired)));
        withdrawals.retain(|data_plane, _| !current.contains(data_plane));
        let unpublished = &mut self.sinks.unpublished;
        for (data_plane, _) in withdrawals.extract_if(.., |data_plane, _| unpublished.remove(data_plane)) {
            shared.deliveries.forget(&data_plane);
        }
        if !withdrawals.is_empty() {
            self.withdrawals.insert(owner.clone(), withdrawals.clone());
        }
        let withdrawals = withdrawals.into_iter();
        withdrawals.map(|(data_plane, desired)| Publication { data_plane, desired }).collect()
    }

    /// Withdraws the publications of an earlier process that have no owner.
    pub(super) fn withdraw(&mut self, shared: &Shared, ingest: &Ingest, orphans: Vec<Orphan>) -> Messages {
        let mut messages = Messages::new();
        let ours = shared.reconciler.ours();
        for orphan in orphans {
            let Orphan { ref data_plane, is_gone, at } = orphan;
            let owner = data_plane.owner();
            let planes = shared.reconciler.data_planes(&owner);
            let is_orphan = if ours.contains(&owner) {
                // The layout is known. A PingSIX of another layout may still read the former documents.
                let has_ports = planes.iter().any(|plane| plane.port().is_some());
                let is_of_port = has_ports && data_plane.port().is_some();
                is_of_port
                    && !planes.contains(data_plane)
                    && !ingest.is_waiting(&owner)
                    && is_at_own_sink(shared, &orphan, &planes)
            } else {
                is_gone && planes.is_empty() && !shared.reconciler.world().contains(&owner)
            };
            let Ok(desired) = withdrawn(data_plane, shared.reconciler.options()) else { continue };
            if !is_orphan || !shared.leadership.is_held() {
                continue;
            }
            if self.withdrawals.get(&owner).is_some_and(|withdrawals| withdrawals.contains_key(data_plane)) {
                // The orphan at another sink comes first.
                self.sinks.orphans.entry(data_plane.clone()).or_default().push(orphan);
                continue;
            }
            // The sink may be closed.
            if at.is_some_and(|id| shared.sinks.attached().get(id).is_none()) {
                continue;
            }
            attach(shared, data_plane, at);
            tracing::info!(%data_plane, "withdrawing orphaned documents of an earlier process");
            self.withdrawals.entry(owner.clone()).or_default().insert(data_plane.clone(), desired);
            messages.push(Message::Reconcile([owner].into()));
        }
        messages
    }
}
