//! The adapter for targets that take one step at a time, with a target that can be read and with one that cannot.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::contract::{Ability, Contents, PlannedTarget, TestTarget};
use pingsix_sink::{Document, DocumentSet, Key, PlannedSink, Scope, Sink as _, SinkError, Step, StepWriter};

/// A target that can be read.
#[derive(Default)]
pub(crate) struct Readable(Mutex<BTreeMap<Scope, BTreeMap<Key, Document>>>);

impl StepWriter for Readable {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        let mut scopes = self.0.lock();
        let documents = scopes.entry(scope.clone()).or_default();
        match step {
            Step::Create(document) | Step::Update(document) => {
                documents.insert(document.key.clone(), document.clone())
            }
            Step::Delete { key, .. } => documents.remove(key),
        };
        Ok(())
    }

    async fn read(&self, scope: &Scope) -> Result<Option<DocumentSet>, SinkError> {
        let scopes = self.0.lock();
        DocumentSet::new(scopes.get(scope).into_iter().flat_map(BTreeMap::values).cloned()).map(Some)
    }
}

/// The same target, which its sink cannot read.
#[derive(Clone)]
pub(crate) struct Unreadable(PlannedTarget<Readable>);

impl StepWriter for Unreadable {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        self.0.write(scope, step).await
    }
}

impl TestTarget for Unreadable {
    type Sink = PlannedSink<Self>;

    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::RemembersRevisions, "the adapter counts revisions in its process"),
        (Ability::HasOtherWriters, "the adapter does not learn of foreign writes"),
        (Ability::CanStall, "timeouts are the duty of the writer"),
        (Ability::IsPersistent, "a target without reads is empty at the start"),
        (Ability::LosesResponses, "the adapter repeats a step without a response"),
    ];

    async fn start() -> Option<Self> {
        PlannedTarget::start().await.map(Self)
    }

    async fn open(&self) -> Self::Sink {
        PlannedSink::new(self.clone())
    }

    async fn read(&self, scope: &Scope) -> Contents {
        TestTarget::read(&self.0, scope).await
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        self.0.states(scope).await
    }

    fn fail_after(&self, writes: Option<usize>) {
        self.0.fail_after(writes);
    }

    fn lose_responses_after(&self, writes: Option<usize>) {
        self.0.lose_responses_after(writes);
    }
}

/// A target without reads gets a step again whose response was lost, whatever is desired next.
#[tokio::test]
async fn a_step_without_a_response_is_repeated() {
    let target = Unreadable::start().await.unwrap();
    let sink = target.open().await;
    let [one, two] = ["1", "2"].map(|value| desired("/p/web", &[("routes/r", value)]));
    sink.publish(&one).await.unwrap();
    target.lose_responses_after(Some(0));
    sink.publish(&two).await.unwrap_err();
    target.lose_responses_after(None);
    // The sink last knew the value 1, and the target has 2.
    let back = sink.publish(&one).await.unwrap();
    let contents = TestTarget::read(&target, one.scope()).await;
    assert_eq!((back.changed.total(), contents["routes/r"].as_str()), (1, "1"));
    assert!(sink.publish(&one).await.unwrap().changed.is_empty());
}
