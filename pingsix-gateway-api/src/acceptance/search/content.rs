//! The contents of trials, and the steps between two contents.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::{ObjectKey, Origin, Quarantine};

use crate::acceptance::groups::groups;
use crate::acceptance::sources::{all_sources, parts_of};

/// The content of a data plane's translation.
#[derive(Clone, Debug)]
pub(in crate::acceptance) struct Content {
    /// Without quarantine.
    pub(in crate::acceptance) snapshot: OwnerSnapshot,
    pub(in crate::acceptance) quarantine: Quarantine,
}

/// A step from a base towards the goal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Replaces these parts by their version in the goal.
    Replace(BTreeSet<ObjectKey>),
    /// Releases the source from quarantine.
    Release(Origin),
}

impl Content {
    /// Whether two contents are equal.
    pub(in crate::acceptance) fn is_same(&self, other: &Self) -> bool {
        self.quarantine == other.quarantine && self.snapshot.differences(&other.snapshot).is_empty()
    }

    /// This content with steps towards a goal.
    pub(super) fn with(&self, applied: &[Step], goal: &Self) -> Self {
        let Self { mut snapshot, mut quarantine } = self.clone();
        for step in applied {
            match step {
                Step::Replace(group) => {
                    snapshot.take_parts(&goal.snapshot, group);
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
        // The culprit is known for the version of the goal, and not for a former one.
        let others = goal.snapshot.differences(&snapshot);
        for (source, message) in &goal.quarantine {
            if parts_of(source).is_disjoint(&others) {
                quarantine.insert(source.clone(), message.clone());
            }
        }
        Self { snapshot, quarantine }
    }
}

/// Whether the snapshot has no route.
pub(super) fn is_empty(snapshot: &OwnerSnapshot) -> bool {
    snapshot.differences(&snapshot.without_routes()).is_empty()
}

/// The goal with all sources in quarantine.
pub(super) fn quarantined(goal: &Content) -> Content {
    let mut quarantine = goal.quarantine.clone();
    for source in all_sources(&goal.snapshot) {
        if !quarantine.contains_key(&source) {
            quarantine.insert(source, placeholder_message());
        }
    }
    Content { snapshot: goal.snapshot.clone(), quarantine }
}

/// The message of a source in quarantine during a trial; never shown.
pub(super) fn placeholder_message() -> Arc<str> {
    Arc::from("The controller is searching for the refused object.")
}

/// The steps between two contents.
pub(super) fn steps(base: &Content, goal: &Content) -> Vec<Step> {
    let parts = goal.snapshot.differences(&base.snapshot);
    let groups = groups(&parts, &goal.snapshot, &base.snapshot).into_iter().map(Step::Replace);
    let released = base.quarantine.keys().filter(|source| !goal.quarantine.contains_key(*source));
    // The sources of a replaced part are released with the part.
    let released = released.filter(|source| parts_of(source).is_disjoint(&parts)).cloned().map(Step::Release);
    groups.chain(released).collect()
}
