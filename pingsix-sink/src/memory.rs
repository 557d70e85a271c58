//! The reference implementation: what every sink must do, without a target.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::{Document, Key};
use crate::error::SinkError;
use crate::plan::{Step, Steps, plan};
use crate::revision::Revision;
use crate::sink::{Published, Sink};

/// Holds documents in memory and remembers the steps of every publication.
///
/// For tests, and for programs that hand documents on themselves.
/// Clones are sinks of the same target, so a clone sees what a restarted program would; others can write to the target
/// as well, and it can be made to fail.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    target: Arc<Mutex<Target>>,
}

#[derive(Debug, Default)]
struct Target {
    last: i64,
    scopes: BTreeMap<Scope, ScopeContent>,
    history: Vec<(Revision, Scope, Steps)>,
    /// How many writes succeed from now on, if not all.
    writes: Option<usize>,
}

/// What a scope holds.
#[derive(Default)]
struct ScopeContent {
    documents: DocumentSet,
    /// What was not published.
    foreign: BTreeMap<Key, Bytes>,
    /// When the documents became what they are; `None` before the first publication.
    revision: Option<Revision>,
}

impl std::fmt::Debug for ScopeContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopeContent")
            .field("documents", &self.documents)
            .field("foreign", &self.foreign.keys().collect::<Vec<_>>())
            .field("revision", &self.revision)
            .finish()
    }
}

/// The target takes no more writes, as [`MemorySink::fail_after`] told it.
#[derive(Debug, thiserror::Error)]
#[error("it was told to fail")]
struct ToldToFail;

impl MemorySink {
    /// A sink with a target of its own, which holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The documents that were published to `scope` and are there; `None` before its first publication.
    pub fn documents(&self, scope: &Scope) -> Option<DocumentSet> {
        let target = self.target.lock();
        let held = target.scopes.get(scope).filter(|held| held.revision.is_some());
        held.map(|held| held.documents.clone())
    }

    /// Everything under `scope`, whoever wrote it.
    pub fn contents(&self, scope: &Scope) -> BTreeMap<Key, Bytes> {
        let target = self.target.lock();
        let Some(held) = target.scopes.get(scope) else { return BTreeMap::new() };
        let documents = held.documents.iter().map(|document| (document.key.clone(), document.value.clone()));
        documents.chain(held.foreign.clone()).collect()
    }

    /// The scopes that were published, in order.
    pub fn scopes(&self) -> Vec<Scope> {
        let target = self.target.lock();
        let published = target.scopes.iter().filter(|(_, held)| held.revision.is_some());
        published.map(|(scope, _)| scope.clone()).collect()
    }

    /// Every publication that changed something, oldest first, with the steps that were taken.
    pub fn history(&self) -> Vec<(Revision, Scope, Steps)> {
        self.target.lock().history.clone()
    }

    /// Writes a key as somebody else would, or deletes it.
    ///
    /// A document that is edited so is still the sink's; a key that the sink did not write is not, until it is wanted.
    pub fn interfere(&self, scope: &Scope, key: &Key, value: Option<Bytes>) {
        let mut target = self.target.lock();
        let held = target.scopes.entry(scope.clone()).or_default();
        match (held.documents.get(key).cloned(), value) {
            (Some(document), value) => {
                let document = value.map(|value| Document { value, ..document });
                held.documents = held.documents.with_changes([(key.clone(), document)].into());
            }
            (None, Some(value)) => {
                held.foreign.insert(key.clone(), value);
            }
            (None, None) => {
                held.foreign.remove(key);
            }
        }
    }

    /// Makes the target fail when it has taken so many writes more; `None` makes it well.
    pub fn fail_after(&self, writes: Option<usize>) {
        self.target.lock().writes = writes;
    }
}

impl ScopeContent {
    /// Takes steps. What is wanted is ours, even if somebody else was there first.
    fn take(&mut self, steps: &[Step]) {
        let changes = steps.iter().map(|step| match step {
            Step::Create(document) | Step::Update(document) => (document.key.clone(), Some(document.clone())),
            Step::Delete { key, .. } => (key.clone(), None),
        });
        let changes: BTreeMap<Key, Option<Document>> = changes.collect();
        self.foreign.retain(|key, _| !changes.contains_key(key));
        self.documents = self.documents.with_changes(changes);
    }
}

impl Sink for MemorySink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let mut guard = self.target.lock();
        let target = &mut *guard;
        let scope = desired.scope();
        let published = target.scopes.iter().filter(|(_, held)| held.revision.is_some());
        scope.beside(published.map(|(held, _)| held))?;
        let held = target.scopes.entry(scope.clone()).or_default();
        let steps = plan(&held.documents, desired.documents());
        let revision = match held.revision {
            Some(revision) if steps.is_empty() => revision,
            Some(_) | None => {
                target.last += 1;
                Revision::new(target.last).expect("a counter that starts at zero and grows is positive")
            }
        };
        let possible = target.writes.map_or(steps.len(), |writes| writes.min(steps.len()));
        let (taken, rest) = steps.as_slice().split_at(possible);
        held.take(taken);
        if let Some(writes) = &mut target.writes {
            *writes -= possible;
        }
        let (taken, is_complete) = (Steps::from(taken.to_vec()), rest.is_empty());
        let changed = taken.changed();
        if is_complete {
            // The same documents, and what they share with those that are published next.
            held.documents = desired.documents().clone();
        }
        if is_complete || !taken.is_empty() {
            held.revision = Some(revision);
        }
        if !taken.is_empty() {
            target.history.push((revision, scope.clone(), taken));
        }
        if is_complete { Ok(Published { revision, changed }) } else { Err(SinkError::target(ToldToFail)) }
    }
}
