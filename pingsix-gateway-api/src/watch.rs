//! From the API server to typed events.
//!
//! [`kinds`](presence) says which kinds are watched and what is kept of their objects; an object that cannot be decoded
//! stays visible as one ([`Watched`]).

mod kinds;
mod object;

pub use kinds::{Presence, presence};
pub use object::{Undecodable, Watched, WatchedKind};
