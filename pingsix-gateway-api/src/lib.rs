//! The bridge from translation to delivery.
//!
//! ```text
//! Config, provenance ──► acceptance rules ──► quarantine ──► Desired ──► pingsix-sink
//!          │
//!          └──► explain: what the documents do with a request, and whose they are
//! ```
//!
//! Translation and delivery do not know each other; this crate is where they meet. It holds no Gateway API semantics.
//!
//! - [`bridge()`] makes of a translated data plane what a sink can publish. What PingSIX would refuse never passes.
//! - [`Bridge`] does it again and again, looking only at what is different.
//! - [`bridge_stream()`] does the same for the stream documents of a Gateway.
//! - [`outdated_certificates`] and [`outdated_stream_certificates`] name the certificates that clients will not accept at
//!   a given time; translation has no clock.
//! - [`explain()`] says which document answers a request, which object asked for it, and why no other does.

pub mod bridge;
#[cfg(feature = "controller")]
pub mod delivery;
mod expiry;
pub mod explain;
#[cfg(test)]
mod fixture;
#[cfg(feature = "controller")]
pub mod reconcile;
#[cfg(feature = "controller")]
pub mod store;
#[cfg(feature = "controller")]
pub mod watch;
#[cfg(feature = "controller")]
pub mod world;

pub use bridge::{Bridge, BridgeError, Bridged, BridgedStream, bridge, bridge_stream};
pub use expiry::{outdated_certificates, outdated_stream_certificates};
pub use explain::{Explanation, explain};
