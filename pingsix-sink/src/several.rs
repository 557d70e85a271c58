//! Several targets at once.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use tokio::sync::watch;

use crate::desired::{Desired, Scope};
use crate::error::SinkError;
use crate::{Effect, Published, Sink};

/// A sink of any kind. Clones share it.
#[derive(Clone)]
pub struct AnySink(Arc<dyn Erased>);

/// [`Sink`] without the type of its future.
trait Erased: Send + Sync {
    fn publish_boxed<'a>(&'a self, desired: &'a Desired) -> BoxFuture<'a, Result<Published, SinkError>>;
    fn effect_erased(&self) -> Effect;
    fn drifted_erased(&self) -> Option<watch::Receiver<BTreeSet<Scope>>>;
    fn forget_erased(&self, scope: &Scope);
    fn publish_as_erased(&self, publisher: &str);
    fn fence_erased(&self, term: u64);
    fn own_scopes_boxed<'a>(&'a self, root: &'a Scope) -> BoxFuture<'a, Result<BTreeSet<Scope>, SinkError>>;
}

impl<S: Sink> Erased for S {
    fn publish_boxed<'a>(&'a self, desired: &'a Desired) -> BoxFuture<'a, Result<Published, SinkError>> {
        Box::pin(self.publish(desired))
    }

    fn effect_erased(&self) -> Effect {
        self.effect()
    }

    fn drifted_erased(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        self.drifted()
    }

    fn forget_erased(&self, scope: &Scope) {
        self.forget(scope);
    }

    fn publish_as_erased(&self, publisher: &str) {
        self.publish_as(publisher);
    }

    fn fence_erased(&self, term: u64) {
        self.fence(term);
    }

    fn own_scopes_boxed<'a>(&'a self, root: &'a Scope) -> BoxFuture<'a, Result<BTreeSet<Scope>, SinkError>> {
        Box::pin(self.own_scopes(root))
    }
}

impl AnySink {
    /// Forgets which kind of sink it is.
    pub fn new(sink: impl Sink + 'static) -> Self {
        Self(Arc::new(sink))
    }
}

impl Sink for AnySink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.0.publish_boxed(desired).await
    }

    fn effect(&self) -> Effect {
        self.0.effect_erased()
    }

    fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        self.0.drifted_erased()
    }

    fn forget(&self, scope: &Scope) {
        self.0.forget_erased(scope);
    }

    fn publish_as(&self, publisher: &str) {
        self.0.publish_as_erased(publisher);
    }

    fn fence(&self, term: u64) {
        self.0.fence_erased(term);
    }

    async fn own_scopes(&self, root: &Scope) -> Result<BTreeSet<Scope>, SinkError> {
        self.0.own_scopes_boxed(root).await
    }
}

impl fmt::Debug for AnySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnySink").finish_non_exhaustive()
    }
}

/// Publishes to several targets at the same time; one that fails keeps nothing from the others.
///
/// Revisions of different targets have nothing to do with each other, so what is reported is what the *first* target
/// says, and its [`Effect`]. A failure of any is a failure of all, which names those that failed; as with every sink,
/// repeating the publication completes it, and targets that hold it already are not written again.
#[derive(Clone, Debug)]
pub struct Several {
    first: (String, AnySink),
    others: Vec<(String, AnySink)>,
}

impl Several {
    /// A target with the name that errors call it by.
    pub fn new(name: impl Into<String>, first: impl Sink + 'static) -> Self {
        Self { first: (name.into(), AnySink::new(first)), others: Vec::new() }
    }

    /// And another one.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>, sink: impl Sink + 'static) -> Self {
        self.others.push((name.into(), AnySink::new(sink)));
        self
    }
}

impl Sink for Several {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let publish = |(name, sink): &'_ (String, AnySink)| {
            let (name, sink) = (name.clone(), sink.clone());
            async move {
                let published = sink.publish(desired).await;
                published.map_err(|error| Failure { target: name, error })
            }
        };
        let others = join_all(self.others.iter().map(publish));
        let (first, others) = futures::future::join(publish(&self.first), others).await;
        let mut failures: Vec<Failure> = others.into_iter().filter_map(Result::err).collect();
        match first {
            Ok(published) if failures.is_empty() => return Ok(published),
            Ok(_) => {}
            Err(failure) => failures.insert(0, failure),
        }
        Err(SinkError::Several { failures, of: self.others.len() + 1 })
    }

    fn effect(&self) -> Effect {
        self.first.1.effect()
    }

    fn forget(&self, scope: &Scope) {
        let all = [&self.first].into_iter().chain(&self.others);
        all.for_each(|(_, sink)| sink.forget(scope));
    }
}

/// What several targets have made of one publication, in their order: what the first says, or all failures. Nothing comes of
/// no targets.
pub fn joined(
    results: impl IntoIterator<Item = Result<Published, SinkError>>,
) -> Option<Result<Published, SinkError>> {
    let (mut first, mut failed, mut all) = (None, None, Vec::new());
    for result in results {
        match result {
            Ok(published) => first = first.or(Some(published)),
            Err(SinkError::Several { failures, of }) => {
                all.extend(failures);
                failed.get_or_insert(SinkError::Several { failures: Vec::new(), of });
            }
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    match failed {
        Some(SinkError::Several { of, .. }) => Some(Err(SinkError::Several { failures: all, of })),
        Some(error) => Some(Err(error)),
        None => first.map(Ok),
    }
}

/// A target that could not be published to.
#[derive(Debug)]
pub struct Failure {
    /// The name it was given.
    pub target: String,
    /// What went wrong.
    pub error: SinkError,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.error)?;
        let mut cause = std::error::Error::source(&self.error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
