//! The reference implementation of a sink, without a target.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::{Document, Key};
use crate::error::SinkError;
use crate::plan::{Changed, Step, plan};
use crate::revision::Revision;
use crate::sink::{Published, Sink};

/// The number of publications that [`MemorySink::history`] keeps.
pub const HISTORY_LIMIT: usize = 1_000;

/// Holds documents in memory and records the steps of the newest publications.
///
/// For tests, and for programs that deliver documents themselves. Clones share the target, so a clone behaves as a
/// restarted program. Foreign writes and failures of the target can be simulated.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    target: Arc<Mutex<Target>>,
}

#[derive(Debug, Default)]
struct Target {
    last: i64,
    scopes: BTreeMap<Scope, ScopeContent>,
    history: VecDeque<(Revision, Scope, Vec<Step>)>,
    /// The number of writes that succeed from now on; `None` for all.
    writes: Option<usize>,
}

/// The content of a scope.
#[derive(Default)]
struct ScopeContent {
    documents: DocumentSet,
    /// Foreign documents.
    foreign: BTreeMap<Key, Bytes>,
    /// The revision of the last change; `None` before the first publication.
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

/// The failure that [`MemorySink::fail_after`] simulates.
#[derive(Debug, thiserror::Error)]
#[error("it was told to fail")]
struct InjectedFailure;

impl MemorySink {
    /// A sink with an empty target of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// The published documents of `scope`; `None` before its first publication.
    pub fn documents(&self, scope: &Scope) -> Option<DocumentSet> {
        let target = self.target.lock();
        let published = target.scopes.get(scope).filter(|published| published.revision.is_some());
        published.map(|published| published.documents.clone())
    }

    /// All documents under `scope`, foreign ones included.
    pub fn contents(&self, scope: &Scope) -> BTreeMap<Key, Bytes> {
        let target = self.target.lock();
        let Some(published) = target.scopes.get(scope) else { return BTreeMap::new() };
        let documents =
            published.documents.iter().map(|document| (document.key.clone(), document.value.clone()));
        documents.chain(published.foreign.clone()).collect()
    }

    /// The published scopes in order.
    pub fn scopes(&self) -> Vec<Scope> {
        let target = self.target.lock();
        let published = target.scopes.iter().filter(|(_, published)| published.revision.is_some());
        published.map(|(scope, _)| scope.clone()).collect()
    }

    /// The newest publications with changes, oldest first, with their steps: at most 1,000 ([`HISTORY_LIMIT`]).
    pub fn history(&self) -> Vec<(Revision, Scope, Vec<Step>)> {
        self.target.lock().history.iter().cloned().collect()
    }

    /// Writes or deletes a key as a foreign writer.
    ///
    /// A document that is edited so still belongs to the sink. A new key is foreign until it is desired.
    pub fn write_foreign(&self, scope: &Scope, key: &Key, value: Option<Bytes>) {
        let mut target = self.target.lock();
        let published = target.scopes.entry(scope.clone()).or_default();
        match (published.documents.get(key).cloned(), value) {
            (Some(document), value) => {
                let document = value.map(|value| Document { value, ..document });
                published.documents = published.documents.with_changes([(key.clone(), document)].into());
            }
            (None, Some(value)) => {
                published.foreign.insert(key.clone(), value);
            }
            (None, None) => {
                published.foreign.remove(key);
            }
        }
    }

    /// Lets the target fail after so many more writes; `None` ends the failure.
    pub fn fail_after(&self, writes: Option<usize>) {
        self.target.lock().writes = writes;
    }
}

impl ScopeContent {
    /// Applies steps. A desired document replaces a foreign one.
    fn apply(&mut self, steps: &[Step]) {
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
        let published = target.scopes.iter().filter(|(_, published)| published.revision.is_some());
        scope.check_overlap(published.map(|(published, _)| published))?;
        let published = target.scopes.entry(scope.clone()).or_default();
        let steps = plan(&published.documents, desired.documents());
        let revision = match published.revision {
            Some(revision) if steps.is_empty() => revision,
            Some(_) | None => {
                target.last += 1;
                Revision::new(target.last).expect("a counter that starts at zero and grows is positive")
            }
        };
        let possible = target.writes.map_or(steps.len(), |writes| writes.min(steps.len()));
        let (taken, rest) = steps.split_at(possible);
        published.apply(taken);
        if let Some(writes) = &mut target.writes {
            *writes -= possible;
        }
        let (taken, is_complete) = (taken.to_vec(), rest.is_empty());
        let changed = Changed::of(&taken);
        if is_complete {
            // A clone shares memory with the next publication.
            published.documents = desired.documents().clone();
        }
        if is_complete || !taken.is_empty() {
            published.revision = Some(revision);
        }
        if !taken.is_empty() {
            if target.history.len() == HISTORY_LIMIT {
                target.history.pop_front();
            }
            target.history.push_back((revision, scope.clone(), taken));
        }
        if is_complete {
            Ok(Published { revision, changed })
        } else {
            Err(SinkError::target(InjectedFailure))
        }
    }
}
