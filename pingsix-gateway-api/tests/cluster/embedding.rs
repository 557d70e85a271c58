//! The parts of a controller of one's own.

use std::pin::pin;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube_runtime::watcher;
use pingsix_gateway_api::store::{Edge, SharedStore};
use serde_json::json;

use crate::test_env::TestEnv;

const ANNOTATION: &str = "example.com/secret";

fn config_map(secret: &str) -> ConfigMap {
    let metadata = json!({"name": "manifests", "annotations": {ANNOTATION: secret}});
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// Waits for the ConfigMap with this annotation, among those of the API server itself.
async fn wait_for(changed: &mut (impl Stream<Item = watcher::Result<ConfigMap>> + Unpin), secret: &str) {
    while changed.next().await.unwrap().unwrap().annotations().get(ANNOTATION).is_none_or(|is| is != secret) {
    }
}

#[tokio::test]
async fn a_shared_store_follows_an_api() {
    let Some(test_env) = TestEnv::start().await else { return };
    let api: Api<ConfigMap> = Api::namespaced(test_env.cluster.admin(), "default");
    api.create(&PostParams::default(), &config_map("first")).await.unwrap();
    let edge = Edge::depends_on("secret", |map: &ConfigMap, secrets: &mut Vec<String>| {
        secrets.extend(map.annotations().get(ANNOTATION).cloned());
    });
    let store = SharedStore::new([edge]);
    let (changed, reader) = store.watch(api.clone(), watcher::Config::default());
    let mut changed = pin!(changed);
    let dependents = |secret: &str| {
        let dependents = store.dependents(&secret.to_owned()).into_iter();
        dependents.map(|dependent| dependent.name).collect::<Vec<_>>()
    };

    // The store has the objects of a list when the list ends, and changes after it.
    wait_for(&mut changed, "first").await;
    for (old, new) in [("first", "second"), ("second", "third")] {
        api.patch("manifests", &PatchParams::default(), &Patch::Merge(config_map(new))).await.unwrap();
        wait_for(&mut changed, new).await;
        assert_eq!((dependents(old), dependents(new)), (Vec::new(), vec!["manifests".to_owned()]));
        let kept = reader.find(|map| map.name_any() == "manifests").unwrap();
        assert_eq!(kept.annotations()[ANNOTATION], new);
    }
}
