//! The manifests, as `kubectl kustomize` brings them together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pingsix_gateway_api::controller::{ControllerOptions, ProvisioningOptions};
use pingsix_gateway_api::leader::{LeaseOptions, lease_name};
use pingsix_gateway_api::pki::AuthorityOptions;
use pingsix_gateway_api::provision::Installation;
use pingsix_gateway_api::watch::Namespaces;
use pingsix_translate::{ObjectName, Options};
use serde::Deserialize;
use serde_json::Value;

use crate::provision::managing;

/// The folder `deploy/`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

/// A file of resources and nothing else: what is not read here could not be tested.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kustomization {
    #[serde(rename = "apiVersion")]
    _version: String,
    #[serde(rename = "kind")]
    _kind: String,
    resources: Vec<String>,
}

/// The objects of a kustomization.
pub(crate) struct Manifests {
    objects: Vec<Value>,
}

impl Manifests {
    /// Of the whole cluster.
    pub(crate) fn cluster_wide() -> Self {
        Self::of(".")
    }

    /// Of one namespace, `shop`.
    pub(crate) fn namespaced() -> Self {
        Self::of("namespaced")
    }

    /// Of the example.
    pub(crate) fn example() -> Self {
        Self::of("example")
    }

    fn of(name: &str) -> Self {
        Self::of_folder(&folder().join(name))
    }

    /// Of the kustomization in a folder.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let mut texts = Vec::new();
        read(folder, &mut texts);
        Self { objects: serde_saphyr::from_multiple(&texts.join("\n---\n")).unwrap() }
    }

    /// All of them, as one text.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<String> = self.objects.iter().map(Value::to_string).collect();
        texts.join("\n---\n")
    }

    /// Leaves one out.
    pub(crate) fn drop(&mut self, kind: &str, name: &str) {
        self.objects.retain(|object| object["kind"] != kind || object["metadata"]["name"] != name);
    }

    /// Sets something of an object, which `pointer` leads to.
    pub(crate) fn set(&mut self, kind: &str, name: &str, pointer: &str, value: Value) {
        let mut found = self.objects.iter_mut();
        let found = found.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let holder = found.and_then(|object| object.pointer_mut(parent));
        holder.unwrap_or_else(|| panic!("there is no {parent} of {kind} {name}"))[key] = value;
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter()
    }

    /// Those of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// An object.
    pub(crate) fn get(&self, kind: &str, name: &str) -> &Value {
        let mut found = self.of_kind(kind).filter(|object| object["metadata"]["name"] == name);
        found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// What the ConfigMap sets: options of the controller as variables.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let config = self.get("ConfigMap", "pingsix-gateway-controller");
        serde_json::from_value(config["data"].clone()).unwrap()
    }

    /// The options that a controller of these manifests has, as far as they play a part in what it asks for.
    pub(crate) fn options(&self) -> ControllerOptions {
        let deployment = self.get("Deployment", "pingsix-gateway-controller");
        let namespace = deployment["metadata"]["namespace"].as_str().unwrap();
        let variables = self.variables();
        let responder = Some(variables["PINGSIX_GATEWAY_RESPONDER"].parse().unwrap());
        let translation = Options { responder, ..Options::default() };
        let name = translation.controller_name.clone();
        let mut options = ControllerOptions::new(translation, "test");
        options.lease = Some(LeaseOptions::new(namespace, &name, "test"));
        options.provisioning = Some(ProvisioningOptions {
            installation: Installation {
                feed: vec![variables["PINGSIX_GATEWAY_FEED_ENDPOINT"].clone()],
                responder: options.translation.responder.unwrap(),
                ..managing().provisioning.unwrap().installation
            },
            key: ObjectName::new(namespace, format!("{}-status-key", lease_name(&name))),
        });
        let secret = &*variables["PINGSIX_GATEWAY_FEED_AUTHORITY_SECRET"];
        let service = &self.get("Service", "pingsix-gateway-feed")["metadata"];
        assert_eq!(service["namespace"], namespace);
        options.feed_authority = Some(AuthorityOptions::new(
            ObjectName::new(namespace, secret),
            service["name"].as_str().unwrap(),
        ));
        if let Some(namespaces) = variables.get("PINGSIX_GATEWAY_WATCH_NAMESPACES") {
            options.watch.namespaces = Namespaces::Only(namespaces.split(',').map(str::to_owned).collect());
        }
        options
    }
}

fn read(folder: &Path, texts: &mut Vec<String>) {
    let text =
        |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Kustomization = serde_saphyr::from_str(&text(&folder.join("kustomization.yaml"))).unwrap();
    for resource in file.resources {
        let path = folder.join(resource);
        if path.is_dir() {
            read(&path, texts);
        } else {
            texts.push(text(&path));
        }
    }
}
