//! Drift of published scopes.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::desired::Scope;

/// The scopes that need another publication.
#[derive(Debug)]
pub(super) struct Drift(watch::Sender<BTreeSet<Scope>>);

impl Drift {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(BTreeSet::new()))
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<BTreeSet<Scope>> {
        self.0.subscribe()
    }

    /// Records whether `scope` has drifted; returns whether that is a change.
    pub(super) fn set(&self, scope: &Scope, has_drifted: bool) -> bool {
        self.0.send_if_modified(
            |scopes| {
                if has_drifted { scopes.insert(scope.clone()) } else { scopes.remove(scope) }
            },
        )
    }
}
