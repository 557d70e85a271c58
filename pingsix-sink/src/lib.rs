//! Makes one target hold exactly the documents a scope owns, in an order valid at every step, and reports the revision
//! that is live.
//!
//! ```text
//! Desired { scope, documents } ──► plan (pure diff) ──► Steps ──► target ──► Published { revision, changed }
//! ```
//!
//! The crate knows nothing of where documents come from nor of what they mean.
//! A [`Document`] is a key, canonical bytes, an [`OrderHint`] and an opaque [`Owner`].
//!
//! Every [`Sink`] keeps these promises; [`memory::MemorySink`] is their executable form, and one suite checks them on all:
//!
//! 1. After `publish(desired)` a reader of the target finds the documents of `desired` under `desired.scope()`, and
//!    nothing else that was ever published there.
//! 2. What others wrote is not touched, neither outside of the scope nor inside. A document that is wanted under a key
//!    of somebody else takes its place. What others did to a document is undone when it is published again.
//! 3. Documents are written in ascending order of their hint and deleted in descending order, so a document is never
//!    visible before those it refers to, nor after they are gone.
//! 4. Equal content publishes nothing: `changed` is zero and the revision is the one that brought the content.
//! 5. Revisions grow. A failed publication leaves the target on some prefix of the plan. Repeating it completes it, by
//!    this sink or by another one after a restart, and on the way no document is missing that was there and is wanted.
//! 6. A target that does not answer makes the publication fail, in a time that does not depend on it.
//! 7. No value of a document appears in a log line, an error or a `Debug` text, for it may be a private key.
//!
//! What a target cannot suffer it need not survive: nobody else writes to memory, for instance. `docs/sinks.md` says what
//! each sink guarantees.

pub mod admin;
mod any;
mod chunks;
pub mod desired;
pub mod difference;
pub mod document;
pub mod embedded;
pub mod error;
pub mod etcd;
pub mod file;
mod ledger;
mod loopback;
pub mod memory;
mod pem;
pub mod plan;
pub mod proto;
pub mod resource;
pub mod revision;
mod sink;
pub mod target;

pub use admin::AdminSink;
pub use any::AnySink;
pub use desired::{Desired, DocumentSet, Documents, Fingerprint, Scope};
pub use document::{Digest, Document, Key, OrderHint, Owner};
pub use embedded::EmbeddedEtcd;
pub use error::SinkError;
pub use etcd::EtcdSink;
pub use file::FileSink;
pub use memory::MemorySink;
pub use plan::{Changed, Step, Steps, Units, plan, units};
pub use revision::Revision;
pub use sink::{Effect, Published, Sink};
pub use target::Target;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
