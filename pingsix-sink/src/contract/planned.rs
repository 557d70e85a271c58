//! The target of a writer of single steps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::target::{Ability, Contents, TestTarget};
use crate::desired::{DocumentSet, Scope};
use crate::error::SinkError;
use crate::plan::Step;
use crate::planned::{PlannedSink, StepWriter};
use crate::sink::Effect;

/// The target of a [`StepWriter`], for the promises of its [`PlannedSink`]. The promises read the target after each write,
/// restart the sink, let writes fail, and lose their responses.
///
/// `W::default()` has a new and empty target, which [`StepWriter::read`] can read.
pub struct PlannedTarget<W>(Arc<Recorder<W>>);

struct Recorder<W> {
    writer: W,
    /// The states after each write, oldest first.
    states: Mutex<BTreeMap<Scope, Vec<Contents>>>,
    writes_until_failure: Mutex<Option<usize>>,
    responses_until_loss: Mutex<Option<usize>>,
}

/// Counts down; `false` at zero.
fn take(left: &Mutex<Option<usize>>) -> bool {
    match &mut *left.lock() {
        None => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}

impl<W> Clone for PlannedTarget<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W> fmt::Debug for PlannedTarget<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedTarget").finish_non_exhaustive()
    }
}

impl<W: StepWriter> StepWriter for PlannedTarget<W> {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        if !take(&self.0.writes_until_failure) {
            return Err(SinkError::target("the write fails"));
        }
        self.0.writer.write(scope, step).await?;
        let contents = self.contents(scope).await;
        self.0.states.lock().entry(scope.clone()).or_default().push(contents);
        if take(&self.0.responses_until_loss) {
            Ok(())
        } else {
            Err(SinkError::target("the response is lost"))
        }
    }

    async fn read(&self, scope: &Scope) -> Result<Option<DocumentSet>, SinkError> {
        self.0.writer.read(scope).await
    }

    fn effect(&self) -> Effect {
        self.0.writer.effect()
    }
}

impl<W: StepWriter> PlannedTarget<W> {
    async fn contents(&self, scope: &Scope) -> Contents {
        let documents = self.0.writer.read(scope).await.unwrap().expect("the writer can read its target");
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        documents.iter().map(|document| (document.key.to_string(), text(&document.value))).collect()
    }
}

impl<W: StepWriter + Default> TestTarget for PlannedTarget<W> {
    type Sink = PlannedSink<Self>;

    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::RemembersRevisions, "a planned sink counts revisions in its process"),
        (Ability::HasOtherWriters, "a planned sink does not learn of foreign writes"),
        (Ability::CanStall, "timeouts are the duty of the writer"),
    ];

    async fn start() -> Option<Self> {
        Some(Self(Arc::new(Recorder {
            writer: W::default(),
            states: Mutex::default(),
            writes_until_failure: Mutex::default(),
            responses_until_loss: Mutex::default(),
        })))
    }

    async fn open(&self) -> Self::Sink {
        PlannedSink::new(self.clone())
    }

    async fn read(&self, scope: &Scope) -> Contents {
        self.contents(scope).await
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let states = self.0.states.lock();
        [Contents::new()].into_iter().chain(states.get(scope).into_iter().flatten().cloned()).collect()
    }

    fn fail_after(&self, writes: Option<usize>) {
        *self.0.writes_until_failure.lock() = writes;
    }

    fn lose_responses_after(&self, writes: Option<usize>) {
        *self.0.responses_until_loss.lock() = writes;
    }
}
