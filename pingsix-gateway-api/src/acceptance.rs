//! The acceptance of publications by PingSIX, and the search for the culprit after a refusal.
//!
//! PingSIX refuses a publication as a whole, so a culprit that our own rules miss would block every later change. A
//! search (`search.rs`) publishes the last accepted snapshot with parts of the changes since. Its quarantines go into
//! **quarantine**, which is an input of translation, and all other changes are published. Objects in quarantine are
//! retried after a change, and from time to time while no other change is pending (`retry.rs`).
//!
//! ```text
//! newest snapshot ──► Acceptance::draft ──► translation, bridge, sink ──► revisions ──► Acceptance::published
//!                         ▲ quarantine, parts put back                                        │
//!                         └────────────────── Acceptance::record_reception ◄── status pages
//! ```
//!
//! The last accepted snapshot shares unchanged objects with the newest one. This module does no I/O and reads no clock:
//! `Acceptance::tick` gets the time.

mod backoff;
mod evaluation;
mod groups;
mod named;
mod prior_statuses;
mod probation;
mod quarantines;
mod retention;
mod retry;
mod search;
mod sources;
#[cfg(test)]
mod tests;
mod timeouts;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pingsix_sink::Revision;
use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::{DataPlaneKey, FieldPath, ObjectKey, Origin};

use crate::named::named_values;
use backoff::Backoff;
pub(crate) use named::named_sources;
pub(crate) use prior_statuses::PriorStatuses;
use probation::ProbationRecord;
use quarantines::{Adopted, RemoteHeldBack};
pub(crate) use quarantines::{Culprit, Quarantine, Quarantines};
pub(crate) use retention::may_retain;
use retry::Retry;
use search::{Content, Search};
use timeouts::TrialTimeout;

/// The number of remembered publications without a confirmation by PingSIX.
const MAX_UNCONFIRMED_PUBLICATIONS: usize = 16;

/// The confirmations of a data plane from its status pages. Instances without a page do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// The highest revision that all instances have accepted.
    pub accepted: Option<Revision>,
    /// The refused revision, and the message of the instance.
    pub refused: Option<(Revision, Arc<str>)>,
}

/// The number of a draft. Drafts with the same content have the same number.
pub type DraftNumber = u64;

/// The input of translation and publication.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Draft {
    /// The snapshot, with its quarantine.
    pub(crate) snapshot: OwnerSnapshot,
    /// The number under which revisions are reported.
    pub(crate) number: DraftNumber,
    /// Set for a trial: it changes no report.
    pub(crate) trial: Option<Trial>,
}

/// A trial of a search, or a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Trial {
    /// The cause.
    pub(crate) cause: TrialCause,
    /// The number of the trial in its search, from 1.
    pub(crate) number: u32,
    /// The number of suspected steps.
    pub(crate) suspects: usize,
}

named_values! {
    /// The cause of a trial.
    pub(crate) enum TrialCause {
        /// PingSIX has refused a publication, and the object at fault is not known yet.
        Search = "search",
        /// An object in quarantine is retried, as it is from time to time.
        Retry = "retry",
    }
}

/// The outcome of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptanceOutcome {
    /// No consequence.
    Nothing,
    /// PingSIX has accepted the last publication.
    Accepted,
    /// A trial has ended, or a search has begun: other content is to be published.
    Search,
    /// An object is at fault; all other changes are to be published.
    Found(Origin),
    /// Parts are at fault and stay at their former version; all other changes are to be published.
    HeldBack(BTreeSet<ObjectKey>),
    /// No change is at fault: PingSIX also refuses a snapshot that it accepted before.
    Nowhere,
    /// A former quarantine is resolved.
    Released(Vec<ObjectKey>),
    /// The trial got no confirmation: all changes are published.
    Unanswered,
}

/// The acceptance of one owner's publications by PingSIX.
#[derive(Debug, Default)]
pub struct Acceptance {
    /// The last snapshot that PingSIX accepted.
    accepted: Option<Published>,
    quarantined: BTreeMap<Origin, Quarantined>,
    held_back: Vec<RefusedParts>,
    /// Quarantines of other replicas that count here as well.
    adopted: BTreeMap<Origin, Adopted>,
    /// Objects that other replicas hold back, in the same version as here.
    remote_held_back: Vec<RemoteHeldBack>,
    search: Option<Box<Search>>,
    retry: Option<Box<Retry>>,
    /// Namespaces with recent quarantines.
    records: BTreeMap<Arc<str>, ProbationRecord>,
    /// The held-back objects, each with the message of PingSIX.
    waiting_parts: BTreeMap<ObjectKey, Arc<str>>,
    /// Whether the content from before a retry is being restored.
    is_restoring: bool,
    trial_timeout: Option<TrialTimeout>,
    refused_publication: Option<RefusedPublication>,
    /// The publications, the newest last.
    published: VecDeque<Published>,
    last_number: DraftNumber,
    receptions: BTreeMap<DataPlaneKey, Reception>,
    /// The statuses of an earlier process, until PingSIX accepts a publication.
    prior_statuses: PriorStatuses,
}

/// A refusal, until PingSIX accepts all objects outside of quarantine.
#[derive(Debug, Default)]
struct RefusedPublication {
    /// The last message of PingSIX.
    message: Arc<str>,
    /// The number of searches with a quarantine.
    searches: usize,
    /// The quarantines.
    found: BTreeSet<Origin>,
    /// The refused content without a culprit in the changes.
    given_up: Option<Content>,
    /// The back-off of searches.
    next_search: Backoff,
    /// Whether accepted content may be at fault, too.
    suspects_accepted: bool,
}

/// A source in quarantine.
#[derive(Debug)]
struct Quarantined {
    message: Arc<str>,
    retries: Backoff,
    /// The parts of the source in the faulty version.
    parts: BTreeSet<ObjectKey>,
    version: OwnerSnapshot,
    /// Whether PingSIX has accepted the rest since.
    is_proven: bool,
}

/// Parts that stay at the version that PingSIX accepted, or absent.
#[derive(Debug)]
struct RefusedParts {
    message: Arc<str>,
    retries: Backoff,
    parts: BTreeSet<ObjectKey>,
    /// The faulty version.
    version: OwnerSnapshot,
    /// The published version.
    retained: OwnerSnapshot,
    /// Whether PingSIX has accepted the rest since.
    is_proven: bool,
}

#[derive(Clone, Debug)]
struct Published {
    number: DraftNumber,
    content: Content,
    /// The data planes of the publication.
    planes: BTreeSet<DataPlaneKey>,
    revisions: BTreeMap<DataPlaneKey, Revision>,
}

impl Acceptance {
    /// Whether no draft was made yet.
    pub(crate) const fn is_new(&self) -> bool {
        self.last_number == 0
    }

    /// Sets the statuses of an earlier process. A search suspects their routes first.
    pub(crate) fn set_prior_statuses(&mut self, prior_statuses: PriorStatuses) {
        self.prior_statuses = prior_statuses;
    }

    /// The next publication from the newest snapshot.
    pub(crate) fn draft(&mut self, newest: &OwnerSnapshot) -> Draft {
        let (content, trial) = if let Some(search) = &self.search {
            (search.content(), self.trial())
        } else {
            self.release_changed(newest);
            let wanted = self.wanted(newest);
            match self.retried(newest, &wanted) {
                Some(content) => (content, Some(Trial { cause: TrialCause::Retry, number: 1, suspects: 1 })),
                None => (wanted, None),
            }
        };
        let number = self.assign_number(&content);
        if let Some(retry) = &mut self.retry {
            retry.number = Some(number);
        }
        let Content { mut snapshot, quarantine } = content;
        snapshot.referents_mut().quarantine = quarantine;
        Draft { snapshot, number, trial }
    }

    /// The newest content, with faulty objects held back or in quarantine.
    fn wanted(&mut self, newest: &OwnerSnapshot) -> Content {
        let mut snapshot = newest.clone();
        for RefusedParts { parts, retained, .. } in &self.held_back {
            snapshot.take_parts(retained, parts);
        }
        let adopted = self.adopted.iter().map(|(source, adopted)| (source, &adopted.quarantined));
        let quarantined = self.quarantined.iter().chain(adopted);
        let quarantine =
            quarantined.map(|(source, quarantined)| (source.clone(), quarantined.message.clone())).collect();
        let mut content = Content { snapshot, quarantine };
        self.hold_on_probation(newest, &mut content);
        content
    }

    /// Assigns the number of a draft.
    fn assign_number(&mut self, content: &Content) -> DraftNumber {
        if let Some(last) = self.published.back_mut().filter(|last| last.content.is_same(content)) {
            // The snapshot may be another copy of the same version; the assignment keeps one copy in memory.
            last.content = content.clone();
            let number = last.number;
            if let Some(kept) = self.accepted.as_mut().filter(|kept| kept.number == number) {
                kept.content = content.clone();
            }
            return number;
        }
        self.last_number += 1;
        // Publications without a report are dropped, because memory is bounded.
        let most = if self.receptions.is_empty() { 1 } else { MAX_UNCONFIRMED_PUBLICATIONS };
        let number = self.last_number;
        self.published.push_back(Published {
            number,
            content: content.clone(),
            planes: BTreeSet::new(),
            revisions: BTreeMap::new(),
        });
        let superfluous = self.published.len().saturating_sub(most);
        self.published.drain(..superfluous);
        number
    }

    /// Releases objects that have changed since their quarantine.
    fn release_changed(&mut self, newest: &OwnerSnapshot) {
        let is_same = |version: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>| {
            newest.only(parts).differences(version).is_disjoint(parts)
        };
        self.quarantined.retain(|_, quarantined| is_same(&quarantined.version, &quarantined.parts));
        self.held_back.retain(|refused| is_same(&refused.version, &refused.parts));
        self.adopted
            .retain(|_, Adopted { quarantined, .. }| is_same(&quarantined.version, &quarantined.parts));
    }

    /// Sets the data planes of a draft. Reports count after the draft is published to all of them.
    pub(crate) fn expects(&mut self, number: DraftNumber, planes: impl IntoIterator<Item = DataPlaneKey>) {
        if let Some(published) = self.published.iter_mut().rev().find(|published| published.number == number)
        {
            published.planes = planes.into_iter().collect();
        }
    }

    /// Records the publication of a draft to a data plane.
    pub(crate) fn published(
        &mut self,
        number: DraftNumber,
        data_plane: &DataPlaneKey,
        revision: Revision,
    ) -> AcceptanceOutcome {
        let mut published = self.published.iter_mut().rev();
        if let Some(published) = published.find(|published| published.number == number) {
            published.revisions.insert(data_plane.clone(), revision);
        }
        // The observation may have come before the publication was recorded.
        self.judge(&BTreeSet::new())
    }

    /// Whether the outcome of a draft still matters.
    pub(crate) fn is_current(&self, number: DraftNumber) -> bool {
        self.published.iter().any(|published| published.number == number)
    }

    /// Forgets a data plane that is gone.
    pub(crate) fn forget(&mut self, data_plane: &DataPlaneKey) {
        self.receptions.remove(data_plane);
    }

    /// Records how PingSIX receives the documents of a data plane; `None` without an instance that reports. `named`
    /// are the sources in the message of PingSIX, as far as they are known.
    pub(crate) fn record_reception(
        &mut self,
        data_plane: &DataPlaneKey,
        reception: Option<Reception>,
        named: &BTreeSet<Origin>,
    ) -> AcceptanceOutcome {
        match reception {
            Some(reception) => self.receptions.insert(data_plane.clone(), reception),
            None => self.receptions.remove(data_plane),
        };
        self.judge(named)
    }

    /// The reason for which the publication is incomplete during a search; `None` if only objects in quarantine are
    /// missing.
    pub fn refusal(&self) -> Option<&str> {
        Some(&*self.refused_publication.as_ref()?.message)
    }

    /// The running trial of a search.
    pub(crate) fn trial(&self) -> Option<Trial> {
        let search = self.search.as_ref()?;
        let (number, suspects) = (search.trials(), search.suspects());
        Some(Trial { cause: TrialCause::Search, number, suspects })
    }

    /// The sources in quarantine, with the message of PingSIX.
    pub fn quarantined(&self) -> impl Iterator<Item = (&Origin, &str)> {
        let adopted = self.adopted.iter().map(|(source, adopted)| (source, &adopted.quarantined));
        self.quarantined.iter().chain(adopted).map(|(source, quarantined)| (source, &*quarantined.message))
    }

    /// The objects held back, with the message of PingSIX; those of other replicas are left out.
    pub fn held_back(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.held_back.iter().flat_map(|refused| refused.parts.iter().map(|part| (part, &*refused.message)))
    }

    /// The problems of objects that are held back. Translation reports those in quarantine.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let problem = |(part, message): (&ObjectKey, &str)| Problem {
            object: Arc::new(part.clone()),
            field: FieldPath::new("spec"),
            severity: Severity::Error,
            reason: Reason::Quarantined,
            message: format!(
                "PingSIX refuses the documents of this object. Its previous version stays in force \
                 until the object changes. PingSIX: {message}"
            ),
        };
        self.held_back().chain(self.remote_held_back()).map(problem).chain(self.waiting_problems()).collect()
    }

    /// Ends the search and publishes everything, because no instance reports any more. Returns whether that changes
    /// the publication.
    pub(crate) fn give_up(&mut self) -> bool {
        self.receptions.clear();
        self.refused_publication = None;
        self.published.clear();
        // No instance can refuse, so no search holds up other changes.
        self.records.clear();
        (self.is_restoring, self.trial_timeout) = (false, None);
        let was_tried = self.retry.take().is_some();
        self.search.take().is_some() || was_tried
    }

    /// Whether the publication is a trial, so that instances keep the former documents in force.
    pub(crate) const fn is_retrying(&self) -> bool {
        self.retry.is_some() || self.is_restoring
    }

    /// Whether a search or a retry runs.
    pub(crate) const fn is_busy(&self) -> bool {
        self.search.is_some() || self.retry.is_some()
    }
}
