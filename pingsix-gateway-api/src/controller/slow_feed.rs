//! A feed that does as it is told, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pingsix_sink::desired::DesiredError;
use pingsix_sink::etcd::EtcdError;
use pingsix_sink::{Desired, MemorySink, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Feed, Reach};
use crate::replicas::Replicas;

/// What becomes of publications of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are made at once.
    Quick,
    /// They take a while.
    Slow(Duration),
    /// They never end.
    Stuck,
    /// They fail, after a while.
    Failing(Duration),
    /// They fail, and always will.
    Refused,
    /// They fail, for another scope is held there.
    Elsewhere,
}

/// Memory that is reached over a bad line.
#[derive(Default)]
pub(super) struct SlowFeed {
    pub(super) sink: MemorySink,
    pub(super) concurrency: Option<usize>,
    pub(super) fates: Mutex<BTreeMap<String, Fate>>,
    /// What has begun: scopes, and how many documents they shall hold.
    pub(super) begun: Mutex<Vec<(String, usize)>>,
    /// Whose each scope was when documents were last published there.
    pub(super) owners: Mutex<BTreeMap<String, Option<Arc<str>>>>,
    /// How much of a publication is made here.
    pub(super) reach: Mutex<Option<Reach>>,
    /// The target that is for the leader, when only a part is made here.
    pub(super) shared: Option<usize>,
    pub(super) open: watch::Sender<bool>,
    /// Scopes that nobody follows any more.
    pub(super) forgotten: Mutex<Vec<Scope>>,
    /// Targets beside this one, which is the first.
    pub(super) others: Vec<SlowFeed>,
    /// Others that serve the same.
    pub(super) replicas: Option<Replicas>,
    /// Revisions that another replica has handed out begin here.
    pub(super) elsewhere: Mutex<Option<Revision>>,
}

impl SlowFeed {
    /// Several targets in one.
    pub(super) fn of_targets(count: usize) -> Self {
        Self { others: (1..count).map(|_| Self::default()).collect(), ..Self::default() }
    }

    pub(super) fn at(&self, target: usize) -> &Self {
        target.checked_sub(1).map_or(self, |other| &self.others[other])
    }

    pub(super) fn fate(&self, scope: &str, fate: Fate) {
        self.fates.lock().insert(scope.to_owned(), fate);
    }

    pub(super) fn begun(&self) -> Vec<(String, usize)> {
        self.begun.lock().clone()
    }

    pub(super) fn forgotten(&self) -> Vec<Scope> {
        self.forgotten.lock().clone()
    }

    /// How many documents a scope holds.
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

    fn reach(&self, _scope: &Scope) -> Reach {
        self.reach.lock().unwrap_or(Reach::All)
    }

    fn replicas(&self) -> Option<&Replicas> {
        self.replicas.as_ref()
    }

    fn gave(&self, _: &Scope, revision: Revision) -> bool {
        self.elsewhere.lock().is_none_or(|elsewhere| revision < elsewhere)
    }

    fn targets(&self, scope: &Scope) -> Vec<usize> {
        let left = self.shared.filter(|_| self.reach(scope) == Reach::Part);
        (0..=self.others.len()).filter(|target| Some(*target) != left).collect()
    }

    fn opens(&self, _: &Scope, target: usize) -> bool {
        self.shared != Some(target)
    }

    async fn publish_to(&self, target: usize, desired: &Desired) -> Result<Published, SinkError> {
        self.at(target).publish(desired).await
    }

    fn concurrency(&self) -> usize {
        self.concurrency.unwrap_or(16)
    }
}
