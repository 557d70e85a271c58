//! A Gateway API controller for PingSIX, as a library.
//!
//! The controller keeps a live picture of a cluster, finds the owners that a change affects, reconciles these owners alone,
//! and writes statuses. Translation and delivery do not know each other, and this crate connects them. The semantics of
//! Gateway API are in `pingsix-translate`.
//!
//! ```text
//! API server ──► watch ──► world: stores, secondary maps ──► affected owners ──► reconcile
//!                                                               │ snapshot      (pingsix-translate)
//!                          Config, provenance, verdicts ◄───────┘
//!                             │            ├──► status: conditions and Events, by the leader alone
//!                             │            └──► provision: data planes that the controller runs, by the leader alone
//!                             ▼                                └── pki: certificates with which they read the feed
//!   bridge: acceptance rules ──► quarantine ──► Desired ──► pingsix-sink ──► PingSIX
//!                                                              └──► delivery: how far it has come
//! ```
//!
//! # Objects to documents
//!
//! Without features, the crate is for programs that have objects from elsewhere. [`Pipeline`] does everything at once:
//!
//! ```
//! use pingsix_gateway_api::{Objects, Options, Pipeline};
//!
//! let (objects, problems) = Objects::from_yaml(include_str!("../examples/shop.yaml"));
//! problems.iter().for_each(|problem| eprintln!("{problem}"));
//! let options = Options { controller_name: "example.com/embedded".to_owned(), ..Options::default() };
//! let output = Pipeline::new(options).run(&objects);
//! output.findings.iter().for_each(|finding| eprintln!("{finding}"));
//! for (data_plane, desired) in output.desired() {
//!     println!("{data_plane}: {} documents", desired.documents().len());
//! }
//! # assert_eq!(output.desired().count(), 1);
//! ```
//!
//! Its parts are public, too:
//!
//! - [`bridge()`] converts a translated data plane to documents for a sink. Documents that PingSIX would refuse are held
//!   back.
//! - [`bridge_stream()`] converts the stream documents of a Gateway.
//! - [`outdated_certificates`] and [`outdated_stream_certificates`] name the certificates that clients reject at a given
//!   time; translation has no clock.
//! - [`explain()`] names the document that answers a request, the object behind this document, and the reason against
//!   each other document.
//!
//! The crate re-exports [`pingsix_translate`] and [`pingsix_sink`], and the names that most programs use.
//!
//! # Pages
//!
//! With the feature `view`, the module `view` renders the objects, verdicts and documents of a program as read-only pages.
//!
//! # A controller, and its parts
//!
//! With the feature `controller`, the crate watches a cluster. `Controller` in the module `controller` is the whole
//! controller as one value. The parts are public, too, and each module begins with its promises: `watch`, `store`, `world`,
//! `reconcile`, `delivery`, `provision`, `pki`, `leader`, `replicas`, `health`, `metrics`, `operations`, `permissions`.
//! Items without documentation, such as the writers of statuses, are for the tests of this crate against a cluster.
//!
//! The store is a crate of its own, `pingsix-store`: it keeps objects of any kind by name and their references to each other,
//! from kube-runtime's watch events, for operators of any kind.
//!
//! The folder `examples` has a program for each way of use.
//!
//! # Which Kubernetes
//!
//! `k8s-openapi` needs a feature for the version of Kubernetes, which only a program should choose. A program with this
//! crate depends on `k8s-openapi` with the feature `latest`, or with the feature of the oldest supported version.

mod about;
#[cfg(feature = "controller")]
mod api_error;
pub mod bridge;
mod expiry;
pub mod explain;
#[cfg(test)]
mod fixture;
#[cfg(feature = "controller")]
pub mod health;

#[cfg(feature = "controller")]
#[doc(hidden)]
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
mod named;
#[cfg(feature = "controller")]
pub mod operations;
#[cfg(feature = "controller")]
pub mod permissions;
pub mod pipeline;
#[cfg(feature = "controller")]
pub mod pki;
#[cfg(feature = "controller")]
pub mod provision;
#[cfg(feature = "controller")]
pub mod reconcile;
#[cfg(feature = "controller")]
pub mod replicas;
#[cfg(feature = "controller")]
#[doc(hidden)]
pub mod status;
#[cfg(feature = "view")]
pub mod view;
#[cfg(feature = "controller")]
mod wait;
#[cfg(feature = "controller")]
pub mod watch;
#[cfg(feature = "controller")]
pub mod world;

pub use about::About;
pub use bridge::{BridgeError, Bridged, BridgedStream, bridge, bridge_stream};
#[cfg(feature = "controller")]
#[doc(hidden)]
pub use clock::{Clock, LeaseClock};
pub use expiry::{outdated_certificates, outdated_stream_certificates};
pub use explain::{Explanation, explain};
// The time of `Pipeline::at`.
pub use jiff;
pub use pingsix_sink::{self, Desired, EmbeddedEtcd, MemorySink, Published, Sink, SinkError};
#[cfg(feature = "controller")]
pub use pingsix_store as store;
pub use pingsix_translate::pingsix::Request;
pub use pingsix_translate::{
    self, DataPlaneKey, Kind, Layout, Object, ObjectKey, ObjectName, Objects, Options, manifest, translate,
};
pub use pipeline::{IncrementalPipeline, Pipeline, PublishError, Publisher, UnjudgedOutput};

#[cfg(all(doctest, feature = "controller"))]
#[doc = include_str!("../README.md")]
struct Readme;
