//! Manifests, and the definitions among them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::sleep;

use crate::builder::Channel;
use crate::cluster::TestCluster;
use crate::error::Error;

/// The time limit for a definition to become usable, which usually takes a fraction of a second.
const USABLE_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The owner of the fields.
const FIELD_MANAGER: &str = "pingsix-test-cluster";

impl TestCluster {
    /// Applies manifests as `kubectl apply --server-side` does, in their order. Namespaced objects that name no
    /// namespace go to `default`. Returns when definitions among them can be used.
    pub async fn apply(&self, manifests: &str) -> Result<(), Error> {
        self.apply_from("the given text", manifests).await
    }

    /// Installs the definitions of a channel of Gateway API, as its users do, with what guards them against
    /// downgrades, and returns when they can be used.
    pub async fn install(&self, channel: Channel) -> Result<(), Error> {
        self.install_from(&self.definitions(channel)).await
    }

    /// Installs the definitions of the Prometheus operator for monitors of Services, monitors of Pods and rules, and returns
    /// when they can be used.
    pub async fn install_monitoring(&self) -> Result<(), Error> {
        self.install_from(&self.build.crds("monitoring")).await
    }

    async fn install_from(&self, folder: &Path) -> Result<(), Error> {
        let reading = || Error::io(format!("could not read {}", folder.display()));
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(reading())? {
            let path = entry.map_err(reading())?.path();
            files.push((path.display().to_string(), fs::read_to_string(&path).map_err(reading())?));
        }
        // The guards come last: they need not judge what this very call brings.
        let (guards, definitions): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(name, _)| name.contains("_vap_"));
        for part in [definitions, guards] {
            try_join_all(part.iter().map(|(name, text)| self.apply_from(name, text))).await?;
        }
        Ok(())
    }

    async fn apply_from(&self, from: &str, manifests: &str) -> Result<(), Error> {
        let unusable = |why: String| Error::Manifest { from: from.to_owned(), why };
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(manifests).map_err(|error| unusable(error.to_string()))?;
        let mut definitions = Vec::new();
        for given in objects {
            let object: DynamicObject =
                serde_json::from_value(given.clone()).map_err(|error| unusable(error.to_string()))?;
            let Some(types) = &object.types else { return Err(unusable("an object has no kind".to_owned())) };
            let Some(name) = object.metadata.name.clone() else {
                return Err(unusable(format!("an object of kind {} has no name", types.kind)));
            };
            let gvk = GroupVersionKind::try_from(types).map_err(|error| unusable(error.to_string()))?;
            let what = format!("apply the {} {name}", gvk.kind);
            let (resource, capabilities) =
                pinned_kind(&self.client, &gvk).await.map_err(Error::api(what.clone()))?;
            let api = api(&self.client, &resource, &capabilities.scope, object.metadata.namespace.as_deref());
            let params = PatchParams::apply(FIELD_MANAGER).force();
            // As it was given: a field that nobody knows is for the API server to refuse.
            api.patch(&name, &params, &Patch::Apply(&given)).await.map_err(Error::api(what))?;
            if gvk.kind == "CustomResourceDefinition" {
                definitions.push((name, served_versions(&given)));
            }
        }
        let waits = definitions.iter().map(|(name, versions)| self.wait_until_usable(name, versions));
        try_join_all(waits).await?;
        Ok(())
    }

    /// Waits until the API server serves the resources of a definition. The definition itself is not read, because it takes
    /// a test longer to decode than an API server to serve it.
    async fn wait_until_usable(&self, name: &str, versions: &[GroupVersionKind]) -> Result<(), Error> {
        let started = Instant::now();
        while !self.serves(versions).await {
            if started.elapsed() > USABLE_TIMEOUT {
                let what = format!("the resources of {name} cannot be used");
                return Err(Error::TimedOut { what, after: USABLE_TIMEOUT });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Whether every version of a definition is named by discovery, and can be listed.
    async fn serves(&self, versions: &[GroupVersionKind]) -> bool {
        for version in versions {
            let Ok((resource, _)) = pinned_kind(&self.client, version).await else { return false };
            let api = Api::<DynamicObject>::all_with(self.admin(), &resource);
            if api.list(&ListParams::default().limit(1)).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// The served versions of a definition.
fn served_versions(definition: &Value) -> Vec<GroupVersionKind> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    let kind = |version: &Value| {
        GroupVersionKind::gvk(&text(&spec["group"]), &text(&version["name"]), &text(&spec["names"]["kind"]))
    };
    served.map(kind).collect()
}

fn api(
    client: &Client,
    resource: &ApiResource,
    scope: &Scope,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    match scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), resource),
    }
}
