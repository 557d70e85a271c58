//! A feed of which other replicas serve the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_sink::{Desired, Effect, EmbeddedEtcd, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Feed, Reach};
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::replicas::Replicas;

/// A feed whose readers are those of all replicas.
pub(crate) struct Served<F> {
    feed: Arc<F>,
    replicas: Option<Replicas>,
    /// Changes when the readers of either may be others.
    changes: watch::Sender<u64>,
}

impl<F: Feed> Served<F> {
    pub(crate) fn new(feed: Arc<F>, replicas: Option<Replicas>) -> Self {
        Self { feed, replicas, changes: watch::Sender::new(0) }
    }

    /// One of several replicas, which tells the others of its readers and hears of theirs, until it is stopped.
    pub(crate) async fn live(self: Arc<Self>, leadership: Leadership, stop: CancellationToken) {
        let Some(replicas) = self.replicas.clone() else { return };
        let follow = async |mut source: watch::Receiver<u64>| {
            while source.changed().await.is_ok() {
                self.changes.send_modify(|count| *count += 1);
            }
        };
        let sources = self.feed.readers_changed().into_iter().chain([replicas.changes()]);
        let changes = futures::future::join_all(sources.map(follow));
        let own = || self.feed.readers();
        let replicas = replicas.run(own, self.feed.readers_changed(), leadership, stop.clone());
        tokio::join!(stop.run_until_cancelled(changes), replicas);
    }
}

impl<F: Feed> Sink for Served<F> {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.feed.publish(desired).await
    }

    fn effect(&self) -> Effect {
        self.feed.effect()
    }

    fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        self.feed.drifted()
    }

    fn forget(&self, scope: &Scope) {
        self.feed.forget(scope);
    }

    fn publish_as(&self, publisher: &str) {
        self.feed.publish_as(publisher);
    }

    async fn own_scopes(&self, root: &Scope) -> Result<BTreeSet<Scope>, SinkError> {
        self.feed.own_scopes(root).await
    }
}

impl<F: Feed> Feed for Served<F> {
    fn name(&self) -> &'static str {
        self.feed.name()
    }

    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        self.feed.embedded()
    }

    fn replicas(&self) -> Option<&Replicas> {
        self.replicas.as_ref()
    }

    fn open(&self) {
        self.feed.open();
    }

    fn begin(&self, leadership: &Leadership, metrics: Option<&Arc<Metrics>>) {
        self.feed.begin(leadership, metrics);
    }

    fn counts_itself(&self) -> bool {
        self.feed.counts_itself()
    }

    fn reach(&self, scope: &Scope) -> Reach {
        self.feed.reach(scope)
    }

    fn gave(&self, scope: &Scope, revision: Revision) -> bool {
        self.feed.gave(scope, revision)
    }

    fn effect_on(&self, scope: &Scope) -> Effect {
        self.feed.effect_on(scope)
    }

    fn concurrency(&self) -> usize {
        self.feed.concurrency()
    }

    fn targets(&self, scope: &Scope) -> Vec<usize> {
        self.feed.targets(scope)
    }

    async fn publish_to(&self, target: usize, desired: &Desired) -> Result<Published, SinkError> {
        self.feed.publish_to(target, desired).await
    }

    fn drifts(&self) -> Vec<watch::Receiver<BTreeSet<Scope>>> {
        self.feed.drifts()
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        let others = self.replicas.as_ref().map_or(0, |replicas| replicas.readers_of(scope));
        Some(self.feed.readers_of(scope)?.saturating_add(others))
    }

    fn readers(&self) -> BTreeMap<Scope, usize> {
        self.feed.readers()
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        let own = self.feed.readers_changed()?;
        Some(if self.replicas.is_some() { self.changes.subscribe() } else { own })
    }
}
