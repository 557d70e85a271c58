//! A feed, and beside it the sinks that parameters name: each scope goes to one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use pingsix_sink::{Desired, Effect, EmbeddedEtcd, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::{Semaphore, watch};

use super::destinations::Destinations;
use super::{Feed, Reach};
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::replicas::Replicas;

/// Publishes to the feed what is not sent elsewhere.
pub(super) struct Directed<F> {
    feed: Arc<F>,
    destinations: Destinations,
    /// What is under way at a destination takes none of the feed's room.
    room: Semaphore,
    metrics: OnceLock<Arc<Metrics>>,
}

impl<F: Feed> Directed<F> {
    pub(super) fn new(feed: Arc<F>, destinations: Destinations) -> Self {
        let room = Semaphore::new(feed.concurrency().clamp(1, Semaphore::MAX_PERMITS));
        Self { feed, destinations, room, metrics: OnceLock::new() }
    }
}

impl<F: Feed> Sink for Directed<F> {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        match self.destinations.of(desired.scope()) {
            Some(destination) => destination.outlets.publish(desired).await,
            None => self.feed.publish(desired).await,
        }
    }

    fn effect(&self) -> Effect {
        self.feed.effect()
    }

    fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        self.feed.drifted()
    }

    /// It is published to the feed again, if at all.
    fn forget(&self, scope: &Scope) {
        match self.destinations.recall(scope) {
            Some(destination) => destination.outlets.forget(scope),
            None => self.feed.forget(scope),
        }
    }

    fn publish_as(&self, publisher: &str) {
        self.feed.publish_as(publisher);
        self.destinations.publish_as(publisher);
    }

    /// Those of the feed. What was published there before its scope was sent elsewhere is not among them.
    async fn own_scopes(&self, root: &Scope) -> Result<BTreeSet<Scope>, SinkError> {
        let mut own = self.feed.own_scopes(root).await?;
        own.retain(|scope| self.destinations.of(scope).is_none());
        Ok(own)
    }
}

impl<F: Feed> Feed for Directed<F> {
    fn name(&self) -> &'static str {
        self.feed.name()
    }

    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        self.feed.embedded()
    }

    fn replicas(&self) -> Option<&Replicas> {
        self.feed.replicas()
    }

    fn open(&self) {
        self.feed.open();
    }

    fn begin(&self, leadership: &Leadership, metrics: Option<&Arc<Metrics>>) {
        if let Some(metrics) = metrics {
            let _ = self.metrics.set(Arc::clone(metrics));
        }
        self.feed.begin(leadership, metrics);
        self.destinations.begin(leadership, metrics);
    }

    fn counts_itself(&self) -> bool {
        true
    }

    fn reach(&self, scope: &Scope) -> Reach {
        match self.destinations.of(scope) {
            Some(destination) => destination.outlets.reach(scope),
            None => self.feed.reach(scope),
        }
    }

    fn effect_on(&self, scope: &Scope) -> Effect {
        match self.destinations.of(scope) {
            Some(destination) => destination.outlets.effect_on(scope),
            None => self.feed.effect_on(scope),
        }
    }

    fn targets(&self, scope: &Scope) -> Vec<usize> {
        match self.destinations.of(scope) {
            Some(destination) => destination.outlets.targets(scope),
            None => self.feed.targets(scope),
        }
    }

    /// What lies elsewhere is no part of what the feed opens with.
    fn opens(&self, scope: &Scope, target: usize) -> bool {
        self.destinations.of(scope).is_none() && self.feed.opens(scope, target)
    }

    async fn publish_to(&self, target: usize, desired: &Desired) -> Result<Published, SinkError> {
        if let Some(destination) = self.destinations.of(desired.scope()) {
            return destination.outlets.publish_to(target, desired).await;
        }
        let result = {
            // Where there is room, nobody waits: what a feed takes at once is published at once. Nobody closes it.
            let _room = match self.room.try_acquire() {
                Ok(room) => Ok(room),
                Err(_) => self.room.acquire().await,
            };
            self.feed.publish_to(target, desired).await
        };
        if let Some(metrics) = self.metrics.get().filter(|_| !self.feed.counts_itself()) {
            match &result {
                Ok(published) => metrics.published(self.feed.name(), published),
                Err(error) => metrics.publication_failed(self.feed.name(), error.category()),
            }
        }
        result
    }

    fn drifts(&self) -> Vec<watch::Receiver<BTreeSet<Scope>>> {
        self.feed.drifts()
    }

    fn concurrency(&self) -> usize {
        // The feed and each destination have room of their own.
        usize::MAX
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        match self.destinations.of(scope) {
            Some(destination) => destination.outlets.readers_of(scope),
            None => self.feed.readers_of(scope),
        }
    }

    fn readers(&self) -> BTreeMap<Scope, usize> {
        self.feed.readers()
    }

    fn gave(&self, scope: &Scope, revision: Revision) -> bool {
        match self.destinations.of(scope) {
            Some(destination) => destination.outlets.gave(scope, revision),
            None => self.feed.gave(scope, revision),
        }
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        self.feed.readers_changed()
    }
}
