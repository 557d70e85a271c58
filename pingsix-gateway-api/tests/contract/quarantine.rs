//! Refusals of documents that pass our own rules: the culprit is found and put into quarantine, without an effect on
//! others.
//!
//! The test poisons documents on their way to PingSIX, after our rules. The test leaves out only the task of the
//! controller that listens; the tests with a cluster include that task.

#[path = "../../src/fixture/generate/events.rs"]
mod events;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube_runtime::watcher;
use pingsix_gateway_api::acceptance::{AcceptanceOutcome, Reception};
use pingsix_gateway_api::delivery::reception::PageReader;
use pingsix_gateway_api::delivery::status_page::{PageError, StatusClient, StatusUrl};
use pingsix_gateway_api::reconcile::{ReconcileOutcome, Reconciler};
use pingsix_gateway_api::world::Event;
use pingsix_sink::embedded::EmbeddedEtcd;
use pingsix_sink::{Desired, Document, DocumentSet, Revision, Sink as _};
use pingsix_translate::pingsix::Request;
use pingsix_translate::status::{ConditionStatus, ConditionType, Reason};
use pingsix_translate::{BackendAddresses, DataPlaneKey, Kind, ObjectKey, ObjectName, Options};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::{Client, Protocol};
use crate::mirror::Mirror;
use crate::process::{Listener, PingSix};
use crate::run::{binary, print_message};
use events::event_of;

const SCOPE: &str = "/pingsix/infra/web";

/// The time limit of PingSIX for one publication.
const WAIT_TIMEOUT: Duration = Duration::from_millis(3_500);

/// The poison in the documents of a route with the hostname `poison.test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Poison {
    /// A field of another shape: found when it is read.
    Shape,
    /// A reference that leads nowhere: found when it is read.
    Reference,
    /// A plugin that there is not: found later.
    Plugin,
    /// A plugin with an invalid configuration that PingSIX detects late.
    Settings,
    /// A backend whose name does not resolve: found later, and tried again.
    Name,
    /// A certificate that is none: found later.
    Certificate,
    /// A pattern that cannot be matched, whatever the route does: found later.
    Pattern,
}

use Poison::{Certificate, Name, Pattern, Plugin, Reference, Settings, Shape};

impl Poison {
    /// Documents as they would be if translation made a mistake.
    fn into(self, desired: &Desired) -> Desired {
        let documents = desired.documents().iter().map(|document| {
            let mut value: Value = serde_json::from_slice(&document.value).unwrap();
            self.spoil(document.key.as_str(), &mut value);
            Document { value: value.to_string().into(), ..document.clone() }
        });
        Desired::new(desired.scope().clone(), DocumentSet::new(documents).unwrap())
    }

    fn spoil(self, key: &str, value: &mut Value) {
        let text = value.to_string();
        if self == Certificate {
            if key.starts_with("ssls/") && text.contains("poison.test") {
                value["cert"] = json!("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
            }
            return;
        }
        if !key.starts_with("routes/") || !text.contains("poison.test") {
            return;
        }
        // A Route that answers an error by itself is another document.
        let has_status = value["service_id"].as_str().is_some_and(|service| service.starts_with("status-"));
        let is_closed = has_status || !value["plugins"]["fault-injection"].is_null();
        match self {
            Pattern => {
                if let Some(object) = value.as_object_mut() {
                    object.remove("uris");
                }
                value["uri"] = json!("/{a}/{b");
            }
            _ if is_closed => {}
            Shape => value["priority"] = json!(-1),
            Reference => value["upstream_id"] = json!("nobody"),
            Plugin => value["plugins"]["no-such-plugin"] = json!({}),
            Settings => value["plugins"]["ip-restriction"] = json!({"whitelist": ["nonsense"]}),
            Name => {
                if let Some(object) = value.as_object_mut() {
                    object.remove("upstream_id");
                }
                value["upstream"] = json!({"nodes": {"nowhere.invalid:80": 1}});
            }
            Certificate => {}
        }
    }
}

/// A Gateway, its routes, and a PingSIX that serves them.
struct RecoveryEnv {
    reconciler: Reconciler,
    etcd: EmbeddedEtcd,
    address: SocketAddr,
    poison: Poison,
    pages: PageReader,
    /// The status page; `None` before PingSIX runs.
    url: Option<StatusUrl>,
    version: u32,
    revision: Option<Revision>,
    backend: Mirror,
    _stop: DropGuard,
}

/// The cost of recovery from a refusal.
#[derive(Debug)]
struct Healing {
    /// From the publication to the refusal.
    noticed: Duration,
    /// From there to everything in force.
    healed: Duration,
    /// Publications after the one that was refused.
    publications: usize,
}

impl Healing {
    fn count(&self) -> u32 {
        u32::try_from(self.publications).unwrap()
    }
}

fn owner() -> ObjectKey {
    ObjectKey::new(Kind::Gateway, "infra", "web")
}

fn plane() -> DataPlaneKey {
    DataPlaneKey::Gateway { gateway: ObjectName::new("infra", "web"), port: None }
}

impl RecoveryEnv {
    async fn start(poison: Poison) -> Self {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (server, serving) = (etcd.clone(), stop.clone());
        tokio::spawn(async move { server.serve(listener, serving).await });
        // The backend is on this machine.
        let backend_addresses = BackendAddresses { loopback: true, ..BackendAddresses::default() };
        let mut env = Self {
            reconciler: Reconciler::new(Options { backend_addresses, ..Options::default() }),
            etcd,
            address,
            poison,
            pages: PageReader::default(),
            url: None,
            version: 0,
            revision: None,
            backend: Mirror::start().await,
            _stop: stop.drop_guard(),
        };
        for kind in Kind::ALL {
            env.reconciler.apply(event_of(*kind, watcher::Event::Init));
            env.reconciler.apply(event_of(*kind, watcher::Event::InitDone));
        }
        let is_tls = poison == Certificate;
        let listeners: Vec<Value> = ["good.test", "poison.test"]
            .into_iter()
            .filter(|_| is_tls)
            .map(|host| {
                json!({
                    "name": host, "port": 443, "protocol": "HTTPS", "hostname": host,
                    "tls": {"certificateRefs": [{"name": host}]},
                })
            })
            .chain((!is_tls).then(|| json!({"name": "http", "port": 80, "protocol": "HTTP"})))
            .collect();
        env.apply(
            Kind::GatewayClass,
            "",
            "pingsix",
            &json!({"controllerName": "pingsix.io/gateway-controller"}),
        );
        env.apply(
            Kind::Gateway,
            "infra",
            "web",
            &json!({"gatewayClassName": "pingsix", "listeners": listeners}),
        );
        env.apply(Kind::Service, "infra", "web", &json!({"ports": [{"port": 80}]}));
        let (ip, port) = (env.backend.address.ip().to_string(), env.backend.address.port());
        env.put(Kind::EndpointSlice, json!({
            "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [{"port": port}], "endpoints": [{"addresses": [ip]}],
        }));
        env
    }

    fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.reconciler.apply(event_of(kind, watcher::Event::Apply(object)));
    }

    fn apply(&mut self, kind: Kind, namespace: &str, name: &str, spec: &Value) {
        let generation = self.version + 1;
        let mut metadata = json!({"name": name, "generation": generation});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        self.put(kind, json!({"metadata": metadata, "spec": spec}));
    }

    fn route(&mut self, name: &str, host: &str, paths: &[&str]) {
        let rules: Vec<Value> = paths
            .iter()
            .map(|path| {
                json!({"matches": [{"path": {"value": path}}], "backendRefs": [{"name": "web", "port": 80}]})
            })
            .collect();
        let spec = json!({"parentRefs": [{"name": "web"}], "hostnames": [host], "rules": rules});
        self.apply(Kind::HttpRoute, "infra", name, &spec);
    }

    fn certificate(&mut self, host: &str) {
        let pair = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        self.put(
            Kind::Secret,
            json!({
                "metadata": {"namespace": "infra", "name": host},
                "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()},
            }),
        );
    }

    /// Publishes the documents. Returns whether they changed, and the known outcome.
    async fn publish(&mut self) -> (bool, AcceptanceOutcome) {
        let standing = self.reconciler.reconcile(&owner(), jiff::Timestamp::now());
        let ReconcileOutcome::Current(reconciled) = standing else { panic!("{standing:?}") };
        let (mut has_changed, mut heard) = (false, AcceptanceOutcome::Nothing);
        for publication in reconciled.publications {
            let published = self.etcd.publish(&self.poison.into(&publication.desired)).await.unwrap();
            has_changed |= !published.changed.is_empty();
            self.revision = Some(published.revision);
            let draft = reconciled.draft.unwrap();
            heard = self.reconciler.published(&owner(), draft, &publication.data_plane, published.revision);
        }
        self.etcd.open();
        (has_changed, heard)
    }

    /// The known acceptance by PingSIX.
    async fn reception(&mut self) -> Option<Reception> {
        let url = self.url.as_ref()?;
        let page = StatusClient::new(None).read(url).await;
        let page = page.map_err(|error| PageError::Shown(error.to_string()));
        self.pages.read(&[(url.clone(), page)].into(), tokio::time::Instant::now())
    }

    /// Publishes and listens until everything is in force.
    async fn settle(&mut self) -> Healing {
        let started = Instant::now();
        let (mut noticed, mut publications) = (None, 0);
        let (mut to_publish, mut heard) = (true, AcceptanceOutcome::Nothing);
        loop {
            if to_publish {
                let published = self.publish().await;
                publications += usize::from(published.0);
                heard = published.1;
            }
            if heard == AcceptanceOutcome::Nothing {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let reception = self.reception().await;
                let accepted = reception.as_ref().and_then(|reception| reception.accepted);
                heard = self.reconciler.record_reception(&plane(), reception);
                let acceptance = self.reconciler.acceptance(&owner()).unwrap();
                if heard == AcceptanceOutcome::Nothing
                    && acceptance.refusal().is_none()
                    && accepted >= self.revision
                {
                    break;
                }
            }
            to_publish = heard != AcceptanceOutcome::Nothing;
            if to_publish {
                noticed.get_or_insert_with(|| (started.elapsed(), publications));
            }
            heard = AcceptanceOutcome::Nothing;
            assert!(
                started.elapsed() < Duration::from_secs(90),
                "{:?}",
                self.reconciler.acceptance(&owner())
            );
        }
        let (noticed, before) = noticed.unwrap_or((Duration::ZERO, publications));
        let healed = started.elapsed().saturating_sub(noticed);
        Healing { noticed, healed, publications: publications - before }
    }
}

async fn status(pingsix: SocketAddr, host: &str, path: &str) -> u16 {
    let mut client = Client::new(Protocol::Http1, pingsix, None);
    client.ask(&Request::get(host, path)).await.unwrap().status
}

/// Requests a route continuously, and counts responses from elsewhere than its backend.
fn ask_all_the_time(
    pingsix: SocketAddr,
    host: &'static str,
) -> (Arc<AtomicUsize>, Arc<AtomicUsize>, DropGuard) {
    let (asked, failed) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let stop = CancellationToken::new();
    let (stopped, counters) = (stop.clone(), (asked.clone(), failed.clone()));
    tokio::spawn(stopped.run_until_cancelled_owned(async move {
        let was_there = AtomicBool::new(false);
        loop {
            let answer = status(pingsix, host, "/").await;
            was_there.fetch_or(answer == 200, Ordering::Relaxed);
            // Before it is in force, it is nowhere.
            let is_fine = answer == 200 || answer == 404 && !was_there.load(Ordering::Relaxed);
            counters.0.fetch_add(1, Ordering::Relaxed);
            counters.1.fetch_add(usize::from(!is_fine), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }));
    (asked, failed, stop.drop_guard())
}

/// As many halves as it takes to single one out.
const fn halves(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

/// Poisons one of many new routes, and returns the cost of the recovery.
async fn get_over(binary: &std::path::Path, poison: Poison, new: usize) -> Healing {
    let mut env = RecoveryEnv::start(poison).await;
    env.route("good", "good.test", &["/"]);
    if poison == Certificate {
        env.certificate("good.test");
    }
    let (has_changed, _) = env.publish().await;
    assert!(has_changed);
    let pingsix = PingSix::start_with(Listener::Plaintext, binary, env.address, SCOPE).await;
    env.url = Some(format!("http://{}", pingsix.status_address()).parse().unwrap());
    env.settle().await;

    let (asked, failed, _asking) = ask_all_the_time(pingsix.address, "good.test");
    let (_, new_failed, _asking_new) = ask_all_the_time(pingsix.address, "new-3.test");
    for index in 0..new {
        let (name, host) = (format!("new-{index}"), format!("new-{index}.test"));
        if index == new / 2 {
            env.route("poison", "poison.test", &["/"]);
        } else if poison != Certificate {
            env.route(&name, &host, &["/"]);
        }
    }
    if poison == Certificate {
        env.certificate("poison.test");
    }
    let healing = env.settle().await;
    let acceptance = env.reconciler.acceptance(&owner()).unwrap();
    let held: Vec<String> = acceptance.quarantined().map(|(source, _)| source.object.to_string()).collect();
    let back: BTreeSet<String> = acceptance.held_back().map(|(part, _)| part.to_string()).collect();
    let problems = env.reconciler.problems(&owner());
    let reported: Vec<String> = problems
        .iter()
        .filter(|problem| problem.reason == Reason::Quarantined)
        .map(|problem| format!("{} {}", problem.object, problem.field))
        .collect();
    match poison {
        Shape | Reference | Plugin | Settings | Name => {
            assert_eq!((held, back.len()), (vec!["HTTPRoute infra/poison".to_owned()], 0));
            assert_eq!(reported, ["HTTPRoute infra/poison spec.rules[0]"]);
            assert_eq!(status(pingsix.address, "poison.test", "/").await, 500);
        }
        Pattern => {
            assert_eq!((held.len(), back), (0, ["HTTPRoute infra/poison".to_owned()].into()));
            assert_eq!(reported, ["HTTPRoute infra/poison spec"]);
            assert_eq!(status(pingsix.address, "poison.test", "/").await, 404);
        }
        Certificate => {
            assert_eq!((held, back.len()), (vec!["Secret infra/poison.test".to_owned()], 0));
        }
    }
    if poison != Certificate {
        let verdict = env.reconciler.route(&ObjectKey::new(Kind::HttpRoute, "infra", "poison")).unwrap();
        let accepted = verdict.parents[0].conditions.get(ConditionType::Accepted).unwrap();
        assert_eq!((accepted.status, accepted.reason), (ConditionStatus::False, Reason::Quarantined));
        for index in (0..new).filter(|index| *index != new / 2) {
            assert_eq!(status(pingsix.address, &format!("new-{index}.test"), "/").await, 200, "new-{index}");
        }
        // Later changes are delivered, and are no reason to try it again.
        env.route("later", "later.test", &["/"]);
        assert_eq!(env.settle().await.publications, 0);
        assert_eq!(status(pingsix.address, "later.test", "/").await, 200);
        // A change removes the error.
        env.route("poison", "fine.test", &["/"]);
        assert_eq!(env.settle().await.publications, 0);
        assert_eq!(status(pingsix.address, "fine.test", "/").await, 200);
        assert_eq!(env.reconciler.acceptance(&owner()).unwrap().quarantined().count(), 0);
        assert!(asked.load(Ordering::Relaxed) > 10);
        assert_eq!(new_failed.load(Ordering::Relaxed), 0, "new routes");
    }
    assert_eq!(failed.load(Ordering::Relaxed), 0, "of {} requests", asked.load(Ordering::Relaxed));
    healing
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_says_on_its_status_page_what_it_refuses_and_that_is_found() {
    const TEST: &str = "quarantine";
    const NEW: usize = 32;
    let Some(binary) = binary(TEST) else { return };
    for poison in [Plugin, Settings, Name, Shape, Reference, Pattern, Certificate] {
        let healing = get_over(&binary, poison, NEW).await;
        print_message(&format!("{TEST}: {poison:?}: {healing:?}"));
        assert!(healing.noticed <= Duration::from_secs(5), "{healing:?}");
        // PingSIX looks again every three seconds, and names are given a second to resolve.
        assert!(healing.healed <= Duration::from_secs(5) + WAIT_TIMEOUT * healing.count(), "{healing:?}");
        // An error in a match is found twice: before quarantine proves insufficient, and after.
        let searches = if poison == Pattern { 2 } else { 1 };
        assert!(healing.publications <= searches * (halves(NEW) + 3), "{healing:?}");
    }
}
