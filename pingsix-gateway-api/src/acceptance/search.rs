//! The search for the objects that PingSIX refuses.
//!
//! A search has content that PingSIX accepts, the **base**, and content that PingSIX refuses, the **goal**. The
//! differences between the two are **steps**. A **trial** is the base with some of the steps. An accepted trial is the
//! next base, and the fault is in one of the other steps. A refused trial contains the fault. Each trial halves the
//! suspected steps, until one is left.
//!
//! A step replaces a group of parts of the snapshot, or releases a source from quarantine. A faulty group is searched
//! further: the base is the group with all its sources in quarantine, and each step releases one of them. So a trial
//! costs answers only of the other sources of a faulty group.
//!
//! One report of a refusal may be mistaken. So a search blames an object only after PingSIX has accepted one trial and
//! refused another. If one of both is missing when a single suspect is left, the search tries the base, or the base
//! with the suspect.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::{ObjectKey, Origin, Quarantine, Section};

use super::groups::{concerns_all, groups};
use super::parts::{differences, put, without_routes};
use super::sources::{all_sources, parts_of, sources};
use crate::world::OwnerSnapshot;

/// The content of a data plane's translation.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Without quarantine.
    pub(super) snapshot: OwnerSnapshot,
    pub(super) quarantine: Quarantine,
}

/// A step from a base towards the goal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// These parts become what they are in the goal.
    Put(BTreeSet<ObjectKey>),
    /// The source leaves quarantine.
    Release(Origin),
}

/// The content of the running trial.
#[derive(Clone, Debug)]
enum Trial {
    /// The base alone.
    Base,
    /// The base with these steps; the fault is in them or in the others.
    Part { done: Vec<Step>, left: Vec<Step> },
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Another trial is needed.
    Trial,
    /// This source is at fault.
    Source(Origin),
    /// These parts are at fault, and contain no source for quarantine.
    Parts(BTreeSet<ObjectKey>),
    /// PingSIX refuses every publication, including one that it accepted before. No change is at fault.
    Nowhere,
    /// PingSIX accepts all content now.
    Taken,
}

/// The unconfirmed assumption about the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doubt {
    #[default]
    Nothing,
    /// A trial has to confirm that PingSIX accepts the base.
    Base,
    /// A trial has to confirm it. If PingSIX refuses the base, the search begins again with all steps as suspects.
    Everything,
}

/// A search, between two trials or during one.
#[derive(Clone, Debug)]
pub(super) struct Search {
    base: Content,
    goal: Content,
    suspects: Vec<Step>,
    trial: Trial,
    /// The parts of the current group.
    group: Option<BTreeSet<ObjectKey>>,
    /// Whether the rules of the current group are innocent, so that its other sources are suspected.
    suspects_referents: bool,
    /// The base before the search within a group.
    before: Option<Content>,
    /// The known facts.
    named: BTreeSet<Origin>,
    unjudged: BTreeSet<Origin>,
    /// Whether the base is a fallback without known accepted content: first everything in quarantine, then nothing at
    /// all.
    bottom: Option<Bottom>,
    /// The guesses of the search, the last one first.
    guesses: Vec<Guess>,
    /// The running guess.
    guess: Option<Guess>,
    doubt: Doubt,
    /// Sources in quarantine that were found by mistake if the base is refused.
    unproven: BTreeSet<Origin>,
    /// The findings that turned out to be mistaken.
    disproved: BTreeSet<Origin>,
    /// Whether PingSIX has accepted a trial since the begin of the search or of its repetition.
    has_accepted: bool,
    /// Whether PingSIX has refused a trial since then.
    has_refused: bool,
    trials: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bottom {
    Quarantined,
    Empty,
}

/// The sources to leave out at first, without a known accepted content.
///
/// PingSIX serves the configuration of an earlier process meanwhile, so a refused trial costs only time. A trial with
/// all sources in quarantine would cost all answers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Guess {
    /// These sources, put into quarantine.
    quarantined: BTreeSet<Origin>,
    /// All routes of these sources, because quarantine keeps their matches.
    absent: BTreeSet<Origin>,
}

/// The known facts before a search.
#[derive(Debug)]
pub(super) struct Clues<'c> {
    /// The last content that PingSIX accepted.
    pub(super) accepted: Option<&'c Content>,
    /// Probable sources: the message of PingSIX names their documents, or an earlier search found them.
    pub(super) named: BTreeSet<Origin>,
    /// Sources that seem to be new since the last publisher.
    pub(super) unjudged: BTreeSet<Origin>,
    pub(super) doubt: Doubt,
    /// Sources in quarantine that were found by mistake if the base is refused.
    pub(super) unproven: BTreeSet<Origin>,
}

impl Content {
    /// Whether the step has no difference.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.quarantine == other.quarantine && differences(&self.snapshot, &other.snapshot).is_empty()
    }
}

impl Search {
    /// Begins the search for the fault in `goal`.
    pub(super) fn new(goal: Content, clues: Clues<'_>) -> (Self, Outcome) {
        let (base, bottom) = match clues.accepted {
            Some(accepted) => (accepted.clone(), None),
            None => (quarantined(&goal), Some(Bottom::Quarantined)),
        };
        let mut search = Self {
            suspects: steps(&base, &goal),
            base,
            goal,
            trial: Trial::Base,
            group: None,
            suspects_referents: false,
            before: None,
            named: clues.named,
            unjudged: clues.unjudged,
            unproven: clues.unproven,
            disproved: BTreeSet::new(),
            bottom,
            guesses: Vec::new(),
            guess: None,
            doubt: clues.doubt,
            has_accepted: false,
            has_refused: false,
            trials: 0,
        };
        if search.suspects.is_empty() {
            return (search, Outcome::Nowhere);
        }
        let outcome = if search.bottom.is_some() {
            search.among_everything()
        } else if search.doubt != Doubt::Nothing {
            search.try_base()
        } else {
            let named = search.named.clone();
            search.narrow(&named)
        };
        (search, outcome)
    }

    /// Begins without known accepted content.
    fn among_everything(&mut self) -> Outcome {
        self.bottom = Some(Bottom::Quarantined);
        let (named, unjudged) = (self.named.clone(), self.unjudged.clone());
        let all: BTreeSet<Origin> = named.union(&unjudged).cloned().collect();
        let none = BTreeSet::new;
        for (quarantined, absent) in [
            (none(), all.clone()),
            (named.clone(), unjudged),
            (all, none()),
            (none(), named.clone()),
            (named, none()),
        ] {
            let guess = Guess { quarantined, absent };
            if !self.guesses.contains(&guess) {
                self.guesses.push(guess);
            }
        }
        self.try_guess()
    }

    /// Begins again after a refusal of the base.
    fn fall_back(&mut self) -> Outcome {
        (self.has_accepted, self.has_refused, self.before) = (false, false, None);
        // A publication with everything in quarantine would answer no request, so the base is not tried first.
        if std::mem::take(&mut self.doubt) != Doubt::Everything {
            return Outcome::Nowhere;
        }
        self.among_everything()
    }

    /// The content for the trial.
    pub(super) fn content(&self) -> Content {
        match &self.trial {
            Trial::Base => self.with(&[]),
            Trial::Part { done, .. } => self.with(done),
        }
    }

    /// The goal of the search.
    pub(super) const fn goal(&self) -> &Content {
        &self.goal
    }

    /// The accepted content without the parts in the finding.
    pub(super) fn before(&self) -> &Content {
        self.before.as_ref().unwrap_or(&self.base)
    }

    /// Sources in quarantine that turned out to be found by mistake.
    pub(super) const fn disproved(&self) -> &BTreeSet<Origin> {
        &self.disproved
    }

    /// The number of trials so far.
    pub(super) const fn trials(&self) -> u32 {
        self.trials
    }

    /// The number of suspected steps.
    pub(super) const fn suspects(&self) -> usize {
        self.suspects.len()
    }

    /// Handles an accepted trial.
    pub(super) fn accepted(&mut self, named: &BTreeSet<Origin>) -> Outcome {
        self.has_accepted = true;
        self.guess = None;
        self.guesses.clear();
        self.bottom = None;
        match std::mem::replace(&mut self.trial, Trial::Base) {
            Trial::Part { done, left } => {
                self.base = self.with(&done);
                self.suspects = left;
                self.narrow(named)
            }
            Trial::Base => {
                let named = self.named.union(named).cloned().collect();
                self.narrow(&named)
            }
        }
    }

    /// Handles a refused trial.
    pub(super) fn refused(&mut self, named: &BTreeSet<Origin>) -> Outcome {
        if let Some(guess) = self.guess.take() {
            // PingSIX names one of several faults at a time.
            if !named.is_subset(&guess.quarantined) && named.is_disjoint(&guess.absent) {
                let quarantined = guess.quarantined.union(named).cloned().collect();
                self.guesses.push(Guess { quarantined, ..guess });
            }
            return self.try_guess();
        }
        match std::mem::replace(&mut self.trial, Trial::Base) {
            Trial::Part { done, .. } => {
                self.has_refused = true;
                self.suspects = done;
                self.narrow(named)
            }
            Trial::Base => {
                if let Some(group) = self.group.take() {
                    if !self.has_accepted
                        && let Some(before) = self.before.take()
                    {
                        // The result may be refused as well.
                        self.base = before;
                        self.suspects = vec![Step::Put(group)];
                        return self.try_base();
                    }
                    // PingSIX refuses the group although all its rules are in quarantine.
                    if let Some(before) = self.before.clone().filter(|_| !self.suspects_referents) {
                        let (referents, rules) = self.sources_of(&group);
                        if !referents.is_empty() && !rules.is_empty() {
                            self.suspects_referents = true;
                            self.base = before;
                            self.suspect_sources(group, referents);
                            return self.try_base();
                        }
                    }
                    // All other sources are in quarantine as well.
                    return Outcome::Parts(group);
                }
                // Everything is refused, even without them.
                for source in std::mem::take(&mut self.unproven) {
                    self.goal.quarantine.remove(&source);
                    self.disproved.insert(source);
                }
                if self.bottom != Some(Bottom::Quarantined) {
                    self.bottom = None;
                    return self.fall_back();
                }
                // The fault is in the matching of requests, which quarantine does not change.
                self.bottom = Some(Bottom::Empty);
                let snapshot = without_routes(&self.goal.snapshot);
                self.base = Content { snapshot, quarantine: self.goal.quarantine.clone() };
                self.suspects = steps(&self.base, &self.goal);
                if self.suspects.is_empty() { Outcome::Nowhere } else { self.try_base() }
            }
        }
    }

    /// Tries the next guess; without one, the search goes on.
    fn try_guess(&mut self) -> Outcome {
        let all = quarantined(&self.goal);
        while let Some(guess) = self.guesses.pop() {
            let mut base = self.goal.clone();
            for source in &guess.quarantined {
                if !base.quarantine.contains_key(source) {
                    base.quarantine.insert(source.clone(), placeholder_message());
                }
            }
            let is_route = |key: &&ObjectKey| key.kind.has_requests();
            let absent = guess.absent.iter().map(|source| &*source.object).filter(is_route);
            put(&mut base.snapshot, &without_routes(&self.goal.snapshot), absent);
            // A guess that leaves out nothing equals the goal, and a guess that leaves out everything has no use.
            if base.is_same(&self.goal) || base.is_same(&all) || is_empty(&base.snapshot) {
                continue;
            }
            self.suspects = steps(&base, &self.goal);
            self.base = base;
            self.guess = Some(guess);
            return self.try_base();
        }
        self.suspects = steps(&all, &self.goal);
        self.base = all;
        if self.doubt == Doubt::Nothing { self.narrow(&BTreeSet::new()) } else { self.try_base() }
    }

    fn try_base(&mut self) -> Outcome {
        self.trial = Trial::Base;
        self.trials += 1;
        Outcome::Trial
    }

    /// The missing trials before the last suspect is blamed.
    fn confirm(&mut self) -> Option<Outcome> {
        if !self.has_accepted {
            return Some(self.try_base());
        }
        if !self.has_refused {
            self.trial = Trial::Part { done: self.suspects.clone(), left: Vec::new() };
            self.trials += 1;
            return Some(Outcome::Trial);
        }
        None
    }

    /// Determines the next trial.
    fn narrow(&mut self, named: &BTreeSet<Origin>) -> Outcome {
        loop {
            match self.suspects.as_slice() {
                [] => return Outcome::Taken,
                [Step::Release(source)] => {
                    let source = source.clone();
                    return self.confirm().unwrap_or(Outcome::Source(source));
                }
                [Step::Put(group)] => {
                    let group = group.clone();
                    self.suspects_referents = false;
                    let of_group = self.first_sources_of(&group);
                    // Quarantine may not help: parts of the group may have no source, or be in quarantine already.
                    let is_doubtful = group.iter().any(|part| {
                        let of_part = sources(&self.goal.snapshot, part);
                        concerns_all(part.kind)
                            || of_part.iter().any(|source| self.goal.quarantine.contains_key(source))
                    });
                    let mut rest = of_group.iter();
                    match (rest.next(), rest.next()) {
                        (None, _) => return self.confirm().unwrap_or(Outcome::Parts(group)),
                        (Some(only), None) if !is_doubtful => {
                            let found = Outcome::Source(only.clone());
                            return self.confirm().unwrap_or(found);
                        }
                        (Some(_), _) => {}
                    }
                    self.suspect_sources(group, of_group);
                    if is_doubtful {
                        return self.try_base();
                    }
                }
                [_, _, ..] => {
                    let (done, left) = self.split(named);
                    self.trial = Trial::Part { done, left };
                    self.trials += 1;
                    return Outcome::Trial;
                }
            }
        }
    }

    /// Searches within a group: its parts become what they are in the goal, with these sources in quarantine.
    fn suspect_sources(&mut self, group: BTreeSet<ObjectKey>, sources: BTreeSet<Origin>) {
        let whole = self.with(&[Step::Put(group.clone())]);
        self.before = Some(std::mem::replace(&mut self.base, whole));
        for source in &sources {
            self.base.quarantine.insert(source.clone(), placeholder_message());
        }
        self.suspects = sources.into_iter().map(Step::Release).collect();
        self.group = Some(group);
    }

    /// Divides the suspects: named ones from all others, or into halves.
    fn split(&self, named: &BTreeSet<Origin>) -> (Vec<Step>, Vec<Step>) {
        let is_named = |step: &Step| match step {
            Step::Release(source) => named.contains(source),
            Step::Put(group) => named.iter().any(|source| group.contains(&*source.object)),
        };
        let (left, done): (Vec<Step>, Vec<Step>) = self.suspects.iter().cloned().partition(is_named);
        if !left.is_empty() && !done.is_empty() {
            return (done, left);
        }
        // Weights are powers of two, so the first suspects add up to one half. A suspect takes as many trials as it
        // has halvings.
        let mut weighed: Vec<(usize, &Step)> =
            self.suspects.iter().map(|step| (self.weight(step), step)).collect();
        weighed.sort_by(|(one, step), (other, of_other)| other.cmp(one).then(step.cmp(of_other)));
        let total: usize = weighed.iter().map(|(weight, _)| weight).sum();
        let half = total.next_power_of_two() / 2;
        let (mut done, mut left, mut sum) = (Vec::new(), Vec::new(), 0);
        for (weight, step) in weighed {
            if sum < half {
                sum += weight;
                done.push(step.clone());
            } else {
                left.push(step.clone());
            }
        }
        (done, left)
    }

    fn weight(&self, step: &Step) -> usize {
        match step {
            Step::Release(_) => 1,
            Step::Put(group) => self.first_sources_of(group).len().max(1).next_power_of_two(),
        }
    }

    /// The sources of a group that are suspected first: rules, or the referents without rules. A Service or policy in
    /// quarantine suppresses its rules, so both at once would hide the culprit.
    fn first_sources_of(&self, group: &BTreeSet<ObjectKey>) -> BTreeSet<Origin> {
        let (referents, rules) = self.sources_of(group);
        if rules.is_empty() { referents } else { rules }
    }

    /// The sources of a group that can be put into quarantine: referents, and rules.
    fn sources_of(&self, group: &BTreeSet<ObjectKey>) -> (BTreeSet<Origin>, BTreeSet<Origin>) {
        let of_parts = group.iter().flat_map(|part| sources(&self.goal.snapshot, part));
        let free = of_parts.filter(|source| !self.goal.quarantine.contains_key(source));
        free.partition(|source| source.section == Section::Whole)
    }

    /// The base with these steps applied.
    fn with(&self, done: &[Step]) -> Content {
        let Content { mut snapshot, mut quarantine } = self.base.clone();
        for step in done {
            match step {
                Step::Put(group) => {
                    put(&mut snapshot, &self.goal.snapshot, group);
                    // The object of this quarantine is gone.
                    let of_group = quarantine.keys().filter(|source| !parts_of(source).is_disjoint(group));
                    for source in of_group.cloned().collect::<Vec<_>>() {
                        quarantine.remove(&source);
                    }
                }
                Step::Release(source) => {
                    quarantine.remove(source);
                }
            }
        }
        // The fault is known for the version of the goal, and not for a former one.
        let others = differences(&self.goal.snapshot, &snapshot);
        for (source, message) in &self.goal.quarantine {
            if parts_of(source).is_disjoint(&others) {
                quarantine.insert(source.clone(), message.clone());
            }
        }
        Content { snapshot, quarantine }
    }
}

/// Whether the snapshot has no route.
fn is_empty(snapshot: &OwnerSnapshot) -> bool {
    differences(snapshot, &without_routes(snapshot)).is_empty()
}

/// The goal with all sources in quarantine.
fn quarantined(goal: &Content) -> Content {
    let mut quarantine = goal.quarantine.clone();
    for source in all_sources(&goal.snapshot) {
        if !quarantine.contains_key(&source) {
            quarantine.insert(source, placeholder_message());
        }
    }
    Content { snapshot: goal.snapshot.clone(), quarantine }
}

/// The message of a source in quarantine during a trial; never shown.
fn placeholder_message() -> Arc<str> {
    Arc::from("The controller is searching for the refused object.")
}

/// The steps between two contents.
fn steps(base: &Content, goal: &Content) -> Vec<Step> {
    let parts = differences(&goal.snapshot, &base.snapshot);
    let groups = groups(&parts, &goal.snapshot, &base.snapshot).into_iter().map(Step::Put);
    let released = base.quarantine.keys().filter(|source| !goal.quarantine.contains_key(*source));
    // The sources of a replaced part are released with the part.
    let released = released.filter(|source| parts_of(source).is_disjoint(&parts)).cloned().map(Step::Release);
    groups.chain(released).collect()
}
