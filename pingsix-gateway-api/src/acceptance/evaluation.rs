//! The evaluation of reports: each report accepts or refuses a publication, and a refusal begins or continues a search.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::{DataPlaneKey, ObjectKey, Origin};

use super::backoff::Backoff;
use super::prior_statuses::PriorStatuses;
use super::search::{BaseCheck, Evidence, Search, SearchOutcome};
use super::sources::{parts_of, sources};
use super::{
    Acceptance, AcceptanceOutcome, Published, Quarantined, Reception, RefusedParts, RefusedPublication,
};

impl Acceptance {
    /// Evaluates the reports on the publications.
    pub(super) fn judge(&mut self, named: &BTreeSet<Origin>) -> AcceptanceOutcome {
        if self.retry.is_some() {
            return self.judge_retry();
        }
        if let Some(search) = &mut self.search {
            let Some(trial) = self.published.back() else { return AcceptanceOutcome::Nothing };
            let outcome = match verdict(&self.receptions, trial) {
                Verdict::Pending => return AcceptanceOutcome::Nothing,
                Verdict::Accepted => {
                    let outcome = search.accepted(named);
                    if let Some(taken) = self.published.pop_back() {
                        self.accepted = Some(taken);
                    }
                    outcome
                }
                Verdict::Refused(message) => {
                    if let Some(publication) = &mut self.refused_publication {
                        publication.message = message;
                    }
                    search.refused(named)
                }
            };
            self.published.clear();
            return self.apply(outcome);
        }
        let is_accepted = |published: &Published| verdict(&self.receptions, published) == Verdict::Accepted;
        if let Some(taken) = self.published.iter().rposition(is_accepted) {
            self.published.drain(..taken);
            self.accepted = self.published.front().cloned();
            self.prior_statuses = PriorStatuses::default();
        }
        let Some(last) = self.published.back() else { return AcceptanceOutcome::Nothing };
        match verdict(&self.receptions, last) {
            Verdict::Pending => AcceptanceOutcome::Nothing,
            Verdict::Accepted => {
                self.prove();
                let was_restoring = std::mem::take(&mut self.is_restoring);
                if self.refused_publication.take().is_some() || was_restoring {
                    AcceptanceOutcome::Accepted
                } else {
                    AcceptanceOutcome::Nothing
                }
            }
            Verdict::Refused(message) => self.refused(message, named),
        }
    }

    /// Begins the search for the culprit.
    fn refused(&mut self, message: Arc<str>, named: &BTreeSet<Origin>) -> AcceptanceOutcome {
        let Some(goal) = self.published.back().map(|last| last.content.clone()) else {
            return AcceptanceOutcome::Nothing;
        };
        self.is_restoring = false;
        let publication = self.refused_publication.get_or_insert_with(RefusedPublication::default);
        publication.message = message;
        if publication.given_up.as_ref().is_some_and(|given_up| given_up.is_same(&goal)) {
            return AcceptanceOutcome::Nothing;
        }
        let mut named = named.clone();
        // PingSIX repeats the same complaint: the former quarantine may have a problem that quarantine does not remove.
        let is_same = |source: &&Origin| {
            self.quarantined
                .get(*source)
                .is_some_and(|quarantined| quarantined.message == publication.message)
        };
        named.extend(publication.found.iter().filter(is_same).cloned());
        let unjudged = if self.accepted.is_some() {
            BTreeSet::new()
        } else {
            let of = |parts: &BTreeSet<ObjectKey>| -> BTreeSet<Origin> {
                parts.iter().flat_map(|part| sources(&goal.snapshot, part)).collect()
            };
            named.extend(of(&self.prior_statuses.refused));
            of(&self.prior_statuses.unjudged)
        };
        let base_check = if self.accepted.is_some() && publication.suspects_accepted {
            BaseCheck::ConfirmOrRestart
        } else if publication.given_up.is_some() || publication.suspects_accepted || publication.searches > 0
        {
            // PingSIX may refuse all publications at the moment, and the quarantine may be incomplete.
            BaseCheck::Confirm
        } else {
            BaseCheck::Skip
        };
        publication.given_up = None;
        let evidence = Evidence {
            accepted: self.accepted.as_ref().map(|accepted| &accepted.content),
            named,
            unjudged,
            base_check,
            unproven: publication.found.clone(),
        };
        let (search, outcome) = Search::new(goal, evidence);
        self.search = Some(Box::new(search));
        self.published.clear();
        self.apply(outcome)
    }

    /// Applies the outcome of a search.
    fn apply(&mut self, outcome: SearchOutcome) -> AcceptanceOutcome {
        if outcome == SearchOutcome::Trial {
            return AcceptanceOutcome::Search;
        }
        let (Some(search), Some(publication)) = (self.search.take(), &mut self.refused_publication) else {
            return AcceptanceOutcome::Nothing;
        };
        for source in search.disproved() {
            self.quarantined.remove(source);
        }
        publication.searches += 1;
        let message = publication.message.clone();
        let retries = Backoff::default();
        match outcome {
            SearchOutcome::Trial => AcceptanceOutcome::Search,
            SearchOutcome::Source(source) => {
                let parts = parts_of(&source);
                let version = search.goal().snapshot.only(&parts);
                self.adopted.remove(&source);
                publication.found.insert(source.clone());
                self.charge(&parts, &message, search.before());
                let quarantined = Quarantined { message, retries, parts, version, is_proven: false };
                self.quarantined.insert(source.clone(), quarantined);
                AcceptanceOutcome::Found(source)
            }
            SearchOutcome::Parts(parts) => {
                self.charge(&parts, &message, search.before());
                self.quarantined.retain(|_, quarantined| quarantined.parts.is_disjoint(&parts));
                self.adopted.retain(|_, adopted| adopted.quarantined.parts.is_disjoint(&parts));
                self.held_back.retain(|refused| refused.parts.is_disjoint(&parts));
                let version = search.goal().snapshot.only(&parts);
                let retained = search.before().snapshot.only(&parts);
                let is_proven = false;
                self.held_back.push(RefusedParts {
                    message,
                    retries,
                    parts: parts.clone(),
                    version,
                    retained,
                    is_proven,
                });
                AcceptanceOutcome::HeldBack(parts)
            }
            SearchOutcome::Accepted => {
                self.refused_publication = None;
                AcceptanceOutcome::Accepted
            }
            SearchOutcome::NoCulprit => {
                publication.suspects_accepted = false;
                publication.given_up = Some(search.goal().clone());
                AcceptanceOutcome::Nowhere
            }
        }
    }
}

/// The verdict on a publication.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pending,
    Accepted,
    Refused(Arc<str>),
}

/// Refused if any data plane refuses; accepted if all data planes with a report accept.
pub(super) fn verdict(receptions: &BTreeMap<DataPlaneKey, Reception>, published: &Published) -> Verdict {
    let mut verdict = Verdict::Pending;
    let mut is_pending = !published.planes.iter().all(|plane| published.revisions.contains_key(plane));
    for (data_plane, revision) in &published.revisions {
        let Some(Reception { accepted, refused }) = receptions.get(data_plane) else { continue };
        if accepted.is_some_and(|accepted| accepted >= *revision) {
            verdict = Verdict::Accepted;
        } else if let Some((_, message)) = refused.as_ref().filter(|(at, _)| at >= revision) {
            return Verdict::Refused(message.clone());
        } else {
            is_pending = true;
        }
    }
    if is_pending { Verdict::Pending } else { verdict }
}
