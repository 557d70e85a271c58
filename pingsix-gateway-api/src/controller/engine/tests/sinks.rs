//! Sinks that parameters name.

use parking_lot::Mutex;
use pingsix_sink::{Desired, DynSink, MemorySink, Published, Sink, SinkError};
use pingsix_translate::ObjectName;

use super::*;
use crate::controller::SinkOpener;
use crate::controller::attached_sinks::AttachedSinks;
use crate::controller::orphans::Orphan;

const WEB: &str = "/pingsix/infra/web";
const LATER: Duration = Duration::from_secs(5);

/// A server with a password, which a test may change.
#[derive(Default)]
struct Server {
    password: Mutex<String>,
    sink: MemorySink,
    forgotten: Mutex<Vec<Scope>>,
}

impl Server {
    fn held(&self, scope: &str) -> Option<usize> {
        Some(self.sink.documents(&Scope::new(scope).unwrap())?.len())
    }
}

/// A connection to it with a password.
struct Login(Arc<Server>, String);

impl Sink for Login {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        if *self.0.password.lock() != self.1 {
            return Err(SinkError::target(std::io::Error::other("the password is wrong")));
        }
        self.0.sink.publish(desired).await
    }

    fn forget(&self, scope: &Scope) {
        self.0.forgotten.lock().push(scope.clone());
    }
}

/// The sinks that can be named, with the number of their openings.
#[derive(Clone, Default)]
struct World {
    servers: [Arc<Server>; 2],
    opened: Arc<Mutex<Vec<String>>>,
    feed: Arc<SlowFeed>,
}

const ONE: &str = "etcd://127.0.0.1:1";
const TWO: &str = "etcd://127.0.0.1:2";

impl World {
    fn opener(&self) -> SinkOpener {
        let (servers, opened) = (self.servers.clone(), Arc::clone(&self.opened));
        SinkOpener::new(move |sink, credentials| {
            opened.lock().push(sink.url.clone());
            let server = &servers[usize::from(sink.url != ONE)];
            let password = credentials.password.clone().unwrap_or_default();
            Ok(SinkHandle::shared(
                "memory",
                sink.url.clone(),
                DynSink::new(Login(Arc::clone(server), password)),
            ))
        })
    }

    fn rig(&self, leadership: &Leadership) -> Rig {
        let router = SinkRouter::from(Arc::clone(&self.feed)).with_leadership(leadership);
        let router = router.with_attached(AttachedSinks::new(Some(self.opener())));
        let options = Options { attached_sinks: true, ..Options::default() };
        let mut rig = Rig::of(router, options);
        rig.engine.shared.leadership = leadership.clone();
        rig
    }

    /// With the Gateway `infra/web`, whose class names `ONE` with the Secret `infra/login`.
    fn ready(&self) -> Rig {
        "old".clone_into(&mut self.servers[0].password.lock());
        let mut rig = self.rig(&Leadership::always()).read();
        rig.name_sink(&json!({"url": ONE, "credentialsSecretRef": {"name": "login"}}));
        rig.put_secret(1, &json!({"username": "gateway", "password": "old"}));
        rig.settle();
        rig
    }
}

impl Rig {
    /// Has the class name a sink, or none.
    fn name_sink(&mut self, sink: &Value) {
        let version = Instant::now().elapsed().as_nanos().to_string();
        let attached = if sink.is_null() { json!({}) } else { json!({"sink": sink}) };
        self.apply(
            Kind::PingsixProxy,
            json!({
                "metadata": {"name": "all", "namespace": "infra", "resourceVersion": format!("{version}{sink}")},
                "spec": {"attached": attached},
            }),
        );
        let mut class = class();
        class["metadata"]["resourceVersion"] = json!("2");
        class["spec"]["parametersRef"] =
            json!({"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "infra", "name": "all"});
        self.apply(Kind::GatewayClass, class);
    }

    fn put_secret(&mut self, version: u32, entries: &Value) {
        self.apply(
            Kind::Secret,
            json!({
                "metadata": {"name": "login", "namespace": "infra", "resourceVersion": version.to_string()},
                "stringData": entries,
            }),
        );
    }

    fn remove_gateway(&mut self) {
        self.tell(Kind::Gateway, watcher::Event::Delete(gateway()));
        self.settle();
    }
}

#[tokio::test(start_paused = true)]
async fn a_data_plane_is_published_to_and_withdrawn_from_the_sink_it_names() {
    let world = World::default();
    let mut rig = world.ready();
    let [one, _] = &world.servers;
    assert!(one.held(WEB).is_some_and(|held| held > 0));
    assert!(world.feed.begun().is_empty(), "and not to the feed");
    assert!(rig.is_programmed(&web()), "{}", rig.programmed(&web()));
    rig.remove_gateway();
    assert_eq!(one.held(WEB), Some(0));
    assert!(world.feed.begun().is_empty());
    assert!(rig.engine.shared.sinks.attached().watch().borrow().is_empty(), "nobody uses it any more");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_replaced_keeps_what_it_has() {
    let world = World::default();
    let mut rig = world.ready();
    let [one, two] = &world.servers;
    let held = one.held(WEB);
    rig.name_sink(&json!({"url": TWO}));
    rig.settle();
    assert_eq!((one.held(WEB), two.held(WEB)), (held, held));
    assert_eq!(*one.forgotten.lock(), [Scope::new(WEB).unwrap()], "nobody looks after it any more");
    assert_eq!(rig.engine.shared.sinks.attached().watch().borrow().len(), 1);
    rig.name_sink(&Value::Null);
    rig.settle();
    assert_eq!((two.held(WEB), world.feed.held(WEB)), (held, held));
    assert!(rig.engine.shared.sinks.attached().watch().borrow().is_empty());
    // The withdrawal goes to the last place of publication.
    rig.remove_gateway();
    assert_eq!((one.held(WEB), two.held(WEB), world.feed.held(WEB)), (held, held, Some(0)));
    assert_eq!(*world.opened.lock(), [ONE, TWO]);
}

#[tokio::test(start_paused = true)]
async fn data_planes_share_a_sink_that_they_name_alike() {
    let world = World::default();
    let mut rig = world.ready();
    let mut other = gateway();
    other["metadata"]["name"] = json!("blog");
    rig.apply(Kind::Gateway, other.clone());
    rig.settle();
    assert_eq!((world.servers[0].held(WEB), world.opened.lock().len()), (world.servers[0].held(WEB), 1));
    assert!(world.servers[0].held("/pingsix/infra/blog").is_some());
    rig.remove_gateway();
    assert_eq!(rig.engine.shared.sinks.attached().watch().borrow().len(), 1, "the other one still uses it");
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_useless_secret_stops_publications_and_is_reported() {
    let world = World::default();
    let mut rig = world.ready();
    let [one, _] = &world.servers;
    let history = one.sink.history().len();
    let broken: [(Option<Value>, &str); 2] = [
        (
            Some(json!({"username": "gateway"})),
            "which has an entry \\\"username\\\" and none \\\"password\\\"",
        ),
        (None, "which does not exist"),
    ];
    for (version, (secret, problem)) in (2..).zip(broken) {
        match secret {
            Some(entries) => rig.put_secret(version, &entries),
            None => rig.hear(Input::Gone(ObjectKey::new(Kind::Secret, "infra", "login"))),
        }
        rig.apply(Kind::HttpRoute, route(version));
        rig.settle();
        let said = rig.programmed(&web());
        assert!(!rig.is_programmed(&web()));
        assert!(said.contains("PingsixProxy infra/all names for its sink Secret infra/login, "), "{said}");
        assert!(said.contains(problem), "{said}");
        let problems = rig.engine.publish.sinks.problems_of(&rig.engine.shared, &web());
        assert!(problems.iter().any(|problem| problem.field.as_str() == "spec.gatewayClassName"));
    }
    assert_eq!((one.sink.history().len(), world.feed.begun().len()), (history, 0));
    // The documents can be withdrawn all the same.
    rig.remove_gateway();
    assert_eq!((one.held(WEB), world.feed.begun().len()), (Some(0), 0));
}

#[tokio::test(start_paused = true)]
async fn an_unpublished_data_plane_is_withdrawn_from_no_sink() {
    let world = World::default();
    let mut rig = world.rig(&Leadership::always()).read();
    rig.name_sink(&json!({"url": ONE, "credentialsSecretRef": {"name": "login"}}));
    rig.settle();
    assert!(!rig.is_programmed(&web()));
    assert!(rig.engine.report.is_ready, "a Secret that is missing keeps no other data plane waiting");
    rig.remove_gateway();
    assert_eq!((world.feed.begun().len(), world.opened.lock().len()), (0, 0));
    assert!(rig.engine.publish.withdrawals.is_empty());
    assert_eq!(rig.engine.shared.deliveries.data_planes().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_password_that_changes_is_followed() {
    let world = World::default();
    let mut rig = world.ready();
    let [one, _] = &world.servers;
    "new".clone_into(&mut one.password.lock());
    rig.apply(
        Kind::Service,
        json!({"metadata": {"name": "other", "namespace": "infra", "resourceVersion": "1"}}),
    );
    let mut changed = route(2);
    changed["spec"]["hostnames"] = json!(["a.example"]);
    rig.apply(Kind::HttpRoute, changed);
    rig.during(LATER).await;
    assert!(rig.programmed(&web()).contains("the password is wrong") || !rig.is_programmed(&web()));
    rig.put_secret(2, &json!({"username": "gateway", "password": "new"}));
    rig.during(LATER).await;
    assert!(rig.is_programmed(&web()), "{}", rig.programmed(&web()));
    assert_eq!(*world.opened.lock(), [ONE, ONE]);
    assert_eq!(rig.engine.shared.sinks.attached().watch().borrow().len(), 1, "the other is closed");
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_publishes_to_a_sink_that_parameters_name() {
    let world = World::default();
    let lease = watch::Sender::new(None);
    let mut rig = world.rig(&Leadership::of(lease.subscribe())).read();
    rig.name_sink(&json!({"url": TWO}));
    rig.settle();
    let [_, two] = &world.servers;
    assert!(two.sink.history().is_empty());
    lease.send_replace(Some(Instant::now() + LATER * 100));
    rig.engine.handle(Message::Leads(true));
    rig.settle();
    assert!(two.held(WEB).is_some_and(|held| held > 0));
    assert!(world.feed.begun().is_empty());
}

#[tokio::test(start_paused = true)]
async fn documents_left_at_a_sink_are_withdrawn_unless_they_live_elsewhere() {
    let world = World::default();
    let mut rig = world.ready();
    let [one, two] = &world.servers;
    let number = *rig.engine.shared.sinks.attached().watch().borrow().keys().next().unwrap();
    let plane = |name: &str, port| DataPlaneKey::Gateway { gateway: ObjectName::new("infra", name), port };
    let orphan = |name: &str, at| Orphan { data_plane: plane(name, None), is_gone: true, at };
    let history = two.sink.history().len();
    let web_held = one.held(WEB);
    rig.engine.handle(Message::Withdraw(vec![
        orphan("gone", Some(number)),
        orphan("gone", None),
        orphan("web", Some(number)),
    ]));
    rig.settle();
    // First the one, then the other, although they have one name.
    assert_eq!(one.held("/pingsix/infra/gone"), Some(0));
    assert_eq!(world.feed.held("/pingsix/infra/gone"), Some(0));
    assert_eq!((one.held(WEB), two.sink.history().len()), (web_held, history), "what lives is left alone");
    assert!(rig.engine.publish.withdrawals.is_empty());
    // Withdrawals at a sink without publications are impossible.
    rig.name_sink(&json!({"url": TWO}));
    rig.settle();
    rig.engine.handle(Message::Withdraw(vec![orphan("late", Some(number))]));
    rig.settle();
    assert_eq!((one.held("/pingsix/infra/late"), two.held("/pingsix/infra/late")), (None, None));
}
