//! Watches of the API server, as typed events.
//!
//! ```text
//!  API server ──► connector ─► stream ──────► lifecycle ─► merge ────┐
//!                  │           one list       availability of a kind ├──► Input ──► World
//!                  │           and watch                             │   (bounded)
//!                  └─────────► stream ──────► referenced ────────────┘
//!                              of a name, or  Secrets, ConfigMaps
//!                              of a namespace
//! ```
//!
//! [`Watches::start`] watches every kind of the table in [`kinds`](presence), and sends [`Input`]s in the order of
//! their processing.
//!
//! - Three facts remove objects: a complete list without them, a deletion event, and an API server that does not serve
//!   their kind. Errors remove none: the objects of a kind stay while the kind is forbidden or unreachable.
//! - An object that cannot be decoded is an event of its own ([`Watched`]), and affects no other object.
//! - An interrupted list restarts. After `410 Gone` a new list follows, which shows the objects that were deleted
//!   meanwhile.
//! - With selected namespaces, each namespace has its own watch. A new list of a namespace replaces the objects of that
//!   namespace alone. The kind is complete when every namespace has been listed.
//! - Optional kinds may be absent. Discovery looks for them periodically and on [demand](Watches::rediscover). The
//!   objects of a deleted kind are removed.
//! - Each [referenced](Watches::set_references) Secret or ConfigMap has its own watch. Beyond the bounds of
//!   [`NameBounds`], one watch covers a namespace. Each reference gets an [`Answer`] as soon as the state of its object
//!   is known.
//! - Events are never dropped: watches wait for a slow consumer.
//! - This module logs the availability of kinds and refused reads, so consumers need not.

mod backoff;
mod compact;
mod connector;
mod discovery;
mod error;
mod event;
mod input;
mod kinds;
mod lifecycle;
mod merge;
mod named;
mod object;
mod options;
mod pages;
mod referenced;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod watch_plan;
mod watches;
mod wide;

pub use backoff::BackoffBounds;
pub use discovery::Availability;
pub use event::Event;
pub use input::{Answer, Input};
#[doc(hidden)]
pub use kinds::{Presence, presence};
pub(crate) use kinds::{WatchedResource, Writes, facts, resources};
pub(crate) use object::Undecodable;
#[doc(hidden)]
pub use object::{DecodedObject, Watched, WatchedKind};
pub use options::{NameBounds, Namespaces, SecretWatch, WatchOptions};
#[doc(hidden)]
pub use stats::WatchStats;
pub use watches::Watches;
