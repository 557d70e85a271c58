//! A sink makes one target hold exactly the documents of a scope, in an order that is valid at every step, and reports the
//! live revision.
//!
//! ```text
//! Desired { scope, documents } ──► plan (pure diff) ──► Steps ──► target ──► Published { revision, changed }
//! ```
//!
//! The crate knows nothing of Kubernetes: a [`Document`] is a key, canonical bytes, an [`OrderHint`] and an opaque
//! [`Owner`].
//!
//! Every [`Sink`] keeps these promises. [`memory::MemorySink`] is their executable form, and one suite tests every sink:
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
//! A sink need not survive faults that its target cannot have, such as foreign writes to memory. `docs/reference/sinks.md`
//! lists the guarantees of each sink.

pub mod admin;
mod chunks;
pub mod desired;
pub mod difference;
pub mod document;
pub mod embedded;
pub mod error;
pub mod etcd;
pub mod file;
pub mod json;
mod ledger;
mod loopback;
pub mod memory;
mod pem;
pub mod plan;
pub mod proto;
pub mod resource;
pub mod revision;
pub mod several;
pub mod target;

use std::collections::BTreeSet;
use std::fmt;

use tokio::sync::watch;

pub use admin::AdminSink;
pub use desired::{Desired, DocumentSet, Documents, Fingerprint, Scope};
pub use document::{Digest, Document, Key, OrderHint, Owner};
pub use embedded::EmbeddedEtcd;
pub use error::SinkError;
pub use etcd::EtcdSink;
pub use file::FileSink;
pub use json::JsonSink;
pub use memory::MemorySink;
pub use plan::{Step, Steps, Units, plan, units};
pub use revision::Revision;
pub use several::{AnySink, Several};
pub use target::Target;

/// A target of publications.
///
/// `publish` may be called for several scopes at once; publications of one scope are applied in the order of the calls.
pub trait Sink: Send + Sync {
    /// Makes the target hold exactly `desired` under its scope.
    ///
    /// Idempotent: a retry after an error, or after no error, is always allowed.
    ///
    /// # Errors
    /// [`SinkError::is_retryable`] says whether the same call may succeed later.
    fn publish(&self, desired: &Desired) -> impl Future<Output = Result<Published, SinkError>> + Send;

    /// How what is published comes into force.
    fn effect(&self) -> Effect {
        Effect::Live
    }

    /// The scopes that somebody else changed since they were published, now and whenever that changes; publishing them again
    /// puts that right. `None`, unless told otherwise, when that is not followed.
    fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        None
    }

    /// Stops following a scope that will not be published again, at least not soon; what it holds stays. Nothing to do, unless
    /// told otherwise.
    fn forget(&self, _scope: &Scope) {}

    /// Has what is published from now on marked with a name that nobody else publishes under, where the target can hold
    /// such marks; they are what [`own_scopes`](Self::own_scopes) goes by. The first call counts.
    fn publish_as(&self, _publisher: &str) {}

    /// Says which term of ours it is, for programs of which one publishes at a time: what a program of a lower term publishes
    /// from then on is refused, where the target can hold a fence. Never lower than before, nor zero; other targets have none.
    fn fence(&self, _term: u64) {}

    /// The scopes below `root` that hold something which was published under our [name](Self::publish_as), by this process
    /// or an earlier one, and is not known to be somebody else's now. None where the target holds no such marks.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), when the target cannot be read.
    fn own_scopes(&self, _root: &Scope) -> impl Future<Output = Result<BTreeSet<Scope>, SinkError>> + Send {
        std::future::ready(Ok(BTreeSet::new()))
    }
}

/// How what a sink has published comes into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Programs that read the target follow it by themselves.
    Live,
    /// When a program that reads the target is started again; nothing here can tell whether it was.
    OnRestart,
    /// When whoever reads the target sees to it.
    Unknown,
}

/// What a publication did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The revision that brought the scope to its present content.
    /// A publication that changes nothing returns the revision of the one before.
    pub revision: Revision,
    /// How many documents were written and deleted.
    pub changed: Changed,
}

/// How many documents a publication touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Documents that were not there before.
    pub created: usize,
    /// Documents whose bytes changed.
    pub updated: usize,
    /// Documents that are gone.
    pub deleted: usize,
}

impl Changed {
    /// The number of documents touched.
    pub fn total(self) -> usize {
        self.created + self.updated + self.deleted
    }

    /// This and some steps more.
    pub(crate) fn with(mut self, steps: &[Step]) -> Self {
        for step in steps {
            match step {
                Step::Create(_) => self.created += 1,
                Step::Update(_) => self.updated += 1,
                Step::Delete { .. } => self.deleted += 1,
            }
        }
        self
    }

    /// Whether nothing was touched.
    pub fn is_empty(self) -> bool {
        self.total() == 0
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} created, {} updated, {} deleted", self.created, self.updated, self.deleted)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
