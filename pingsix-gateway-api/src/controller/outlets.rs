//! Several targets, chosen for each data plane.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures::future::join_all;
use pingsix_sink::{AnySink, Desired, Effect, EmbeddedEtcd, Published, Revision, Scope, Sink, SinkError};
use tokio::sync::{Semaphore, watch};

use super::targets_failed::{TargetsFailed, joined};
use super::{Feed, Reach};
use crate::leader::Leadership;
use crate::metrics::Metrics;

/// How many publications one target is given at the same time.
const AT_ONCE: usize = 16;

/// A target, for any number of data planes. Clones are the same.
#[derive(Clone)]
pub struct Outlet(Arc<Inner>);

struct Inner {
    kind: &'static str,
    name: String,
    sink: AnySink,
    /// The server of this replica; all others are shared by all replicas.
    embedded: Option<EmbeddedEtcd>,
    room: Semaphore,
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outlet").field(&self.0.name).finish()
    }
}

impl Outlet {
    /// The server of this replica. Each replica publishes to its own.
    pub fn embedded(etcd: EmbeddedEtcd) -> Self {
        Self::new("embedded", "embedded:".to_owned(), etcd.clone(), Some(etcd))
    }

    /// A target that all replicas have in common: the one that leads writes to it. Metrics have the kind, and faults the
    /// name, so that it must not be a secret.
    pub fn shared(kind: &'static str, name: impl Into<String>, sink: impl Sink + 'static) -> Self {
        Self::new(kind, name.into(), sink, None)
    }

    fn new(
        kind: &'static str,
        name: String,
        sink: impl Sink + 'static,
        embedded: Option<EmbeddedEtcd>,
    ) -> Self {
        let (sink, room) = (AnySink::new(sink), Semaphore::new(AT_ONCE));
        Self(Arc::new(Inner { kind, name, sink, embedded, room }))
    }

    fn is_shared(&self) -> bool {
        self.0.embedded.is_none()
    }
}

/// Another replica leads, and writes.
#[derive(Debug, thiserror::Error)]
#[error("this replica does not lead any more")]
struct Led;

/// Publishes each data plane to the targets chosen for it.
///
/// A publication is made when all of them have it; one that fails keeps nothing from the others, and is named. The first of
/// a data plane is the one that PingSIX is taken to read: its revision, its readers and its [`Effect`] count.
#[derive(Debug)]
pub struct Outlets {
    others: Vec<Outlet>,
    chosen: BTreeMap<Scope, Vec<Outlet>>,
    surroundings: OnceLock<Surroundings>,
}

#[derive(Debug)]
struct Surroundings {
    leadership: Leadership,
    metrics: Option<Arc<Metrics>>,
}

impl Outlets {
    /// All data planes to the same targets, of which there should be one at least.
    pub fn new(outlets: Vec<Outlet>) -> Self {
        Self { others: outlets, chosen: BTreeMap::new(), surroundings: OnceLock::new() }
    }

    /// One data plane to others.
    #[must_use]
    pub fn with(mut self, scope: Scope, outlets: Vec<Outlet>) -> Self {
        self.chosen.insert(scope, outlets);
        self
    }

    fn of(&self, scope: &Scope) -> &[Outlet] {
        self.chosen.get(scope).unwrap_or(&self.others)
    }

    /// Each target once.
    fn all(&self) -> Vec<&Outlet> {
        let mut seen = BTreeSet::new();
        let all = self.others.iter().chain(self.chosen.values().flatten());
        all.filter(|outlet| seen.insert(Arc::as_ptr(&outlet.0))).collect()
    }

    /// The server of this replica, if a scope is read from it.
    fn read_from(&self, scope: &Scope) -> Option<&EmbeddedEtcd> {
        self.of(scope).first()?.0.embedded.as_ref()
    }

    fn leads(&self) -> bool {
        self.surroundings.get().is_some_and(|surroundings| surroundings.leadership.is_held())
    }

    async fn write(&self, outlet: &Outlet, desired: &Desired) -> Result<Published, SinkError> {
        let Inner { kind, sink, .. } = &*outlet.0;
        let result = match self.surroundings.get() {
            Some(Surroundings { leadership, .. }) if outlet.is_shared() => {
                let publish = async {
                    // Nobody closes it.
                    let _room = outlet.0.room.acquire().await;
                    if let Some(term) = leadership.term() {
                        sink.fence(term);
                    }
                    sink.publish(desired).await
                };
                let published = leadership.while_held(publish).await;
                published.unwrap_or_else(|| Err(SinkError::target(Led)))
            }
            Some(_) | None => sink.publish(desired).await,
        };
        if let Some(metrics) = self.surroundings.get().and_then(|held| held.metrics.as_ref()) {
            match &result {
                Ok(published) => metrics.published(kind, published),
                Err(error) => metrics.publication_failed(kind, error.category()),
            }
        }
        result
    }
}

impl Sink for Outlets {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let targets = self.targets(desired.scope()).into_iter();
        let results = join_all(targets.map(|target| self.publish_to(target, desired))).await;
        joined(results).unwrap_or_else(|| Err(SinkError::target(Led)))
    }

    fn forget(&self, scope: &Scope) {
        self.of(scope).iter().for_each(|outlet| outlet.0.sink.forget(scope));
    }

    fn publish_as(&self, publisher: &str) {
        self.all().into_iter().for_each(|outlet| outlet.0.sink.publish_as(publisher));
    }

    /// What lies at a target that its scope is published to no more is not among them.
    async fn own_scopes(&self, root: &Scope) -> Result<BTreeSet<Scope>, SinkError> {
        let mut own = BTreeSet::new();
        for outlet in self.all() {
            let found = outlet.0.sink.own_scopes(root).await?;
            let is_same = |other: &Outlet| Arc::ptr_eq(&other.0, &outlet.0);
            own.extend(found.into_iter().filter(|scope| self.of(scope).iter().any(is_same)));
        }
        Ok(own)
    }
}

impl Feed for Outlets {
    fn name(&self) -> &'static str {
        "several"
    }

    fn begin(&self, leadership: &Leadership, metrics: Option<&Arc<Metrics>>) {
        let (leadership, metrics) = (leadership.clone(), metrics.cloned());
        // A feed belongs to one controller.
        let _ = self.surroundings.set(Surroundings { leadership, metrics });
    }

    fn counts_itself(&self) -> bool {
        true
    }

    fn concurrency(&self) -> usize {
        // Each target has its own room, so that one that is stuck takes none from others.
        usize::MAX
    }

    fn targets(&self, scope: &Scope) -> Vec<usize> {
        let (outlets, leads) = (self.of(scope).iter().enumerate(), self.leads());
        outlets.filter(|(_, outlet)| leads || !outlet.is_shared()).map(|(target, _)| target).collect()
    }

    fn opens(&self, scope: &Scope, target: usize) -> bool {
        self.of(scope).get(target).is_some_and(|outlet| outlet.0.embedded.is_some())
    }

    async fn publish_to(&self, target: usize, desired: &Desired) -> Result<Published, SinkError> {
        let outlets = self.of(desired.scope());
        let outlet = outlets.get(target).filter(|outlet| self.leads() || !outlet.is_shared());
        let Some(outlet) = outlet else { return Err(SinkError::target(Led)) };
        let written = self.write(outlet, desired).await;
        written.map_err(|error| TargetsFailed::of(&outlet.0.name, error, outlets.len()).into())
    }

    fn drifts(&self) -> Vec<watch::Receiver<BTreeSet<Scope>>> {
        self.all().into_iter().filter_map(|outlet| outlet.0.sink.drifted()).collect()
    }

    fn reach(&self, scope: &Scope) -> Reach {
        let outlets = self.of(scope);
        let shared = outlets.iter().filter(|outlet| outlet.is_shared()).count();
        if shared == 0 || self.leads() {
            Reach::All
        } else if shared < outlets.len() {
            Reach::Part
        } else {
            Reach::Nothing
        }
    }

    fn effect_on(&self, scope: &Scope) -> Effect {
        self.of(scope).first().map_or(Effect::Unknown, |outlet| outlet.0.sink.effect())
    }

    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        let mut outlets = self.others.iter().chain(self.chosen.values().flatten());
        outlets.find_map(|outlet| outlet.0.embedded.as_ref())
    }

    fn open(&self) {
        if let Some(etcd) = self.embedded() {
            etcd.open();
        }
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        Some(self.read_from(scope)?.readers_of(scope))
    }

    fn gave(&self, scope: &Scope, revision: Revision) -> bool {
        self.read_from(scope).is_none_or(|etcd| etcd.has_given(revision))
    }

    fn readers(&self) -> BTreeMap<Scope, usize> {
        self.embedded().map(EmbeddedEtcd::readers).unwrap_or_default()
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.embedded()?.readers_changed())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pingsix_sink::MemorySink;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::controller::slow_feed::{Fate, SlowFeed};

    const SLOW: Duration = Duration::from_secs(5);

    /// A sink that can be looked into after it was given away.
    #[derive(Clone, Default)]
    struct Kept(Arc<SlowFeed>, Option<Effect>);

    impl Sink for Kept {
        async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
            self.0.publish(desired).await
        }

        fn effect(&self) -> Effect {
            self.1.unwrap_or(Effect::Live)
        }

        fn forget(&self, scope: &Scope) {
            self.0.forget(scope);
        }
    }

    fn scope(name: &str) -> Scope {
        Scope::new(format!("/pingsix/{name}")).unwrap()
    }

    fn empty(name: &str) -> Desired {
        Desired::empty(scope(name))
    }

    fn led(held: bool) -> (watch::Sender<Option<Instant>>, Leadership) {
        let sender = watch::Sender::new(held.then(|| Instant::now() + SLOW * 100));
        let leadership = Leadership::of(sender.subscribe());
        (sender, leadership)
    }

    async fn embedded() -> (EmbeddedEtcd, Outlet) {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        (etcd.clone(), Outlet::embedded(etcd))
    }

    #[tokio::test(start_paused = true)]
    async fn each_data_plane_has_its_targets_and_each_fault_its_target() {
        let (one, two, metrics) = (Kept::default(), Kept::default(), Arc::new(Metrics::new("")));
        one.0.fate("/pingsix/b", Fate::Failing(Duration::ZERO));
        let both = vec![
            Outlet::shared("etcd", "etcd://one", one.clone()),
            Outlet::shared("file", "file:/two", two.clone()),
        ];
        let outlets = Outlets::new(vec![Outlet::shared("etcd", "etcd://one", one.clone())])
            .with(scope("a"), both.clone())
            .with(scope("b"), both);
        let (_held, leadership) = led(true);
        outlets.begin(&leadership, Some(&metrics));
        for name in ["a", "c"] {
            outlets.publish(&empty(name)).await.unwrap();
        }
        let error = outlets.publish(&empty("b")).await.unwrap_err();
        assert!(error.is_retryable());
        assert_eq!(
            error.to_string(),
            "1 of 2 targets failed: etcd://one: the target failed: the line is bad"
        );
        let begun = |kept: &Kept| kept.0.begun().into_iter().map(|(scope, _)| scope).collect::<Vec<_>>();
        assert_eq!(begun(&one), ["/pingsix/a", "/pingsix/c", "/pingsix/b"]);
        assert_eq!(
            begun(&two),
            ["/pingsix/a", "/pingsix/b"],
            "the failure of the other keeps nothing from it"
        );
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
    async fn who_does_not_lead_writes_to_its_own_server_alone() {
        let (kept, (etcd, own)) = (Kept::default(), embedded().await);
        let shared = Outlet::shared("etcd", "etcd://one", kept.clone());
        let outlets = Outlets::new(vec![own.clone()])
            .with(scope("both"), vec![own, shared.clone()])
            .with(scope("shared"), vec![shared]);
        let reach = |outlets: &Outlets| ["own", "both", "shared"].map(|name| outlets.reach(&scope(name)));
        assert_eq!(
            reach(&outlets),
            [Reach::All, Reach::Part, Reach::Nothing],
            "not before it is known who leads"
        );
        let (held, leadership) = led(false);
        outlets.begin(&leadership, None);
        assert_eq!(reach(&outlets), [Reach::All, Reach::Part, Reach::Nothing]);
        outlets.publish(&empty("both")).await.unwrap();
        let error = outlets.publish(&empty("shared")).await.unwrap_err();
        assert!(error.is_retryable());
        assert!(kept.0.begun().is_empty());
        assert_eq!(etcd.scopes().len(), 1);

        held.send_replace(Some(Instant::now() + SLOW));
        assert_eq!(reach(&outlets), [Reach::All; 3]);
        outlets.publish(&empty("both")).await.unwrap();
        assert_eq!(kept.0.begun().len(), 1);
        // What is being written when the lease runs out is given up.
        kept.0.fate("/pingsix/shared", Fate::Stuck);
        let from = Instant::now();
        let error = timeout(SLOW * 2, outlets.publish(&empty("shared"))).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("etcd://one"), "{error}");
        assert_eq!(from.elapsed(), SLOW);
        let (embedded, name) = (outlets.embedded().is_some(), outlets.readers_of(&scope("both")));
        assert_eq!((embedded, name), (true, Some(0)));
        assert_eq!(outlets.readers_of(&scope("shared")), None, "nobody knows who reads it");
        let waited_for = |name: &str| [0, 1, 2].map(|target| outlets.opens(&scope(name), target));
        assert_eq!(waited_for("both"), [true, false, false], "whoever else fails");
        assert_eq!(waited_for("shared"), [false; 3]);
        assert!(!etcd.is_open());
        outlets.open();
        assert!(etcd.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_target_of_a_data_plane_is_the_one_that_is_read() {
        let file = Kept(Arc::default(), Some(Effect::OnRestart));
        let etcd = Kept(Arc::new(SlowFeed { sink: MemorySink::new(), ..SlowFeed::default() }), None);
        let other = empty("other");
        etcd.0.sink.publish(&other).await.unwrap();
        let outlets = Outlets::new(vec![
            Outlet::shared("etcd", "etcd://one", etcd.clone()),
            Outlet::shared("file", "file:/two", file.clone()),
        ]);
        let outlets = outlets.with(scope("f"), vec![Outlet::shared("file", "file:/two", file)]);
        let (_held, leadership) = led(true);
        outlets.begin(&leadership, None);
        assert_eq!(outlets.effect_on(&scope("a")), Effect::Live);
        assert_eq!(outlets.effect_on(&scope("f")), Effect::OnRestart);
        let published = outlets.publish(&empty("a")).await.unwrap();
        assert_eq!(published.revision, etcd.0.sink.publish(&empty("a")).await.unwrap().revision);
    }

    #[test]
    fn what_is_forgotten_is_forgotten_by_the_targets_of_its_data_plane() {
        let (one, two) = (Kept::default(), Kept::default());
        let outlets = Outlets::new(vec![Outlet::shared("etcd", "etcd://one", one.clone())])
            .with(scope("a"), vec![Outlet::shared("etcd", "etcd://two", two.clone())]);
        outlets.forget(&scope("a"));
        outlets.forget(&scope("b"));
        assert_eq!((one.0.forgotten(), two.0.forgotten()), (vec![scope("b")], vec![scope("a")]));
    }

    #[tokio::test(start_paused = true)]
    async fn one_target_gets_a_few_publications_at_a_time_and_keeps_none_from_another() {
        let (slow, quick) = (Kept::default(), Kept::default());
        let scopes: Vec<String> = (0..40).map(|index| format!("s{index}")).collect();
        for name in &scopes {
            slow.0.fate(scope(name).as_str(), Fate::Stuck);
        }
        let outlets = Outlets::new(vec![Outlet::shared("etcd", "etcd://one", slow.clone())])
            .with(scope("q"), vec![Outlet::shared("etcd", "etcd://two", quick)]);
        let (_held, leadership) = led(true);
        outlets.begin(&leadership, None);
        let stuck: Vec<Desired> = scopes.iter().map(|name| empty(name)).collect();
        let all = join_all(stuck.iter().map(|desired| outlets.publish(desired)));
        assert!(timeout(SLOW, all).await.is_err());
        assert_eq!(slow.0.begun().len(), AT_ONCE);
        outlets.publish(&empty("q")).await.unwrap();
    }
}
