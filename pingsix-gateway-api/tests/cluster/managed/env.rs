//! A cluster whose node runs everything: the controller by its manifests, and the data planes that it makes.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use pingsix_test_cluster::{CONTROLLERS, Node, TestCluster, in_own_network};
use pingsix_test_programs::program;
use pingsix_translate::Kind;
use serde_json::{Value, json};
use tokio::process::Command;

use super::traffic::{EXPECTED_RESPONSE, Target, Traffic};
use crate::deploy::manifests::Manifests;
use crate::test_env::{OWN_KINDS, WAIT_TIMEOUT, conditions, eventually_async, objects, pingsix, shop};

/// The controller's name, which is that of its Deployment and of its objects.
pub(super) const CONTROLLER: &str = "pingsix-gateway-controller";

/// The address of the controller.
pub(super) const SYSTEM: &str = "pingsix-system";

/// A class with managed data planes, their backends, and the certificate of the undisturbed Gateway.
const BASE: &str = "
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {name: managed, namespace: default}
spec: {managed: {process: {threads: 1}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: pingsix}
spec:
  controllerName: pingsix.io/gateway-controller
  parametersRef: {group: pingsix.io, kind: PingsixProxy, namespace: default, name: managed}
---
apiVersion: v1
kind: Pod
metadata: {name: backend, namespace: default, labels: {app: backend}}
spec:
  containers:
  - name: backend
    image: test-pod
    env: [{name: POD_NAME, value: backend}]
    readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: default}
spec: {selector: {app: backend}, ports: [{port: 80, targetPort: 8080}]}
";

/// The Gateway that nothing is done to.
pub(super) const UNDISTURBED: &str = "calm";

const UNDISTURBED_LISTENERS: &str = "[{name: plain, port: 80, protocol: HTTP}, \
    {name: secure, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: calm}]}}]";

/// The containers of Pods: by Pod and name, which start of which container it is.
pub(super) type Containers = Vec<(String, Vec<(String, String, i32)>)>;

/// The running processes.
pub(super) struct ManagedEnv {
    pub(super) cluster: TestCluster,
}

impl ManagedEnv {
    /// Starts a cluster in a network of its own, with the controller and the undisturbed Gateway; `None`, with a
    /// message, if the test cannot run. `settings` are options of the controller, as variables without their common
    /// prefix.
    pub(super) async fn start(test: &str, settings: &[(&str, &str)]) -> Option<Self> {
        let binary = pingsix::binary(test)?;
        // Programs are built while the network is available.
        let controller = program(CONTROLLER).await;
        let sidecar = program("pingsix-gateway-sidecar").await;
        if !in_own_network(&format!("managed::{test}")).await {
            return None;
        }
        let node = Node::new()
            .image("pingsix", PathBuf::from(binary))
            .image(CONTROLLER, controller)
            .image("pingsix-gateway-sidecar", sidecar);
        let cluster = TestCluster::builder().controllers(CONTROLLERS).node(node).start_or_skip().await?;
        cluster.apply(OWN_KINDS).await.unwrap();
        let mut manifests = Manifests::cluster_wide();
        manifests.set("Deployment", CONTROLLER, "/spec/replicas", json!(1));
        for (name, value) in settings {
            let pointer = format!("/data/PINGSIX_GATEWAY_{name}");
            manifests.set("ConfigMap", CONTROLLER, &pointer, json!(value));
        }
        cluster.apply(&manifests.text()).await.unwrap();
        let env = Self { cluster };
        eventually_async("the kind PingsixProxy", async || env.cluster.apply(BASE).await.is_ok()).await;
        let (certificate, key) = shop::pair("calm.example");
        env.apply(&shop::secret(UNDISTURBED, &certificate, &key)).await;
        env.apply(&gateway(UNDISTURBED, UNDISTURBED_LISTENERS)).await;
        env.apply(&route("calm.example", UNDISTURBED)).await;
        for target in env.undisturbed().await {
            env.is_served(&target).await;
        }
        Some(env)
    }

    pub(super) async fn apply(&self, manifests: &str) {
        self.cluster.apply(manifests).await.unwrap();
    }

    /// The requests to the calm Gateway.
    async fn undisturbed(&self) -> Vec<Target> {
        let address = self.address(UNDISTURBED).await;
        [80, 443].map(|port| Target::new(address, port, "calm.example")).to_vec()
    }

    /// Starts requests to the undisturbed Gateway, and records its processes.
    pub(super) async fn watch_undisturbed(&self) -> Watch {
        let containers = self.containers(UNDISTURBED).await;
        assert_eq!(containers.len(), 1, "{containers:?}");
        Watch { containers, traffic: Traffic::start(&self.undisturbed().await) }
    }

    /// The address of a Gateway, once it is programmed as it is now.
    pub(super) async fn address(&self, gateway: &str) -> IpAddr {
        let mut address = None;
        self.until(&format!("a programmed Gateway {gateway}"), async || {
            let found = self.object(Kind::Gateway, "default", gateway).await;
            address = found["status"]["addresses"][0]["value"].as_str().map(|value| value.parse().unwrap());
            address.is_some() && is_programmed(&found)
        })
        .await;
        address.unwrap()
    }

    pub(super) async fn object(&self, kind: Kind, namespace: &str, name: &str) -> Value {
        let object = objects(&self.cluster.admin(), kind, namespace).get_opt(name).await.unwrap();
        object.map(|object| serde_json::to_value(object).unwrap()).unwrap_or_default()
    }

    pub(super) async fn delete(&self, kind: Kind, name: &str) {
        let objects = objects(&self.cluster.admin(), kind, "default");
        objects.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn is_served(&self, target: &Target) {
        let asked = async || target.ask().await.is_ok_and(|answer| answer == EXPECTED_RESPONSE);
        self.until(&format!("an answer of {target:?}"), asked).await;
    }

    pub(super) async fn is_closed(&self, target: &Target) {
        self.until(&format!("that nobody answers {target:?}"), async || target.ask().await.is_err()).await;
    }

    /// A route that is made now is served by the calm Gateway.
    pub(super) async fn a_change_arrives(&self, host: &str) {
        self.apply(&route(host, UNDISTURBED)).await;
        self.is_served(&Target::new(self.address(UNDISTURBED).await, 80, host)).await;
    }

    /// The running Pods of a Gateway; terminating Pods do not count.
    pub(super) async fn containers(&self, gateway: &str) -> Containers {
        let selector = format!("gateway.networking.k8s.io/gateway-name={gateway}");
        self.containers_of("default", &selector).await
    }

    pub(super) async fn containers_of(&self, namespace: &str, selector: &str) -> Containers {
        let pods = Api::<Pod>::namespaced(self.cluster.admin(), namespace);
        let found = pods.list(&ListParams::default().labels(selector)).await.unwrap();
        let live = found.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let containers = |pod: &Pod| {
            let status = pod.status.clone().unwrap_or_default();
            let all = [status.init_container_statuses, status.container_statuses].into_iter().flatten();
            let all =
                all.flatten().map(|one| (one.name, one.container_id.unwrap_or_default(), one.restart_count));
            all.collect()
        };
        live.map(|pod| (pod.name_any(), containers(&pod))).collect()
    }

    /// The Deployment of the controller with the number of ready replicas.
    pub(super) fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.cluster.admin(), SYSTEM)
    }

    /// Waits until a condition holds; a timeout prints all statuses and logs.
    pub(super) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = std::time::Instant::now();
        while !holds().await {
            assert!(
                started.elapsed() < WAIT_TIMEOUT,
                "{what} does not come about\n{}",
                self.statuses_and_log().await
            );
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// The statuses of all Gateways, and the end of the controller's log.
    async fn statuses_and_log(&self) -> String {
        let mut statuses_and_log = Vec::new();
        let gateways = objects(&self.cluster.admin(), Kind::Gateway, "default");
        for gateway in gateways.list(&ListParams::default()).await.unwrap() {
            statuses_and_log.push(format!("{} {:#}", gateway.name_any(), gateway.data["status"]));
        }
        let logs = self.cluster.folder().join("node/logs").join(SYSTEM);
        for pod in std::fs::read_dir(logs).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(pod.path().join("controller.log")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(30)..].join("\n");
            statuses_and_log.push(format!("{}\n{end}", pod.path().display()));
        }
        statuses_and_log.join("\n")
    }
}

/// The undisturbed Gateway under continuous requests.
pub(super) struct Watch {
    containers: Containers,
    traffic: Traffic,
}

impl Watch {
    /// Clients saw no error, and all processes still run.
    pub(super) async fn assert_undisturbed(self, env: &ManagedEnv) {
        self.traffic.was_not_disturbed("the calm Gateway").await;
        assert_eq!(env.containers(UNDISTURBED).await, self.containers);
    }
}

/// Whether the current generation of a Gateway is programmed.
fn is_programmed(gateway: &Value) -> bool {
    let status = &gateway["status"];
    let all = status["conditions"].as_array().into_iter().flatten();
    let mut current = all
        .filter(|one| one["observedGeneration"] == gateway["metadata"]["generation"])
        .map(|one| &one["type"]);
    current.any(|kind| kind == "Programmed")
        && conditions(status, "").contains(&"Programmed=True/Programmed".to_owned())
}

/// A Gateway with these listeners.
pub(super) fn gateway(name: &str, listeners: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: default}}
spec: {{gatewayClassName: pingsix, listeners: {listeners}}}
"
    )
}

/// A listener for plain HTTP.
pub(super) fn plain(port: u16) -> String {
    format!("{{name: p{port}, port: {port}, protocol: HTTP}}")
}

/// A route from a Gateway to the backend, of the name of its host.
pub(super) fn route(host: &str, gateway: &str) -> String {
    shop::ROUTE
        .replace("name: cart, namespace: default", &format!("name: {host}, namespace: default"))
        .replace("name: web", &format!("name: {gateway}"))
        .replace("name: cart,", "name: backend,")
        .replace("cart.example", host)
}

/// Processes of this network with this text in their command line, including those in containers.
pub(super) fn processes(part: &str) -> Vec<u32> {
    let own = std::fs::read_link("/proc/self/ns/user").unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = ids
        .filter(|id| {
            let of = |file: &str| PathBuf::from(format!("/proc/{id}/{file}"));
            let line = std::fs::read(of("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).split('\0').any(|word| word.starts_with(part))
                && std::fs::read_link(of("ns/user")).is_ok_and(|user| user == own)
        })
        .collect();
    found.sort_unstable();
    found
}

/// Ends a process as it stands.
pub(super) async fn kill(process: u32) {
    let status = Command::new("kill").args(["-KILL", &process.to_string()]).stdin(Stdio::null()).status();
    assert!(status.await.unwrap().success(), "{process} cannot be killed");
}
