//! The difference between what is and what shall be, as steps in a safe order.
//!
//! Steps put documents in ascending order of their hint, then delete in descending order.
//! When a document refers only to documents with a lower hint, and both states are closed under reference, every prefix
//! of the steps leaves a closed state: a put finds its targets either among the unchanged documents or among the puts
//! before it, and a deleted document's referrers are gone or rewritten before it goes.
//!
//! The steps of `ssls` documents between which server names move have an order of their own, so that no prefix of the steps
//! has a name twice. To exchange names, a document is deleted and created again.
//!
//! A target takes all steps at once when it can. One that cannot takes [units] of them, so that requests are answered as
//! before or as after in between.

mod names;
mod units;

pub(crate) use names::at_once;
pub use units::{Units, units};

use std::fmt;

use crate::desired::DocumentSet;
use crate::document::{Document, Key, OrderHint, Owner};

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The document is new.
    Create(Document),
    /// The document has other bytes than before.
    Update(Document),
    /// The document goes.
    Delete {
        /// The name inside the scope.
        key: Key,
        /// The hint it was written with.
        order: OrderHint,
        /// Who had asked for it.
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

/// The steps of one plan, in the order in which they must be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// The steps in order.
    pub fn as_slice(&self) -> &[Step] {
        &self.0
    }

    /// The steps in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Step> {
        self.0.iter()
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many documents the steps touch.
    pub fn changed(&self) -> Changed {
        Changed::default().with(&self.0)
    }
}

impl From<Vec<Step>> for Steps {
    /// Takes the steps in the order they are in.
    fn from(steps: Vec<Step>) -> Self {
        Self(steps)
    }
}

impl<'a> IntoIterator for &'a Steps {
    type Item = &'a Step;
    type IntoIter = std::slice::Iter<'a, Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// How many documents a publication touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Documents that were not there before.
    pub created: usize,
    /// Documents whose bytes changed.
    pub updated: usize,
    /// Documents that are gone.
    pub deleted: usize,
}

impl Changed {
    /// The number of documents touched.
    pub fn total(self) -> usize {
        self.created + self.updated + self.deleted
    }

    /// This and some steps more.
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

    /// Whether nothing was touched.
    pub fn is_empty(self) -> bool {
        self.total() == 0
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} created, {} updated, {} deleted", self.created, self.updated, self.deleted)
    }
}

/// The steps that lead from `current` to `desired`; none when both have the same keys and values.
///
/// A document whose order hint or owner alone changed needs no step.
pub fn plan(current: &DocumentSet, desired: &DocumentSet) -> Steps {
    let (mut puts, mut deletes) = (Vec::new(), Vec::new());
    let (old, new) = current.unshared(desired);
    let mut old = old.peekable();
    for new in new {
        while let Some(gone) = old.next_if(|document| document.key < new.key) {
            deletes.push(gone);
        }
        match old.next_if(|document| document.key == new.key) {
            Some(kept) if kept.value == new.value => {}
            Some(_) => puts.push(Step::Update(new.clone())),
            None => puts.push(Step::Create(new.clone())),
        }
    }
    deletes.extend(old);

    // Both sorts are stable and both lists are in key order, so the result depends on the content alone.
    puts.sort_by_key(Step::order);
    deletes.sort_by_key(|document| std::cmp::Reverse(document.order));
    puts.extend(deletes.into_iter().map(|document| Step::Delete {
        key: document.key.clone(),
        order: document.order,
        owner: document.owner.clone(),
    }));
    Steps(names::ordered(puts, current))
}
