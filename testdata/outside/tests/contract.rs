//! The promises of every sink, for a sink of one's own.

use std::collections::BTreeMap;
use std::sync::Mutex;

use pingsix_sink::contract::PlannedTarget;
use pingsix_sink::{Document, DocumentSet, Key, Scope, SinkError, Step, StepWriter};

#[derive(Default)]
struct Memory(Mutex<BTreeMap<Scope, BTreeMap<Key, Document>>>);

impl StepWriter for Memory {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        let mut scopes = self.0.lock().expect("no test panics meanwhile");
        let documents = scopes.entry(scope.clone()).or_default();
        match step {
            Step::Create(new) | Step::Update(new) => documents.insert(new.key.clone(), new.clone()),
            Step::Delete { key, .. } => documents.remove(key),
        };
        Ok(())
    }

    async fn read(&self, scope: &Scope) -> Result<Option<DocumentSet>, SinkError> {
        let scopes = self.0.lock().expect("no test panics meanwhile");
        DocumentSet::new(scopes.get(scope).into_iter().flat_map(BTreeMap::values).cloned()).map(Some)
    }
}

pingsix_sink::contract_tests! { memory: PlannedTarget<Memory>; }
