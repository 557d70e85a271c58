//! Which scopes a sink holds and what it published last, for targets that do not count revisions themselves.

use std::collections::BTreeMap;

use crate::desired::{DesiredError, Scope};
use crate::error::SinkError;
use crate::revision::Revision;

/// The scopes of one sink, each with the revision that brought its content.
#[derive(Debug)]
pub(crate) struct Ledger<T> {
    last: Option<Revision>,
    scopes: BTreeMap<Scope, (Revision, T)>,
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self { last: None, scopes: BTreeMap::new() }
    }
}

impl<T> Ledger<T> {
    /// Whether `scope` may be published: it is held, or lies apart from all that are.
    pub(crate) fn admit(&self, scope: &Scope) -> Result<(), SinkError> {
        scope.beside(self.scopes.keys())
    }

    /// Whether `scope` may be published to a target that is for one scope alone.
    pub(crate) fn admit_alone(&self, scope: &Scope) -> Result<(), SinkError> {
        match self.scopes.keys().find(|held| *held != scope) {
            Some(held) => Err(DesiredError::OneScope { scope: scope.clone(), held: held.clone() }.into()),
            None => Ok(()),
        }
    }

    /// What is known of a scope.
    pub(crate) fn get(&self, scope: &Scope) -> Option<&(Revision, T)> {
        self.scopes.get(scope)
    }

    /// Somebody has used a revision.
    pub(crate) fn saw(&mut self, revision: Revision) {
        self.last = self.last.max(Some(revision));
    }

    /// Holds a scope no more.
    pub(crate) fn forget(&mut self, scope: &Scope) {
        self.scopes.remove(scope);
    }

    /// A revision above all others.
    pub(crate) fn next(&self) -> Revision {
        self.last.and_then(|last| last.checked_add(1)).unwrap_or(Revision::MIN)
    }

    /// Notes what a scope holds since a revision.
    pub(crate) fn note(&mut self, scope: Scope, revision: Revision, content: T) {
        self.saw(revision);
        self.scopes.insert(scope, (revision, content));
    }
}
