//! The inputs from watches to their consumer.

use kube_runtime::watcher;
use pingsix_translate::{Kind, ObjectKey};
use tokio::sync::mpsc;

use super::discovery::Availability;
use super::event::Event;
use super::object::{Watched, WatchedKind};

/// An item of the stream of watches, in the order of processing.
#[derive(Debug)]
pub enum Input {
    /// An event for [`World::apply`](crate::world::World::apply). Kinds that are watched by name never send `Init`.
    Event(Event),
    /// A deleted object, for [`World::remove`](crate::world::World::remove).
    Gone(ObjectKey),
    /// A new answer about a referenced object. An event with the object precedes it.
    Answered {
        /// The object.
        key: ObjectKey,
        /// The answer.
        answer: Answer,
    },
    /// An object without a reference, whose watch has ended, for [`World::remove`](crate::world::World::remove).
    /// Earlier answers no longer hold.
    Released(ObjectKey),
    /// A new availability of a kind.
    Availability {
        /// The kind.
        kind: Kind,
        /// The availability.
        availability: Availability,
    },
}

/// The answer about an object that is watched by name. Before the first answer, its state is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object exists.
    Present,
    /// The object does not exist.
    Absent,
    /// The API server forbids to read the object. The last known version stays.
    Forbidden {
        /// The message of the API server.
        message: String,
    },
}

/// The receiver of inputs is gone.
#[derive(Debug)]
pub(super) struct Closed;

/// Sends an input when the channel has capacity.
pub(super) async fn send(inputs: &mpsc::Sender<Input>, input: Input) -> Result<(), Closed> {
    inputs.send(input).await.map_err(|_| Closed)
}

/// A kind with events for the world.
pub(super) trait WorldKind: WatchedKind {
    /// An event for the world.
    fn input(event: watcher::Event<Watched<Self>>) -> Input;
}

impl<K: WatchedKind> WorldKind for K
where
    Event: From<watcher::Event<Watched<K>>>,
{
    fn input(event: watcher::Event<Watched<K>>) -> Input {
        Input::Event(event.into())
    }
}
