//! The sinks of each scope.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use pingsix_sink::{Desired, Effect, EmbeddedEtcd, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Feed;
use super::attached_sinks::{AttachedSinks, SinkId};
use super::sink_handle::SinkHandle;
use super::sinks_failed::SinksFailed;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::replicas::Replicas;

/// The part of a publication that this replica makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishScope {
    /// All of it.
    All,
    /// The part at sinks that replicas do not share. The leader makes the rest.
    Part,
    /// No part: the leader publishes all.
    Nothing,
}

/// Another replica leads, and writes.
#[derive(Debug, thiserror::Error)]
#[error("this replica does not lead any more")]
struct NotLeader;

/// Publishes each scope to its sinks: those that parameters name, those that are [chosen](Self::with) for the scope, or the
/// default sinks.
///
/// The sinks of a scope get each publication independently. The first one is the one that PingSIX reads: its revisions,
/// its readers and its [`Effect`] count.
#[derive(Default)]
pub struct SinkRouter {
    default: Vec<SinkHandle>,
    chosen: BTreeMap<Scope, Vec<SinkHandle>>,
    attached: AttachedSinks,
    leadership: Option<Leadership>,
    metrics: Option<Arc<Metrics>>,
    replicas: Option<Replicas>,
}

impl fmt::Debug for SinkRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { default, chosen, .. } = self;
        f.debug_struct("SinkRouter").field("default", default).field("chosen", chosen).finish_non_exhaustive()
    }
}

impl<F: Sink + Feed + 'static> From<Arc<F>> for SinkRouter {
    fn from(feed: Arc<F>) -> Self {
        Self::new(vec![SinkHandle::new(feed.name(), None, Arc::clone(&feed).into(), Some(feed))])
    }
}

impl SinkRouter {
    /// Publishes all scopes to these sinks.
    pub fn new(default: Vec<SinkHandle>) -> Self {
        Self { default, ..Self::default() }
    }

    /// Publishes one scope to other sinks.
    #[must_use]
    pub fn with(mut self, scope: Scope, sinks: Vec<SinkHandle>) -> Self {
        self.chosen.insert(scope, sinks);
        self
    }

    /// Publishes to shared sinks while this replica leads.
    pub(crate) fn with_leadership(self, leadership: &Leadership) -> Self {
        Self { leadership: Some(leadership.clone()), ..self }
    }

    /// Counts publications.
    pub(super) fn with_metrics(self, metrics: Option<Arc<Metrics>>) -> Self {
        Self { metrics, ..self }
    }

    /// Adds the readers of other replicas.
    pub(crate) fn with_replicas(self, replicas: Option<Replicas>) -> Self {
        Self { replicas, ..self }
    }

    /// Publishes scopes to the sinks that parameters name.
    pub(super) fn with_attached(self, attached: AttachedSinks) -> Self {
        Self { attached, ..self }
    }

    /// The sinks of a scope.
    fn sinks(&self, scope: &Scope) -> Vec<SinkHandle> {
        match self.attached.id_of(scope).and_then(|id| self.attached.get(id)) {
            Some(sink) => vec![sink],
            None => self.chosen.get(scope).unwrap_or(&self.default).clone(),
        }
    }

    /// Each sink once, without those that parameters name.
    fn all(&self) -> Vec<&SinkHandle> {
        let mut all: Vec<&SinkHandle> = Vec::new();
        for sink in self.default.iter().chain(self.chosen.values().flatten()) {
            if !all.iter().any(|other| other.is(sink)) {
                all.push(sink);
            }
        }
        all
    }

    fn feeds(&self) -> impl Iterator<Item = &Arc<dyn Feed>> {
        self.all().into_iter().filter_map(|sink| sink.served())
    }

    fn leads(&self) -> bool {
        self.leadership.as_ref().is_some_and(Leadership::is_held)
    }

    /// The part of a publication that this replica makes now. It makes the rest as soon as it leads.
    pub(super) fn publish_scope(&self, scope: &Scope) -> PublishScope {
        let sinks = self.sinks(scope);
        let shared = sinks.iter().filter(|sink| sink.is_shared()).count();
        if shared == 0 || self.leads() {
            PublishScope::All
        } else if shared < sinks.len() {
            PublishScope::Part
        } else {
            PublishScope::Nothing
        }
    }

    /// The indices of the sinks to which this replica publishes a scope now. PingSIX reads the one with index 0.
    pub(super) fn targets(&self, scope: &Scope) -> Vec<usize> {
        let (sinks, leads) = (self.sinks(scope), self.leads());
        (0..sinks.len()).filter(|target| leads || !sinks[*target].is_shared()).collect()
    }

    /// Whether readiness waits for a sink of a scope. PingSIX reads shared sinks without the controller, so readiness does
    /// not wait for them.
    pub(super) fn opens(&self, scope: &Scope, target: usize) -> bool {
        self.sinks(scope).get(target).is_some_and(|sink| !sink.is_shared())
    }

    /// Publishes to one of the [targets](Self::targets).
    ///
    /// # Errors
    ///
    /// The error of the sink, with its name. An error too if another replica leads.
    pub(super) async fn publish_to(&self, target: usize, desired: &Desired) -> Result<Published, SinkError> {
        let sinks = self.sinks(desired.scope());
        let sink = sinks.get(target).filter(|sink| self.leads() || !sink.is_shared());
        let Some(sink) = sink else { return Err(SinkError::target(NotLeader)) };
        let result = match self.leadership.as_ref().filter(|_| sink.is_shared()) {
            Some(leadership) => {
                let published = leadership.while_held(sink.publish(desired, Some(leadership))).await;
                published.unwrap_or_else(|| Err(SinkError::target(NotLeader)))
            }
            None => sink.publish(desired, None).await,
        };
        if let Some(metrics) = &self.metrics {
            match &result {
                Ok(published) => metrics.published(sink.kind(), published),
                Err(error) => metrics.publication_failed(sink.kind(), error.category()),
            }
        }
        result.map_err(|error| match sink.name() {
            Some(name) => SinksFailed::of(name, error, sinks.len()).into(),
            None => error,
        })
    }

    /// Publishes a scope to an open sink of [`attached`](Self::attached), or with `None` to the other sinks. The sink
    /// before keeps the documents.
    pub(super) fn attach(&self, scope: &Scope, id: Option<SinkId>) {
        if self.attached.id_of(scope) != id {
            self.forget(scope);
            if let Some(id) = id {
                self.attached.attach(scope, id);
            }
        }
    }

    pub(super) const fn attached(&self) -> &AttachedSinks {
        &self.attached
    }

    /// Stops following a scope where it is published, and detaches it from the sink of parameters.
    pub(super) fn forget(&self, scope: &Scope) {
        match self.attached.detach(scope) {
            Some(sink) => sink.sink().forget(scope),
            None => self.sinks(scope).iter().for_each(|sink| sink.sink().forget(scope)),
        }
    }

    /// Marks later publications with this name.
    pub(super) fn publish_as(&self, publisher: &str) {
        self.all().into_iter().for_each(|sink| sink.sink().publish_as(publisher));
        self.attached.publish_as(publisher);
    }

    /// The scopes with our mark below `root` at an attached sink, or with `None` at all other sinks. Of those, scopes that
    /// are now published elsewhere are left out.
    pub(super) async fn own_scopes(
        &self,
        root: &Scope,
        at: Option<SinkId>,
    ) -> Result<BTreeSet<Scope>, SinkError> {
        let mut own = BTreeSet::new();
        if let Some(id) = at {
            if let Some(sink) = self.attached.get(id) {
                own = sink.sink().own_scopes(root).await?;
            }
            return Ok(own);
        }
        for sink in self.all() {
            let found = sink.sink().own_scopes(root).await?;
            own.extend(
                found.into_iter().filter(|scope| self.sinks(scope).iter().any(|other| other.is(sink))),
            );
        }
        Ok(own)
    }

    /// For each sink that reports it, the scopes that another program has changed.
    pub(super) fn drifts(&self) -> Vec<watch::Receiver<BTreeSet<Scope>>> {
        self.all().into_iter().filter_map(|sink| sink.sink().drifted()).collect()
    }

    pub(super) fn effect(&self, scope: &Scope) -> Effect {
        self.sinks(scope).first().map_or(Effect::Unknown, |sink| sink.sink().effect())
    }

    /// Opens the feeds of this replica.
    pub(super) fn open(&self) {
        self.feeds().for_each(|feed| feed.open());
    }

    /// The embedded server of this replica.
    pub(super) fn embedded(&self) -> Option<&EmbeddedEtcd> {
        self.feeds().find_map(|feed| feed.embedded())
    }

    /// The other replicas.
    pub(super) const fn replicas(&self) -> Option<&Replicas> {
        self.replicas.as_ref()
    }

    /// The number of readers of a scope at all replicas; `None` when unknown.
    pub(crate) fn readers_of(&self, scope: &Scope) -> Option<usize> {
        let sinks = self.sinks(scope);
        let own = sinks.first()?.served()?.readers_of(scope)?;
        let others = self.replicas.as_ref().map_or(0, |replicas| replicas.readers_of(scope));
        Some(own.saturating_add(others))
    }

    /// Changes with the readers of this replica.
    pub(super) fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        self.feeds().find_map(|feed| feed.readers_changed())
    }

    /// Whether this replica may have issued a revision of a scope.
    pub(super) fn issued(&self, scope: &Scope, revision: Revision) -> bool {
        let sinks = self.sinks(scope);
        sinks.first().and_then(|sink| sink.served()).is_none_or(|feed| feed.issued(revision))
    }

    /// Tells the feed of a scope that all its readers have applied everything up to a revision.
    pub(super) fn confirm(&self, scope: &Scope, revision: Revision) {
        if let Some(feed) = self.sinks(scope).first().and_then(|sink| sink.served()) {
            feed.confirm(scope, revision);
        }
    }

    /// Bounds the CPU that readers of a scope spend on changes, in percent of one core.
    pub(super) fn limit_cpu(&self, scope: &Scope, percent: u8) {
        if let Some(feed) = self.sinks(scope).first().and_then(|sink| sink.served()) {
            feed.limit_cpu(scope, percent);
        }
    }

    /// Exchanges readers with the other replicas until it is stopped.
    pub(crate) async fn exchange_readers(self: Arc<Self>, stop: CancellationToken) {
        let Some((replicas, leadership)) = self.replicas.clone().zip(self.leadership.clone()) else { return };
        let own = || self.feeds().next().map(|feed| feed.readers()).unwrap_or_default();
        replicas.run(own, self.readers_changed(), leadership, stop).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::future::join_all;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::controller::sink_handle::MAX_CONCURRENT_PUBLICATIONS;
    use crate::controller::sinks_failed::joined;
    use crate::controller::slow_feed::{Fate, SlowFeed, shared};

    const SLOW_PUBLICATION: Duration = Duration::from_secs(5);

    fn scope(name: &str) -> Scope {
        Scope::new(format!("/pingsix/{name}")).unwrap()
    }

    fn empty(name: &str) -> Desired {
        Desired::empty(scope(name))
    }

    fn led(router: SinkRouter, held: bool) -> (watch::Sender<Option<Instant>>, SinkRouter) {
        let sender = watch::Sender::new(held.then(|| Instant::now() + SLOW_PUBLICATION * 100));
        let leadership = Leadership::of(sender.subscribe());
        (sender, router.with_leadership(&leadership))
    }

    /// Publishes to all sinks of a scope that are for this replica.
    async fn publish(router: &SinkRouter, name: &str) -> Result<Published, SinkError> {
        let desired = empty(name);
        let targets = router.targets(desired.scope()).into_iter();
        let results = join_all(targets.map(|target| router.publish_to(target, &desired))).await;
        joined(results).unwrap_or_else(|| Err(SinkError::target(NotLeader)))
    }

    fn begun(feed: &SlowFeed) -> Vec<String> {
        feed.begun().into_iter().map(|(scope, _)| scope).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_scope_has_its_sinks_and_each_error_has_its_sink() {
        let (one, two) = (Arc::<SlowFeed>::default(), Arc::<SlowFeed>::default());
        one.fate("/pingsix/b", Fate::Failing(Duration::ZERO));
        let metrics = Arc::new(Metrics::new(""));
        let etcd = shared("etcd", "etcd://one", &one);
        let both = vec![etcd.clone(), shared("file", "file:/two", &two)];
        let router = SinkRouter::new(vec![etcd]).with(scope("a"), both.clone()).with(scope("b"), both);
        let (_held, router) = led(router.with_metrics(Some(Arc::clone(&metrics))), true);
        for name in ["a", "c"] {
            publish(&router, name).await.unwrap();
        }
        let error = publish(&router, "b").await.unwrap_err();
        assert!(error.is_retryable());
        assert_eq!(
            error.to_string(),
            "1 of 2 targets failed: etcd://one: the target failed: the line is bad"
        );
        assert_eq!(begun(&one), ["/pingsix/a", "/pingsix/c", "/pingsix/b"]);
        assert_eq!(begun(&two), ["/pingsix/a", "/pingsix/b"], "in spite of the error at the other one");
        let text = metrics.encode();
        for line in [
            r#"publications_total{sink="etcd"} 2"#,
            r#"publications_total{sink="file"} 2"#,
            r#"publication_failures_total{sink="etcd",category="target"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_does_not_lead_writes_to_its_own_server_alone() {
        let kept = Arc::<SlowFeed>::default();
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        let own = SinkHandle::feed("embedded:", Arc::new(etcd.clone()));
        let other = shared("etcd", "etcd://one", &kept);
        let router = SinkRouter::new(vec![own.clone()])
            .with(scope("both"), vec![own, other.clone()])
            .with(scope("shared"), vec![other]);
        let reach =
            |router: &SinkRouter| ["own", "both", "shared"].map(|name| router.publish_scope(&scope(name)));
        assert_eq!(
            reach(&router),
            [PublishScope::All, PublishScope::Part, PublishScope::Nothing],
            "without a leader"
        );
        let (held, router) = led(router, false);
        assert_eq!(reach(&router), [PublishScope::All, PublishScope::Part, PublishScope::Nothing]);
        publish(&router, "both").await.unwrap();
        let error = publish(&router, "shared").await.unwrap_err();
        assert!(error.is_retryable());
        assert!(kept.begun().is_empty());
        assert_eq!(etcd.scopes().len(), 1);

        held.send_replace(Some(Instant::now() + SLOW_PUBLICATION));
        assert_eq!(reach(&router), [PublishScope::All; 3]);
        publish(&router, "both").await.unwrap();
        assert_eq!(kept.begun().len(), 1);
        // The end of the lease ends a publication.
        kept.fate("/pingsix/shared", Fate::Stuck);
        let from = Instant::now();
        let error = timeout(SLOW_PUBLICATION * 2, publish(&router, "shared")).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("etcd://one"), "{error}");
        assert_eq!(from.elapsed(), SLOW_PUBLICATION);
        let (embedded, readers) = (router.embedded().is_some(), router.readers_of(&scope("both")));
        assert_eq!((embedded, readers), (true, Some(0)));
        assert_eq!(router.readers_of(&scope("shared")), None, "readers of a shared sink are unknown");
        let opens = |name: &str| [0, 1, 2].map(|target| router.opens(&scope(name), target));
        assert_eq!(opens("both"), [true, false, false], "whichever fails");
        assert_eq!(opens("shared"), [false; 3]);
        assert!(!etcd.is_open());
        router.open();
        assert!(etcd.is_open());
    }

    /// A sink with an effect.
    struct OnRestart(Arc<SlowFeed>);

    impl Sink for OnRestart {
        async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
            self.0.publish(desired).await
        }

        fn effect(&self) -> Effect {
            Effect::OnRestart
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pingsix_reads_the_first_sink_of_a_scope() {
        let (etcd, file) = (Arc::<SlowFeed>::default(), Arc::<SlowFeed>::default());
        etcd.sink.publish(&empty("other")).await.unwrap();
        let of_file = SinkHandle::shared("file", "file:/two", OnRestart(Arc::clone(&file)));
        let router = SinkRouter::new(vec![shared("etcd", "etcd://one", &etcd), of_file.clone()]);
        let (_held, router) = led(router.with(scope("f"), vec![of_file]), true);
        assert_eq!(router.effect(&scope("a")), Effect::Live);
        assert_eq!(router.effect(&scope("f")), Effect::OnRestart);
        let published = publish(&router, "a").await.unwrap();
        assert_eq!(published.revision, etcd.sink.publish(&empty("a")).await.unwrap().revision);
    }

    #[test]
    fn a_scope_is_forgotten_by_its_own_sinks() {
        let (one, two) = (Arc::<SlowFeed>::default(), Arc::<SlowFeed>::default());
        let router = SinkRouter::new(vec![shared("etcd", "etcd://one", &one)])
            .with(scope("a"), vec![shared("etcd", "etcd://two", &two)]);
        router.forget(&scope("a"));
        router.forget(&scope("b"));
        assert_eq!((one.forgotten(), two.forgotten()), (vec![scope("b")], vec![scope("a")]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_gets_a_few_ordered_publications_at_a_time_and_delays_no_other() {
        let (slow, quick) = (Arc::<SlowFeed>::default(), Arc::<SlowFeed>::default());
        let names: Vec<String> = (0..40).map(|index| format!("s{index}")).collect();
        for name in &names {
            slow.fate(scope(name).as_str(), Fate::Slow(SLOW_PUBLICATION));
        }
        let router = SinkRouter::new(vec![shared("etcd", "etcd://one", &slow)])
            .with(scope("q"), vec![shared("etcd", "etcd://two", &quick)]);
        let (_held, router) = led(router, true);
        let mut all = Box::pin(join_all(names.iter().map(|name| publish(&router, name))));
        assert!(timeout(SLOW_PUBLICATION / 2, &mut all).await.is_err());
        assert_eq!(slow.begun().len(), MAX_CONCURRENT_PUBLICATIONS);
        publish(&router, "q").await.unwrap();
        let from = Instant::now();
        assert!(all.await.into_iter().all(|result| result.is_ok()));
        assert_eq!(from.elapsed(), SLOW_PUBLICATION * 5 / 2);
        assert!(
            begun(&slow).iter().eq(names
                .iter()
                .map(|name| scope(name).as_str().to_owned())
                .collect::<Vec<_>>()
                .iter())
        );
    }
}
