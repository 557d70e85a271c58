//! A sink whose type is erased.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::desired::{Desired, Scope};
use crate::error::SinkError;
use crate::sink::{Effect, Published, Sink};

/// A sink of any kind. Clones are the same sink.
#[derive(Clone)]
pub struct DynSink(Arc<dyn ErasedSink>);

/// [`Sink`] without the type of its future.
trait ErasedSink: Send + Sync {
    fn publish_boxed<'a>(&'a self, desired: &'a Desired) -> BoxFuture<'a, Result<Published, SinkError>>;
    fn effect_erased(&self) -> Effect;
    fn drifted_erased(&self) -> Option<watch::Receiver<BTreeSet<Scope>>>;
    fn forget_erased(&self, scope: &Scope);
    fn publish_as_erased(&self, publisher: &str);
    fn fence_erased(&self, term: u64);
    fn own_scopes_boxed<'a>(&'a self, root: &'a Scope) -> BoxFuture<'a, Result<BTreeSet<Scope>, SinkError>>;
}

impl<S: Sink> ErasedSink for S {
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

impl DynSink {
    /// Erases the type of `sink`.
    pub fn new(sink: impl Sink + 'static) -> Self {
        Self(Arc::new(sink))
    }
}

impl<S: Sink + 'static> From<Arc<S>> for DynSink {
    fn from(sink: Arc<S>) -> Self {
        Self(sink)
    }
}

impl Sink for DynSink {
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

impl fmt::Debug for DynSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynSink").finish_non_exhaustive()
    }
}
