//! The acceptance of publications by PingSIX.

use pingsix_sink::Revision;
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::Instant;

use super::Reconciler;
use crate::acceptance::{Acceptance, AcceptanceOutcome, DraftNumber, Reception, named_sources};

impl Reconciler {
    /// Records the publication of an owner's draft.
    pub fn published(
        &mut self,
        owner: &ObjectKey,
        draft: DraftNumber,
        data_plane: &DataPlaneKey,
        revision: Revision,
    ) -> AcceptanceOutcome {
        let entry = self.owners.get_mut(owner);
        entry.map_or(AcceptanceOutcome::Nothing, |entry| {
            entry.acceptance.published(draft, data_plane, revision)
        })
    }

    /// Records how PingSIX receives the documents of a data plane; `None` without an instance that reports.
    pub fn record_reception(
        &mut self,
        data_plane: &DataPlaneKey,
        reception: Option<Reception>,
    ) -> AcceptanceOutcome {
        let Some(entry) = self.owners.get_mut(&data_plane.owner()) else { return AcceptanceOutcome::Nothing };
        let refused = reception.as_ref().and_then(|reception| reception.refused.as_ref());
        let plane = entry.tried.get(data_plane).or_else(|| entry.planes.get(data_plane));
        let named =
            refused.zip(plane).map(|((_, refused), plane)| named_sources(refused, plane)).unwrap_or_default();
        entry.acceptance.record_reception(data_plane, reception, &named)
    }

    /// Advances the time of acceptance. Returns the owners with another publication.
    pub fn tick(&mut self, now: Instant) -> Vec<(ObjectKey, AcceptanceOutcome)> {
        let owners = self.owners.iter_mut();
        let outcomes = owners.map(|(owner, entry)| (owner.clone(), entry.acceptance.tick(now)));
        outcomes.filter(|(_, outcome)| *outcome != AcceptanceOutcome::Nothing).collect()
    }

    /// The acceptance of an owner's publications by PingSIX.
    pub fn acceptance(&self, owner: &ObjectKey) -> Option<&Acceptance> {
        Some(&self.owners.get(owner)?.acceptance)
    }

    /// Ends the search for errors of an owner, because no instance reports any more. Returns whether a search ended.
    pub(crate) fn give_up(&mut self, owner: &ObjectKey) -> bool {
        self.owners.get_mut(owner).is_some_and(|entry| entry.acceptance.give_up())
    }
}
