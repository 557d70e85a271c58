//! The manifests, as `kubectl kustomize` brings them together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pingsix_gateway_api::controller::{ControllerOptions, ProvisioningOptions};
use pingsix_gateway_api::leader::LeaseOptions;
use pingsix_gateway_api::pki::AuthorityOptions;
use pingsix_gateway_api::provision::Installation;
use pingsix_gateway_api::watch::Namespaces;
use pingsix_sink::Scope;
use pingsix_test_cluster::tool_or_skip;
use pingsix_translate::{DataPlaneKey, ObjectName, Options};
use serde::Deserialize;
use serde_json::Value;

use crate::provision::managing;

/// The folder `deploy/`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

/// A kustomization of resources alone: other fields would remain untested.
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
    /// Of the whole cluster, with data planes that the controller runs.
    pub(crate) fn cluster_wide() -> Self {
        Self::of("managed")
    }

    /// Of the whole cluster, without the right to run anything.
    pub(crate) fn without_data_planes() -> Self {
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

    /// The overlay of a folder; `None`, with a message, without kubectl.
    pub(crate) fn built(name: &str) -> Option<Self> {
        let built = Command::new(tool_or_skip("kubectl")?)
            .arg("kustomize")
            .arg(folder().join(name))
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(Self {
            objects: serde_saphyr::from_multiple(&String::from_utf8(built.stdout).unwrap()).unwrap(),
        })
    }

    /// Of the kustomization in a folder.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let mut texts = Vec::new();
        read(folder, &mut texts);
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(&texts.join("\n---\n")).unwrap();
        // kustomize's order: a Pod may start before an optional ConfigMap and would not see it later.
        objects.sort_by_key(|object| object["kind"] == "Deployment");
        Self { objects }
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

    /// Sets a field of an object by its JSON pointer.
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

    /// The objects of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// An object.
    pub(crate) fn get(&self, kind: &str, name: &str) -> &Value {
        let mut found = self.of_kind(kind).filter(|object| object["metadata"]["name"] == name);
        found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// The only object of a kind.
    fn only(&self, kind: &str) -> &Value {
        let mut found = self.of_kind(kind);
        let only = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
        assert!(found.next().is_none(), "there are several: {kind}");
        only
    }

    /// The variables of the ConfigMaps that the Deployment names: options of the controller. An optional ConfigMap may
    /// be missing.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let container = &self.only("Deployment")["spec"]["template"]["spec"]["containers"][0];
        let mut variables = BTreeMap::new();
        for from in container["envFrom"].as_array().unwrap() {
            let name = &from["configMapRef"]["name"];
            match self.of_kind("ConfigMap").find(|config| config["metadata"]["name"] == *name) {
                Some(config) => {
                    let data: BTreeMap<String, String> =
                        serde_json::from_value(config["data"].clone()).unwrap();
                    variables.extend(data);
                }
                None => assert_eq!(from["configMapRef"]["optional"], true, "there is no ConfigMap {name}"),
            }
        }
        variables
    }

    /// The controller options of these manifests, as far as permissions depend on them.
    pub(crate) fn options(&self) -> ControllerOptions {
        let namespace = self.only("Deployment")["metadata"]["namespace"].as_str().unwrap();
        let variables = self.variables();
        let given = |name: &str| variables.get(&format!("PINGSIX_GATEWAY_{name}")).cloned();
        let responder = Some(variables["PINGSIX_GATEWAY_RESPONDER"].parse().unwrap());
        let mut translation = Options { responder, ..Options::default() };
        if let Some(name) = given("CONTROLLER_NAME") {
            translation.controller_name = name;
        }
        let name = translation.controller_name.clone();
        let mut lease = LeaseOptions::new(namespace, &name, "test");
        if let Some(name) = given("LEADER_LEASE") {
            lease.name = name;
        }
        let mut options = ControllerOptions::new(translation, "test");
        let service = given("FEED_AUTHORITY_SERVICE").unwrap_or_else(|| "pingsix-gateway-feed".to_owned());
        assert_eq!(self.get("Service", &service)["metadata"]["namespace"], namespace);
        if let Some(feed) = given("FEED_ENDPOINT") {
            assert_eq!(feed, format!("https://{service}.{namespace}.svc:2379"));
            options.provisioning = Some(ProvisioningOptions {
                installation: Installation {
                    controller_name: name,
                    feed: vec![feed],
                    responder: options.translation.responder.unwrap(),
                    ..managing().provisioning.unwrap().installation
                },
                key: ObjectName::new(namespace, format!("{}-status-key", lease.name)),
            });
        }
        options.lease = Some(lease);
        let secret = &*variables["PINGSIX_GATEWAY_FEED_AUTHORITY_SECRET"];
        let mut authority = AuthorityOptions::new(ObjectName::new(namespace, secret), &service);
        for client in given("FEED_AUTHORITY_CLIENTS").iter().flat_map(|clients| clients.split(',')) {
            let (data_plane, secret) = client.split_once('=').unwrap();
            let data_plane: DataPlaneKey = data_plane.parse().unwrap();
            let scope = Scope::new(data_plane.prefix(&options.translation.root)).unwrap();
            authority.clients.entry(ObjectName::new(namespace, secret)).or_default().insert(scope);
        }
        options.feed_authority = Some(authority);
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
