//! A controller that makes the certificates of its feed itself, on a real API server.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use pingsix_test_programs::proto::etcdserverpb::RangeRequest;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use serde_json::json;
use tonic::transport::Endpoint;

use crate::cluster::{Shop, until};
use crate::process::get;

const SECRET: &str = "feed-authority";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authority_is_kept_in_a_secret_and_no_output_shows_its_keys() {
    let Some(shop) = Shop::start().await else { return };
    let arguments = [
        "--debug-address=127.0.0.1:0",
        "--leader-namespace=default",
        "--feed-authority-secret=feed-authority",
    ];
    let mut controller = shop.controller(&arguments, &[]);
    let (health, debug) = (controller.address_of("health"), controller.address_of("debug"));
    let feed = controller.line(|line| line["message"] == "serving the etcd protocol");
    assert_eq!(feed["scheme"], "https");
    let feed: SocketAddr = feed["address"].as_str().unwrap().parse().unwrap();
    until("it is ready", async || get(health, "/readyz").0 == 200).await;
    assert!(get(health, "/readyz").1.contains("[+]certificate"));
    // A client without a certificate is refused.
    let channel = Endpoint::from_shared(format!("http://{feed}")).unwrap().connect_lazy();
    assert!(KvClient::new(channel).range(RangeRequest::default()).await.is_err());

    let secrets: Api<Secret> = Api::namespaced(shop.cluster.admin(), "default");
    let mut keys = Vec::new();
    let mut remember = async || {
        let data = secrets.get(SECRET).await.unwrap().data.unwrap();
        for name in ["tls.key", "next.key"] {
            let Some(key) = data.get(name) else { continue };
            let key = String::from_utf8(key.0.clone()).unwrap();
            keys.extend(key.lines().filter(|line| !line.contains("-----")).map(str::to_owned));
        }
    };
    remember().await;
    let rotate = Patch::Merge(json!({"metadata": {"annotations": {"pingsix.io/rotate": "now"}}}));
    secrets.patch(SECRET, &PatchParams::default(), &rotate).await.unwrap();
    controller.line(|line| line["phase"] == "introducing");
    remember().await;
    let key = secrets.get(SECRET).await.unwrap().data.unwrap()["tls.key"].clone();
    let nonsense = Patch::Merge(json!({"data": {"tls.crt": key}}));
    secrets.patch(SECRET, &PatchParams::default(), &nonsense).await.unwrap();
    let output = controller.line(|line| line["level"] == "ERROR");
    assert_eq!(output["secret"], "default/feed-authority");
    assert_eq!(output["error"], "its key tls.crt is not one certificate in PEM");
    assert_eq!(get(health, "/readyz").0, 200, "the feed goes on");
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    controller.line(|line| line["phase"] == "settled");
    remember().await;

    let mut shown = String::new();
    for page in ["/debug/world", "/debug/sink", "/debug/translation"] {
        shown.push_str(&get(debug, page).1);
    }
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
    for line in controller.rest_of_log() {
        shown.push_str(&line.to_string());
    }
    assert!(keys.len() >= 6, "{}", keys.len());
    for key in keys {
        assert!(!shown.contains(&key));
    }
}
