//! A controller of one's own publishes the manifests in ConfigMaps, and again after a change of the Secret that a ConfigMap
//! names.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::watcher::Config;
use pingsix_gateway_api::{MemorySink, Objects, Options, Pipeline, Sink as _, SinkError};
use pingsix_store::{Edge, ReflectorStore, SharedStore};

#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    let client = Client::try_default().await?;
    let secret = Edge::depends_on("secret", |map: &ConfigMap, secrets| {
        secrets.extend(map.annotations().get("example.com/secret").cloned());
    });
    let store = SharedStore::from(ReflectorStore::new([secret]));
    let (maps, reader) = store.watch(Api::default_namespaced(client.clone()), Config::default());
    let secrets = Api::<Secret>::default_namespaced(client);
    Controller::for_stream(maps, reader)
        .watches(secrets, Config::default(), move |secret| store.dependents(&secret.name_any()))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(MemorySink::new()))
        .for_each(|_| ready(()))
        .await;
    Ok(())
}

async fn reconcile(map: Arc<ConfigMap>, sink: Arc<MemorySink>) -> Result<Action, SinkError> {
    let manifests: Vec<_> = map.data.iter().flat_map(BTreeMap::values).cloned().collect();
    let (objects, faults) = Objects::from_yaml(&manifests.join("\n---\n"));
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    for (_, desired) in Pipeline::new(Options::default()).run(&objects).desired() {
        sink.publish(desired).await?;
    }
    Ok(Action::await_change())
}
