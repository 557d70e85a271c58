//! The engine, told by hand what watches would tell it.

mod jobs;
mod provisioning;
mod publishing;
mod ready;
mod refusals;
mod replicas;
mod settling;
mod sinks;
mod start;

use std::collections::BTreeMap;

use kube_runtime::watcher;
use pingsix_sink::Scope;
use pingsix_translate::status::{Address, ConditionStatus, ConditionType, Reason, Severity};
use pingsix_translate::{Budget, Kind, Options};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::acceptance::Reception;
use crate::controller::Progress;
use crate::controller::observers::Gates;
use crate::controller::poll_targets::PollTargets;
use crate::controller::slow_feed::{Fate, SlowFeed, shared};
use crate::controller::{SinkHandle, SinkRouter};
use crate::delivery::Deliveries;
use crate::fixture::generate::event_of;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::reconcile::Reconciler;
use crate::status::{EventBoard, Readers, StatusBoard, Wanted};
use crate::watch::{Answer, Availability};

/// The place of a sink of a [`Rig`].
#[derive(Clone, Copy)]
enum Place {
    /// At this replica, which serves it.
    Replica,
    /// Shared by all replicas.
    Shared,
}

struct Rig {
    engine: Engine,
    feeds: Vec<Arc<SlowFeed>>,
    /// Until when the replica publishes to shared sinks.
    lease: watch::Sender<Option<Instant>>,
    health: Health,
    metrics: Arc<Metrics>,
    progress: watch::Receiver<Progress>,
}

impl Rig {
    fn new() -> Self {
        Self::publishing_to(&[Place::Replica])
    }

    fn publishing_to(places: &[Place]) -> Self {
        Self::routed(places, |router| router, Options::default())
    }

    /// With a router that is changed like this.
    fn routed(places: &[Place], change: impl FnOnce(SinkRouter) -> SinkRouter, options: Options) -> Self {
        let feeds: Vec<Arc<SlowFeed>> = places.iter().map(|_| Arc::default()).collect();
        let handles = places.iter().zip(&feeds).map(|(place, feed)| match place {
            Place::Replica => SinkHandle::feed("feed", Arc::clone(feed)),
            Place::Shared => shared("custom", "shared", feed),
        });
        let router = change(SinkRouter::new(handles.collect()));
        let lease = watch::Sender::new(None);
        let rig = Self::of(router.with_leadership(&Leadership::of(lease.subscribe())), options);
        let rig = Self { feeds, lease, ..rig };
        rig.lead(true);
        rig
    }

    /// The first feed.
    fn feed(&self) -> Arc<SlowFeed> {
        Arc::clone(&self.feeds[0])
    }

    /// Lets the replica publish to shared sinks, or not.
    fn lead(&self, leads: bool) {
        self.lease.send_replace(leads.then(|| Instant::now() + Duration::from_hours(24 * 365)));
    }

    /// With the class `pingsix`, the Gateway `infra/web` with a ListenerSet, and the route `infra/cart`, of which
    /// everything is read and published.
    fn ready() -> Self {
        let mut rig = Self::known();
        rig.settle();
        assert!(rig.is_ready(), "{}", rig.health.readiness().text);
        rig
    }

    /// The same, publishing to this.
    fn ready_with(places: &[Place]) -> Self {
        let mut rig = Self::publishing_to(places).read();
        rig.settle();
        rig
    }

    /// The same, before anything is published.
    fn known() -> Self {
        Self::new().read()
    }

    fn is_ready(&self) -> bool {
        let is_ready = self.health.readiness().ok;
        assert_eq!(self.progress.borrow().is_ready(), is_ready);
        is_ready
    }

    fn of(router: SinkRouter, options: Options) -> Self {
        let (progress, seen) = watch::channel(Progress::default());
        let health = Health::new(Duration::from_mins(1));
        let metrics = Arc::new(Metrics::new(""));
        let reconciler = Reconciler::new(options);
        metrics.observe_world(reconciler.world());
        let boards = (StatusBoard::default(), EventBoard::default(), Readers::of(reconciler.world()));
        let report = Report::new(boards, watch::channel(None).1, progress, Some(Gates::of(&health)));
        let shared = Shared {
            reconciler,
            deliveries: Deliveries::default(),
            managed: Managed::default(),
            sinks: Arc::new(router.with_metrics(Some(Arc::clone(&metrics)))),
            leadership: Leadership::always(),
            addresses: watch::channel(None).1,
            health: Some(health.clone()),
            metrics: Some(metrics.clone()),
            fixed_pages: BTreeMap::new(),
            targets: PollTargets::default(),
            drain: Duration::from_secs(5),
        };
        let mut engine = Engine::new(shared, report, Pace::default(), false);
        engine.ingest.jobs.processor_time = || Duration::ZERO;
        let (feeds, lease) = (Vec::new(), watch::Sender::new(None));
        Self { engine, feeds, lease, health, metrics, progress: seen }
    }

    /// After everything is read.
    fn read(self) -> Self {
        let mut rig = self;
        for kind in Kind::ALL {
            rig.tell(*kind, watcher::Event::Init);
        }
        for (kind, object) in [
            (Kind::GatewayClass, class()),
            (Kind::Gateway, gateway()),
            (Kind::ListenerSet, listener_set(0)),
            (Kind::HttpRoute, route(1)),
        ] {
            rig.tell(kind, watcher::Event::InitApply(object));
        }
        for kind in Kind::ALL {
            assert!(!rig.health.readiness().ok);
            rig.tell(*kind, watcher::Event::InitDone);
        }
        rig
    }

    fn hear(&mut self, input: Input) {
        self.engine.handle(Message::Watched(input));
        self.engine.advance();
    }

    fn tell(&mut self, kind: Kind, event: watcher::Event<Value>) {
        self.hear(Input::Event(event_of(kind, event)));
    }

    fn apply(&mut self, kind: Kind, object: Value) {
        self.tell(kind, watcher::Event::Apply(object));
    }

    /// Reconciles all waiting owners.
    fn settle(&mut self) {
        while let Some(owner) = self.engine.ingest.queue.pop(Instant::now() + Duration::from_mins(1)) {
            self.engine.reconcile(&owner);
            self.engine.advance();
        }
    }

    fn wanted(&self, object: &ObjectKey) -> Option<Wanted> {
        self.engine.report.status.wanted(object)
    }

    fn assembled(&mut self) -> usize {
        std::mem::take(self.engine.report.assembled.get_mut())
    }

    /// The value of a metric, which is there once.
    fn metric(&self, name: &str) -> String {
        let text = self.metrics.encode();
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(name)).collect();
        let [value] = found[..] else { panic!("{name} is there {} times in\n{text}", found.len()) };
        value.trim().to_owned()
    }
}

impl Engine {
    /// Reconsiders an owner here and now.
    fn reconcile(&mut self, owner: &ObjectKey) {
        let started = Instant::now();
        let messages = self.ingest.prepare(&mut self.shared, owner, started).unwrap_or_else(|job| {
            let Some(reconciled) = self.shared.reconciler.finish(job.run()) else { return Messages::new() };
            let (owner, busy_since) = (owner.clone(), started);
            self.ingest.reconciled(Reconciliation { owner, reconciled, is_ours: true, started, busy_since })
        });
        self.handle_all(messages);
    }

    fn record_reception(&mut self, data_plane: &DataPlaneKey, reception: Option<Reception>) {
        let messages = self.shared.record_reception(data_plane, reception);
        self.handle_all(messages);
    }

    fn observe(&mut self, data_plane: &DataPlaneKey, instances: Instances) {
        let messages = self.observe.observe(&mut self.shared, data_plane, instances);
        self.handle_all(messages);
    }
}

fn class() -> Value {
    json!({
        "metadata": {"name": "pingsix", "resourceVersion": "1"},
        "spec": {"controllerName": "pingsix.io/gateway-controller"},
    })
}

fn gateway() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "infra", "resourceVersion": "1", "generation": 1},
        "spec": {
            "gatewayClassName": "pingsix", "allowedListeners": {"namespaces": {"from": "Same"}},
            "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}],
        },
    })
}

fn listener_set(index: usize) -> Value {
    json!({
        "metadata": {"name": format!("set-{index}"), "namespace": "infra", "resourceVersion": "1", "generation": 1},
        "spec": {
            "parentRef": {"name": "web"},
            "listeners": [{"name": "b", "port": 80, "protocol": "HTTP", "hostname": format!("h{index}.example")}],
        },
    })
}

fn route(version: u32) -> Value {
    json!({
        "metadata": {"name": "cart", "namespace": "infra", "resourceVersion": version.to_string(), "generation": version},
        "spec": {"parentRefs": [{"name": "web"}], "rules": [{"filters": [{
            "type": "RequestRedirect",
            "requestRedirect": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/cart"}, "statusCode": 302},
        }]}]},
    })
}

fn web() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "web")
}

fn cart() -> ObjectKey {
    ObjectKey::new(Kind::HttpRoute, "infra", "cart")
}

/// A SecurityPolicy `infra/keys` for an HTTPRoute.
fn policy_of(route: &str) -> Value {
    json!({
        "metadata": {"name": "keys", "namespace": "infra", "resourceVersion": "1", "generation": 4},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route}],
            "authorization": {"deny": ["192.0.2.0/24"]},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_policy_says_that_its_target_does_not_exist_while_that_is_known() {
    let key = ObjectKey::new(Kind::SecurityPolicy, "infra", "keys");
    let told = |rig: &Rig| match rig.wanted(&key) {
        Some(Wanted::Policy(verdicts)) => {
            verdicts.iter().map(|verdict| verdict.ancestor.to_value()["kind"].clone()).collect()
        }
        None | Some(Wanted::Released) => Vec::new(),
        Some(other) => panic!("{other:?}"),
    };
    let mut rig = Rig::ready();
    assert!(rig.engine.report.events.is_empty());
    rig.apply(Kind::SecurityPolicy, policy_of("late"));
    assert_eq!((told(&rig), rig.engine.report.events.len()), (vec![json!("HTTPRoute")], 1));
    // The route has a parent of another class.
    let mut late = route(1);
    late["metadata"]["name"] = json!("late");
    late["spec"]["hostnames"] = json!(["late.example"]);
    late["spec"]["parentRefs"] = json!([{"name": "other"}]);
    rig.apply(Kind::HttpRoute, late.clone());
    rig.settle();
    assert_eq!((told(&rig), rig.engine.report.events.len()), (Vec::new(), 0));
    late["spec"]["parentRefs"] = json!([{"name": "web"}]);
    late["metadata"]["resourceVersion"] = json!("2");
    rig.apply(Kind::HttpRoute, late.clone());
    rig.settle();
    assert_eq!((told(&rig), rig.engine.report.events.len()), (vec![json!("Gateway")], 0));
    rig.tell(Kind::HttpRoute, watcher::Event::Delete(late));
    rig.settle();
    assert_eq!((told(&rig), rig.engine.report.events.len()), (vec![json!("HTTPRoute")], 1));
    rig.tell(Kind::SecurityPolicy, watcher::Event::Delete(policy_of("late")));
    rig.settle();
    assert_eq!(rig.engine.report.events.len(), 0);
    assert_eq!(rig.wanted(&key), None);
}

#[tokio::test(start_paused = true)]
async fn objects_that_a_selector_hides_are_not_missing() {
    let mut rig = Rig::ready();
    let reconciler =
        std::mem::replace(&mut rig.engine.shared.reconciler, Reconciler::new(Options::default()));
    rig.engine.shared.reconciler = reconciler.hiding_objects(true);
    rig.apply(Kind::SecurityPolicy, policy_of("late"));
    rig.settle();
    assert!(rig.engine.report.events.is_empty());
    assert_eq!(rig.wanted(&ObjectKey::new(Kind::SecurityPolicy, "infra", "keys")), None);
}

#[tokio::test(start_paused = true)]
async fn a_ready_controller_stays_ready_whatever_happens_to_the_api_server() {
    let mut rig = Rig::ready();
    // Watches are lost, and everything has to be read anew.
    for kind in Kind::ALL {
        let message = "no connection".to_owned();
        let availability = Availability::Unreachable { message };
        rig.hear(Input::Availability { kind: *kind, availability });
        assert!(rig.is_ready(), "{kind} is lost");
        rig.tell(*kind, watcher::Event::Init);
        assert!(rig.is_ready(), "{kind} is being listed");
    }
    rig.engine.handle(Message::Tick);
    rig.settle();
    assert!(rig.is_ready());
    // A definition goes, with its objects, also one that is needed.
    for kind in [Kind::GrpcRoute, Kind::GatewayClass] {
        let message = "not installed".to_owned();
        rig.hear(Input::Availability { kind, availability: Availability::Absent { message } });
        rig.tell(kind, watcher::Event::Init);
        rig.tell(kind, watcher::Event::InitDone);
        rig.settle();
        assert!(rig.is_ready(), "{kind} is not installed any more");
    }
    assert_eq!(rig.engine.shared.reconciler.ours(), BTreeSet::new());
    // The kind becomes forbidden, and an owner waits for an answer that never comes.
    let message = "forbidden".to_owned();
    let availability = Availability::Forbidden { message };
    rig.hear(Input::Availability { kind: Kind::Service, availability });
    rig.apply(Kind::GatewayClass, class());
    let mut with_tls = gateway();
    with_tls["metadata"]["resourceVersion"] = json!("2");
    with_tls["spec"]["listeners"][0]["protocol"] = json!("HTTPS");
    with_tls["spec"]["listeners"][0]["tls"] = json!({"certificateRefs": [{"name": "tls"}]});
    rig.tell(Kind::Secret, watcher::Event::Init);
    rig.apply(Kind::Gateway, with_tls);
    rig.settle();
    assert!(rig.is_ready());
    let key = ObjectKey::new(Kind::Secret, "infra", "tls");
    rig.hear(Input::Answered { key, answer: Answer::Forbidden { message: String::new() } });
    rig.settle();
    assert!(rig.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_late_does_not_delay_readiness() {
    let mut rig = Rig::new();
    let of = |kind, availability| Input::Availability { kind, availability };
    let absent = [Kind::GrpcRoute, Kind::TlsRoute];
    for kind in absent {
        rig.hear(of(kind, Availability::Absent { message: "not installed".to_owned() }));
    }
    for kind in Kind::ALL.iter().filter(|kind| !absent.contains(kind)) {
        rig.tell(*kind, watcher::Event::Init);
        let objects = [(Kind::GatewayClass, class()), (Kind::Gateway, gateway())];
        for (_, object) in objects.into_iter().filter(|(of, _)| of == kind) {
            rig.tell(*kind, watcher::Event::InitApply(object));
        }
        rig.tell(*kind, watcher::Event::InitDone);
    }
    assert!(rig.engine.ingest.is_known && !rig.is_ready());
    rig.hear(of(Kind::GrpcRoute, Availability::Watching));
    rig.settle();
    assert!(rig.is_ready(), "{}", rig.health.readiness().text);
    let forbidden = Availability::Forbidden { message: "forbidden".to_owned() };
    for availability in [Availability::Watching, forbidden] {
        rig.hear(of(Kind::TlsRoute, availability));
        assert!(rig.is_ready(), "{}", rig.health.readiness().text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_verdicts_of_a_gateway_and_its_sets_are_put_together_once() {
    const SETS: usize = 50;
    let mut rig = Rig::ready();
    for index in 1..SETS {
        rig.apply(Kind::ListenerSet, listener_set(index));
    }
    rig.assembled();
    rig.settle();
    assert_eq!(rig.assembled(), 1, "for one reconciliation");
    for index in 0..SETS {
        let key = ObjectKey::new(Kind::ListenerSet, "infra", &*format!("set-{index}"));
        let wanted = rig.wanted(&key);
        assert!(matches!(wanted, Some(Wanted::ListenerSet(_))), "{key}: {wanted:?}");
    }
    // A route that says something else and changes nothing about them is no news of them.
    rig.apply(Kind::HttpRoute, route(9));
    rig.settle();
    let Some(Wanted::Route(verdict)) = rig.wanted(&cart()) else { panic!("nothing is said of the route") };
    assert_eq!((verdict.generation, rig.assembled()), (9, 0));
    // News of the delivery concerns all of them as well.
    let planes = rig.engine.shared.reconciler.data_planes(&web());
    let before = rig.wanted(&web());
    rig.engine.observe(&planes[0], crate::delivery::Instances::Connected(0));
    assert_eq!(rig.assembled(), 1, "for one change of the delivery");
    assert_ne!(rig.wanted(&web()), before);
    for index in 0..SETS {
        let key = ObjectKey::new(Kind::ListenerSet, "infra", &*format!("set-{index}"));
        let Some(Wanted::ListenerSet(verdict)) = rig.wanted(&key) else { panic!("{key}") };
        assert!(
            format!("{:?}", verdict.conditions).contains("No PingSIX instance is connected."),
            "{verdict:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_a_problem_until_it_is_mended_or_deleted() {
    let mut rig = Rig::ready();
    let problems = r#"pingsix_gateway_problems{severity="error",reason="Invalid"}"#;
    let broken = |version: u32| {
        let mut broken = route(version);
        broken["spec"]["rules"] = json!(7);
        broken
    };
    let board = rig.engine.report.events.clone();
    let alright = board.len();
    rig.apply(Kind::HttpRoute, broken(2));
    rig.settle();
    assert_eq!(board.len(), alright + 1);
    rig.engine.handle(Message::Tick);
    assert_eq!(rig.metric(problems), "1");
    let problem = &rig.engine.ingest.undecodable[&cart()];
    assert_eq!((*problem.object).clone(), cart());
    assert_eq!((problem.severity, problem.reason), (Severity::Error, Reason::Invalid));
    assert_eq!(problem.field.as_str(), "spec.rules");
    // Someone writes its status.
    let mut touched = broken(3);
    touched["metadata"]["generation"] = json!(2);
    touched["status"] = json!({"parents": []});
    rig.apply(Kind::HttpRoute, touched);
    assert_eq!(board.len(), alright + 1);
    rig.apply(Kind::HttpRoute, route(4));
    rig.settle();
    assert_eq!(board.len(), alright);
    rig.engine.handle(Message::Tick);
    assert_eq!(rig.metric(problems), "0");

    // Verdicts of other owners do not change that of the Gateway.
    let mut gateway = gateway();
    gateway["spec"]["listeners"] = json!("none");
    gateway["metadata"]["resourceVersion"] = json!("2");
    let alright = board.len();
    rig.apply(Kind::Gateway, gateway.clone());
    rig.settle();
    assert_eq!(board.len(), alright + 1);
    rig.tell(Kind::Gateway, watcher::Event::Delete(gateway));
    rig.settle();
    assert!(rig.engine.ingest.undecodable.is_empty());
    assert_eq!(board.len(), alright);
}

#[tokio::test(start_paused = true)]
async fn changes_are_counted_and_lists_are_not() {
    let mut rig = Rig::ready();
    assert!(!rig.metrics.encode().contains("pingsix_gateway_events_total"));
    rig.apply(Kind::HttpRoute, route(2));
    assert_eq!(rig.metric(r#"pingsix_gateway_events_total{kind="HTTPRoute"}"#), "1");
    assert_eq!(rig.metric("pingsix_gateway_event_owners_count"), "1");
}

#[tokio::test(start_paused = true)]
async fn however_long_it_runs_each_metric_is_there_once() {
    let mut rig = Rig::ready();
    rig.engine.handle(Message::Tick);
    let length = rig.metrics.encode().lines().count();
    for _ in 0..10 {
        rig.engine.handle(Message::Tick);
    }
    let text = rig.metrics.encode();
    assert_eq!(text.lines().count(), length);
    let described: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(described.iter().collect::<BTreeSet<_>>().len(), described.len(), "{text}");
    assert_eq!(rig.metric(r#"pingsix_gateway_objects{kind="HTTPRoute"}"#), "1");
}

/// The charged part of a budget, after a tick.
fn charged(budget: Budget, places: &[Place]) -> f64 {
    let options = Options { budget, ..Options::default() };
    let mut rig = Rig::routed(places, |router| router, options).read();
    rig.settle();
    rig.engine.handle(Message::Tick);
    assert!(
        rig.engine.shared.reconciler.all_problems().all(|problem| problem.reason != Reason::BudgetExceeded)
    );
    rig.metric("pingsix_gateway_budget_charged_ratio").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_just_suffices_is_nearly_charged_wherever_documents_go() {
    for places in [Place::Replica, Place::Shared].map(|place| [place]) {
        let budget = Budget::default();
        let part = charged(budget, &places);
        assert!(part > 0.0 && part < 0.01, "{part}");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a positive number far below 2^53"
        )]
        let bytes = (budget.bytes as f64 * part / 0.95) as usize;
        let part = charged(Budget { bytes, ..budget }, &places);
        assert!(part > 0.93 && part < 0.97, "{part}");
    }
}
