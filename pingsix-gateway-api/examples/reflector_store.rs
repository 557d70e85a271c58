//! The store alone, in an operator that has nothing to do with gateways: which Deployments have to restart, because a
//! ConfigMap or a Secret they are configured by has changed?
//!
//! ```sh
//! cargo run -p pingsix-gateway-api --features controller --example reflector_store
//! ```
//!
//! With a cluster (that of the current kubeconfig, from which it only reads, and of Secrets only the metadata) it says so
//! until Ctrl-C. Without one it shows what it would say of a few scripted events.

use std::error::Error;
use std::io::{self, Write};
use std::pin::pin;
use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec, Secret};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use kube_runtime::{WatchStreamExt as _, watcher};
use pingsix_gateway_api::store::{Change, Edge, ObjectName, ReflectorStore};

/// The targets of a Deployment's references: names of existing or absent objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Configuration {
    ConfigMap(ObjectName),
    Secret(ObjectName),
}

/// The edges, declared once. The store keeps a secondary map for each and follows every change of an object.
static EDGES: &[Edge<Deployment, Configuration>] = &[
    Edge::depends_on("config map", |deployment, targets| {
        let named = |name: String| Configuration::ConfigMap(in_namespace_of(deployment, name));
        targets.extend(pod(deployment).flat_map(config_maps).map(named));
    }),
    Edge::depends_on("secret", |deployment, targets| {
        let named = |name: String| Configuration::Secret(in_namespace_of(deployment, name));
        targets.extend(pod(deployment).flat_map(secrets).map(named));
    }),
];

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

/// Takes events in as they come, and says who has to restart.
pub(crate) async fn follow(
    seen: impl Stream<Item = watcher::Result<WatchEvent>>,
    out: &mut (dyn Write + Send),
) -> Result<(), Box<dyn Error>> {
    // A Deployment says the same while its spec does: its status changes all the time.
    let mut deployments = ReflectorStore::new(EDGES).comparing(|one, other| one.spec == other.spec);
    // These refer to nothing. That is no reason to do without a store: it finds out what vanished during a relist.
    let mut config_maps = ReflectorStore::<PartialObjectMeta<ConfigMap>, Configuration>::new(&[]);
    let mut secrets = ReflectorStore::<PartialObjectMeta<Secret>, Configuration>::new(&[]);

    let mut seen = pin!(seen);
    while let Some(seen) = seen.next().await {
        let changed: Vec<(Configuration, &str)> = match seen {
            Ok(WatchEvent::Deployment(event)) => {
                deployments.apply(event);
                Vec::new()
            }
            Ok(WatchEvent::ConfigMap(event)) => changed(&mut config_maps, event, Configuration::ConfigMap),
            Ok(WatchEvent::Secret(event)) => changed(&mut secrets, event, Configuration::Secret),
            Err(error) => {
                // The watcher tries again by itself. What is in the stores stays meanwhile.
                writeln!(out, "a watch has failed: {error}")?;
                continue;
            }
        };
        for (configuration, how) in changed {
            // The question that the store is for. It is answered from a map, not by looking at every Deployment.
            let dependents: Vec<String> =
                deployments.dependents(&configuration).map(ToString::to_string).collect();
            if !dependents.is_empty() {
                let (kind, name) = match &configuration {
                    Configuration::ConfigMap(name) => ("ConfigMap", name),
                    Configuration::Secret(name) => ("Secret", name),
                };
                writeln!(out, "{kind} {name} {how}: restart {}", dependents.join(", "))?;
            }
        }
    }
    Ok(())
}

/// Takes an event in, and names what it changed, unless that is only what was there at the start.
fn changed<K>(
    store: &mut ReflectorStore<PartialObjectMeta<K>, Configuration>,
    event: watcher::Event<PartialObjectMeta<K>>,
    named: fn(ObjectName) -> Configuration,
) -> Vec<(Configuration, &'static str)>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + 'static,
{
    let was_complete = store.is_complete();
    let changes = store.apply(event);
    let told = changes.into_iter().filter(|_| was_complete).filter_map(|change| match change {
        Change::Applied { name, before, .. } => {
            Some((named(name), if before.is_some() { "has changed" } else { "has come" }))
        }
        Change::Removed { name, .. } => Some((named(name), "is gone")),
        Change::Touched { .. } => None,
    });
    told.collect()
}

fn in_namespace_of(deployment: &Deployment, name: String) -> ObjectName {
    ObjectName::new(deployment.metadata.namespace.as_deref().unwrap_or_default(), name)
}

fn pod(deployment: &Deployment) -> impl Iterator<Item = &PodSpec> {
    deployment.spec.iter().filter_map(|spec| spec.template.spec.as_ref())
}

/// ConfigMaps that are mounted or whose keys become environment variables.
fn config_maps(pod: &PodSpec) -> impl Iterator<Item = String> {
    let mounted = pod.volumes.iter().flatten().filter_map(|volume| volume.config_map.as_ref());
    let sources = pod.containers.iter().flat_map(|container| container.env_from.iter().flatten());
    let in_environment = sources.filter_map(|source| source.config_map_ref.as_ref());
    mounted.map(|volume| volume.name.clone()).chain(in_environment.map(|source| source.name.clone()))
}

/// Secrets that are mounted or whose keys become environment variables.
fn secrets(pod: &PodSpec) -> impl Iterator<Item = String> {
    let mounted = pod.volumes.iter().flatten().filter_map(|volume| volume.secret.as_ref());
    let sources = pod.containers.iter().flat_map(|container| container.env_from.iter().flatten());
    let in_environment = sources.filter_map(|source| source.secret_ref.as_ref());
    let mounted = mounted.filter_map(|volume| volume.secret_name.clone());
    mounted.chain(in_environment.map(|source| source.name.clone()))
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
        // The watch was away for a while. What vanished meanwhile is told at the end of the new list.
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
