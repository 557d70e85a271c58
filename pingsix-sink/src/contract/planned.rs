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

/// The missing abilities of a [`PlannedTarget`] whose writer has all others.
pub const PLANNED_MISSING: &[(Ability, &str)] = &[
    (Ability::RemembersRevisions, "a planned sink counts revisions in its process"),
    (Ability::HasOtherWriters, "a planned sink does not learn of foreign writes"),
    (Ability::CanStall, "timeouts are the duty of the writer"),
];

/// A [`StepWriter`] with a target for tests.
///
/// A writer with [`Default`] is one: `W::default()` has a new and empty target, which [`StepWriter::read`] can read. A writer
/// that needs more, such as the URL of a server or another list of missing abilities, has no [`Default`] and implements this
/// trait:
///
/// ```
/// use pingsix_sink::contract::{PlannedTarget, TestWriter};
/// use pingsix_sink::{Scope, SinkError, Step, StepWriter};
///
/// struct Server {
///     url: String,
/// }
///
/// impl TestWriter for Server {
///     async fn start() -> Option<Self> {
///         let Ok(url) = std::env::var("SERVER_URL") else {
///             eprintln!("NOT RUN: SERVER_URL is not set");
///             return None;
///         };
///         Some(Self { url })
///     }
/// }
/// # impl StepWriter for Server {
/// #     async fn write(&self, _scope: &Scope, _step: &Step) -> Result<(), SinkError> {
/// #         Err(SinkError::target(self.url.clone()))
/// #     }
/// # }
///
/// pingsix_sink::contract_tests! { server: PlannedTarget<Server>; }
/// # fn main() {}
/// ```
#[allow(async_fn_in_trait, reason = "the promises run in the task of their test")]
pub trait TestWriter: StepWriter + Sized {
    /// The missing abilities with reasons, as [`TestTarget::MISSING`]. Another list contains those of [`PLANNED_MISSING`], too.
    const MISSING: &'static [(Ability, &'static str)] = PLANNED_MISSING;

    /// A writer with a new and empty target; `None`, with a message, if a program is missing.
    async fn start() -> Option<Self>;

    /// The present contents of a scope. Default: those of [`StepWriter::read`].
    ///
    /// # Panics
    ///
    /// When the target cannot be read.
    fn contents(&self, scope: &Scope) -> impl Future<Output = Contents> + Send {
        async {
            let documents = self.read(scope).await.unwrap().expect("the writer can read its target");
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
            documents.iter().map(|document| (document.key.to_string(), text(&document.value))).collect()
        }
    }
}

impl<W: StepWriter + Default> TestWriter for W {
    async fn start() -> Option<Self> {
        Some(Self::default())
    }
}

/// The target of a [`TestWriter`], for the promises of its [`PlannedSink`]. The promises read the target after each write,
/// restart the sink, let writes fail, and lose their responses.
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

impl<W: TestWriter> StepWriter for PlannedTarget<W> {
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        if !take(&self.0.writes_until_failure) {
            return Err(SinkError::target("the write fails"));
        }
        self.0.writer.write(scope, step).await?;
        let contents = self.0.writer.contents(scope).await;
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

impl<W: TestWriter> TestTarget for PlannedTarget<W> {
    type Sink = PlannedSink<Self>;

    const MISSING: &'static [(Ability, &'static str)] = W::MISSING;

    async fn start() -> Option<Self> {
        Some(Self(Arc::new(Recorder {
            writer: W::start().await?,
            states: Mutex::default(),
            writes_until_failure: Mutex::default(),
            responses_until_loss: Mutex::default(),
        })))
    }

    async fn open(&self) -> Self::Sink {
        PlannedSink::new(self.clone())
    }

    async fn read(&self, scope: &Scope) -> Contents {
        self.0.writer.contents(scope).await
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
