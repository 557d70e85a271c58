//! A cluster with a controller that publishes to an embedded etcd server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use pingsix_gateway_api::controller::{Controller, ControllerError, ControllerOptions, Progress};
use pingsix_sink::{EmbeddedEtcd, Scope};
use pingsix_test_cluster::TestCluster;
use pingsix_translate::Options;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long anything may take to come about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster and what watches it.
pub(crate) struct Lab {
    pub(crate) cluster: TestCluster,
    pub(crate) etcd: EmbeddedEtcd,
}

/// A controller that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    run: JoinHandle<Result<(), ControllerError>>,
    pub(crate) progress: watch::Receiver<Progress>,
}

impl Lab {
    /// A cluster with the standard CRDs and a class, or nothing if the test cannot run.
    pub(crate) async fn start() -> Option<Self> {
        let lab = Self::of(TestCluster::builder().start_or_skip().await?).await;
        lab.apply(CLASS).await;
        Some(lab)
    }

    /// A cluster that is made otherwise.
    pub(crate) async fn of(cluster: TestCluster) -> Self {
        Self { cluster, etcd: EmbeddedEtcd::builder().start().await.unwrap() }
    }

    pub(crate) async fn apply(&self, manifests: &str) {
        self.cluster.apply(manifests).await.unwrap();
    }

    pub(crate) fn options() -> ControllerOptions {
        ControllerOptions::new(Options::default(), "test")
    }

    pub(crate) fn run(&self, options: ControllerOptions) -> Running {
        Running::start(self.cluster.admin(), &self.etcd, options)
    }

    /// Runs a controller until everything is published once.
    pub(crate) async fn ready(&self, options: ControllerOptions) -> Running {
        let mut running = self.run(options);
        running.is_ready().await;
        running
    }

    /// What a data plane holds, by key.
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

    /// How many Routes a data plane holds.
    pub(crate) fn routes(&self, prefix: &str) -> usize {
        self.documents(prefix).keys().filter(|key| key.starts_with("routes/")).count()
    }

    /// An object as the API server has it; null when it is not there.
    pub(crate) async fn object(&self, kind: &str, namespace: &str, name: &str) -> Value {
        let (group, version) = match kind {
            "Ingress" | "IngressClass" => ("networking.k8s.io", "v1"),
            "Service" => ("", "v1"),
            _ => ("gateway.networking.k8s.io", "v1"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(self.cluster.admin(), &resource)
        } else {
            Api::namespaced_with(self.cluster.admin(), namespace, &resource)
        };
        let object = api.get_opt(name).await.unwrap();
        object.map(|object| serde_json::to_value(object).unwrap()).unwrap_or_default()
    }

    /// Waits until a condition of a status says something.
    pub(crate) async fn says(&self, kind: &str, namespace: &str, name: &str, path: &str, expected: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let object = self.object(kind, namespace, name).await;
            let found = conditions(&object["status"], path);
            if found.iter().any(|said| said == expected) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{kind} {name} does not say {expected} at {path}, but {found:?}\n{:#}",
                object["status"]
            );
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Conditions of a status in the form `Accepted=True/Accepted`; `path` leads to what holds them.
fn conditions(status: &Value, path: &str) -> Vec<String> {
    let conditions = status.pointer(&format!("{path}/conditions")).and_then(Value::as_array);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions
        .into_iter()
        .flatten()
        .map(|one| format!("{}={}/{}", text(&one["type"]), text(&one["status"]), text(&one["reason"])))
        .collect()
}

impl Running {
    /// Runs a controller that publishes to a server of its own.
    pub(crate) fn start(client: Client, etcd: &EmbeddedEtcd, options: ControllerOptions) -> Self {
        let controller = Controller::new(client, Arc::new(etcd.clone()), options);
        let progress = controller.progress();
        let stop = CancellationToken::new();
        let run = tokio::spawn(controller.run(stop.clone()));
        Self { stop, run, progress }
    }

    /// Waits until everything is published once.
    pub(crate) async fn is_ready(&mut self) {
        self.comes_to(Progress::is_ready).await;
    }

    /// Waits until it has come so far.
    pub(crate) async fn comes_to(&mut self, far: impl FnMut(&Progress) -> bool) {
        let has_come = timeout(PATIENCE, self.progress.wait_for(far)).await.is_ok_and(|seen| seen.is_ok());
        assert!(has_come, "not so far: {:?}", self.progress.borrow());
    }

    /// Ends it where it stands, as SIGKILL would: it lets go of nothing.
    pub(crate) async fn kill(self) {
        self.run.abort();
        let ended = timeout(PATIENCE, self.run).await.unwrap();
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it had ended before");
    }

    /// Stops it, as at the end of a process.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.run).await.unwrap().unwrap().unwrap();
    }
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not come about");
        sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: pingsix}
spec: {controllerName: pingsix.io/gateway-controller}
";
