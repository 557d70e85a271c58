//! The search for the objects that PingSIX refuses.
//!
//! A search has content that PingSIX accepts, the **base**, and content that PingSIX refuses, the **goal**. The
//! differences between the two are **steps**. A **trial** is the base with some of the steps. An accepted trial is the
//! next base, and the culprit is in one of the other steps. A refused trial contains the culprit. Each trial halves the
//! suspected steps, until one is left.
//!
//! A step replaces a group of parts of the snapshot, or releases a source from quarantine. A faulty group is searched
//! further: the base is the group with all its sources in quarantine, and each step releases one of them. So a trial
//! costs answers only of the other sources of a faulty group.
//!
//! One report of a refusal may be mistaken. So a search blames an object only after PingSIX has accepted one trial and
//! refused another. If one of both is missing when a single suspect is left, the search tries the base, or the base
//! with the suspect.

mod content;
mod hypothesis;

use std::collections::BTreeSet;

use pingsix_translate::{ObjectKey, Origin, Section};

pub(super) use self::content::Content;
use self::content::{Step, placeholder_message, quarantined, steps};
use self::hypothesis::Hypothesis;
use super::groups::concerns_all;
use super::sources::sources;

/// The content of the running trial.
#[derive(Clone, Debug)]
enum TrialContent {
    /// The base alone.
    Base,
    /// The base with the applied steps. The culprit is in the applied steps or in the remaining ones.
    Steps { applied: Vec<Step>, remaining: Vec<Step> },
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchOutcome {
    /// Another trial is needed.
    Trial,
    /// This source is at fault.
    Source(Origin),
    /// These parts are at fault, and contain no source for quarantine.
    Parts(BTreeSet<ObjectKey>),
    /// PingSIX refuses every publication, including one that it accepted before. No change is at fault.
    NoCulprit,
    /// PingSIX accepts all content now.
    Accepted,
}

/// The check of the base at the start of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BaseCheck {
    /// PingSIX is known to accept the base.
    #[default]
    Skip,
    /// A trial has to confirm that PingSIX accepts the base.
    Confirm,
    /// A trial has to confirm that PingSIX accepts the base. After a refusal, the search begins again with all steps as
    /// suspects.
    ConfirmOrRestart,
}

/// A search, between two trials or during one.
#[derive(Clone, Debug)]
pub(super) struct Search {
    base: Content,
    goal: Content,
    suspects: Vec<Step>,
    trial: TrialContent,
    /// The parts of the current group.
    group: Option<BTreeSet<ObjectKey>>,
    /// Whether the rules of the current group are innocent, so that its other sources are suspected.
    suspects_referents: bool,
    /// The base before the search within a group.
    before: Option<Content>,
    /// The evidence.
    named: BTreeSet<Origin>,
    unjudged: BTreeSet<Origin>,
    /// The base of a search without known accepted content.
    fallback_base: Option<FallbackBase>,
    /// The hypotheses of the search, the last one first.
    hypotheses: Vec<Hypothesis>,
    /// The running hypothesis.
    hypothesis: Option<Hypothesis>,
    base_check: BaseCheck,
    /// Sources in quarantine that were found by mistake if the base is refused.
    unproven: BTreeSet<Origin>,
    /// The quarantines that turned out to be mistaken.
    disproved: BTreeSet<Origin>,
    /// Whether PingSIX has accepted a trial since the begin of the search or of its repetition.
    has_accepted: bool,
    /// Whether PingSIX has refused a trial since then.
    has_refused: bool,
    trials: u32,
}

/// The base of a search without known accepted content: first everything in quarantine, then no routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FallbackBase {
    /// All sources are in quarantine.
    Quarantined,
    /// All routes are absent.
    Empty,
}

/// The evidence at the start of a search.
#[derive(Debug)]
pub(super) struct Evidence<'c> {
    /// The last content that PingSIX accepted.
    pub(super) accepted: Option<&'c Content>,
    /// Probable sources: the message of PingSIX names their documents, or an earlier search found them.
    pub(super) named: BTreeSet<Origin>,
    /// Sources that are probably new since an earlier process published.
    pub(super) unjudged: BTreeSet<Origin>,
    pub(super) base_check: BaseCheck,
    /// Sources in quarantine that were found by mistake if the base is refused.
    pub(super) unproven: BTreeSet<Origin>,
}

impl Search {
    /// Begins the search for the culprit in `goal`.
    pub(super) fn new(goal: Content, evidence: Evidence<'_>) -> (Self, SearchOutcome) {
        let (base, fallback_base) = match evidence.accepted {
            Some(accepted) => (accepted.clone(), None),
            None => (quarantined(&goal), Some(FallbackBase::Quarantined)),
        };
        let mut search = Self {
            suspects: steps(&base, &goal),
            base,
            goal,
            trial: TrialContent::Base,
            group: None,
            suspects_referents: false,
            before: None,
            named: evidence.named,
            unjudged: evidence.unjudged,
            unproven: evidence.unproven,
            disproved: BTreeSet::new(),
            fallback_base,
            hypotheses: Vec::new(),
            hypothesis: None,
            base_check: evidence.base_check,
            has_accepted: false,
            has_refused: false,
            trials: 0,
        };
        if search.suspects.is_empty() {
            return (search, SearchOutcome::NoCulprit);
        }
        let outcome = if search.fallback_base.is_some() {
            search.among_everything()
        } else if search.base_check != BaseCheck::Skip {
            search.try_base()
        } else {
            let named = search.named.clone();
            search.narrow(&named)
        };
        (search, outcome)
    }

    /// Begins again after a refusal of the base.
    fn fall_back(&mut self) -> SearchOutcome {
        (self.has_accepted, self.has_refused, self.before) = (false, false, None);
        // A publication with everything in quarantine would answer every request with an error, so other trials come first.
        if std::mem::take(&mut self.base_check) != BaseCheck::ConfirmOrRestart {
            return SearchOutcome::NoCulprit;
        }
        self.among_everything()
    }

    /// The content for the trial.
    pub(super) fn content(&self) -> Content {
        match &self.trial {
            TrialContent::Base => self.with(&[]),
            TrialContent::Steps { applied, .. } => self.with(applied),
        }
    }

    /// The goal of the search.
    pub(super) const fn goal(&self) -> &Content {
        &self.goal
    }

    /// The accepted content without the parts in the quarantine.
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
    pub(super) fn accepted(&mut self, named: &BTreeSet<Origin>) -> SearchOutcome {
        self.has_accepted = true;
        self.hypothesis = None;
        self.hypotheses.clear();
        self.fallback_base = None;
        match std::mem::replace(&mut self.trial, TrialContent::Base) {
            TrialContent::Steps { applied, remaining } => {
                self.base = self.with(&applied);
                self.suspects = remaining;
                self.narrow(named)
            }
            TrialContent::Base => {
                let named = self.named.union(named).cloned().collect();
                self.narrow(&named)
            }
        }
    }

    /// Handles a refused trial.
    pub(super) fn refused(&mut self, named: &BTreeSet<Origin>) -> SearchOutcome {
        if let Some(hypothesis) = self.hypothesis.take() {
            // PingSIX names one of several culprits at a time.
            if !named.is_subset(&hypothesis.quarantined) && named.is_disjoint(&hypothesis.absent) {
                let quarantined = hypothesis.quarantined.union(named).cloned().collect();
                self.hypotheses.push(Hypothesis { quarantined, ..hypothesis });
            }
            return self.try_hypothesis();
        }
        match std::mem::replace(&mut self.trial, TrialContent::Base) {
            TrialContent::Steps { applied, .. } => {
                self.has_refused = true;
                self.suspects = applied;
                self.narrow(named)
            }
            TrialContent::Base => {
                if let Some(group) = self.group.take() {
                    if !self.has_accepted
                        && let Some(before) = self.before.take()
                    {
                        // The result may be refused as well.
                        self.base = before;
                        self.suspects = vec![Step::Replace(group)];
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
                    return SearchOutcome::Parts(group);
                }
                // PingSIX refuses the base even without these sources.
                for source in std::mem::take(&mut self.unproven) {
                    self.goal.quarantine.remove(&source);
                    self.disproved.insert(source);
                }
                if self.fallback_base != Some(FallbackBase::Quarantined) {
                    self.fallback_base = None;
                    return self.fall_back();
                }
                // The cause is in the matching of requests, which quarantine does not change.
                self.fallback_base = Some(FallbackBase::Empty);
                let snapshot = self.goal.snapshot.without_routes();
                self.base = Content { snapshot, quarantine: self.goal.quarantine.clone() };
                self.suspects = steps(&self.base, &self.goal);
                if self.suspects.is_empty() { SearchOutcome::NoCulprit } else { self.try_base() }
            }
        }
    }

    fn try_base(&mut self) -> SearchOutcome {
        self.trial = TrialContent::Base;
        self.trials += 1;
        SearchOutcome::Trial
    }

    /// The missing trials before the last suspect is blamed.
    fn confirm(&mut self) -> Option<SearchOutcome> {
        if !self.has_accepted {
            return Some(self.try_base());
        }
        if !self.has_refused {
            self.trial = TrialContent::Steps { applied: self.suspects.clone(), remaining: Vec::new() };
            self.trials += 1;
            return Some(SearchOutcome::Trial);
        }
        None
    }

    /// Determines the next trial.
    fn narrow(&mut self, named: &BTreeSet<Origin>) -> SearchOutcome {
        loop {
            match self.suspects.as_slice() {
                [] => return SearchOutcome::Accepted,
                [Step::Release(source)] => {
                    let source = source.clone();
                    return self.confirm().unwrap_or(SearchOutcome::Source(source));
                }
                [Step::Replace(group)] => {
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
                        (None, _) => return self.confirm().unwrap_or(SearchOutcome::Parts(group)),
                        (Some(only), None) if !is_doubtful => {
                            let found = SearchOutcome::Source(only.clone());
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
                    let (applied, remaining) = self.split(named);
                    self.trial = TrialContent::Steps { applied, remaining };
                    self.trials += 1;
                    return SearchOutcome::Trial;
                }
            }
        }
    }

    /// Searches within a group: its parts get their version in the goal, with these sources in quarantine.
    fn suspect_sources(&mut self, group: BTreeSet<ObjectKey>, sources: BTreeSet<Origin>) {
        let whole = self.with(&[Step::Replace(group.clone())]);
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
            Step::Replace(group) => named.iter().any(|source| group.contains(&*source.object)),
        };
        let (remaining, applied): (Vec<Step>, Vec<Step>) = self.suspects.iter().cloned().partition(is_named);
        if !remaining.is_empty() && !applied.is_empty() {
            return (applied, remaining);
        }
        // Weights are powers of two, so the first suspects add up to one half. A suspect takes as many trials as it
        // has halvings.
        let mut weighed: Vec<(usize, &Step)> =
            self.suspects.iter().map(|step| (self.weight(step), step)).collect();
        weighed.sort_by(|(one, step), (other, of_other)| other.cmp(one).then(step.cmp(of_other)));
        let total: usize = weighed.iter().map(|(weight, _)| weight).sum();
        let half = total.next_power_of_two() / 2;
        let (mut applied, mut remaining, mut sum) = (Vec::new(), Vec::new(), 0);
        for (weight, step) in weighed {
            if sum < half {
                sum += weight;
                applied.push(step.clone());
            } else {
                remaining.push(step.clone());
            }
        }
        (applied, remaining)
    }

    fn weight(&self, step: &Step) -> usize {
        match step {
            Step::Release(_) => 1,
            Step::Replace(group) => self.first_sources_of(group).len().max(1).next_power_of_two(),
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
    fn with(&self, applied: &[Step]) -> Content {
        self.base.with(applied, &self.goal)
    }
}
