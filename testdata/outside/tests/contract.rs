//! The promises of every sink, for a sink of one's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_sink::contract::{Ability, Contents, TestTarget, UNDISTURBED};
use pingsix_sink::{Desired, MemorySink, Published, Scope, Sink, SinkError, Step, plan};
use tokio::sync::Mutex;

/// A sink that writes one document after another. [`MemorySink`] keeps the published documents and their revisions: the
/// next publication plans from them, so it repeats the steps of one that has failed.
#[derive(Clone, Debug, Default)]
struct Shelf {
    published: MemorySink,
    states: Arc<Mutex<BTreeMap<Scope, Vec<Contents>>>>,
}

impl Sink for Shelf {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        // One publication after another.
        let mut scopes = self.states.lock().await;
        let before = self.published.documents(desired.scope()).unwrap_or_default();
        let states = scopes.entry(desired.scope().clone()).or_default();
        for step in &plan(&before, desired.documents()) {
            let mut state = states.last().cloned().unwrap_or_default();
            match step {
                Step::Create(new) | Step::Update(new) => {
                    state.insert(new.key.to_string(), String::from_utf8_lossy(&new.value).into_owned())
                }
                Step::Delete { key, .. } => state.remove(&key.to_string()),
            };
            states.push(state);
        }
        self.published.publish(desired).await
    }
}

impl TestTarget for Shelf {
    type Sink = Self;
    const MISSING: &'static [(Ability, &'static str)] = UNDISTURBED;

    async fn start() -> Option<Self> {
        Some(Self::default())
    }

    async fn open(&self) -> Self {
        self.clone()
    }

    async fn read(&self, scope: &Scope) -> Contents {
        self.states(scope).await.pop().unwrap_or_default()
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        self.states.lock().await.get(scope).cloned().unwrap_or_default()
    }
}

pingsix_sink::contract_tests! { shelf: Shelf; }
