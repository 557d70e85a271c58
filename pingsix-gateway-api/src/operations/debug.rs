//! Dumps of the state of the controller, for the diagnosis of faults.
//!
//! The task that owns the state answers without locks, so a dump shows one moment. Large parts are shown for one named
//! object only.
//!
//! Secrets never appear: the values of Secrets and ConfigMaps, what could not be decoded of them, and the private keys of
//! documents are replaced, and of what a sink holds only sizes and digests are shown.

mod dump;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use pingsix_sink::EmbeddedEtcd;
use pingsix_translate::{Kind, ObjectKey};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::delivery::Deliveries;
use crate::reconcile::{Queue, Reconciler};
use crate::replicas::Replicas;

/// The number of requests that may wait.
const CAPACITY: usize = 8;

/// The content of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// The objects that are known; with an object, the object.
    World,
    /// The secondary maps; with an object, what it refers to and who refers to it.
    Index,
    /// The owners that wait for reconciliation.
    Queue,
    /// The translations of Gateways and IngressClasses; with one of these, its documents.
    Translation,
    /// The publications and their delivery; with a Gateway or an IngressClass, its documents without content.
    Sink,
}

impl Dump {
    /// Every one, in declaration order.
    pub const ALL: &'static [Self] = &[Self::World, Self::Index, Self::Queue, Self::Translation, Self::Sink];

    /// Its name in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::World => "world",
            Self::Index => "index",
            Self::Queue => "queue",
            Self::Translation => "translation",
            Self::Sink => "sink",
        }
    }
}

/// An object, as it is named in a URL: `KIND/NAMESPACE/NAME`, or `KIND/NAME` for kinds without namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About(pub ObjectKey);

impl FromStr for About {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected KIND/NAMESPACE/NAME, for example HTTPRoute/shop/cart, or KIND/NAME for a \
                                kind without namespace";
        let (kind, name) = text.split_once('/').ok_or(EXPECTED)?;
        let kind = Kind::ALL.iter().copied().find(|known| known.as_str() == kind).ok_or(EXPECTED)?;
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) if kind.is_namespaced() && !namespace.is_empty() => (namespace, name),
            None if !kind.is_namespaced() => ("", name),
            Some(_) | None => return Err(EXPECTED),
        };
        if name.is_empty() || name.contains('/') {
            return Err(EXPECTED);
        }
        Ok(Self(ObjectKey::new(kind, namespace, name)))
    }
}

/// A question, to be answered by the task that holds what it is about.
#[derive(Debug)]
pub struct DebugRequest {
    /// The requested dump.
    pub dump: Dump,
    /// Of which object, if not in general.
    pub about: Option<ObjectKey>,
    /// The channel of the answer. The receiver may be gone.
    pub reply: oneshot::Sender<Value>,
}

impl DebugRequest {
    /// Answers it.
    pub fn answer(self, state: &DebugState<'_>) {
        let answer = state.dump(self.dump, self.about.as_ref());
        // The receiver may be gone.
        let _ = self.reply.send(answer);
    }
}

/// Asks questions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DebugClient(mpsc::Sender<DebugRequest>);

/// A client, and where its questions arrive.
pub fn channel() -> (DebugClient, mpsc::Receiver<DebugRequest>) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (DebugClient(sender), receiver)
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebugError {
    /// Too many ask already.
    #[error("too many requests wait already")]
    Busy,
    /// The controller starts or stops, and does not answer.
    #[error("the controller does not answer")]
    Gone,
}

impl DebugClient {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`DebugError`]; both may pass.
    pub async fn ask(&self, dump: Dump, about: Option<ObjectKey>) -> Result<Value, DebugError> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(DebugRequest { dump, about, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => DebugError::Busy,
            mpsc::error::TrySendError::Closed(_) => DebugError::Gone,
        })?;
        answer.await.map_err(|_| DebugError::Gone)
    }
}

/// The sources of dumps.
#[derive(Clone, Copy, Debug)]
pub struct DebugState<'a> {
    /// The picture of the cluster, and what was made of it.
    pub reconciler: &'a Reconciler,
    /// The waiting owners.
    pub queue: &'a Queue,
    /// The delivery of publications.
    pub deliveries: &'a Deliveries,
    /// The embedded server, if there is one.
    pub etcd: Option<&'a EmbeddedEtcd>,
    /// The other replicas that serve the same, if there may be any.
    pub replicas: Option<&'a Replicas>,
    /// The present.
    pub now: Instant,
}
