//! A Gateway API controller for PingSIX, as a library.
//!
//! Keeps a live picture of a cluster, finds what a change touches, reconciles that and nothing else, and writes back what
//! became of it. Translation and delivery do not know each other; this crate is where they meet. It holds no Gateway API
//! semantics.
//!
//! ```text
//! API server ──► watch ──► world: stores, secondary maps ──► owners of what changed ──► reconcile
//!                                                               │ snapshot      (pingsix-translate)
//!                          Config, provenance, verdicts ◄───────┘
//!                             │            ├──► status: conditions and Events, by the leader alone
//!                             │            └──► provision: data planes that the controller runs, by the leader alone
//!                             ▼                                └── pki: certificates with which they read the feed
//!   bridge: acceptance rules ──► quarantine ──► Desired ──► pingsix-sink ──► PingSIX
//!                                                              └──► delivery: how far it has come
//! ```
//!
//! # The bridge alone
//!
//! Without features, the crate is the bridge, for programs that have objects from elsewhere:
//!
//! - [`bridge()`] makes of a translated data plane what a sink can publish. What PingSIX would refuse never passes.
//! - [`Bridge`] does it again and again, looking only at what is different.
//! - [`bridge_stream()`] does the same for the stream documents of a Gateway.
//! - [`outdated_certificates`] and [`outdated_stream_certificates`] name the certificates that clients will not accept at
//!   a given time; translation has no clock.
//! - [`explain()`] says which document answers a request, which object asked for it, and why no other does.
//! - [`hosts`] tells requests for a local name from those that a stranger's web page can make.
//!
//! ```
//! use pingsix_gateway_api::bridge;
//! use pingsix_sink::Desired;
//! use pingsix_translate::{ObjectName, Objects, Options, translate};
//!
//! /// What the data planes of a Gateway shall hold.
//! fn desired(objects: &Objects, gateway: &ObjectName) -> Result<Vec<Desired>, pingsix_gateway_api::BridgeError> {
//!     let options = Options::default();
//!     let Some(snapshot) = objects.snapshot(gateway) else { return Ok(Vec::new()) };
//!     let planes = translate(&snapshot, &options).data_planes;
//!     planes.iter().map(|(key, plane)| Ok(bridge(key, plane, &options)?.desired)).collect()
//! }
//!
//! assert_eq!(desired(&Objects::default(), &ObjectName::new("shop", "web"))?, []);
//! # Ok::<(), pingsix_gateway_api::BridgeError>(())
//! ```
//!
//! # A controller, and its parts
//!
//! With the feature `controller` it watches a cluster. `Controller` in the module `controller` is all of it in one value,
//! and the parts are public too, each with what it promises at the top of its module: `watch`, `store`, `world`,
//! `acceptance`, `reconcile`, `delivery`, `provision`, `pki`, `status`, `leader`, `replicas`, `health`, `metrics`,
//! `operations`, `permissions`.
//! `store` keeps objects of any kind by name, and who of them refers to what, from kube-runtime's watch events: of use to
//! operators that have nothing to do with gateways.
//!
//! The folder `examples` has a program for each way of use.
//!
//! # Which Kubernetes
//!
//! `k8s-openapi` has to be told which version of Kubernetes is meant, and only a program should do that: one that uses
//! this crate depends on `k8s-openapi` with the feature `latest`, or with that of the oldest version it is to work with.

pub mod bridge;
mod expiry;
pub mod explain;
#[cfg(feature = "controller")]
mod fault;
#[cfg(feature = "controller")]
mod feed;
#[cfg(test)]
mod fixture;
#[cfg(feature = "controller")]
pub mod health;
pub mod hosts;

#[cfg(feature = "controller")]
pub mod acceptance;
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
pub mod metrics;
#[cfg(feature = "controller")]
pub mod operations;
#[cfg(feature = "controller")]
pub mod permissions;
#[cfg(feature = "controller")]
pub mod pki;
#[cfg(feature = "controller")]
pub mod provision;
#[cfg(feature = "controller")]
pub mod reconcile;
#[cfg(feature = "controller")]
pub mod replicas;
#[cfg(feature = "controller")]
pub mod status;
#[cfg(feature = "controller")]
pub mod store;
#[cfg(feature = "controller")]
mod wait;
#[cfg(feature = "controller")]
pub mod watch;
#[cfg(feature = "controller")]
pub mod world;

pub use bridge::{Bridge, BridgeError, Bridged, BridgedStream, bridge, bridge_stream};
#[cfg(feature = "controller")]
pub use clock::{Clock, LeaseClock};
pub use expiry::{outdated_certificates, outdated_stream_certificates};
pub use explain::{Explanation, explain};

#[cfg(all(doctest, feature = "controller"))]
#[doc = include_str!("../README.md")]
struct Readme;
