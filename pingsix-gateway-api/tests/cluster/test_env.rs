//! A cluster with a controller that publishes to an embedded etcd server.

pub(crate) mod expected_state;
pub(crate) mod pingsix;
pub(crate) mod readers;
pub(crate) mod roles;
pub(crate) mod running;
pub(crate) mod shop;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use pingsix_gateway_api::controller::ControllerOptions;
use pingsix_gateway_api::watch::BackoffBounds;
use pingsix_sink::{EmbeddedEtcd, Scope};
use pingsix_test_cluster::TestCluster;
use pingsix_translate::{BackendAddresses, Kind, Options};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use running::Running;

/// The time limit of an effect; an idle machine needs a moment.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(90);

/// The definitions of our own kinds.
pub(crate) const OWN_KINDS: &str = concat!(
    include_str!("../../../crds/pingsix.io_backendtrafficpolicies.yaml"),
    "---\n",
    include_str!("../../../crds/pingsix.io_httproutefilters.yaml"),
    "---\n",
    include_str!("../../../crds/pingsix.io_pingsixproxies.yaml"),
    "---\n",
    include_str!("../../../crds/pingsix.io_securitypolicies.yaml"),
    "---\n",
    include_str!("../../../crds/pingsix.io_trafficpolicies.yaml"),
);

/// A cluster, and the server that its controllers publish to.
pub(crate) struct TestEnv {
    pub(crate) cluster: TestCluster,
    pub(crate) etcd: EmbeddedEtcd,
}

impl TestEnv {
    /// A cluster with the standard CRDs and a class, or nothing if the test cannot run.
    pub(crate) async fn start() -> Option<Self> {
        let test_env = Self::of(TestCluster::builder().start_or_skip().await?).await;
        test_env.apply(shop::CLASS).await;
        Some(test_env)
    }

    /// A cluster that is made otherwise.
    pub(crate) async fn of(cluster: TestCluster) -> Self {
        cluster.apply(OWN_KINDS).await.unwrap();
        Self { cluster, etcd: EmbeddedEtcd::builder().start().await.unwrap() }
    }

    pub(crate) async fn apply(&self, manifests: &str) {
        self.cluster.apply(manifests).await.unwrap();
    }

    /// Serves the feed until the guard is dropped. Returns its address.
    pub(crate) async fn serve_feed(&self) -> (SocketAddr, DropGuard) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (feed, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let (served, stopped) = (self.etcd.clone(), stop.clone());
        tokio::spawn(async move { served.serve(listener, stopped).await });
        (feed, stop.drop_guard())
    }

    pub(crate) fn run(&self, options: ControllerOptions) -> Running {
        Running::start(self.cluster.admin(), &self.etcd, options)
    }

    /// Runs a controller until everything is published once.
    pub(crate) async fn ready(&self, options: ControllerOptions) -> Running {
        let mut running = self.run(options);
        running.wait_until_ready().await;
        running
    }

    /// The documents of a data plane, by key.
    pub(crate) fn documents(&self, prefix: &str) -> BTreeMap<String, Value> {
        let documents = self.etcd.documents(&Scope::new(prefix).unwrap());
        let documents = documents.iter().flat_map(|documents| documents.iter());
        documents
            .map(|document| (document.key.to_string(), serde_json::from_slice(&document.value).unwrap()))
            .collect()
    }

    /// Whether a document of a data plane has this text.
    pub(crate) fn mentions(&self, prefix: &str, text: &str) -> bool {
        self.documents(prefix).values().any(|document| document.to_string().contains(text))
    }

    /// The number of Routes in a data plane.
    pub(crate) fn routes(&self, prefix: &str) -> usize {
        self.documents(prefix).keys().filter(|key| key.starts_with("routes/")).count()
    }

    /// Objects of a kind as the administrator sees them.
    pub(crate) fn objects(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        objects(&self.cluster.admin(), kind, namespace)
    }

    /// An object as the API server has it; null when it is not there.
    pub(crate) async fn object(&self, kind: Kind, namespace: &str, name: &str) -> Value {
        let object = self.objects(kind, namespace).get_opt(name).await.unwrap();
        object.map(|object| serde_json::to_value(object).unwrap()).unwrap_or_default()
    }

    /// Waits until an object satisfies a condition.
    pub(crate) async fn until(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        what: &str,
        has: impl Fn(&Value) -> bool,
    ) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let object = self.object(kind, namespace, name).await;
            if has(&object) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{kind} {name} does not have {what}; its status: {:#}",
                object["status"]
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a status has a condition.
    pub(crate) async fn wait_for_condition(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        path: &str,
        expected: &str,
    ) {
        let what = format!("{expected} at {path:?}");
        let has_condition =
            |object: &Value| conditions(&object["status"], path).iter().any(|one| one == expected);
        self.until(kind, namespace, name, &what, has_condition).await;
    }

    /// Waits until HTTPRoute `default/cart` has a condition for its first parent.
    pub(crate) async fn wait_for_route(&self, expected: &str) {
        self.wait_for_condition(Kind::HttpRoute, "default", "cart", "/parents/0", expected).await;
    }
}

/// Objects of a kind; of one without a namespace where there is none.
pub(crate) fn objects(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group(), kind.version(), kind.as_str()));
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Conditions of a status in the form `Accepted=True/Accepted`; `path` leads to what holds them.
pub(crate) fn conditions(status: &Value, path: &str) -> Vec<String> {
    let conditions = status.pointer(&format!("{path}/conditions")).and_then(Value::as_array);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions
        .into_iter()
        .flatten()
        .map(|one| format!("{}={}/{}", text(&one["type"]), text(&one["status"]), text(&one["reason"])))
        .collect()
}

/// The rules for addresses of backends that are programs of a test.
pub(crate) fn on_this_machine() -> BackendAddresses {
    BackendAddresses { loopback: true, ..BackendAddresses::default() }
}

/// Options of a controller that is alone.
pub(crate) fn options() -> ControllerOptions {
    ControllerOptions::new(Options { backend_addresses: on_this_machine(), ..Options::default() }, "test")
}

/// Options with short retry delays.
pub(crate) fn fast_retries() -> ControllerOptions {
    let mut options = options();
    options.watch.backoff = BackoffBounds {
        min: Duration::from_millis(200),
        max: Duration::from_secs(1),
        reset_after: Duration::from_secs(30),
    };
    options.watch.discovery_interval = Duration::from_millis(500);
    options
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    eventually_async(what, async || holds()).await;
}

/// Waits until an asynchronous condition holds, with a timeout.
pub(crate) async fn eventually_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !timeout(WAIT_TIMEOUT, holds()).await.unwrap_or(false) {
        assert!(Instant::now() < deadline, "{what} does not come about");
        sleep(Duration::from_millis(10)).await;
    }
}
