//! The certificates of the feed: an authority that the controller keeps in a Secret, and what it signs.
//!
//! ```text
//! Secret (namespace of the controller) ◄── create, replace: the leader alone, with the version it has read
//!    │ watch, every replica
//!    ▼
//! Authorities ──► the server's certificate, each replica's own, made in memory ──► embedded server
//!    │            (renewed in time; trusts every authority of the Secret)
//!    ▼
//! FeedAuthority::issue(owner, prefixes, what its Secret holds) ──► that, or another FeedIdentity ──► Pods of PingSIX
//! ```
//!
//! - **What a client may read** is in its certificate: a URI for each prefix with the UID of its owner
//!   ([`pingsix_sink::embedded::feed_uri_of_owner`]), which the server goes by ([`Access::certificate_uris`](pingsix_sink::embedded::Access::certificate_uris)).
//! - **Keys** are ECDSA P-256. Those of servers never leave their process; those of clients are in the Secret of their data
//!   plane and nowhere else; that of the authority is in its Secret alone, and in the memory of replicas.
//! - **Renewal.** A certificate is replaced when two thirds of its time are over. A server takes the new one at once. PingSIX
//!   reads its files for each new connection, so a Pod never restarts for them; the server closes a connection when the
//!   certificate it was made with expires, and PingSIX is back a second later with its successor.
//! - **Rotation of the authority**, when two thirds of its time are over or when the annotation [`ROTATE`] of the Secret asks
//!   for it: first everybody trusts the next one, then it signs, then the one before is trusted no more. [`Authorities`] says
//!   when each may happen, and why nobody who keeps to the rules refuses another meanwhile. Whom a step waits for because
//!   its Secret cannot be written is in the annotation [`WAITS_FOR`].
//! - **Emergency.** To delete the Secret is to trust nobody who was trusted before: the leader makes another authority at
//!   once, connections are closed, and PingSIX goes on with what it has until it is told of the new one.
//! - **What cannot be used** changes nothing: when the Secret holds something else, an error says which key is wrong, and all
//!   go on with what they had. Nobody overwrites it.
//!
//! All but [`Keeper`] and [`serve`] is pure: it is told the time, and asks for nothing but randomness for keys.

mod authority;
mod certificate;
mod identity;
mod keeper;
mod record;
mod rotation;
mod server;
#[cfg(test)]
mod tests;

pub use authority::Authority;
pub use certificate::Certificate;
pub use identity::{ClientIdentity, FeedIdentity, IdentityFault};
pub use keeper::{AuthorityOptions, FeedAuthority, IdentityError, IssuedIdentity, Keeper, start};
pub use record::{ROTATE, RecordFault, WAITS_FOR};
pub use rotation::{Authorities, Edition, Lifetimes, LifetimesError};
pub use server::{ServerIdentity, serve};

/// A certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("a certificate cannot be made: {0}")]
pub struct IssueError(#[from] rcgen::Error);
