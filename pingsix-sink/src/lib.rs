//! A sink makes one target hold exactly the documents of a scope, in an order that is valid at every step, and reports the
//! live revision.
//!
//! ```text
//! Desired { scope, documents } ──► plan (pure diff) ──► steps ──► target ──► Published { revision, changed }
//! ```
//!
//! The crate does not depend on Kubernetes: a [`Document`] is a key, canonical bytes, an [`OrderHint`] and an opaque
//! [`Owner`].
//!
//! Every [`Sink`] keeps these promises. [`memory::MemorySink`] is their executable form, and one suite tests every sink, also sinks of other crates
//! (the module `contract`, with the feature of this name):
//!
//! 1. After `publish(desired)` a reader of the target finds the documents of `desired` under `desired.scope()`, and no
//!    document of an earlier publication.
//! 2. Foreign documents stay, outside of the scope and inside. A desired document replaces a foreign one under its key.
//!    The next publication of a document reverts foreign changes of that document.
//! 3. Documents are written in ascending order of their hint and deleted in descending order, so a visible document
//!    never refers to a missing one.
//! 4. Equal content publishes nothing: `changed` is zero and the revision is the one that brought the content.
//! 5. Revisions grow. A failed publication leaves the target on some prefix of the plan. Repeating it completes it, by
//!    this sink or by another one after a restart, and every desired document that existed stays visible meanwhile.
//! 6. A publication to a silent target fails within a bounded time.
//! 7. No value of a document appears in a log line, an error or a `Debug` text, because a value may be a private key.
//!
//! A sink need not survive failures that its target cannot have, such as foreign writes to memory.
//! `docs/reference/sinks.md` lists the guarantees of each sink.

pub mod admin;
pub mod backoff;
mod chunks;
mod client_tls;
#[cfg(feature = "contract")]
pub mod contract;
pub mod desired;
pub mod difference;
pub mod document;
mod dyn_sink;
pub mod embedded;
pub mod error;
pub mod etcd;
mod factory;
pub mod file;
pub mod hosts;
pub mod http_server;
mod ledger;
mod loopback;
pub mod memory;
mod pem;
pub mod plan;
mod planned;
mod proto;
pub mod resource;
pub mod revision;
mod sink;
pub mod target;

pub use admin::AdminSink;
pub use desired::{Desired, DocumentSet, Documents, Fingerprint, Scope};
pub use document::{Document, Key, OrderHint, Owner};
pub use dyn_sink::DynSink;
pub use embedded::EmbeddedEtcd;
pub use error::SinkError;
pub use etcd::EtcdSink;
pub use file::FileSink;
pub use memory::MemorySink;
pub use plan::{Changed, Step, Units, plan, units};
pub use planned::{PlannedSink, StepWriter};
pub use revision::Revision;
pub use sink::{Effect, Published, Sink};
pub use target::Target;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
