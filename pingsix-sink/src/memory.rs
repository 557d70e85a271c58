//! The reference implementation: what every sink must do, without a target.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::error::SinkError;
use crate::plan::{Steps, plan};
use crate::revision::Revision;
use crate::{Published, Sink};

/// Holds documents in memory and remembers the steps of every publication.
///
/// For tests, and for programs that hand documents on themselves.
#[derive(Debug, Default)]
pub struct MemorySink {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: i64,
    scopes: BTreeMap<Scope, Held>,
    history: Vec<(Revision, Scope, Steps)>,
}

#[derive(Debug)]
struct Held {
    documents: DocumentSet,
    revision: Revision,
}

impl MemorySink {
    /// A sink that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What `scope` holds; `None` before its first publication.
    pub fn documents(&self, scope: &Scope) -> Option<DocumentSet> {
        self.state.lock().scopes.get(scope).map(|held| held.documents.clone())
    }

    /// The scopes that were published, in order.
    pub fn scopes(&self) -> Vec<Scope> {
        self.state.lock().scopes.keys().cloned().collect()
    }

    /// Every publication that changed something, oldest first.
    pub fn history(&self) -> Vec<(Revision, Scope, Steps)> {
        self.state.lock().history.clone()
    }
}

impl Sink for MemorySink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let mut state = self.state.lock();
        let scope = desired.scope();
        if let Some(held) = state.scopes.keys().find(|held| *held != scope && held.overlaps(scope)) {
            return Err(SinkError::ScopeOverlap { scope: scope.clone(), held: held.clone() });
        }
        let (current, before) = match state.scopes.get(scope) {
            Some(held) => (held.documents.clone(), Some(held.revision)),
            None => (DocumentSet::default(), None),
        };
        let steps = plan(&current, desired.documents());
        let changed = steps.changed();
        let revision = match before {
            Some(revision) if steps.is_empty() => revision,
            Some(_) | None => {
                state.last += 1;
                Revision::new(state.last).expect("a counter that starts at zero and grows is positive")
            }
        };
        if !steps.is_empty() {
            state.history.push((revision, scope.clone(), steps));
        }
        state.scopes.insert(scope.clone(), Held { documents: desired.documents().clone(), revision });
        Ok(Published { revision, changed })
    }
}
