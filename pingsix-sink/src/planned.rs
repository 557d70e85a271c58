//! A sink of a target that takes one step at a time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::ready;

use tokio::sync::Mutex;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::{Document, Key};
use crate::error::SinkError;
use crate::plan::{Changed, Step, Steps, plan};
use crate::revision::Revision;
use crate::sink::{Effect, Published, Sink};

/// A target that takes one step at a time. [`PlannedSink`] makes a [`Sink`] of it.
pub trait StepWriter: Send + Sync {
    /// Writes one step. After an error the same step may come again, so a repetition has no effect: a document that exists is
    /// replaced, and a document that is gone stays gone.
    ///
    /// # Errors
    ///
    /// When the target may not have the step. A target that does not respond is an error within a bounded time.
    fn write(&self, scope: &Scope, step: &Step) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// The documents of a scope that this sink has written, also before a restart. Called before the first publication of a
    /// scope, and after an error. Default: `None`, for a target that cannot be read and that is empty at the start.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn read(&self, _scope: &Scope) -> impl Future<Output = Result<Option<DocumentSet>, SinkError>> + Send {
        ready(Ok(None))
    }

    /// The way in which publications take effect.
    fn effect(&self) -> Effect {
        Effect::Live
    }
}

/// A sink that plans the steps of a publication, and keeps the documents and the revision of each scope for a
/// [`StepWriter`].
///
/// - Steps come in an order that is valid at every step; equal content causes no step.
/// - Publications run one after another. A publication that is dropped is like a failed one.
/// - Revisions begin with 1 in each process. A publication has a new one if it changes documents, is the first of its scope,
///   or follows a failed one.
///
/// The sink does not learn of foreign writes to its target.
///
/// ```
/// use pingsix_sink::{Desired, PlannedSink, Scope, Sink as _, SinkError, Step, StepWriter};
///
/// /// Prints the keys.
/// struct Printer;
///
/// impl StepWriter for Printer {
///     async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
///         println!("{}", scope.full_key(step.key()));
///         Ok(())
///     }
/// }
///
/// # async fn publish() -> Result<(), SinkError> {
/// let sink = PlannedSink::new(Printer);
/// let published = sink.publish(&Desired::empty(Scope::new("/pingsix/shop/web")?)).await?;
/// assert!(published.changed.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct PlannedSink<W> {
    writer: W,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Option<Revision>,
    scopes: BTreeMap<Scope, Held>,
}

/// The knowledge of a scope.
#[derive(Default)]
struct Held {
    documents: DocumentSet,
    /// The steps since `documents`, as far as they may be in the target.
    written: BTreeMap<Key, Option<Document>>,
    /// Keys whose last write has no result, so that their values are unknown.
    unknown: BTreeSet<Key>,
    revision: Option<Revision>,
}

/// Without the writer, which may hold values of documents.
impl<W> fmt::Debug for PlannedSink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedSink").finish_non_exhaustive()
    }
}

impl<W> PlannedSink<W> {
    /// A sink that has published nothing yet.
    pub fn new(writer: W) -> Self {
        Self { writer, state: Mutex::default() }
    }

    /// The writer.
    pub const fn writer(&self) -> &W {
        &self.writer
    }
}

impl Held {
    /// The steps to the desired documents. An unknown value is written anew.
    fn plan(&mut self, desired: &DocumentSet) -> Steps {
        let written = std::mem::take(&mut self.written);
        if !written.is_empty() {
            self.documents = self.documents.with_changes(written);
        }
        let is_desired = |key: &&Key| desired.get(key).is_some();
        let unknown: BTreeMap<Key, Option<Document>> =
            self.unknown.iter().filter(is_desired).map(|key| (key.clone(), None)).collect();
        if unknown.is_empty() {
            return plan(&self.documents, desired);
        }
        plan(&self.documents.with_changes(unknown), desired)
    }

    /// Records a step that is about to be written, because its result may be lost.
    fn begin(&mut self, step: &Step) {
        self.unknown.insert(step.key().clone());
        if let Step::Create(document) | Step::Update(document) = step {
            self.written.insert(document.key.clone(), Some(document.clone()));
        }
    }

    fn end(&mut self, step: &Step) {
        self.unknown.remove(step.key());
        if let Step::Delete { key, .. } = step {
            self.written.insert(key.clone(), None);
        }
    }
}

impl<W: StepWriter> Sink for PlannedSink<W> {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let mut guard = self.state.lock().await;
        let State { last, scopes } = &mut *guard;
        let scope = desired.scope();
        scope.check_overlap(scopes.keys())?;
        let held = match scopes.entry(scope.clone()) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => {
                let documents = self.writer.read(scope).await?.unwrap_or_default();
                place.insert(Held { documents, ..Held::default() })
            }
        };
        if !held.unknown.is_empty()
            && let Some(documents) = self.writer.read(scope).await?
        {
            // A new revision follows, even if the target has everything by now.
            *held = Held { documents, ..Held::default() };
        }
        let steps = held.plan(desired.documents());
        if let (Some(revision), true) = (held.revision, steps.is_empty()) {
            return Ok(Published { revision, changed: Changed::default() });
        }
        for step in &steps {
            held.begin(step);
            self.writer.write(scope, step).await?;
            held.end(step);
        }
        let revision = last.and_then(|last| last.checked_add(1)).unwrap_or(Revision::MIN);
        *last = Some(revision);
        // A clone shares memory with the next publication.
        *held = Held { documents: desired.documents().clone(), revision: Some(revision), ..Held::default() };
        Ok(Published { revision, changed: steps.changed() })
    }

    fn effect(&self) -> Effect {
        self.writer.effect()
    }
}
