//! PingSIX's refusals of documents that pass our own rules, from an object at the API server to its status and back.
//!
//! Translation refuses the known causes, so the test poisons documents on their way to PingSIX, after our rules. All
//! other parts are real: objects, statuses and Events at an API server, a refusing PingSIX, and its status page.

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use pingsix_gateway_api::controller::{ControllerOptions, Feed};
use pingsix_sink::{
    Desired, Document, DocumentSet, EmbeddedEtcd, Published, Revision, Scope, Sink, SinkError,
};
use pingsix_test_cluster::Process;
use pingsix_test_programs::free_port;
use pingsix_translate::{DataPlaneKey, Kind, ObjectName};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::test_env::shop::{self, PLANE, secret};
use crate::test_env::{Running, TestEnv, eventually_async, options, pingsix};

/// A server whose documents are spoilt on their way into it: those of hosts that say how.
pub(crate) struct PoisonedFeed {
    pub(crate) etcd: EmbeddedEtcd,
}

impl PoisonedFeed {
    fn poison(key: &str, value: &mut Value) {
        let text = value.to_string();
        if !key.starts_with("routes/") || !text.contains("poison.example") {
            // The document is not poisonous.
        } else if text.contains("pattern.poison.example") {
            // The document counts whatever its plugins are: also when the Route answers an error by itself.
            if let Some(object) = value.as_object_mut() {
                object.remove("uris");
            }
            value["uri"] = json!("/{a}/{b");
        } else if text.contains("\"status-500\"") || !value["plugins"]["fault-injection"].is_null() {
            // A Route that answers an error by itself is another document.
        } else if text.contains("plugin.poison.example") {
            value["plugins"]["no-such-plugin"] = json!({});
        } else if text.contains("name.poison.example") {
            if let Some(object) = value.as_object_mut() {
                object.remove("upstream_id");
            }
            value["upstream"] = json!({"nodes": {"nowhere.invalid:80": 1}});
        }
    }
}

impl Sink for PoisonedFeed {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let documents = desired.documents().iter().map(|document| {
            let mut value: Value = serde_json::from_slice(&document.value).unwrap();
            Self::poison(document.key.as_str(), &mut value);
            Document { value: value.to_string().into(), ..document.clone() }
        });
        let documents = DocumentSet::new(documents)?;
        self.etcd.publish(&Desired::new(desired.scope().clone(), documents)).await
    }
}

impl Feed for PoisonedFeed {
    fn open(&self) {
        self.etcd.open();
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        Some(self.etcd.readers_of(scope))
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.etcd.readers_changed())
    }

    fn issued(&self, revision: Revision) -> bool {
        Feed::issued(&self.etcd, revision)
    }
}

/// Two listeners, one of them with a certificate.
const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: pingsix
  listeners:
  - {name: plain, port: 80, protocol: HTTP}
  - {name: secure, port: 443, protocol: HTTPS, hostname: secure.example, tls: {certificateRefs: [{name: secure}]}}
";

/// A route with a redirect, whose effect is visible without an endpoint. An API server accepts no endpoint on this
/// machine.
fn redirect(name: &str, host: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: default}}
spec:
  parentRefs: [{{name: web, sectionName: plain}}]
  hostnames: [{host}]
  rules: [{{filters: [{{type: RequestRedirect, requestRedirect: {{hostname: {name}.elsewhere, statusCode: 302}}}}]}}]
"
    )
}

/// A PingSIX and its feed.
struct QuarantineEnv {
    test_env: TestEnv,
    feed: Arc<PoisonedFeed>,
    process: Process,
    log: PathBuf,
    traffic: u16,
    options: ControllerOptions,
    _ends: [DropGuard; 2],
}

impl QuarantineEnv {
    /// With a controller and a route `good`.
    async fn start(binary: OsString) -> Option<(Self, Running)> {
        let test_env = TestEnv::start().await?;
        let pair = shop::pair("secure.example");
        test_env.apply(GATEWAY).await;
        test_env.apply(&secret("secure", &pair.0, &pair.1)).await;
        test_env.apply(&redirect("good", "good.example")).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (traffic, status) = (free_port(), free_port());
        let folder = test_env.cluster.folder();
        let config = folder.join("pingsix.yaml");
        let text = format!(
            "
pingora: {{threads: 1, pid_file: {0}/pingsix.pid, upgrade_sock: {0}/pingsix.sock}}
pingsix:
  listeners: [{{address: 127.0.0.1:{traffic}}}]
  etcd: {{host: ['http://{address}'], prefix: {PLANE}}}
  status: {{address: 127.0.0.1:{status}}}
",
            folder.display()
        );
        fs::write(&config, text).unwrap();
        let (responder, responds) = pingsix::responder().await;
        let mut options = options();
        options.translation.responder = Some(responder);
        let plane = DataPlaneKey::Gateway { gateway: ObjectName::new("default", "web"), port: None };
        let page = format!("http://127.0.0.1:{status}/status/config").parse().unwrap();
        options.status_pages.insert(plane, [page].into());
        let feed = Arc::new(PoisonedFeed { etcd: test_env.etcd.clone() });
        let stop = CancellationToken::new();
        let (served, ends) = (test_env.etcd.clone(), stop.clone().drop_guard());
        tokio::spawn(async move { served.serve(listener, stop).await });
        let running = Running::with_feed(feed.clone(), test_env.cluster.admin(), options.clone());
        let process =
            test_env.cluster.run("pingsix", vec![binary, "-c".into(), config.into()]).await.unwrap();
        let log = process.log();
        let env = Self { test_env, feed, process, log, traffic, options, _ends: [responds, ends] };
        env.serves("good", "good.example").await;
        env.is_programmed().await;
        Some((env, running))
    }

    /// Waits until a host is redirected by a route.
    async fn serves(&self, route: &str, host: &str) {
        let location = format!("location: http://{route}.elsewhere/");
        let is_it = |head: &str| head.starts_with("http/1.1 302") && head.contains(&location);
        pingsix::until(self.traffic, host, "/", &self.log, is_it).await;
    }

    async fn answers(&self, host: &str, status: u16) {
        let start = format!("http/1.1 {status}");
        pingsix::until(self.traffic, host, "/", &self.log, |head| head.starts_with(&start)).await;
    }

    async fn is_programmed(&self) {
        self.test_env
            .wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=True/Programmed")
            .await;
    }

    async fn wait_for_condition(&self, route: &str, expected: &str) {
        self.test_env.wait_for_condition(Kind::HttpRoute, "default", route, "/parents/0", expected).await;
    }

    /// Waits for the quarantine Event of an object, and returns its text.
    async fn wait_for_event(&self, kind: Kind, name: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.test_env.cluster.admin(), "default");
        let mut note = String::new();
        eventually_async(&format!("an Event on {kind} {name}"), async || {
            let listed = events.list(&ListParams::default()).await.unwrap();
            let is_it = |event: &&Event| {
                let about = event.regarding.as_ref();
                event.reason.as_deref() == Some("Quarantined")
                    && about.and_then(|about| about.kind.as_deref()) == Some(kind.as_str())
                    && about.and_then(|about| about.name.as_deref()) == Some(name)
            };
            note = listed.items.iter().find(is_it).and_then(|event| event.note.clone()).unwrap_or_default();
            !note.is_empty()
        })
        .await;
        note
    }

    /// Requests a host continuously, and counts responses without a redirect.
    fn watch(&self, host: &'static str) -> RequestLoop {
        let (asked, failed) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (port, stop) = (self.traffic, CancellationToken::new());
        let counters = (asked.clone(), failed.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            loop {
                let head = pingsix::get(port, host, "/").await.unwrap_or_default();
                counters.0.fetch_add(1, Ordering::Relaxed);
                counters.1.fetch_add(usize::from(!head.starts_with("http/1.1 302")), Ordering::Relaxed);
                sleep(Duration::from_millis(5)).await;
            }
        }));
        RequestLoop { asked, failed, _end: stop.drop_guard() }
    }
}

/// The answer to a request for a host.
struct RequestLoop {
    asked: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
    _end: DropGuard,
}

impl RequestLoop {
    fn assert(&self, what: &str) {
        let (asked, failed) = (self.asked.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        assert!(asked > 50 && failed == 0, "{what}: {failed} of {asked} requests failed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_a_real_pingsix_refuses_is_reported_to_its_author_alone() {
    const TEST: &str = "a_document_that_a_real_pingsix_refuses_is_reported_to_its_author_alone";
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some((env, running)) = Box::pin(QuarantineEnv::start(binary)).await else { return };
    let good = env.watch("good.example");
    for (kind, answer) in [("plugin", 500), ("name", 500), ("pattern", 404)] {
        let host = format!("{kind}.poison.example");
        let [before, after, later] = ["before", "after", "later"].map(|when| format!("{kind}-{when}"));
        // Three at once, and one of them is refused.
        let three = [redirect(&before, &format!("{before}.example")), redirect(kind, &host)];
        env.test_env.apply(&three.join("---")).await;
        env.test_env.apply(&redirect(&after, &format!("{after}.example"))).await;
        for innocent in [&before, &after] {
            env.serves(innocent, &format!("{innocent}.example")).await;
            env.wait_for_condition(innocent, "Accepted=True/Accepted").await;
        }
        env.wait_for_condition(kind, "Accepted=False/Quarantined").await;
        let note = env.wait_for_event(Kind::HttpRoute, kind).await;
        assert!(note.contains("PingSIX refuses"), "{note}");
        env.answers(&host, answer).await;
        env.is_programmed().await;
        // Later objects are served as usual.
        env.test_env.apply(&redirect(&later, &format!("{later}.example"))).await;
        env.serves(&later, &format!("{later}.example")).await;
        env.wait_for_condition(kind, "Accepted=False/Quarantined").await;
        // The author mends the object.
        env.test_env.apply(&redirect(kind, &format!("{kind}.mended.example"))).await;
        env.serves(kind, &format!("{kind}.mended.example")).await;
        env.wait_for_condition(kind, "Accepted=True/Accepted").await;
        env.is_programmed().await;
        good.assert(kind);
    }
    running.stop().await;
    env.process.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_with_refused_documents_affects_no_other_route() {
    const TEST: &str = "a_restart_with_refused_documents_affects_no_other_route";
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some((env, mut running)) = Box::pin(QuarantineEnv::start(binary)).await else { return };
    let good = env.watch("good.example");
    env.test_env.apply(&redirect("old", "plugin.poison.example")).await;
    env.wait_for_condition("old", "Accepted=False/Quarantined").await;
    env.answers("plugin.poison.example", 500).await;
    env.is_programmed().await;
    // One that was refused, one that has come while no controller runs, and both.
    for (round, poison) in
        [None, Some("name.poison.example"), Some("pattern.poison.example")].iter().enumerate()
    {
        running.kill().await;
        let innocent = format!("innocent-{round}");
        if let Some(host) = poison {
            env.test_env.apply(&redirect(&format!("new-{round}"), host)).await;
        }
        env.test_env.apply(&redirect(&innocent, &format!("{innocent}.example"))).await;
        running = Running::with_feed(env.feed.clone(), env.test_env.cluster.admin(), env.options.clone());
        env.serves(&innocent, &format!("{innocent}.example")).await;
        if poison.is_some() {
            env.wait_for_condition(&format!("new-{round}"), "Accepted=False/Quarantined").await;
        }
        env.wait_for_condition("old", "Accepted=False/Quarantined").await;
        env.is_programmed().await;
        good.assert(&format!("round {round}"));
    }
    running.stop().await;
    env.process.kill().await.unwrap();
}
