//! The running controller, on a real API server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use pingsix_test_cluster::TestCluster;
use pingsix_test_programs::proto::etcdserverpb::RangeRequest;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tonic::transport::Endpoint;

use crate::process::{Controller, WAIT_TIMEOUT, get};

/// A Gateway for HTTPS with a route to a Service, and everything they refer to but the certificate.
pub(crate) const SHOP: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: pingsix}
spec: {controllerName: pingsix.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: pingsix
  listeners:
  - {name: secure, port: 443, protocol: HTTPS, hostname: cart.example, tls: {certificateRefs: [{name: cart}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: default}
spec:
  parentRefs: [{name: web}]
  hostnames: [cart.example]
  rules: [{backendRefs: [{name: cart, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: default}
spec: {ports: [{name: web, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: default, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: web, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.2.3], conditions: {ready: true}}]
";

/// A cluster with a shop, or nothing if the test cannot run.
pub(crate) struct Shop {
    pub(crate) cluster: TestCluster,
    /// A line of the private key of the shop.
    key: String,
}

impl Shop {
    pub(crate) async fn start() -> Option<Self> {
        let cluster = TestCluster::builder().start_or_skip().await?;
        let pair = rcgen::generate_simple_self_signed(["cart.example".to_owned()]).unwrap();
        let key = pair.signing_key.serialize_pem();
        let secret = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": "cart", "namespace": "default" },
            "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": pair.cert.pem(), "tls.key": key },
        });
        cluster.apply(SHOP).await.unwrap();
        cluster.apply(&secret.to_string()).await.unwrap();
        let key = key.lines().nth(1).unwrap().to_owned();
        Some(Self { cluster, key })
    }

    /// Starts a controller for it.
    pub(crate) fn controller(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Controller {
        let kubeconfig = self.cluster.kubeconfig(self.cluster.administrator()).unwrap();
        Controller::start(tempfile::tempdir().unwrap(), &kubeconfig, arguments, variables)
    }

    pub(crate) async fn object(&self, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.objects(kind).get(name).await.unwrap()).unwrap()
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.objects(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind));
        Api::namespaced_with(self.cluster.admin(), "default", &resource)
    }
}

/// Waits until a condition holds; an undecided condition ends the wait.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !timeout(WAIT_TIMEOUT, holds()).await.unwrap_or(false) {
        assert!(Instant::now() < deadline, "it does not come about that {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// All keys below a prefix, each as `key = value`.
async fn list(feed: SocketAddr, prefix: &str) -> Vec<String> {
    let channel = Endpoint::from_shared(format!("http://{feed}")).unwrap().connect_lazy();
    let request = RangeRequest {
        key: format!("{prefix}/").into(),
        range_end: format!("{prefix}0").into(),
        ..RangeRequest::default()
    };
    let answer = KvClient::new(channel).range(request).await.unwrap().into_inner();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    answer.kvs.iter().map(|pair| format!("{} = {}", text(&pair.key), text(&pair.value))).collect()
}

fn has_condition(holder: &Value, kind: &str) -> bool {
    let conditions = holder["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == "True")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_served_and_what_was_taken_is_given_back() {
    let Some(shop) = Shop::start().await else { return };
    let arguments =
        ["--debug-address=127.0.0.1:0", "--leader-lease=controller", "--leader-namespace=default"];
    let mut controller = shop.controller(&arguments, &[("POD_NAME", "pod-1")]);
    let health = controller.address_of("health");
    let debug = controller.address_of("debug");
    let feed = controller.line(|line| line["message"] == "serving the etcd protocol");
    let feed: SocketAddr = feed["address"].as_str().unwrap().parse().unwrap();
    until("it is ready", async || get(health, "/readyz").0 == 200).await;

    let documents = list(feed, "/pingsix/default/web").await;
    let has = |kind: &str, text: &str| {
        let below = format!("/pingsix/default/web/{kind}/");
        documents.iter().any(|document| document.starts_with(&below) && document.contains(text))
    };
    assert!(has("upstreams", "10.1.2.3") && has("ssls", &shop.key), "{documents:#?}");

    let leads = || get(health, "/metrics").1.contains("pingsix_gateway_leader 1\n");
    until("it leads", async || leads()).await;
    until("the Gateway is accepted", async || {
        has_condition(&shop.object("Gateway", "web").await["status"], "Accepted")
    })
    .await;
    until("the route is accepted", async || {
        has_condition(&shop.object("HTTPRoute", "cart").await["status"]["parents"][0], "Accepted")
    })
    .await;

    let (status, dump) = get(debug, "/debug/translation?about=Gateway/default/web");
    assert_eq!(status, 200);
    assert!(dump.contains("10.1.2.3") && dump.contains("<redacted>"), "{dump}");
    for page in ["/debug/translation?about=Gateway/default/web", "/debug/world?about=Secret/default/cart"] {
        let (status, dump) = get(debug, page);
        assert_eq!(status, 200, "{page}");
        assert!(!dump.contains(&shop.key) && !dump.contains("PRIVATE KEY"), "{page} has the key");
    }

    let leases: Api<Lease> = Api::namespaced(shop.cluster.admin(), "default");
    let holder = async || leases.get("controller").await.unwrap().spec.unwrap().holder_identity;
    let held = holder().await.unwrap_or_default();
    assert!(held.starts_with("pod-1"), "{held}");
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
    assert_eq!(holder().await.unwrap_or_default(), "", "nobody has to wait for the Lease to run out");
}
