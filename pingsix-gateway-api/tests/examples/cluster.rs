//! The examples that need an API server, against a real one (`just cluster`).

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use parking_lot::Mutex;
use pingsix_test_cluster::TestCluster;
use pingsix_translate::snapshot::wire::HttpRoute;
use pingsix_translate::snapshot::{ConfigMap, GatewayClass};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{SHOP, embedded_controller, reflector_store};

/// Timeout of all waits.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: red}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      containers: [{name: cart, image: cart.example/cart}]
      volumes: [{name: settings, configMap: {name: settings}}]
";

/// The output of an example so far.
#[derive(Clone, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for OutputBuffer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutputBuffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    async fn wait_for_line(&self, line: &str) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !self.text().lines().any(|output| output.starts_with(line)) {
            assert!(Instant::now() < deadline, "it does not say {line:?}, but:\n{}", self.text());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_that_follow_a_cluster_say_what_changes() {
    let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
    cluster.namespace("shop").await.unwrap();
    cluster.apply(SHOP).await.unwrap();
    cluster.apply(SETTINGS).await.unwrap();
    tokio::join!(embedded_controller(&cluster), reflector_store(&cluster));
}

async fn embedded_controller(cluster: &TestCluster) {
    let (buffer, stop) = (OutputBuffer::default(), CancellationToken::new());
    let run = tokio::spawn(embedded_controller::run(cluster.admin(), buffer.clone(), stop.clone()));
    buffer.wait_for_line("everything is known").await;
    buffer.wait_for_line("+ /pingsix/shop/web/routes/").await;
    let output = buffer.text();
    let upstream = output.find("+ /pingsix/shop/web/upstreams/").unwrap();
    let route = output.find("+ /pingsix/shop/web/routes/").unwrap();
    assert!(upstream < route, "a route never refers to what is not there:\n{output}");

    let routes: Api<HttpRoute> = Api::namespaced(cluster.admin(), "shop");
    routes.delete("cart", &DeleteParams::default()).await.unwrap();
    buffer.wait_for_line("- /pingsix/shop/web/upstreams/").await;

    let classes: Api<GatewayClass> = Api::all(cluster.admin());
    let accepted = async || {
        let class = classes.get("embedded").await.unwrap();
        let conditions = class.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Accepted" && condition.status == "True")
    };
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !accepted().await {
        assert!(Instant::now() < deadline, "the class is not accepted");
        sleep(Duration::from_millis(50)).await;
    }
    stop.cancel();
    tokio::time::timeout(WAIT_TIMEOUT, run).await.unwrap().unwrap().unwrap();
}

async fn reflector_store(cluster: &TestCluster) {
    let buffer = OutputBuffer::default();
    let mut out = buffer.clone();
    let seen = reflector_store::watches(&cluster.admin());
    let change_and_see = async {
        let config_maps: Api<ConfigMap> = Api::namespaced(cluster.admin(), "shop");
        let deadline = Instant::now() + WAIT_TIMEOUT;
        // Objects that exist at the start cause no output, and the end of the start is not observable: so the object
        // changes until the output shows it.
        for colour in 0.. {
            let patch = serde_json::json!({"data": {"colour": colour.to_string()}});
            config_maps.patch("settings", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            sleep(Duration::from_millis(100)).await;
            if buffer.text().contains("ConfigMap shop/settings has changed: restart shop/cart\n") {
                break;
            }
            assert!(Instant::now() < deadline, "it says nothing but:\n{}", buffer.text());
        }
        config_maps.delete("settings", &DeleteParams::default()).await.unwrap();
        buffer.wait_for_line("ConfigMap shop/settings is gone: restart shop/cart").await;
    };
    tokio::select! {
        followed = reflector_store::follow(seen, &mut out) => panic!("the watches ended: {followed:?}"),
        () = change_and_see => {}
    }
}
