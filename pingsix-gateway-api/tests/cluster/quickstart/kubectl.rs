//! The commands of `kubectl` in the quick start.

use std::fs;
use std::path::PathBuf;

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use pingsix_test_cluster::{Channel, TestCluster};
use pingsix_translate::Kind;
use serde_json::Value;

use crate::deploy::manifests::Manifests;
use crate::test_env::{conditions, eventually_async, objects};

/// The address of the definitions of Gateway API, with a version between the two parts.
const DEFINITIONS: (&str, &str) =
    ("https://github.com/kubernetes-sigs/gateway-api/releases/download/", "/standard-install.yaml");

/// The format of the name of the first object of a list.
const FIRST_NAME: &str = "jsonpath='{.items[0].metadata.name}'";

/// Runs commands as the administrator of a cluster, in a folder.
pub(super) struct Kubectl<'a> {
    cluster: &'a TestCluster,
    folder: PathBuf,
}

impl<'a> Kubectl<'a> {
    pub(super) fn new(cluster: &'a TestCluster, folder: PathBuf) -> Self {
        Self { cluster, folder }
    }

    /// Runs a command without the program's name, and returns its output.
    ///
    /// # Panics
    ///
    /// If the command fails or is unknown.
    pub(super) async fn run(&self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split(' ').collect();
        match *words.as_slice() {
            ["apply", "--server-side", "-f", url] => self.install(url).await,
            ["apply", "-k", folder] => {
                self.apply(&Manifests::of_folder(&self.folder.join(folder)).text()).await;
            }
            ["apply", "-f", file] => self.apply(&self.read(file)).await,
            ["delete", "--ignore-not-found", ref files @ ..] | ["delete", ref files @ ..] => {
                for pair in files.chunks(2) {
                    let ["-f", file] = *pair else { panic!("which files? kubectl {command}") };
                    self.delete(&self.read(file)).await;
                }
            }
            ["-n", namespace, "rollout", "status", object] => self.rolled_out(namespace, object).await,
            ["-n", namespace, "wait", _, condition, object] if object.starts_with("deployment/") => {
                self.has_replicas(namespace, condition, object).await;
            }
            ["-n", namespace, "wait", _, condition, object] => self.wait(namespace, condition, object).await,
            ["-n", namespace, "get", "gateway", name, "-o", format] => {
                return Some(self.get(namespace, name, format).await);
            }
            ["-n", namespace, "get", "securitypolicy", name, "-o", "yaml"] => {
                let policy = objects(&self.cluster.admin(), Kind::SecurityPolicy, namespace).get(name).await;
                return Some(serde_saphyr::to_string(&policy.unwrap()).unwrap());
            }
            ["-n", namespace, "get", "pods", "-l", label, "-o", FIRST_NAME] => {
                return Some(self.first_pod(namespace, label).await);
            }
            ["get", "--raw", path] => return Some(self.raw(path.trim_matches('"')).await),
            _ => panic!("this is not known here: kubectl {command}"),
        }
        None
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    async fn apply(&self, manifests: &str) {
        self.cluster.apply(manifests).await.unwrap();
    }

    /// The definitions of Gateway API, which are those of the test cluster.
    async fn install(&self, url: &str) {
        let version = url.strip_prefix(DEFINITIONS.0).and_then(|rest| rest.strip_suffix(DEFINITIONS.1));
        let version = version.unwrap_or_else(|| panic!("these are no definitions of Gateway API: {url}"));
        let module = self.read("testdata/cluster/go.mod");
        assert!(module.contains(&format!("sigs.k8s.io/gateway-api {version}\n")), "another version: {url}");
        self.cluster.install(Channel::Standard).await.unwrap();
    }

    async fn delete(&self, manifests: &str) {
        let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(manifests).unwrap();
        for object in objects {
            let (types, metadata) = (object.types.unwrap(), object.metadata);
            let kind = GroupVersionKind::try_from(&types).unwrap();
            let (resource, capabilities) = pinned_kind(&self.cluster.admin(), &kind).await.unwrap();
            let client = self.cluster.admin();
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Cluster => Api::all_with(client, &resource),
                Scope::Namespaced => Api::namespaced_with(
                    client,
                    metadata.namespace.as_deref().unwrap_or("default"),
                    &resource,
                ),
            };
            let name = metadata.name.unwrap();
            match api.delete(&name, &DeleteParams::default()).await {
                // With its namespace, which was named before it.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                deleted => drop(deleted.unwrap()),
            }
        }
    }

    async fn rolled_out(&self, namespace: &str, object: &str) {
        let name = object.strip_prefix("deployment/").expect("a Deployment");
        let deployments = Api::<Deployment>::namespaced(self.cluster.admin(), namespace);
        eventually_async(&format!("the Pods of {object}"), async || {
            let deployment = deployments.get(name).await.unwrap();
            let replicas = deployment.spec.and_then(|spec| spec.replicas);
            let status = deployment.status.unwrap_or_default();
            status.observed_generation == deployment.metadata.generation
                && replicas.is_some()
                && [status.replicas, status.updated_replicas, status.available_replicas] == [replicas; 3]
        })
        .await;
    }

    async fn wait(&self, namespace: &str, condition: &str, object: &str) {
        let expected = condition.strip_prefix("--for=condition=").expect("a condition");
        let name = object.strip_prefix("gateway/").expect("a Gateway");
        let gateways = objects(&self.cluster.admin(), Kind::Gateway, namespace);
        let holds = format!("{expected}=True/");
        eventually_async(&format!("{expected} of {object}"), async || {
            let gateway = gateways.get(name).await.unwrap();
            conditions(&gateway.data["status"], "").iter().any(|one| one.starts_with(&holds))
        })
        .await;
    }

    /// The text at a path such as `'{.status.addresses[0].value}'`.
    async fn get(&self, namespace: &str, name: &str, format: &str) -> String {
        let path =
            format.strip_prefix("jsonpath='{").and_then(|rest| rest.strip_suffix("}'")).expect("a path");
        let pointer = path.replace(['.', '['], "/").replace(']', "");
        let gateway = objects(&self.cluster.admin(), Kind::Gateway, namespace).get(name).await.unwrap();
        let found = gateway.data.pointer(&pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("there is no {pointer}")).to_owned()
    }

    /// Waits for the number of Pods that a Deployment asks for.
    async fn has_replicas(&self, namespace: &str, condition: &str, object: &str) {
        let wanted = condition.strip_prefix("--for=jsonpath='{.spec.replicas}'=").expect("a number of Pods");
        let wanted: i32 = wanted.parse().unwrap();
        let name = object.strip_prefix("deployment/").expect("a Deployment");
        let deployments = Api::<Deployment>::namespaced(self.cluster.admin(), namespace);
        eventually_async(&format!("{wanted} replicas of {object}"), async || {
            let spec = deployments.get(name).await.unwrap().spec;
            spec.and_then(|spec| spec.replicas) == Some(wanted)
        })
        .await;
    }

    /// The name of the only Pod with a label, after the others have stopped.
    async fn first_pod(&self, namespace: &str, label: &str) -> String {
        let pods = Api::<Pod>::namespaced(self.cluster.admin(), namespace);
        let mut names = Vec::new();
        eventually_async(&format!("a single Pod with the label {label}"), async || {
            let pods = pods.list(&ListParams::default().labels(label)).await.unwrap().items;
            names = pods.into_iter().filter_map(|pod| pod.metadata.name).collect();
            names.len() == 1
        })
        .await;
        names.remove(0)
    }

    /// The answer of the API server to a path.
    async fn raw(&self, path: &str) -> String {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.cluster.admin().request_text(request).await.unwrap()
    }
}
