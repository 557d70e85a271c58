//! What watches tell their consumer.

use kube_runtime::watcher;
use pingsix_translate::{Kind, ObjectKey};
use tokio::sync::mpsc;

use super::discovery::Availability;
use super::event::Event;
use super::object::{Watched, WatchedKind};

/// What watches tell, in the order in which it has to be taken in.
#[derive(Debug)]
pub enum Input {
    /// For [`World::apply`](crate::world::World::apply). Kinds that are watched by name never send `Init`.
    Event(Event),
    /// For [`World::remove`](crate::world::World::remove): the object is not there any more.
    Gone(ObjectKey),
    /// What is known now about an object that is referred to. Sent when it changes, after the object itself.
    Answered {
        /// Which.
        key: ObjectKey,
        /// What is known.
        answer: Answer,
    },
    /// Nobody refers to the object any more, and it is not watched: for [`World::remove`](crate::world::World::remove).
    /// Whatever was answered about it no longer holds.
    Released(ObjectKey),
    /// How it stands with a kind. Sent when it changes.
    Availability {
        /// Which.
        kind: Kind,
        /// How it stands.
        availability: Availability,
    },
}

/// What is known about an object that is watched by its name. Before there is an answer, nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is there.
    Present,
    /// It is not there.
    Absent,
    /// We may not know. If it was there before, what is held is how it was last.
    Forbidden {
        /// What the API server says.
        message: String,
    },
}

/// Nobody takes inputs any more.
#[derive(Debug)]
pub(super) struct Closed;

/// Hands an input on, as soon as there is room.
pub(super) async fn send(inputs: &mpsc::Sender<Input>, input: Input) -> Result<(), Closed> {
    inputs.send(input).await.map_err(|_| Closed)
}

/// A kind whose events the world takes.
pub(super) trait Fed: WatchedKind {
    /// An event for the world.
    fn input(event: watcher::Event<Watched<Self>>) -> Input;
}

impl<K: WatchedKind> Fed for K
where
    Event: From<watcher::Event<Watched<K>>>,
{
    fn input(event: watcher::Event<Watched<K>>) -> Input {
        Input::Event(event.into())
    }
}
