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
