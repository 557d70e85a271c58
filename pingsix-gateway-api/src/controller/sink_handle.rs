//! A sink for any number of scopes.

use std::fmt;
use std::sync::Arc;

use pingsix_sink::{Desired, DynSink, Published, Sink, SinkError};
use tokio::sync::Semaphore;

use super::Feed;
use crate::leader::Leadership;

/// The number of publications that one sink gets at the same time.
pub(super) const MAX_CONCURRENT_PUBLICATIONS: usize = 16;

/// A sink for any number of scopes. Clones are the same sink.
#[derive(Clone)]
pub struct SinkHandle(Arc<Inner>);

struct Inner {
    /// The label in metrics.
    kind: &'static str,
    /// The name in errors.
    name: Option<String>,
    sink: DynSink,
    /// `None` for a sink that all replicas share.
    feed: Option<Arc<dyn Feed>>,
    permits: Semaphore,
}

impl fmt::Debug for SinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SinkHandle").field(&self.0.name.as_deref().unwrap_or(self.0.kind)).finish()
    }
}

impl SinkHandle {
    /// A sink that this replica serves itself. Each replica publishes to its own. Errors contain the name.
    pub fn feed<F: Sink + Feed + 'static>(name: impl Into<String>, feed: Arc<F>) -> Self {
        Self::new(feed.name(), Some(name.into()), Arc::clone(&feed).into(), Some(feed))
    }

    /// A sink that all replicas share: the leader publishes there. The kind is a label in metrics. Errors contain the name,
    /// which must not be a secret.
    pub fn shared(kind: &'static str, name: impl Into<String>, sink: impl Sink + 'static) -> Self {
        Self::new(kind, Some(name.into()), DynSink::new(sink), None)
    }

    pub(super) fn new(
        kind: &'static str,
        name: Option<String>,
        sink: DynSink,
        feed: Option<Arc<dyn Feed>>,
    ) -> Self {
        Self(Arc::new(Inner { kind, name, sink, feed, permits: Semaphore::new(MAX_CONCURRENT_PUBLICATIONS) }))
    }

    /// The label in metrics.
    pub(super) fn kind(&self) -> &'static str {
        self.0.kind
    }

    /// The name in errors.
    pub(super) fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    pub(super) fn sink(&self) -> &DynSink {
        &self.0.sink
    }

    /// The feed; `None` for a shared sink.
    pub(super) fn served(&self) -> Option<&Arc<dyn Feed>> {
        self.0.feed.as_ref()
    }

    pub(super) fn is_shared(&self) -> bool {
        self.0.feed.is_none()
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Publishes as soon as one of the permits is free.
    pub(super) async fn publish(
        &self,
        desired: &Desired,
        leadership: Option<&Leadership>,
    ) -> Result<Published, SinkError> {
        // With a free permit, a publication must not yield. The semaphore is never closed.
        let _permit = match self.0.permits.try_acquire() {
            Ok(permit) => Ok(permit),
            Err(_) => self.0.permits.acquire().await,
        };
        if let Some(term) = leadership.and_then(Leadership::term) {
            self.0.sink.fence(term);
        }
        self.0.sink.publish(desired).await
    }
}
