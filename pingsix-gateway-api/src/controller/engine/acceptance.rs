//! The acceptance of publications by PingSIX, and the search after a refusal.

use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::Instant;

use super::shared::Shared;
use super::{Message, Messages};
use crate::acceptance::{Acceptance, AcceptanceOutcome, Reception};

impl Shared {
    /// Ends trials without a confirmation, and begins trials that are due.
    pub(super) fn advance_trials(&mut self, now: Instant) -> Messages {
        let outcomes = self.reconciler.tick(now);
        outcomes.into_iter().flat_map(|(owner, outcome)| self.apply_acceptance(&owner, outcome)).collect()
    }

    pub(super) fn record_reception(
        &mut self,
        data_plane: &DataPlaneKey,
        reception: Option<Reception>,
    ) -> Messages {
        let outcome = self.reconciler.record_reception(data_plane, reception);
        self.apply_acceptance(&data_plane.owner(), outcome)
    }

    /// Applies the outcome of an observation.
    pub(super) fn apply_acceptance(&mut self, owner: &ObjectKey, outcome: AcceptanceOutcome) -> Messages {
        let refusal = self.refusal_message(owner).unwrap_or_default();
        match outcome {
            AcceptanceOutcome::Nothing => return Messages::new(),
            AcceptanceOutcome::Accepted => {
                tracing::info!(%owner, "PingSIX accepts all objects outside of quarantine");
            }
            AcceptanceOutcome::Search => {
                tracing::debug!(%owner, refusal, "PingSIX has accepted or refused a trial");
            }
            AcceptanceOutcome::Found(source) => {
                let (object, field) = (&source.object, source.field());
                tracing::warn!(%owner, %object, %field, refusal, "PingSIX refuses the documents of a rule; the rule is in quarantine now");
            }
            AcceptanceOutcome::HeldBack(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                tracing::warn!(%owner, ?parts, refusal, "PingSIX refuses the documents of objects; their former version stays in force");
            }
            AcceptanceOutcome::Released(objects) => {
                let objects: Vec<String> = objects.iter().map(ToString::to_string).collect();
                tracing::info!(%owner, ?objects, "PingSIX accepts unchanged objects that it refused before");
            }
            AcceptanceOutcome::Unanswered => {
                tracing::info!(%owner, "no instance confirms the trial; publishing all changes");
            }
            AcceptanceOutcome::Nowhere => {
                tracing::error!(%owner, refusal, "PingSIX refuses every publication, also documents that it accepted before");
            }
        }
        self.explain_refusal(owner);
        vec![Message::AcceptanceChanged(owner.clone())]
    }

    fn refusal_message(&self, owner: &ObjectKey) -> Option<String> {
        Some(self.reconciler.acceptance(owner)?.refusal()?.to_owned())
    }

    /// Updates the obstacle in an owner's delivery.
    pub(super) fn explain_refusal(&mut self, owner: &ObjectKey) {
        let why = self.refusal_message(owner).map(|refusal| {
            let acceptance = self.reconciler.acceptance(owner);
            let is_searching = acceptance.is_some_and(|acceptance| acceptance.trial().is_some());
            let search =
                if is_searching { " The controller is searching for the refused object." } else { "" };
            format!("PingSIX refuses the configuration: {}.{search}", refusal.trim_end_matches('.'))
        });
        let acceptance = self.reconciler.acceptance(owner);
        let is_retrying = acceptance.is_some_and(Acceptance::is_retrying);
        for data_plane in self.reconciler.data_planes(owner) {
            self.deliveries.keep(&data_plane, is_retrying);
            self.deliveries.withhold(&data_plane, why.clone());
        }
    }
}
