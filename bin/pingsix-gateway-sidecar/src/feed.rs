//! The source of the documents: an etcd feed or a file.
//!
//! ```text
//! etcd, file ──► changed() ──► apply ──► Status, FeedMetrics
//! ```
//!
//! A source that fails changes nothing: the last documents stay in force, and the error is on the status page.

mod file;

use std::time::Duration;

use pingsix_sink::error::SinkErrorSource as _;
use pingsix_sink::etcd::{EtcdError, EtcdReader};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::documents::Documents;
use crate::metrics::FeedMetrics;
use crate::status::Status;
use crate::stream::{Applied, Streams};

pub(crate) use file::{FileError, FileReader};

/// The source of the documents.
#[derive(Debug)]
pub(crate) enum Feed {
    Etcd(Box<EtcdReader>),
    File(FileReader),
}

/// A source cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl FeedError {
    /// The kind of the error, as metrics have it.
    fn category(&self) -> &'static str {
        match self {
            Self::Etcd(error) => error.category(),
            Self::File(error) => error.category(),
        }
    }

    /// The kind of the error, as status pages of PingSIX have it.
    ///
    /// Never `candidate_invalid`: it would start the controller's search for a document that PingSIX refuses.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd_unavailable",
            Self::File(_) => "file_unusable",
        }
    }
}

impl Feed {
    pub(crate) const fn source(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd",
            Self::File(_) => "file",
        }
    }

    /// Waits for the next documents. Dropping the future loses none.
    async fn changed(&mut self) -> Result<&Documents, FeedError> {
        match self {
            Self::Etcd(reader) => Ok(reader.changed().await?),
            Self::File(reader) => Ok(reader.changed().await?),
        }
    }
}

/// Puts documents in force.
pub(crate) trait Apply: Sync {
    /// Returns when the documents are in force.
    fn apply(&self, documents: &Documents) -> impl Future<Output = Applied> + Send;

    /// The present state: a port that was taken may be bound since.
    fn state(&self) -> impl Future<Output = Applied> + Send;
}

impl Apply for Streams {
    fn apply(&self, documents: &Documents) -> impl Future<Output = Applied> + Send {
        Self::apply(self, documents)
    }

    fn state(&self) -> impl Future<Output = Applied> + Send {
        Self::state(self)
    }
}

/// The interval in which ports that were taken are looked at again.
const PORT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Applies the documents of a feed until it is stopped.
pub(crate) async fn follow(
    feed: Feed,
    status: &Status,
    metrics: &FeedMetrics,
    stop: &CancellationToken,
    target: &impl Apply,
) {
    let bound_later = async {
        loop {
            tokio::time::sleep(PORT_RETRY_INTERVAL).await;
            if status.has_port_errors() {
                status.applied(target.state().await);
            }
        }
    };
    tokio::select! {
        () = follow_documents(feed, status, metrics, stop, target) => {}
        () = bound_later => {}
    }
}

async fn follow_documents(
    mut feed: Feed,
    status: &Status,
    metrics: &FeedMetrics,
    stop: &CancellationToken,
    target: &impl Apply,
) {
    let mut failing = None;
    loop {
        let changed = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = feed.changed() => changed,
        };
        match changed {
            Ok(documents) => {
                if failing.take().is_some() {
                    info!("the source of the stream documents can be read again");
                }
                let revision = documents.revision;
                status.observed(revision);
                metrics.observed(revision, documents.by_key.len());
                let started = Instant::now();
                let applied = target.apply(documents).await;
                metrics.applied(started.elapsed(), &applied);
                for error in &applied.errors {
                    debug!(fault = %error, "a fault of the stream documents");
                }
                info!(
                    revision,
                    documents = documents.by_key.len(),
                    listeners = applied.bound.len(),
                    faults = applied.errors.len(),
                    "stream documents are in force"
                );
                status.applied(applied);
            }
            Err(error) => {
                let category = error.category();
                // An error that lasts is logged once.
                if failing.replace(category) == Some(category) {
                    debug!(%error, "the source of the stream documents cannot be read yet");
                } else {
                    warn!(%error, "cannot read the source of the stream documents; the last ones stay in force");
                }
                status.failed(error.kind(), &error.to_string());
                metrics.failed(category);
            }
        }
    }
}

#[cfg(test)]
mod tests;
