//! The contract of all sinks.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::desired::{Desired, Scope};
use crate::error::SinkError;
use crate::plan::Changed;
use crate::revision::Revision;

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

    /// The way in which publications take effect.
    fn effect(&self) -> Effect {
        Effect::Live
    }

    /// The scopes with drift, now and after each change. Another publication of such a scope repairs it. Default: `None`, for
    /// a sink that does not follow its target.
    fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        None
    }

    /// Stops following a scope without further publications. Its documents stay. Default: nothing.
    fn forget(&self, _scope: &Scope) {}

    /// Marks later publications with the unique name of a publisher, if the target can hold marks.
    /// [`own_scopes`](Self::own_scopes) reads these marks. The first call counts.
    fn publish_as(&self, _publisher: &str) {}

    /// Sets the term of this leader, for programs with leader election. A target with a fence then refuses publications of
    /// lower terms. A term is greater than zero, and never lower than before. Other targets ignore terms.
    fn fence(&self, _term: u64) {}

    /// The scopes below `root` with documents of our [name](Self::publish_as), from this process or an earlier one. Scopes
    /// that another publisher has taken over are left out. A target without marks has no such scopes.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), when the target cannot be read.
    fn own_scopes(&self, _root: &Scope) -> impl Future<Output = Result<BTreeSet<Scope>, SinkError>> + Send {
        std::future::ready(Ok(BTreeSet::new()))
    }
}

/// The way in which publications of a sink take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Programs that read the target follow its changes.
    Live,
    /// A restart of the programs that read the target is needed. The sink does not learn of a restart.
    OnRestart,
    /// The reader of the target decides.
    Unknown,
}

/// The result of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The revision that brought the scope to its present content.
    /// A publication that changes nothing returns the revision of the one before.
    pub revision: Revision,
    /// The numbers of documents that were written and deleted.
    pub changed: Changed,
}
