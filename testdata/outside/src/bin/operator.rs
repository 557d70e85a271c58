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
use pingsix_gateway_api::{MemorySink, Objects, Options, Pipeline, PublishError};
use pingsix_store::{Edge, SharedStore};

#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    let client = Client::try_default().await?;
    let store = SharedStore::new([Edge::depends_on("secret", |map: &ConfigMap, secrets| {
        secrets.extend(map.annotations().get("example.com/secret").cloned());
    })]);
    let (maps, reader) = store.watch(Api::default_namespaced(client.clone()), Config::default());
    Controller::for_stream(maps, reader)
        .watches(Api::<Secret>::default_namespaced(client), Config::default(), store.mapper(Secret::name_any))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(MemorySink::new()))
        .for_each(|result| ready(println!("{result:?}")))
        .await;
    Ok(())
}

async fn reconcile(map: Arc<ConfigMap>, sink: Arc<MemorySink>) -> Result<Action, PublishError> {
    let manifests: Vec<_> = map.data.iter().flat_map(BTreeMap::values).cloned().collect();
    let objects = Objects::try_from_yaml(&manifests.join("\n---\n"))?;
    Pipeline::new(Options::default()).run(&objects).publish(&*sink).await?;
    Ok(Action::await_change())
}
