//! What PingSIX makes of publications: which of them it took, and what is at fault when it takes one no more.
//!
//! PingSIX refuses a publication as a whole, so whatever our own rules let pass by mistake would keep every later change
//! from everybody. When that happens, the fault is searched for (`search.rs`) by publishing what PingSIX took last together
//! with parts of what has changed since; what is found is put into **quarantine**, which is an input of translation, and
//! everything else is published. Whatever is in quarantine is tried again when it changes, and once in a while when all is
//! quiet (`retry.rs`).
//!
//! ```text
//! newest snapshot ──► Acceptance::draft ──► translation, bridge, sink ──► revisions ──► Acceptance::published
//!                         ▲ quarantine, parts put back                                        │
//!                         └───────────────────────────── Acceptance::hears ◄── status pages
//! ```
//!
//! What PingSIX took last is kept as a snapshot, which shares with the newest one whatever has not changed since. Nothing
//! here waits, reads a clock or talks to anybody: [`Acceptance::beat`] is told the time.

mod backoff;
mod findings;
mod groups;
mod named;
mod parts;
mod probation;
mod recollection;
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
use findings::{Adopted, ToldBack};
pub use findings::{Culprit, Finding, Findings};
pub(crate) use named::named_sources;
pub(crate) use parts::put;
use parts::{differences, only};
use probation::Record;
pub use recollection::Recollection;
use retry::Retry;
use search::{Clues, Content, Doubt, Outcome, Search};
use sources::{parts_of, sources};
use waiting::Waiting;

/// How many publications are remembered of which it is not known whether PingSIX has taken them.
const PENDING: usize = 16;

/// What the status pages of a data plane say of what it is given. Of an instance without a page nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Everything up to this revision has been taken, by every instance there is.
    pub accepted: Option<Revision>,
    /// What an instance was given at this revision was refused, and what it says about it.
    pub refused: Option<(Revision, Arc<str>)>,
}

/// A number of what was drafted: drafts with the same content have the same.
pub type DraftNumber = u64;

/// What is to be translated and published.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Draft {
    /// The snapshot, with its quarantine.
    pub snapshot: OwnerSnapshot,
    /// To be told which revisions were made of it.
    pub number: DraftNumber,
    /// Set for a trial: statuses are not made of it.
    pub trial: Option<Trial>,
}

/// A trial of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// Which one of this search, from 1.
    pub number: u32,
    /// How many steps are still suspected.
    pub suspects: usize,
}

/// What was heard, as far as it makes a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// Nothing of interest.
    Nothing,
    /// What was published last has been taken.
    Accepted,
    /// A trial was taken or refused, or a search has begun: something else is to be published.
    Search,
    /// This is at fault, and everything else is to be published.
    Found(Origin),
    /// These parts are at fault, and are held back as they were before; everything else is to be published.
    HeldBack(BTreeSet<ObjectKey>),
    /// Nothing that has changed is at fault: PingSIX refuses also what it took before.
    Nowhere,
    /// This was at fault, and is not any more.
    Released(Vec<ObjectKey>),
    /// Nobody says what becomes of a trial: everything is to be published.
    Unanswered,
}

/// What PingSIX makes of the publications of one owner.
#[derive(Debug, Default)]
pub struct Acceptance {
    /// What PingSIX took last.
    accepted: Option<Published>,
    quarantined: BTreeMap<Origin, Quarantined>,
    held_back: Vec<RefusedParts>,
    /// What other replicas have found, and is in quarantine here as well.
    adopted: BTreeMap<Origin, Adopted>,
    /// What other replicas hold back, of what is here as it is there.
    told_back: Vec<ToldBack>,
    search: Option<Box<Search>>,
    retry: Option<Box<Retry>>,
    /// Namespaces whose objects were found to be at fault lately.
    records: BTreeMap<Arc<str>, Record>,
    /// The objects that wait, each with what PingSIX said of it.
    waiting_parts: BTreeMap<ObjectKey, Arc<str>>,
    /// Whether what was there before a retry is being put back.
    is_restoring: bool,
    waiting: Option<Waiting>,
    fault: Option<Fault>,
    /// What was published, the newest last.
    published: VecDeque<Published>,
    last_number: DraftNumber,
    heard: BTreeMap<DataPlaneKey, Reception>,
    /// What whoever published before has left, until PingSIX takes something.
    recollection: Recollection,
}

/// A refusal, until PingSIX takes everything but what is at fault.
#[derive(Debug, Default)]
struct Fault {
    /// What PingSIX said last.
    said: Arc<str>,
    /// How many searches have found something.
    searches: usize,
    /// What they have found.
    found: BTreeSet<Origin>,
    /// What is refused, though nothing that has changed is at fault.
    given_up: Option<Content>,
    /// When that is looked into once more.
    again: Backoff,
    /// Whether it may have to do with what was certainly taken: by others, or by an earlier PingSIX.
    doubts_everything: bool,
}

/// A source in quarantine.
#[derive(Debug)]
struct Quarantined {
    said: Arc<str>,
    retries: Backoff,
    /// The parts it is made of, as they are when it is at fault.
    parts: BTreeSet<ObjectKey>,
    version: OwnerSnapshot,
    /// Whether PingSIX has taken everything else since.
    is_proven: bool,
}

/// Parts that stay as they were when PingSIX took them, or absent.
#[derive(Debug)]
struct RefusedParts {
    said: Arc<str>,
    retries: Backoff,
    parts: BTreeSet<ObjectKey>,
    /// As they are when they are at fault.
    version: OwnerSnapshot,
    /// As they are held.
    held: OwnerSnapshot,
    /// Whether PingSIX has taken everything else since.
    is_proven: bool,
}

#[derive(Clone, Debug)]
struct Published {
    number: DraftNumber,
    content: Content,
    /// Data planes that it is to be published to.
    planes: BTreeSet<DataPlaneKey>,
    revisions: BTreeMap<DataPlaneKey, Revision>,
}

impl Acceptance {
    /// Whether nothing was drafted yet.
    pub const fn is_new(&self) -> bool {
        self.last_number == 0
    }

    /// Takes in what is left of whoever published before: where to look first, if PingSIX refuses what is published now.
    pub fn recall(&mut self, recollection: Recollection) {
        self.recollection = recollection;
    }

    /// What is to be published, of what there is now.
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

    /// What is there, with what is at fault held back and in quarantine.
    fn wanted(&mut self, newest: &OwnerSnapshot) -> Content {
        let mut snapshot = newest.clone();
        for RefusedParts { parts, held, .. } in &self.held_back {
            put(&mut snapshot, held, parts);
        }
        let adopted = self.adopted.iter().map(|(source, adopted)| (source, &adopted.held));
        let quarantined = self.quarantined.iter().chain(adopted);
        let quarantine = quarantined.map(|(source, held)| (source.clone(), held.said.clone())).collect();
        let mut content = Content { snapshot, quarantine };
        self.hold_on_probation(newest, &mut content);
        content
    }

    /// Numbers what is to be published.
    fn note(&mut self, content: &Content) -> DraftNumber {
        if let Some(last) = self.published.back_mut().filter(|last| last.content.is_same(content)) {
            // It may have been read anew; that keeps one version in memory instead of two.
            last.content = content.clone();
            let number = last.number;
            if let Some(kept) = self.accepted.as_mut().filter(|kept| kept.number == number) {
                kept.content = content.clone();
            }
            return number;
        }
        self.last_number += 1;
        // Of what nobody has heard of, nothing will be heard; and not everything can be remembered.
        let most = if self.heard.is_empty() { 1 } else { PENDING };
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

    /// What has changed since it was found to be at fault is as good as anything else.
    fn release_what_changed(&mut self, newest: &OwnerSnapshot) {
        let is_same = |version: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>| {
            differences(&only(newest, parts), version).is_disjoint(parts)
        };
        self.quarantined.retain(|_, held| is_same(&held.version, &held.parts));
        self.held_back.retain(|held| is_same(&held.version, &held.parts));
        self.adopted.retain(|_, Adopted { held, .. }| is_same(&held.version, &held.parts));
    }

    /// A draft will be published to these data planes: nothing is said of it before all of them have it.
    pub fn expects(&mut self, number: DraftNumber, planes: impl IntoIterator<Item = DataPlaneKey>) {
        if let Some(published) = self.published.iter_mut().rev().find(|published| published.number == number)
        {
            published.planes = planes.into_iter().collect();
        }
    }

    /// A draft was published to a data plane.
    pub fn published(&mut self, number: DraftNumber, data_plane: &DataPlaneKey, revision: Revision) -> Heard {
        let mut published = self.published.iter_mut().rev();
        if let Some(published) = published.find(|published| published.number == number) {
            published.revisions.insert(data_plane.clone(), revision);
        }
        // What was heard may have come before that.
        self.judge(&BTreeSet::new())
    }

    /// Whether it is still of interest what becomes of a draft.
    pub(crate) fn listens_for(&self, number: DraftNumber) -> bool {
        self.published.iter().any(|published| published.number == number)
    }

    /// A data plane is gone.
    pub fn forget(&mut self, data_plane: &DataPlaneKey) {
        self.heard.remove(data_plane);
    }

    /// Takes in how PingSIX takes what a data plane is given; nothing when there is no instance, or none that says so.
    /// `named` are the sources of what PingSIX complains about, as far as that is known.
    pub fn hears(
        &mut self,
        data_plane: &DataPlaneKey,
        reception: Option<Reception>,
        named: &BTreeSet<Origin>,
    ) -> Heard {
        match reception {
            Some(reception) => self.heard.insert(data_plane.clone(), reception),
            None => self.heard.remove(data_plane),
        };
        self.judge(named)
    }

    /// Why not everything is in force, while that is being mended; `None` when it is, but for what is in quarantine.
    pub fn fault(&self) -> Option<&str> {
        Some(&*self.fault.as_ref()?.said)
    }

    /// The trial that is being made.
    pub fn trial(&self) -> Option<Trial> {
        let search = self.search.as_ref()?;
        Some(Trial { number: search.trials(), suspects: search.suspects() })
    }

    /// What is in quarantine, with what PingSIX said.
    pub fn quarantined(&self) -> impl Iterator<Item = (&Origin, &str)> {
        let adopted = self.adopted.iter().map(|(source, adopted)| (source, &adopted.held));
        self.quarantined.iter().chain(adopted).map(|(source, held)| (source, &*held.said))
    }

    /// What stays as it was, with what PingSIX said; what other replicas hold back is not among it.
    pub fn held_back(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.held_back.iter().flat_map(|held| held.parts.iter().map(|part| (part, &*held.said)))
    }

    /// What there is to tell about what is held back; of what is in quarantine, translation tells.
    pub fn problems(&self) -> Vec<Problem> {
        let problem = |(part, said): (&ObjectKey, &str)| Problem {
            object: Arc::new(part.clone()),
            field: FieldPath::new("spec"),
            severity: Severity::Error,
            reason: Reason::Quarantined,
            message: format!(
                "PingSIX refuses what becomes of it, so it counts as it was before, until it changes: {said}"
            ),
        };
        self.held_back().chain(self.told_back()).map(problem).chain(self.waiting_problems()).collect()
    }

    /// Gives up what is being found out, and publishes what there is: nobody listens to PingSIX any more. Returns whether
    /// that makes a difference.
    pub fn give_up(&mut self) -> bool {
        self.heard.clear();
        self.fault = None;
        self.published.clear();
        // Without anybody who refuses there are no searches that others would wait for.
        self.records.clear();
        (self.is_restoring, self.waiting) = (false, None);
        let was_tried = self.retry.take().is_some();
        self.search.take().is_some() || was_tried
    }

    /// Whether what is published is not what is told, for a moment in which something is tried again. What the instances have
    /// in force is what they had.
    pub const fn is_retrying(&self) -> bool {
        self.retry.is_some() || self.is_restoring
    }

    /// Whether something is being found out.
    pub const fn is_busy(&self) -> bool {
        self.search.is_some() || self.retry.is_some()
    }

    /// Looks what has become of what was published.
    fn judge(&mut self, named: &BTreeSet<Origin>) -> Heard {
        if self.retry.is_some() {
            return self.judge_retry();
        }
        if let Some(search) = &mut self.search {
            let Some(trial) = self.published.back() else { return Heard::Nothing };
            let outcome = match verdict(&self.heard, trial) {
                Verdict::Pending => return Heard::Nothing,
                Verdict::Accepted => {
                    let outcome = search.accepted(named);
                    if let Some(taken) = self.published.pop_back() {
                        self.accepted = Some(taken);
                    }
                    outcome
                }
                Verdict::Refused(said) => {
                    if let Some(fault) = &mut self.fault {
                        fault.said = said;
                    }
                    search.refused(named)
                }
            };
            self.published.clear();
            return self.take(outcome);
        }
        let is_accepted = |published: &Published| verdict(&self.heard, published) == Verdict::Accepted;
        if let Some(taken) = self.published.iter().rposition(is_accepted) {
            self.published.drain(..taken);
            self.accepted = self.published.front().cloned();
            self.recollection = Recollection::default();
        }
        let Some(last) = self.published.back() else { return Heard::Nothing };
        match verdict(&self.heard, last) {
            Verdict::Pending => Heard::Nothing,
            Verdict::Accepted => {
                self.prove();
                let was_restoring = std::mem::take(&mut self.is_restoring);
                if self.fault.take().is_some() || was_restoring { Heard::Accepted } else { Heard::Nothing }
            }
            Verdict::Refused(said) => self.refused(said, named),
        }
    }

    /// Begins to search for what is at fault.
    fn refused(&mut self, said: Arc<str>, named: &BTreeSet<Origin>) -> Heard {
        let Some(goal) = self.published.back().map(|last| last.content.clone()) else {
            return Heard::Nothing;
        };
        self.is_restoring = false;
        let fault = self.fault.get_or_insert_with(Fault::default);
        fault.said = said;
        if fault.given_up.as_ref().is_some_and(|given_up| given_up.is_same(&goal)) {
            return Heard::Nothing;
        }
        let mut named = named.clone();
        // It complains about the same as before: what was found then may be at fault in a way that quarantine does not cure.
        let is_same =
            |source: &&Origin| self.quarantined.get(*source).is_some_and(|held| held.said == fault.said);
        named.extend(fault.found.iter().filter(is_same).cloned());
        let news = if self.accepted.is_some() {
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
            // It may refuse whatever it is given at the moment, and what was found was not all there is to find.
            Doubt::Base
        } else {
            Doubt::Nothing
        };
        fault.given_up = None;
        let clues = Clues {
            accepted: self.accepted.as_ref().map(|accepted| &accepted.content),
            named,
            news,
            doubt,
            unproven: fault.found.clone(),
        };
        let (search, outcome) = Search::new(goal, clues);
        self.search = Some(Box::new(search));
        self.published.clear();
        self.take(outcome)
    }

    /// Does what a search has come to.
    fn take(&mut self, outcome: Outcome) -> Heard {
        if outcome == Outcome::Trial {
            return Heard::Search;
        }
        let (Some(search), Some(fault)) = (self.search.take(), &mut self.fault) else {
            return Heard::Nothing;
        };
        for source in search.disproved() {
            self.quarantined.remove(source);
        }
        fault.searches += 1;
        let said = fault.said.clone();
        let retries = Backoff::default();
        match outcome {
            Outcome::Trial => Heard::Search,
            Outcome::Source(source) => {
                let parts = parts_of(&source);
                let version = only(&search.goal().snapshot, &parts);
                self.adopted.remove(&source);
                fault.found.insert(source.clone());
                self.charge(&parts, &said);
                let held = Quarantined { said, retries, parts, version, is_proven: false };
                self.quarantined.insert(source.clone(), held);
                Heard::Found(source)
            }
            Outcome::Parts(parts) => {
                self.charge(&parts, &said);
                self.quarantined.retain(|_, held| held.parts.is_disjoint(&parts));
                self.adopted.retain(|_, adopted| adopted.held.parts.is_disjoint(&parts));
                self.held_back.retain(|held| held.parts.is_disjoint(&parts));
                let version = only(&search.goal().snapshot, &parts);
                let held = only(search.before(), &parts);
                let is_proven = false;
                self.held_back.push(RefusedParts {
                    said,
                    retries,
                    parts: parts.clone(),
                    version,
                    held,
                    is_proven,
                });
                Heard::HeldBack(parts)
            }
            Outcome::Taken => {
                self.fault = None;
                Heard::Accepted
            }
            Outcome::Nowhere => {
                fault.doubts_everything = false;
                fault.given_up = Some(search.goal().clone());
                Heard::Nowhere
            }
        }
    }
}

/// What has become of a publication.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pending,
    Accepted,
    Refused(Arc<str>),
}

/// Refused if any data plane refuses it; accepted if all have taken it of which anybody says what it does.
fn verdict(heard: &BTreeMap<DataPlaneKey, Reception>, published: &Published) -> Verdict {
    let mut verdict = Verdict::Pending;
    let mut is_pending = !published.planes.iter().all(|plane| published.revisions.contains_key(plane));
    for (data_plane, revision) in &published.revisions {
        let Some(Reception { accepted, refused }) = heard.get(data_plane) else { continue };
        if accepted.is_some_and(|accepted| accepted >= *revision) {
            verdict = Verdict::Accepted;
        } else if let Some((_, said)) = refused.as_ref().filter(|(at, _)| at >= revision) {
            return Verdict::Refused(said.clone());
        } else {
            is_pending = true;
        }
    }
    if is_pending { Verdict::Pending } else { verdict }
}
