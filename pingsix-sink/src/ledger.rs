//! Scopes and revisions of a sink whose target does not count revisions itself.

use std::collections::BTreeMap;

use crate::desired::{DesiredError, Scope};
use crate::error::SinkError;
use crate::revision::Revision;

/// The scopes of one sink, each with the revision of its last change.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    last: Option<Revision>,
    scopes: BTreeMap<Scope, Revision>,
}

impl Ledger {
    /// Checks that `scope` is held or overlaps no held scope.
    pub(crate) fn admit(&self, scope: &Scope) -> Result<(), SinkError> {
        scope.check_overlap(self.scopes.keys())
    }

    /// Checks that `scope` is the only scope of the target.
    pub(crate) fn admit_alone(&self, scope: &Scope) -> Result<(), SinkError> {
        match self.scopes.keys().find(|held| *held != scope) {
            Some(held) => Err(DesiredError::OneScope { scope: scope.clone(), held: held.clone() }.into()),
            None => Ok(()),
        }
    }

    /// The revision of a scope.
    pub(crate) fn get(&self, scope: &Scope) -> Option<Revision> {
        self.scopes.get(scope).copied()
    }

    /// Records a revision that another writer has used.
    pub(crate) fn observe(&mut self, revision: Revision) {
        self.last = self.last.max(Some(revision));
    }

    /// Removes a scope.
    pub(crate) fn forget(&mut self, scope: &Scope) {
        self.scopes.remove(scope);
    }

    /// A revision above all others.
    pub(crate) fn next(&self) -> Revision {
        self.last.and_then(|last| last.checked_add(1)).unwrap_or(Revision::MIN)
    }

    /// Records the last change of a scope.
    pub(crate) fn record(&mut self, scope: Scope, revision: Revision) {
        self.observe(revision);
        self.scopes.insert(scope, revision);
    }
}
