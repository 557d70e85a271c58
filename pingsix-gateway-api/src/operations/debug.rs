//! Dumps of the state of the controller, for the diagnosis of errors, and the model of the [pages](crate::view).
//!
//! The task that owns the state answers without locks, so a dump shows one moment. Large parts are shown for one named
//! object only.
//!
//! Secrets never appear. `<redacted>` replaces the values of Secrets and ConfigMaps, the texts that could not be decoded of
//! them, the private keys and passwords of documents, and the values that documents write into headers. Of the documents of a
//! sink, only sizes and digests are shown.

mod dump;
#[cfg(test)]
mod tests;
mod view;

use pingsix_sink::EmbeddedEtcd;
use pingsix_translate::ObjectKey;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub use crate::about::About;
use crate::delivery::Deliveries;
use crate::named::named_values;
use crate::reconcile::{Queue, Reconciler};
use crate::replicas::Replicas;
use crate::view::Model;

/// The number of requests that may wait.
const MAX_WAITING_REQUESTS: usize = 8;

named_values! {
    /// The content of a dump. The names are parts of URLs.
    pub enum Dump {
        /// The objects that are known; with an object, the object.
        World = "world",
        /// The secondary maps; with an object, its references and its referrers.
        Index = "index",
        /// The owners that wait for reconciliation.
        Queue = "queue",
        /// The translations of Gateways and IngressClasses; with one of these, its documents.
        Translation = "translation",
        /// The publications and their delivery; with a Gateway or an IngressClass, its documents without content.
        Sink = "sink",
    }
}

/// A question, to be answered by the task that holds the state. The receiver of an answer may be gone.
#[derive(Debug)]
pub enum DebugRequest {
    /// A dump.
    Dump {
        /// The requested dump.
        dump: Dump,
        /// The object of the dump; `None` for the dump in general.
        about: Option<ObjectKey>,
        /// The channel of the answer.
        reply: oneshot::Sender<Value>,
    },
    /// The model of the [pages](crate::view).
    View {
        /// The channel of the answer.
        reply: oneshot::Sender<Model>,
    },
}

impl DebugRequest {
    /// Answers it.
    pub(crate) fn answer(self, state: &DebugState<'_>) {
        // The receiver may be gone.
        match self {
            Self::Dump { dump, about, reply } if !reply.is_closed() => {
                drop(reply.send(state.dump(dump, about.as_ref())));
            }
            Self::View { reply } if !reply.is_closed() => drop(reply.send(state.model())),
            Self::Dump { .. } | Self::View { .. } => {}
        }
    }
}

/// Asks questions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DebugClient(mpsc::Sender<DebugRequest>);

/// A client, and where its questions arrive.
pub fn channel() -> (DebugClient, mpsc::Receiver<DebugRequest>) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_REQUESTS);
    (DebugClient(sender), receiver)
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebugError {
    /// Too many requests are waiting.
    #[error("too many requests wait already")]
    Busy,
    /// The controller starts or stops, and does not answer.
    #[error("the controller does not answer")]
    Gone,
}

impl DebugClient {
    /// Asks for a dump, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`DebugError`]; both may pass.
    pub async fn ask(&self, dump: Dump, about: Option<ObjectKey>) -> Result<Value, DebugError> {
        self.send(|reply| DebugRequest::Dump { dump, about, reply }).await
    }

    /// Asks for the model of the pages, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`DebugError`]; both may pass.
    pub async fn view(&self) -> Result<Model, DebugError> {
        self.send(|reply| DebugRequest::View { reply }).await
    }

    async fn send<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> DebugRequest,
    ) -> Result<T, DebugError> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(request(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => DebugError::Busy,
            mpsc::error::TrySendError::Closed(_) => DebugError::Gone,
        })?;
        answer.await.map_err(|_| DebugError::Gone)
    }
}

/// The sources of dumps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebugState<'a> {
    /// The picture of the cluster, and its translations.
    pub(crate) reconciler: &'a Reconciler,
    /// The waiting owners.
    pub(crate) queue: &'a Queue,
    /// The delivery of publications.
    pub(crate) deliveries: &'a Deliveries,
    /// The embedded server, if there is one.
    pub(crate) etcd: Option<&'a EmbeddedEtcd>,
    /// The other replicas that serve the same, if there may be any.
    pub(crate) replicas: Option<&'a Replicas>,
    /// The present.
    pub(crate) now: Instant,
}
