//! Hypotheses about the culprit, for a search without known accepted content.

use std::collections::BTreeSet;

use pingsix_translate::{ObjectKey, Origin};

use super::content::{is_empty, placeholder_message, quarantined, steps};
use super::{BaseCheck, FallbackBase, Search, SearchOutcome};

/// The sources that a trial leaves out as the probable culprit, if no accepted content is known.
///
/// PingSIX serves the configuration of an earlier process meanwhile, so a refused trial costs only time. A trial with
/// all sources in quarantine would cost all answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hypothesis {
    /// Sources in quarantine.
    pub(super) quarantined: BTreeSet<Origin>,
    /// Sources whose routes are absent, because quarantine keeps the matches of routes.
    pub(super) absent: BTreeSet<Origin>,
}

impl Search {
    /// Begins without known accepted content.
    pub(super) fn among_everything(&mut self) -> SearchOutcome {
        self.fallback_base = Some(FallbackBase::Quarantined);
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
            let hypothesis = Hypothesis { quarantined, absent };
            if !self.hypotheses.contains(&hypothesis) {
                self.hypotheses.push(hypothesis);
            }
        }
        self.try_hypothesis()
    }

    /// Tries the next hypothesis; without one, the search goes on.
    pub(super) fn try_hypothesis(&mut self) -> SearchOutcome {
        let all = quarantined(&self.goal);
        while let Some(hypothesis) = self.hypotheses.pop() {
            let mut base = self.goal.clone();
            for source in &hypothesis.quarantined {
                if !base.quarantine.contains_key(source) {
                    base.quarantine.insert(source.clone(), placeholder_message());
                }
            }
            let is_route = |key: &&ObjectKey| key.kind.has_requests();
            let absent = hypothesis.absent.iter().map(|source| &*source.object).filter(is_route);
            base.snapshot.take_parts(&self.goal.snapshot.without_routes(), absent);
            // A hypothesis without sources equals the goal. A hypothesis with all sources has no use.
            if base.is_same(&self.goal) || base.is_same(&all) || is_empty(&base.snapshot) {
                continue;
            }
            self.suspects = steps(&base, &self.goal);
            self.base = base;
            self.hypothesis = Some(hypothesis);
            return self.try_base();
        }
        self.suspects = steps(&all, &self.goal);
        self.base = all;
        if self.base_check == BaseCheck::Skip { self.narrow(&BTreeSet::new()) } else { self.try_base() }
    }
}
