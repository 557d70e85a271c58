//! A sink of a target that takes one step at a time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::ready;
use std::mem::take;

use tokio::sync::Mutex;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::{Document, Key};
use crate::error::SinkError;
use crate::plan::{Changed, Step, UnknownDocuments, plan_with_unknown, server_names};
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
    /// scope, after an error, and after [`Sink::forget`]. Default: `None`, for a target that cannot be read and that is empty
    /// at the start.
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
///   or follows a failed one or [`Sink::forget`].
/// - The publication after [`Sink::forget`] reads the target again. If the target cannot be read, it writes all documents, and
///   deletes the other documents that the sink has written.
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
    /// Scopes to forget before the next publication.
    forgotten: parking_lot::Mutex<BTreeSet<Scope>>,
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
    /// Keys whose last write has no result, or all keys after [`Sink::forget`]. Their values are unknown.
    unknown: UnknownDocuments,
    revision: Option<Revision>,
    /// Another scope may take the place of a forgotten one.
    is_forgotten: bool,
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
        Self { writer, state: Mutex::default(), forgotten: parking_lot::Mutex::default() }
    }

    /// The writer.
    pub const fn writer(&self) -> &W {
        &self.writer
    }
}

impl State {
    /// Forgets the scope, and drops it if the target has none of its documents.
    fn forget(&mut self, scope: Scope) {
        if let Entry::Occupied(mut held) = self.scopes.entry(scope) {
            held.get_mut().forget();
            if held.get().documents.is_empty() {
                held.remove();
            }
        }
    }
}

impl Held {
    /// The steps to the desired documents. An unknown value is written anew.
    fn plan(&mut self, desired: &DocumentSet) -> Vec<Step> {
        self.apply_written();
        plan_with_unknown(&self.documents, &self.unknown, desired)
    }

    fn apply_written(&mut self) {
        let written = take(&mut self.written);
        if !written.is_empty() {
            self.documents = self.documents.with_changes(written);
        }
    }

    /// Makes all values unknown, because others may write to the scope from now on.
    fn forget(&mut self) {
        self.apply_written();
        for document in &self.documents {
            self.unknown.entry(document.key.clone()).or_default().extend(server_names(document));
        }
        self.revision = None;
        self.is_forgotten = true;
    }

    /// Records a step that is about to be written, because its result may be lost.
    fn begin(&mut self, step: &Step) {
        let key = step.key();
        let before = match self.written.get(key) {
            Some(written) => written.as_ref(),
            None => self.documents.get(key),
        };
        let possible = self.unknown.entry(key.clone());
        let possible = possible.or_insert_with(|| before.map(server_names).unwrap_or_default());
        if let Step::Create(document) | Step::Update(document) = step {
            possible.extend(server_names(document));
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
        for scope in take(&mut *self.forgotten.lock()) {
            guard.forget(scope);
        }
        let State { last, scopes } = &mut *guard;
        let scope = desired.scope();
        let followed = scopes.iter().filter(|(_, held)| !held.is_forgotten);
        scope.check_overlap(followed.map(|(scope, _)| scope))?;
        let held = match scopes.entry(scope.clone()) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => {
                let documents = self.writer.read(scope).await?.unwrap_or_default();
                place.insert(Held { documents, ..Held::default() })
            }
        };
        held.is_forgotten = false;
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
        Ok(Published { revision, changed: Changed::of(&steps) })
    }

    fn effect(&self) -> Effect {
        self.writer.effect()
    }

    fn forget(&self, scope: &Scope) {
        self.forgotten.lock().insert(scope.clone());
    }
}
