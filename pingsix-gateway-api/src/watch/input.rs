//! The inputs from watches to their consumer.

use kube_runtime::watcher;
use pingsix_translate::{Kind, ObjectKey};
use tokio::sync::mpsc;

use super::discovery::Availability;
use super::event::Event;
use super::object::{Watched, WatchedKind};

/// The inputs of watches, in the order of processing.
#[derive(Debug)]
pub enum Input {
    /// For [`World::apply`](crate::world::World::apply). Kinds that are watched by name never send `Init`.
    Event(Event),
    /// For [`World::remove`](crate::world::World::remove): the object is not there any more.
    Gone(ObjectKey),
    /// The answer about a referenced object has changed. The object itself comes first.
    Answered {
        /// Which.
        key: ObjectKey,
        /// The answer.
        answer: Answer,
    },
    /// The object has no reference left, and its watch has ended: for [`World::remove`](crate::world::World::remove).
    /// Earlier answers no longer hold.
    Released(ObjectKey),
    /// The availability of a kind has changed.
    Availability {
        /// Which.
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
    /// We may not know. If it was there before, what is held is how it was last.
    Forbidden {
        /// The message of the API server.
        message: String,
    },
}

/// The receiver of inputs is gone.
#[derive(Debug)]
pub(super) struct Closed;

/// Hands an input on, as soon as there is room.
pub(super) async fn send(inputs: &mpsc::Sender<Input>, input: Input) -> Result<(), Closed> {
    inputs.send(input).await.map_err(|_| Closed)
}

/// A kind whose events the world takes.
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
