//! The acceptance of publications by PingSIX, and the search for the fault after a refusal.
//!
//! PingSIX refuses a publication as a whole, so a fault that our own rules miss would block every later change. A
//! search (`search.rs`) publishes the last accepted snapshot with parts of the changes since. Its findings go into
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
//! [`Acceptance::beat`] gets the time.

mod backoff;
mod findings;
mod groups;
mod named;
mod parts;
mod probation;
mod recollection;
mod retention;
mod retry;
mod search;
mod sources;
#[cfg(test)]
mod tests;
mod verdicts;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pingsix_sink::Revision;
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::{DataPlaneKey, FieldPath, ObjectKey, Origin};

use crate::world::OwnerSnapshot;
use backoff::Backoff;
use findings::{Adopted, RemoteHeldBack};
pub use findings::{Culprit, Finding, Findings};
pub(crate) use named::named_sources;
pub(crate) use parts::put;
use parts::{differences, only};
use probation::Record;
pub use recollection::Recollection;
pub(crate) use retention::may_retain;
use retry::Retry;
use search::{Clues, Content, Doubt, Outcome, Search};
use sources::{parts_of, sources};
use waiting::Waiting;

/// The number of remembered publications without a confirmation by PingSIX.
const PENDING: usize = 16;

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
pub struct Draft {
    /// The snapshot, with its quarantine.
    pub snapshot: OwnerSnapshot,
    /// The number under which revisions are reported.
    pub number: DraftNumber,
    /// Set for a trial: it changes no report.
    pub trial: Option<Trial>,
}

/// A trial of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// The number of the trial in its search, from 1.
    pub number: u32,
    /// The number of suspected steps.
    pub suspects: usize,
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
    /// A former finding is resolved.
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
    /// Findings of other replicas that are in quarantine here as well.
    adopted: BTreeMap<Origin, Adopted>,
    /// Objects that other replicas hold back, in the same version as here.
    remote_held_back: Vec<RemoteHeldBack>,
    search: Option<Box<Search>>,
    retry: Option<Box<Retry>>,
    /// Namespaces with recent findings.
    records: BTreeMap<Arc<str>, Record>,
    /// The held-back objects, each with the message of PingSIX.
    waiting_parts: BTreeMap<ObjectKey, Arc<str>>,
    /// Whether the content from before a retry is being restored.
    is_restoring: bool,
    waiting: Option<Waiting>,
    fault: Option<Fault>,
    /// The publications, the newest last.
    published: VecDeque<Published>,
    last_number: DraftNumber,
    receptions: BTreeMap<DataPlaneKey, Reception>,
    /// The statuses of an earlier process, until PingSIX accepts a publication.
    recollection: Recollection,
}

/// A refusal, until PingSIX accepts all objects outside of quarantine.
#[derive(Debug, Default)]
struct Fault {
    /// The last message of PingSIX.
    message: Arc<str>,
    /// The number of searches with a finding.
    searches: usize,
    /// The findings.
    found: BTreeSet<Origin>,
    /// The refused content without a fault in the changes.
    given_up: Option<Content>,
    /// The time of the next search.
    again: Backoff,
    /// Whether accepted content may be involved: of other objects, or of an earlier PingSIX.
    doubts_everything: bool,
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
    pub const fn is_new(&self) -> bool {
        self.last_number == 0
    }

    /// Sets the findings of an earlier process, which are the first suspects of a search.
    pub fn recall(&mut self, recollection: Recollection) {
        self.recollection = recollection;
    }

    /// The next publication from the newest snapshot.
    pub fn draft(&mut self, newest: &OwnerSnapshot) -> Draft {
        let (content, trial) = if let Some(search) = &self.search {
            let trial = Trial { number: search.trials(), suspects: search.suspects() };
            (search.content(), Some(trial))
        } else {
            self.release_what_changed(newest);
            let wanted = self.wanted(newest);
            match self.retried(newest, &wanted) {
                Some(content) => (content, Some(Trial { number: 1, suspects: 1 })),
                None => (wanted, None),
            }
        };
        let number = self.note(&content);
        if let Some(retry) = &mut self.retry {
            retry.number = Some(number);
        }
        let Content { mut snapshot, quarantine } = content;
        match &mut snapshot {
            OwnerSnapshot::Gateway(snapshot) => snapshot.referents.quarantine = quarantine,
            OwnerSnapshot::Ingress(snapshot) => snapshot.referents.quarantine = quarantine,
        }
        Draft { snapshot, number, trial }
    }

    /// The newest content, with faulty objects held back or in quarantine.
    fn wanted(&mut self, newest: &OwnerSnapshot) -> Content {
        let mut snapshot = newest.clone();
        for RefusedParts { parts, retained, .. } in &self.held_back {
            put(&mut snapshot, retained, parts);
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
    fn note(&mut self, content: &Content) -> DraftNumber {
        if let Some(last) = self.published.back_mut().filter(|last| last.content.is_same(content)) {
            // The snapshot may be a new reading of the same version; the assignment keeps one copy in memory.
            last.content = content.clone();
            let number = last.number;
            if let Some(kept) = self.accepted.as_mut().filter(|kept| kept.number == number) {
                kept.content = content.clone();
            }
            return number;
        }
        self.last_number += 1;
        // Publications without a report are dropped, because memory is bounded.
        let most = if self.receptions.is_empty() { 1 } else { PENDING };
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

    /// Objects that have changed since their finding are released.
    fn release_what_changed(&mut self, newest: &OwnerSnapshot) {
        let is_same = |version: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>| {
            differences(&only(newest, parts), version).is_disjoint(parts)
        };
        self.quarantined.retain(|_, quarantined| is_same(&quarantined.version, &quarantined.parts));
        self.held_back.retain(|refused| is_same(&refused.version, &refused.parts));
        self.adopted
            .retain(|_, Adopted { quarantined, .. }| is_same(&quarantined.version, &quarantined.parts));
    }

    /// A draft will be published to these data planes. Reports before the publication of all of them do not count.
    pub fn expects(&mut self, number: DraftNumber, planes: impl IntoIterator<Item = DataPlaneKey>) {
        if let Some(published) = self.published.iter_mut().rev().find(|published| published.number == number)
        {
            published.planes = planes.into_iter().collect();
        }
    }

    /// A draft was published to a data plane.
    pub fn published(
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
    pub(crate) fn listens_for(&self, number: DraftNumber) -> bool {
        self.published.iter().any(|published| published.number == number)
    }

    /// A data plane is gone.
    pub fn forget(&mut self, data_plane: &DataPlaneKey) {
        self.receptions.remove(data_plane);
    }

    /// Records how PingSIX receives the documents of a data plane; `None` without an instance that reports. `named`
    /// are the sources in the message of PingSIX, as far as they are known.
    pub fn record_reception(
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
    pub fn fault(&self) -> Option<&str> {
        Some(&*self.fault.as_ref()?.message)
    }

    /// The running trial.
    pub fn trial(&self) -> Option<Trial> {
        let search = self.search.as_ref()?;
        Some(Trial { number: search.trials(), suspects: search.suspects() })
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
    pub fn problems(&self) -> Vec<Problem> {
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
    pub fn give_up(&mut self) -> bool {
        self.receptions.clear();
        self.fault = None;
        self.published.clear();
        // No instance can refuse, so no search holds up other changes.
        self.records.clear();
        (self.is_restoring, self.waiting) = (false, None);
        let was_tried = self.retry.take().is_some();
        self.search.take().is_some() || was_tried
    }

    /// Whether the publication is a trial, so that instances keep the former documents in force.
    pub const fn is_retrying(&self) -> bool {
        self.retry.is_some() || self.is_restoring
    }

    /// Whether a search or a retry runs.
    pub const fn is_busy(&self) -> bool {
        self.search.is_some() || self.retry.is_some()
    }

    /// Evaluates the reports on the publications.
    fn judge(&mut self, named: &BTreeSet<Origin>) -> AcceptanceOutcome {
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
                    if let Some(fault) = &mut self.fault {
                        fault.message = message;
                    }
                    search.refused(named)
                }
            };
            self.published.clear();
            return self.take(outcome);
        }
        let is_accepted = |published: &Published| verdict(&self.receptions, published) == Verdict::Accepted;
        if let Some(taken) = self.published.iter().rposition(is_accepted) {
            self.published.drain(..taken);
            self.accepted = self.published.front().cloned();
            self.recollection = Recollection::default();
        }
        let Some(last) = self.published.back() else { return AcceptanceOutcome::Nothing };
        match verdict(&self.receptions, last) {
            Verdict::Pending => AcceptanceOutcome::Nothing,
            Verdict::Accepted => {
                self.prove();
                let was_restoring = std::mem::take(&mut self.is_restoring);
                if self.fault.take().is_some() || was_restoring {
                    AcceptanceOutcome::Accepted
                } else {
                    AcceptanceOutcome::Nothing
                }
            }
            Verdict::Refused(message) => self.refused(message, named),
        }
    }

    /// Begins the search for the fault.
    fn refused(&mut self, message: Arc<str>, named: &BTreeSet<Origin>) -> AcceptanceOutcome {
        let Some(goal) = self.published.back().map(|last| last.content.clone()) else {
            return AcceptanceOutcome::Nothing;
        };
        self.is_restoring = false;
        let fault = self.fault.get_or_insert_with(Fault::default);
        fault.message = message;
        if fault.given_up.as_ref().is_some_and(|given_up| given_up.is_same(&goal)) {
            return AcceptanceOutcome::Nothing;
        }
        let mut named = named.clone();
        // PingSIX repeats the same complaint: the former finding may have a fault that quarantine does not remove.
        let is_same = |source: &&Origin| {
            self.quarantined.get(*source).is_some_and(|quarantined| quarantined.message == fault.message)
        };
        named.extend(fault.found.iter().filter(is_same).cloned());
        let unjudged = if self.accepted.is_some() {
            BTreeSet::new()
        } else {
            let of = |parts: &BTreeSet<ObjectKey>| -> BTreeSet<Origin> {
                parts.iter().flat_map(|part| sources(&goal.snapshot, part)).collect()
            };
            named.extend(of(&self.recollection.refused));
            of(&self.recollection.unjudged)
        };
        let doubt = if self.accepted.is_some() && fault.doubts_everything {
            Doubt::Everything
        } else if fault.given_up.is_some() || fault.doubts_everything || fault.searches > 0 {
            // PingSIX may refuse all publications at the moment, and the finding may be incomplete.
            Doubt::Base
        } else {
            Doubt::Nothing
        };
        fault.given_up = None;
        let clues = Clues {
            accepted: self.accepted.as_ref().map(|accepted| &accepted.content),
            named,
            unjudged,
            doubt,
            unproven: fault.found.clone(),
        };
        let (search, outcome) = Search::new(goal, clues);
        self.search = Some(Box::new(search));
        self.published.clear();
        self.take(outcome)
    }

    /// Applies the outcome of a search.
    fn take(&mut self, outcome: Outcome) -> AcceptanceOutcome {
        if outcome == Outcome::Trial {
            return AcceptanceOutcome::Search;
        }
        let (Some(search), Some(fault)) = (self.search.take(), &mut self.fault) else {
            return AcceptanceOutcome::Nothing;
        };
        for source in search.disproved() {
            self.quarantined.remove(source);
        }
        fault.searches += 1;
        let message = fault.message.clone();
        let retries = Backoff::default();
        match outcome {
            Outcome::Trial => AcceptanceOutcome::Search,
            Outcome::Source(source) => {
                let parts = parts_of(&source);
                let version = only(&search.goal().snapshot, &parts);
                self.adopted.remove(&source);
                fault.found.insert(source.clone());
                self.charge(&parts, &message, search.before());
                let quarantined = Quarantined { message, retries, parts, version, is_proven: false };
                self.quarantined.insert(source.clone(), quarantined);
                AcceptanceOutcome::Found(source)
            }
            Outcome::Parts(parts) => {
                self.charge(&parts, &message, search.before());
                self.quarantined.retain(|_, quarantined| quarantined.parts.is_disjoint(&parts));
                self.adopted.retain(|_, adopted| adopted.quarantined.parts.is_disjoint(&parts));
                self.held_back.retain(|refused| refused.parts.is_disjoint(&parts));
                let version = only(&search.goal().snapshot, &parts);
                let retained = only(&search.before().snapshot, &parts);
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
            Outcome::Taken => {
                self.fault = None;
                AcceptanceOutcome::Accepted
            }
            Outcome::Nowhere => {
                fault.doubts_everything = false;
                fault.given_up = Some(search.goal().clone());
                AcceptanceOutcome::Nowhere
            }
        }
    }
}

/// The verdict on a publication.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pending,
    Accepted,
    Refused(Arc<str>),
}

/// Refused if any data plane refuses; accepted if all data planes with a report accept.
fn verdict(receptions: &BTreeMap<DataPlaneKey, Reception>, published: &Published) -> Verdict {
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
