//! The diff from the current to the desired documents, as steps in a safe order.
//!
//! Steps put documents in ascending order of their hint, then delete in descending order. Let documents refer only to
//! documents with a lower hint, and let both states be closed under reference. Then every prefix of the steps leaves
//! a closed state: a put finds its targets among the unchanged documents or among earlier puts, and the referrers of
//! a deleted document are deleted or rewritten before it.
//!
//! Server names may move between `ssls` documents. Steps of such documents have an order of their own, so that no
//! prefix of the steps has a name twice. To exchange names, a document is deleted and created again.
//!
//! A target applies all steps at once when it can. Other targets apply [units], so that every request in between is
//! answered as before or as after.

mod names;
mod units;

pub(crate) use names::{net_steps, server_names};
pub use units::{Units, units};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::desired::DocumentSet;
use crate::document::{Document, Key, OrderHint, Owner};

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The document is new.
    Create(Document),
    /// The value of the document changes.
    Update(Document),
    /// The document is deleted.
    Delete {
        /// The name inside the scope.
        key: Key,
        /// The order hint of its write.
        order: OrderHint,
        /// The former owner.
        owner: Owner,
    },
}

impl Step {
    /// The key that is written.
    pub fn key(&self) -> &Key {
        match self {
            Self::Create(document) | Self::Update(document) => &document.key,
            Self::Delete { key, .. } => key,
        }
    }

    /// The order hint of the document.
    pub fn order(&self) -> OrderHint {
        match self {
            Self::Create(document) | Self::Update(document) => document.order,
            Self::Delete { order, .. } => *order,
        }
    }
}

/// Number of documents that a publication changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// New documents.
    pub created: usize,
    /// Documents with changed values.
    pub updated: usize,
    /// Deleted documents.
    pub deleted: usize,
}

impl Changed {
    /// The number of changed documents.
    pub fn total(self) -> usize {
        self.created + self.updated + self.deleted
    }

    /// The documents that these steps change.
    pub fn of(steps: &[Step]) -> Self {
        Self::default().with(steps)
    }

    /// The sum with further steps.
    pub(crate) fn with(mut self, steps: &[Step]) -> Self {
        for step in steps {
            match step {
                Step::Create(_) => self.created += 1,
                Step::Update(_) => self.updated += 1,
                Step::Delete { .. } => self.deleted += 1,
            }
        }
        self
    }

    /// Whether no document changed.
    pub fn is_empty(self) -> bool {
        self.total() == 0
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} created, {} updated, {} deleted", self.created, self.updated, self.deleted)
    }
}

/// The steps from `current` to `desired`, in order; empty when both have the same keys and values.
///
/// A change of the order hint or the owner alone needs no step.
pub fn plan(current: &DocumentSet, desired: &DocumentSet) -> Vec<Step> {
    plan_with_unknown(current, &UnknownDocuments::new(), desired)
}

/// Keys whose documents are unknown, with all server names that the documents may have.
pub(crate) type UnknownDocuments = BTreeMap<Key, BTreeSet<String>>;

/// [`plan`] for a target with unknown documents. A desired document with an unknown key is always written, as a new one. An
/// unknown key in `current` is deleted unless it is desired.
pub(crate) fn plan_with_unknown(
    current: &DocumentSet,
    unknown: &UnknownDocuments,
    desired: &DocumentSet,
) -> Vec<Step> {
    let rewritten = unknown.keys().filter(|key| desired.get(key).is_some());
    let rewritten: BTreeMap<Key, Option<Document>> = rewritten.map(|key| (key.clone(), None)).collect();
    let known = if rewritten.is_empty() { current.clone() } else { current.with_changes(rewritten) };
    let (mut puts, mut deletes) = (Vec::new(), Vec::new());
    for (old, new) in desired.changes(&known) {
        match (old, new) {
            (Some(_), Some(new)) => puts.push(Step::Update(new.clone())),
            (None, Some(new)) => puts.push(Step::Create(new.clone())),
            (gone, None) => deletes.extend(gone),
        }
    }

    // Both sorts are stable and both lists are in key order, so the result depends on the content alone.
    puts.sort_by_key(Step::order);
    deletes.sort_by_key(|document| std::cmp::Reverse(document.order));
    puts.extend(deletes.into_iter().map(|document| Step::Delete {
        key: document.key.clone(),
        order: document.order,
        owner: document.owner.clone(),
    }));
    names::ordered(puts, &known, unknown)
}
