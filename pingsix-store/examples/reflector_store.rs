//! The store alone, in an operator that has nothing to do with gateways: the Deployments to restart after a change of a
//! ConfigMap or a Secret that configures them.
//!
//! ```sh
//! cargo run -p pingsix-store --example reflector_store
//! ```
//!
//! The program follows the cluster of the current kubeconfig until Ctrl-C. It only reads, and of Secrets the metadata alone.
//! Without a cluster, the program follows a script of events.

use std::error::Error;
use std::io::{self, Write};
use std::pin::pin;
use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_store::{Change, Edge, ObjectName, ReflectorStore, StoredObject};

/// The target of a reference: the kind and the name of an existing or absent object.
type Configuration = (&'static str, ObjectName);

/// The watched objects. Of ConfigMaps and Secrets the metadata suffices, because only the fact of a change matters.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each is taken in at once")]
pub(crate) enum WatchEvent {
    Deployment(watcher::Event<Deployment>),
    ConfigMap(watcher::Event<PartialObjectMeta<ConfigMap>>),
    Secret(watcher::Event<PartialObjectMeta<Secret>>),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    let Some(client) = reachable_cluster().await else {
        writeln!(out, "no cluster answers; these events are scripted")?;
        return follow(script(), &mut out).await;
    };
    tokio::select! {
        followed = follow(watches(&client), &mut out) => followed,
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

/// Applies events as they come, and prints the Deployments to restart.
pub(crate) async fn follow(
    seen: impl Stream<Item = watcher::Result<WatchEvent>>,
    out: &mut (dyn Write + Send),
) -> Result<(), Box<dyn Error>> {
    // The store keeps a map of the references, and follows every change of an object.
    let configuration =
        Edge::depends_on("configuration", |one: &Deployment, targets| targets.extend(references(one)));
    // The status of a Deployment changes all the time, and only the spec matters.
    let mut deployments = ReflectorStore::new([configuration]).comparing(|one, other| one.spec == other.spec);
    // These objects refer to nothing. Their stores find the objects that vanished during a relist.
    let (mut config_maps, mut secrets) = (ReflectorStore::new([]), ReflectorStore::new([]));
    let mut seen = pin!(seen);
    while let Some(seen) = seen.next().await {
        let changes = match seen {
            Ok(WatchEvent::Deployment(event)) => {
                deployments.apply(event);
                continue;
            }
            Ok(WatchEvent::ConfigMap(event)) => changes("ConfigMap", &mut config_maps, event),
            Ok(WatchEvent::Secret(event)) => changes("Secret", &mut secrets, event),
            Err(error) => {
                // The watcher retries, and the stores keep their objects meanwhile.
                writeln!(out, "a watch has failed: {error}")?;
                continue;
            }
        };
        for (configuration, how) in changes {
            // The map has the answer, so no Deployment is scanned.
            let dependents: Vec<_> =
                deployments.dependents(&configuration).map(ToString::to_string).collect();
            if !dependents.is_empty() {
                let (kind, name) = &configuration;
                writeln!(out, "{kind} {name} {how}: restart {}", dependents.join(", "))?;
            }
        }
    }
    Ok(())
}

/// Applies an event, and returns its changes, except those of the first list.
fn changes<K: StoredObject<Name = ObjectName>>(
    kind: &'static str,
    store: &mut ReflectorStore<K, Configuration>,
    event: watcher::Event<K>,
) -> Vec<(Configuration, &'static str)> {
    let was_complete = store.is_complete();
    let changes = store.apply(event).into_iter().filter(|_| was_complete);
    let told = changes.filter_map(|change| match change {
        Change::Applied { name, before: Some(_), .. } => Some(((kind, name), "has changed")),
        Change::Applied { name, .. } => Some(((kind, name), "has come")),
        Change::Removed { name, .. } => Some(((kind, name), "is gone")),
        Change::Touched { .. } => None,
    });
    told.collect()
}

/// The ConfigMaps and Secrets that the Pods of a Deployment mount, or whose keys become environment variables.
fn references(deployment: &Deployment) -> Vec<Configuration> {
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
    let named = |kind, name: Option<&String>| Some((kind, ObjectName::new(namespace, name?)));
    let Some(pod) = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()) else {
        return vec![];
    };
    let mounted = pod.volumes.iter().flatten().flat_map(|volume| {
        let (config_map, secret) = (volume.config_map.as_ref(), volume.secret.as_ref());
        let secret = secret.and_then(|secret| secret.secret_name.as_ref());
        [named("ConfigMap", config_map.map(|one| &one.name)), named("Secret", secret)]
    });
    let sources = pod.containers.iter().flat_map(|container| container.env_from.iter().flatten());
    let in_environment = sources.flat_map(|source| {
        let (config_map, secret) = (source.config_map_ref.as_ref(), source.secret_ref.as_ref());
        [named("ConfigMap", config_map.map(|one| &one.name)), named("Secret", secret.map(|one| &one.name))]
    });
    mounted.chain(in_environment).flatten().collect()
}

/// The three watches of a cluster as one stream, which never ends.
pub(crate) fn watches(client: &Client) -> BoxStream<'static, watcher::Result<WatchEvent>> {
    let config = watcher::Config::default;
    let deployments = watcher(Api::<Deployment>::all(client.clone()), config()).default_backoff();
    let config_maps =
        watcher(Api::<PartialObjectMeta<ConfigMap>>::all(client.clone()), config()).default_backoff();
    let secrets = watcher(Api::<PartialObjectMeta<Secret>>::all(client.clone()), config()).default_backoff();
    stream::select_all([
        deployments.map_ok(WatchEvent::Deployment).boxed(),
        config_maps.map_ok(WatchEvent::ConfigMap).boxed(),
        secrets.map_ok(WatchEvent::Secret).boxed(),
    ])
    .boxed()
}

async fn reachable_cluster() -> Option<Client> {
    let client = Client::try_default().await.ok()?;
    let version = tokio::time::timeout(Duration::from_secs(3), client.apiserver_version()).await;
    version.is_ok_and(|version| version.is_ok()).then_some(client)
}

/// The events of a cluster: the lists, and then changes.
pub(crate) fn script() -> impl Stream<Item = watcher::Result<WatchEvent>> {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    stream::iter(vec![
        Ok(WatchEvent::Deployment(Init)),
        Ok(WatchEvent::Deployment(InitApply(deployment("cart", &["settings", "prices"], &[])))),
        Ok(WatchEvent::Deployment(InitApply(deployment("web", &["settings"], &["session-key"])))),
        Ok(WatchEvent::Deployment(InitDone)),
        Ok(WatchEvent::ConfigMap(Init)),
        Ok(WatchEvent::ConfigMap(InitApply(metadata("settings", "1")))),
        Ok(WatchEvent::ConfigMap(InitApply(metadata("prices", "1")))),
        Ok(WatchEvent::ConfigMap(InitDone)),
        Ok(WatchEvent::Secret(Init)),
        Ok(WatchEvent::Secret(InitDone)),
        // Two Deployments are configured by it.
        Ok(WatchEvent::ConfigMap(Apply(metadata("settings", "2")))),
        // One has waited for this.
        Ok(WatchEvent::Secret(Apply(metadata("session-key", "3")))),
        // After this the cart no longer cares for its prices.
        Ok(WatchEvent::Deployment(Apply(deployment("cart", &["settings"], &[])))),
        Ok(WatchEvent::ConfigMap(Apply(metadata("prices", "4")))),
        // The watch was interrupted. The end of the new list removes the objects that vanished meanwhile.
        Ok(WatchEvent::Secret(Init)),
        Ok(WatchEvent::Secret(InitDone)),
        Ok(WatchEvent::ConfigMap(Delete(metadata("settings", "5")))),
    ])
}

fn deployment(name: &str, config_maps: &[&str], secrets: &[&str]) -> Deployment {
    let config_maps = config_maps.iter().map(|name| serde_json::json!({"configMapRef": {"name": name}}));
    let secrets = secrets.iter().map(|name| serde_json::json!({"secretRef": {"name": name}}));
    let env_from: Vec<_> = config_maps.chain(secrets).collect();
    let container = serde_json::json!({"name": name, "envFrom": env_from});
    let deployment = serde_json::json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"spec": {"containers": [container]}},
        },
    });
    serde_json::from_value(deployment).expect("the script has valid Deployments")
}

fn metadata<K: Default>(name: &str, version: &str) -> PartialObjectMeta<K> {
    let mut object = PartialObjectMeta::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.namespace = Some("shop".to_owned());
    object.metadata.resource_version = Some(version.to_owned());
    object
}
