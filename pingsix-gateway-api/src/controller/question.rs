//! What can be asked of a running controller, for dumps.

use serde_json::Value;
use tokio::sync::oneshot;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The objects that are held: how many of each kind, which cannot be decoded, what is known of each kind.
    World,
    /// Which owners refer to what.
    References,
    /// Who waits to be reconsidered.
    Queue,
    /// What was made of each owner: its data planes, problems, and how far the delivery has come.
    Translation,
}

/// A question; the answer holds no contents of Secrets.
#[derive(Debug)]
pub struct Question {
    /// What it is about.
    pub subject: Subject,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Value>,
}

impl Question {
    /// A question, and where its answer comes: an object of JSON, or an error if the controller has ended.
    pub fn about(subject: Subject) -> (Self, oneshot::Receiver<Value>) {
        let (answer, receiver) = oneshot::channel();
        (Self { subject, answer }, receiver)
    }
}
