//! A Gateway API controller for PingSIX, as a library.
//!
//! Translation and delivery do not know each other; this crate is where they meet. It holds no Gateway API semantics.
//!
//! ```text
//! API server ──► watch ──► world: stores, secondary maps ──► owners of what changed ──► reconcile
//!                                                               │ snapshot      (pingsix-translate)
//!                          Config, provenance, verdicts ◄───────┘
//!                             │            └──► status: conditions and Events, by the leader alone
//!                             ▼
//!   bridge: acceptance rules ──► quarantine ──► Desired ──► pingsix-sink ──► PingSIX
//!                                                              └──► delivery: how far it has come
//! ```
//!
//! Without features, the crate is the bridge, for programs that have objects from elsewhere:
//!
//! - [`bridge()`] makes of a translated data plane what a sink can publish. What PingSIX would refuse never passes.
//! - [`bridge_stream()`] does the same for the stream documents of a Gateway.
//! - [`outdated_certificates`] and [`outdated_stream_certificates`] name the certificates that clients will not accept at
//!   a given time; translation has no clock.
//! - [`explain()`] says which document answers a request, which object asked for it, and why no other does.
//!
//! With the feature `controller` it watches a cluster. `Controller` in `controller` is all of it in one value; the parts
//! are public too: `store`, a reflector with secondary maps for any kind of object, is of use to other controllers as
//! well.

pub mod bridge;
mod expiry;
pub mod explain;
#[cfg(test)]
mod fixture;

#[cfg(feature = "controller")]
mod answer;
#[cfg(test)]
#[cfg(feature = "controller")]
mod api_server;
#[cfg(feature = "controller")]
mod clock;
#[cfg(feature = "controller")]
pub mod controller;
#[cfg(feature = "controller")]
pub mod delivery;
#[cfg(feature = "controller")]
mod digest;
#[cfg(feature = "controller")]
pub mod leader;
#[cfg(feature = "controller")]
pub mod operations;
#[cfg(feature = "controller")]
pub mod permissions;
#[cfg(feature = "controller")]
pub mod reconcile;
#[cfg(feature = "controller")]
pub mod status;
#[cfg(feature = "controller")]
pub mod store;
#[cfg(feature = "controller")]
pub mod watch;
#[cfg(feature = "controller")]
pub mod world;

pub use bridge::{BridgeError, Bridged, BridgedStream, bridge, bridge_stream};
#[cfg(feature = "controller")]
pub use clock::Clock;
pub use expiry::{outdated_certificates, outdated_stream_certificates};
pub use explain::{Explanation, explain};
