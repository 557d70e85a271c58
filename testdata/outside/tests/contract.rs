//! The promises of every sink, for a sink of one's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pingsix_sink::contract::{Ability, Contents, TestTarget, UNDISTURBED};
use pingsix_sink::{PlannedSink, Scope, SinkError, Step, StepWriter};

/// Each state of the target, oldest first.
#[derive(Clone, Debug, Default)]
struct States(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

impl StepWriter for States {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        let mut states = self.0.lock().expect("no test panics meanwhile");
        let mut state = states.last().cloned().unwrap_or_default();
        match step {
            Step::Create(new) | Step::Update(new) => {
                state.insert(scope.full_key(&new.key), String::from_utf8_lossy(&new.value).into_owned())
            }
            Step::Delete { key, .. } => state.remove(&scope.full_key(key)),
        };
        states.push(state);
        Ok(())
    }
}

impl TestTarget for States {
    type Sink = PlannedSink<Self>;
    const MISSING: &'static [(Ability, &'static str)] = UNDISTURBED;

    async fn start() -> Option<Self> {
        Some(Self::default())
    }

    async fn open(&self) -> Self::Sink {
        PlannedSink::new(self.clone())
    }

    async fn read(&self, scope: &Scope) -> Contents {
        self.states(scope).await.pop().unwrap_or_default()
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let below = |(key, value): (&String, &String)| {
            Some((key.strip_prefix(scope.key_prefix())?.to_owned(), value.clone()))
        };
        let states = self.0.lock().expect("no test panics meanwhile");
        let states = states.iter().map(|state| state.iter().filter_map(below).collect());
        [Contents::new()].into_iter().chain(states).collect()
    }
}

pingsix_sink::contract_tests! { own: crate::States; }
