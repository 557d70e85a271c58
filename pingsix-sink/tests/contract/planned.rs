//! The adapter for targets that take one step at a time, with a target that can be read and with one that cannot.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::contract::{Ability, Contents, PlannedTarget, TestTarget, TestWriter};
use pingsix_sink::{Document, DocumentSet, Key, Scope, Sink as _, SinkError, Step, StepWriter};

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
pub(crate) struct Unreadable(Readable);

impl StepWriter for Unreadable {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        self.0.write(scope, step).await
    }
}

impl TestWriter for Unreadable {
    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::RemembersRevisions, "the adapter counts revisions in its process"),
        (Ability::HasOtherWriters, "the adapter does not learn of foreign writes"),
        (Ability::CanStall, "timeouts are the duty of the writer"),
        (Ability::IsPersistent, "a target without reads is empty at the start"),
        (Ability::LosesResponses, "the adapter repeats a step without a response"),
    ];

    async fn start() -> Option<Self> {
        Some(Self(Readable::default()))
    }

    async fn contents(&self, scope: &Scope) -> Contents {
        self.0.contents(scope).await
    }
}

/// A target without reads gets a step again whose response was lost, whatever is desired next.
#[tokio::test]
async fn a_step_without_a_response_is_repeated() {
    let target = PlannedTarget::<Unreadable>::start().await.unwrap();
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

/// After `forget`, another program may write to the scope.
async fn publishes_anew_what_was_forgotten<W: TestWriter>() {
    let target = PlannedTarget::<W>::start().await.unwrap();
    let (sink, other) = (target.open().await, target.open().await);
    let one = desired("/p/web", &[("routes/r", "1"), ("routes/s", "1")]);
    let first = sink.publish(&one).await.unwrap();
    sink.forget(one.scope());
    other.publish(&desired("/p/web", &[("routes/r", "2")])).await.unwrap();
    let again = sink.publish(&one).await.unwrap();
    assert!(again.revision > first.revision);
    assert_eq!(TestTarget::read(&target, one.scope()).await["routes/r"], "1");
    assert!(sink.publish(&one).await.unwrap().changed.is_empty());

    // Documents of before are deleted if they are no longer desired.
    sink.forget(one.scope());
    let rest = desired("/p/web", &[("routes/s", "1")]);
    sink.publish(&rest).await.unwrap();
    let contents = TestTarget::read(&target, one.scope()).await;
    assert_eq!(contents, Contents::from([("routes/s".to_owned(), "1".to_owned())]));

    // Another scope takes the place of a forgotten one.
    let outer = desired("/p", &[("routes/r", "1")]);
    sink.publish(&outer).await.unwrap_err();
    sink.forget(rest.scope());
    sink.publish(&outer).await.unwrap();
    sink.publish(&rest).await.unwrap_err();
    sink.forget(&scope("/elsewhere"));
    assert!(sink.publish(&outer).await.unwrap().changed.is_empty(), "other scopes are still known");
}

#[tokio::test]
async fn a_forgotten_scope_is_read_again() {
    publishes_anew_what_was_forgotten::<Readable>().await;
}

#[tokio::test]
async fn a_forgotten_scope_without_reads_is_written_anew() {
    publishes_anew_what_was_forgotten::<Unreadable>().await;
}

/// A writer whose server is missing.
enum Missing {}

impl StepWriter for Missing {
    async fn write(&self, _scope: &Scope, _step: &Step) -> Result<(), SinkError> {
        match *self {}
    }
}

impl TestWriter for Missing {
    async fn start() -> Option<Self> {
        None
    }
}

#[tokio::test]
async fn promises_of_a_writer_without_its_server_are_skipped() {
    assert!(PlannedTarget::<Missing>::start().await.is_none());
}
