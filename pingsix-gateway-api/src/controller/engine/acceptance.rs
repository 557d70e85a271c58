//! The acceptance of publications by PingSIX, and the search after a refusal.

use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::Instant;

use super::Engine;
use crate::acceptance::{Acceptance, AcceptanceOutcome, Reception};
use crate::controller::router::PublishScope;
use crate::delivery::status_page::{InstancePages, PageError, StatusPage};

impl Engine {
    /// Records the status pages of a data plane.
    pub(super) fn record_status_pages(&mut self, data_plane: &DataPlaneKey, pages: &InstancePages) {
        let lacks_key = |page: &Result<StatusPage, PageError>| page.as_ref().is_ok_and(StatusPage::lacks_key);
        // PingSIX would refuse every trial in the same way.
        let of_readers;
        let pages = if pages.values().any(lacks_key) && self.is_rotating_keys(&data_plane.owner()) {
            let readers = pages.iter().filter(|(_, page)| !lacks_key(page));
            of_readers = readers.map(|(url, page)| (url.clone(), page.clone())).collect();
            &of_readers
        } else {
            pages
        };
        let reception = self.pages.entry(data_plane.clone()).or_default().read(pages, Instant::now());
        self.record_reception(data_plane, reception);
    }

    /// Ends trials without a confirmation, and begins trials that are due.
    pub(super) fn advance_trials(&mut self, now: Instant) {
        for (owner, outcome) in self.parts.reconciler.tick(now) {
            self.apply_acceptance(&owner, outcome);
        }
    }

    pub(super) fn record_reception(&mut self, data_plane: &DataPlaneKey, reception: Option<Reception>) {
        let outcome = self.parts.reconciler.record_reception(data_plane, reception);
        self.apply_acceptance(&data_plane.owner(), outcome);
    }

    /// Applies the outcome of an observation.
    pub(super) fn apply_acceptance(&mut self, owner: &ObjectKey, outcome: AcceptanceOutcome) {
        let refusal = self.refusal_message(owner).unwrap_or_default();
        match outcome {
            AcceptanceOutcome::Nothing => return,
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
        self.report_quarantines(owner);
        self.update_delivery(owner);
        // The next publication changes; the one in force stays.
        self.push([owner.clone()].into());
    }

    fn refusal_message(&self, owner: &ObjectKey) -> Option<String> {
        Some(self.parts.reconciler.acceptance(owner)?.refusal()?.to_owned())
    }

    /// Updates the obstacle in an owner's delivery.
    pub(super) fn explain_refusal(&mut self, owner: &ObjectKey) {
        let why = self.refusal_message(owner).map(|refusal| {
            let is_searching = self
                .parts
                .reconciler
                .acceptance(owner)
                .is_some_and(|acceptance| acceptance.trial().is_some());
            let search =
                if is_searching { " The controller is searching for the refused object." } else { "" };
            format!("PingSIX refuses the configuration: {}.{search}", refusal.trim_end_matches('.'))
        });
        let acceptance = self.parts.reconciler.acceptance(owner);
        let is_retrying = acceptance.is_some_and(Acceptance::is_retrying);
        for data_plane in self.parts.reconciler.data_planes(owner) {
            self.deliveries.keep(&data_plane, is_retrying);
            self.deliveries.withhold(&data_plane, why.clone());
        }
    }

    /// A replica that does not lead publishes no trials to shared targets. It still searches for refusals by its own
    /// readers, because no other replica observes them.
    pub(super) fn stop_searches(&mut self) {
        let is_led = |data_plane: &DataPlaneKey| {
            self.scope(data_plane).is_some_and(|scope| match self.parts.sinks.publish_scope(&scope) {
                PublishScope::All => false,
                PublishScope::Part => !self.parts.sinks.targets(&scope).contains(&0),
                PublishScope::Nothing => true,
            })
        };
        let led: Vec<DataPlaneKey> = self.pages.keys().filter(|plane| is_led(plane)).cloned().collect();
        for data_plane in led {
            self.pages.remove(&data_plane);
            let owner = data_plane.owner();
            if self.parts.reconciler.give_up(&owner) {
                tracing::info!(%owner, "another replica became leader during a search; the search ends");
                self.push([owner].into());
            }
        }
    }
}
