//! A feed with errors on request, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pingsix_sink::desired::DesiredError;
use pingsix_sink::etcd::EtcdError;
use pingsix_sink::{Desired, MemorySink, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Feed, SinkHandle, SinkRouter};

/// The fate of publications to a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Publications end at once.
    Quick,
    /// Publications take a while.
    Slow(Duration),
    /// Publications never end.
    Stuck,
    /// Publications fail after a while.
    Failing(Duration),
    /// Publications fail for good.
    Refused,
    /// Publications fail, because the target belongs to another scope.
    Elsewhere,
}

/// Memory that is reached over a bad line.
#[derive(Default)]
pub(super) struct SlowFeed {
    pub(super) sink: MemorySink,
    pub(super) fates: Mutex<BTreeMap<String, Fate>>,
    /// The publications that have begun: the scope, and its number of documents.
    pub(super) begun: Mutex<Vec<(String, usize)>>,
    /// The owner mark of each scope at its last publication.
    pub(super) owners: Mutex<BTreeMap<String, Option<Arc<str>>>>,
    /// The last share of a core of each scope, in percent.
    pub(super) cpu_limits: Mutex<BTreeMap<String, u8>>,
    pub(super) open: watch::Sender<bool>,
    /// Scopes without a follower.
    pub(super) forgotten: Mutex<Vec<Scope>>,
    /// Revisions of another replica begin here.
    pub(super) elsewhere: Mutex<Option<Revision>>,
}

/// A router of all scopes to several feeds.
pub(super) fn feeds<const COUNT: usize>() -> (SinkRouter, [Arc<SlowFeed>; COUNT]) {
    let feeds: [Arc<SlowFeed>; COUNT] = std::array::from_fn(|_| Arc::default());
    let handles = feeds.iter().map(|feed| SinkHandle::feed("feed", Arc::clone(feed)));
    (SinkRouter::new(handles.collect()), feeds)
}

/// A sink of all replicas, which can be looked into.
pub(super) fn shared(kind: &'static str, name: &str, feed: &Arc<SlowFeed>) -> SinkHandle {
    SinkHandle::shared(kind, name, pingsix_sink::DynSink::from(Arc::clone(feed)))
}

impl SlowFeed {
    pub(super) fn fate(&self, scope: &str, fate: Fate) {
        self.fates.lock().insert(scope.to_owned(), fate);
    }

    pub(super) fn begun(&self) -> Vec<(String, usize)> {
        self.begun.lock().clone()
    }

    pub(super) fn forgotten(&self) -> Vec<Scope> {
        self.forgotten.lock().clone()
    }

    /// The number of documents in a scope.
    pub(super) fn held(&self, scope: &str) -> Option<usize> {
        Some(self.sink.documents(&Scope::new(scope).unwrap())?.len())
    }

    pub(super) fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}

impl Sink for SlowFeed {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let scope = desired.scope().as_str();
        self.begun.lock().push((scope.to_owned(), desired.documents().len()));
        if !desired.documents().is_empty() {
            self.owners.lock().insert(scope.to_owned(), desired.owner().cloned());
        }
        let fate = self.fates.lock().get(scope).copied().unwrap_or(Fate::Quick);
        match fate {
            Fate::Quick => {}
            Fate::Slow(time) => sleep(time).await,
            Fate::Stuck => std::future::pending().await,
            Fate::Failing(time) => {
                sleep(time).await;
                return Err(SinkError::target(std::io::Error::other("the line is bad")));
            }
            Fate::Refused => return Err(EtcdError::Limit("it is too large".to_owned()).into()),
            Fate::Elsewhere => {
                let (scope, held) = (desired.scope().clone(), desired.scope().clone());
                return Err(DesiredError::ScopeOverlap { scope, held }.into());
            }
        }
        self.sink.publish(desired).await
    }

    fn forget(&self, scope: &Scope) {
        self.forgotten.lock().push(scope.clone());
    }
}

impl Feed for SlowFeed {
    fn open(&self) {
        self.open.send_replace(true);
    }

    fn limit_cpu(&self, scope: &Scope, percent: u8) {
        self.cpu_limits.lock().insert(scope.as_str().to_owned(), percent);
    }

    fn issued(&self, revision: Revision) -> bool {
        self.elsewhere.lock().is_none_or(|elsewhere| revision < elsewhere)
    }
}
