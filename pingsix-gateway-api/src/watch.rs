//! From the API server to typed events.
//!
//! ```text
//!  API server ──► door ──► stream ──────► lifecycle ─► view ───────┐
//!                  │        one list       a kind: there, absent,  ├──► Input ──► World
//!                  │        and watch      forbidden, unreachable  │   (bounded)
//!                  └──────► stream ──────► referenced ─────────────┘
//!                           of a name, or  Secrets, ConfigMaps
//!                           of a namespace
//! ```
//!
//! [`Watches::start`] watches every kind of the table in [`kinds`](presence), and hands out [`Input`]s in the order in which
//! they have to be taken in.
//!
//! - Only a list that was read to its end, a deletion that was seen, or an API server that says it does not serve a kind
//!   takes anything away. An error never does: a kind that is forbidden or does not answer keeps what was known of it.
//! - An object that cannot be decoded comes through as one ([`Watched`]), and costs no other.
//! - A list that breaks off begins anew. So does one that is needed because the API server has forgotten the version we were
//!   at (410); what vanished meanwhile is found by it.
//! - When only some namespaces are watched, each has a watch of its own; a new list of one replaces the objects of that
//!   namespace alone, and the kind is complete when each has been listed.
//! - Kinds that are optional may be absent. They are looked for from time to time, and when
//!   [told to](Watches::look_again); one that is deleted takes its objects with it.
//! - Secrets and ConfigMaps are watched one by one, those that are [referred to](Watches::refer); when there are many, by
//!   namespace ([`NameBounds`]). About each there is an [`Answer`] as soon as anything is known.
//! - Nothing is dropped: when the consumer is slow, watches wait.
//! - How it stands with a kind, and what must not be read, is logged here: a consumer need not.

mod allotment;
mod backoff;
mod connector;
mod discovery;
mod event;
mod fault;
mod input;
mod kinds;
mod lifecycle;
mod named;
mod object;
mod options;
mod referenced;
mod small;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod view;
mod watches;
mod wide;

pub use backoff::BackoffBounds;
pub(crate) use backoff::about;
pub use discovery::Availability;
pub use event::Event;
pub use input::{Answer, Input};
pub use kinds::{Presence, presence};
pub(crate) use kinds::{WatchedResource, Writes, facts, resources};
pub use object::{DecodedObject, Undecodable, Watched, WatchedKind};
pub use options::{NameBounds, Namespaces, SecretWatch, WatchOptions};
pub use stats::WatchStats;
pub use watches::Watches;

pub use crate::fault::FaultCategory;
