//! Gateway API in the cluster.

use gateway_api::httproutes::HttpRoute;
use kube::Api;
use kube::api::{ListParams, PostParams};
use pingsix_test_cluster::{Channel, TestCluster};
use serde_json::json;

use crate::support::code;

fn route(name: &str, path: &str) -> HttpRoute {
    serde_json::from_value(json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "name": name },
        "spec": { "rules": [{ "matches": [{ "path": { "type": "PathPrefix", "value": path } }] }] },
    }))
    .unwrap()
}

#[tokio::test]
async fn routes_are_kept_and_checked_by_their_definition() {
    let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
    let routes = Api::<HttpRoute>::namespaced(cluster.admin(), "default");
    routes.create(&PostParams::default(), &route("shop", "/shop")).await.unwrap();
    let listed = routes.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(listed.items[0].metadata.name.as_deref(), Some("shop"));

    let refused = routes.create(&PostParams::default(), &route("bad", "not a path")).await;
    assert_eq!(code(&refused), Some(422));
}

#[tokio::test]
async fn definitions_can_come_late() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let routes = Api::<HttpRoute>::namespaced(cluster.admin(), "default");
    assert_eq!(code(&routes.list(&ListParams::default()).await), Some(404));
    cluster.install(Channel::Standard).await.unwrap();
    assert!(routes.list(&ListParams::default()).await.unwrap().items.is_empty());
    // Installing is idempotent.
    cluster.install(Channel::Standard).await.unwrap();
}

#[tokio::test]
async fn the_experimental_channel_has_what_the_standard_one_lacks() {
    let Some(cluster) = TestCluster::builder().crds(Channel::Experimental).start_or_skip().await else {
        return;
    };
    let groups = cluster.admin().list_api_groups().await.unwrap();
    assert!(groups.groups.iter().any(|group| group.name == "gateway.networking.x-k8s.io"));
}

#[tokio::test]
async fn manifests_are_applied_or_named() {
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    let manifests = "
apiVersion: v1
kind: Namespace
metadata:
  name: team
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: team
data:
  colour: green
";
    cluster.apply(manifests).await.unwrap();
    cluster.apply(manifests).await.unwrap();
    let settings = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(cluster.admin(), "team");
    assert_eq!(settings.get("settings").await.unwrap().data.unwrap()["colour"], "green");

    let error = cluster.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the given text holds no manifest that can be applied: an object of kind ConfigMap has no name"
    );
}
