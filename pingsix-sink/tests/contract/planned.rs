//! The adapter for targets that take one step at a time, with a target that can be read and with one that cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::{Document, DocumentSet, PlannedSink, Scope, SinkError, Step, StepWriter};

/// The target.
#[derive(Default)]
struct Place {
    /// By full key, and every former state.
    documents: BTreeMap<String, Document>,
    states: Vec<BTreeMap<String, Document>>,
    /// The number of writes that succeed from now on.
    writes: Option<usize>,
    /// The number of writes that are answered from now on.
    responses: Option<usize>,
}

#[derive(Clone, Default)]
pub(crate) struct Writer {
    place: Arc<Mutex<Place>>,
    is_readable: bool,
}

/// Counts down; `false` at zero.
fn take(left: &mut Option<usize>) -> bool {
    match left {
        None => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}

impl StepWriter for Writer {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        let mut place = self.place.lock();
        if !take(&mut place.writes) {
            return Err(SinkError::target("the write fails"));
        }
        let key = scope.full_key(step.key());
        match step {
            Step::Create(document) | Step::Update(document) => {
                place.documents.insert(key, document.clone());
            }
            Step::Delete { .. } => {
                place.documents.remove(&key);
            }
        }
        let state = place.documents.clone();
        place.states.push(state);
        if take(&mut place.responses) { Ok(()) } else { Err(SinkError::target("the response is lost")) }
    }

    async fn read(&self, scope: &Scope) -> Result<Option<DocumentSet>, SinkError> {
        if !self.is_readable {
            return Ok(None);
        }
        let place = self.place.lock();
        let documents = place.documents.iter().filter(|(key, _)| key.starts_with(scope.key_prefix()));
        DocumentSet::new(documents.map(|(_, document)| document.clone())).map(Some)
    }
}

impl Writer {
    fn contents(scope: &Scope, documents: &BTreeMap<String, Document>) -> Contents {
        let own = documents.iter().filter_map(|(key, document)| {
            let key = key.strip_prefix(scope.key_prefix())?;
            Some((key.to_owned(), String::from_utf8(document.value.to_vec()).unwrap()))
        });
        own.collect()
    }

    fn read_now(&self, scope: &Scope) -> Contents {
        Self::contents(scope, &self.place.lock().documents)
    }

    fn states(&self, scope: &Scope) -> Vec<Contents> {
        let states =
            self.place.lock().states.iter().map(|state| Self::contents(scope, state)).collect::<Vec<_>>();
        [Contents::new()].into_iter().chain(states).collect()
    }
}

macro_rules! targets {
    ($($name:ident, $is_readable:literal, [$($missing:expr),*];)+) => {$(
        pub(crate) struct $name(Writer);

        impl TestTarget for $name {
            type Sink = PlannedSink<Writer>;

            const MISSING: &'static [(Ability, &'static str)] = &[
                (Ability::RemembersRevisions, "the adapter counts revisions in its process"),
                (Ability::HasOtherWriters, "the adapter does not learn of foreign writes"),
                (Ability::CanStall, "timeouts are the duty of the writer"),
                $($missing,)*
            ];

            async fn start() -> Option<Self> {
                Some(Self(Writer { is_readable: $is_readable, ..Writer::default() }))
            }

            async fn open(&self) -> Self::Sink {
                PlannedSink::new(self.0.clone())
            }

            async fn read(&self, scope: &Scope) -> Contents {
                self.0.read_now(scope)
            }

            async fn states(&self, scope: &Scope) -> Vec<Contents> {
                self.0.states(scope)
            }

            fn fail_after(&self, writes: Option<usize>) {
                self.0.place.lock().writes = writes;
            }

            fn lose_responses_after(&self, responses: Option<usize>) {
                self.0.place.lock().responses = responses;
            }
        }
    )+};
}

targets! {
    Readable, true, [];
    Unreadable, false, [
        (Ability::IsPersistent, "a target without reads is empty at the start"),
        (Ability::LosesResponses, "the adapter repeats a step without a response")
    ];
}

/// A target without reads gets a step again whose response was lost, whatever is desired next.
#[tokio::test]
async fn a_step_without_a_response_is_repeated() {
    use pingsix_sink::Sink as _;

    use crate::documents::desired;

    let target = Unreadable::start().await.unwrap();
    let sink = target.open().await;
    let [one, two] = ["1", "2"].map(|value| desired("/p/web", &[("routes/r", value)]));
    sink.publish(&one).await.unwrap();
    target.lose_responses_after(Some(0));
    sink.publish(&two).await.unwrap_err();
    target.lose_responses_after(None);
    // The sink last knew the value 1, and the target has 2.
    let back = sink.publish(&one).await.unwrap();
    assert_eq!((back.changed.total(), target.read(one.scope()).await["routes/r"].as_str()), (1, "1"));
    assert!(sink.publish(&one).await.unwrap().changed.is_empty());
}
