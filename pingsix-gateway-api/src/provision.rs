//! Data planes that the controller runs: the Kubernetes objects of a Gateway or IngressClass, and their application.
//!
//! ```text
//! Infrastructure (pingsix-translate) ──► objects ──► Board ──► Provisioner ──► API server
//!                                         pure                  the leader      │ children, watched
//!                               Provisioned: addresses, errors ◄────────────────┘
//! ```
//!
//! Each owner has a Deployment with one PingSIX container per port of HTTP and the sidecar, a Service in front of it, two
//! Secrets (the configuration of processes, and the certificates that the feed requires), a `ServiceAccount` without
//! permissions, and a `PodDisruptionBudget`; with TLS also a Secret with a certificate.
//!
//! - `objects()` is pure and deterministic. The Gateway owns all objects, so Kubernetes removes them with it.
//! - Pods are replaced when the start configuration of their processes changes, and for no route or certificate:
//!   PingSIX watches routes, and reads certificates for each connection.
//! - The objects pass the Pod Security Standard "restricted".
//! - An object of the same name that is not owned by the Gateway is left alone, and named.

mod addresses;
mod apply;
mod certificate;
mod children;
mod container;
mod key;
mod keys;
mod merge;
mod names;
mod object;
mod pod;
mod ports;
mod process;
mod provisioner;
mod service;
pub(crate) mod shared_key;
mod sidecar;
#[cfg(test)]
pub(crate) mod tests;
mod wanted;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use pingsix_translate::infrastructure::{Infrastructure, InfrastructurePort, PortProtocol};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, ObjectName};
use serde_json::{Value, json};

pub(crate) use addresses::addresses_of_service;
pub(crate) use addresses::{AddressProblem, judge_addresses};
pub(crate) use key::{DiagnosticsKey, InstallationKey};
pub(crate) use keys::{DeployedKeys, KeyRecord, MissingKeysError};
pub(crate) use keys::{KeyPlan, plan as plan_keys};
pub(crate) use object::Child;
#[doc(hidden)]
pub use object::ChildKind;
pub(crate) use provisioner::{Parts, Provisioner};
pub(crate) use wanted::{DesiredInfrastructure, InfrastructureNeed, Provisioned, ProvisionedOwners};

use crate::digest::short_digest;
use crate::pki::FeedIdentity;
use names::Names;
use object::encoded;
use ports::ProcessPorts;

/// The label with the name of the Gateway (GEP-1762).
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";

/// The label of all objects of an installation: its controller name, as far as labels can hold it.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The label with which Pods may reach the feed.
const DATA_PLANE: &str = "pingsix.io/data-plane";

/// The annotation of Pods with a digest of their processes' start configuration.
const CONFIGURATION: &str = "pingsix.io/configuration";

/// The settings of all data planes of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The controller name of the classes.
    pub controller_name: String,
    /// The common prefix of all data planes.
    pub root: String,
    /// The endpoints of the feed for data planes, in PingSIX's format: `https://HOST:PORT`, or `http://HOST:PORT`
    /// without TLS.
    pub feed: Vec<String>,
    /// The default image of PingSIX.
    pub image: String,
    /// The default image of the sidecar.
    pub sidecar_image: String,
    /// The loopback address of the responder in a Pod, as in the translation.
    pub responder: SocketAddr,
}

impl Installation {
    /// Whether the feed is served over TLS.
    pub fn has_tls(&self) -> bool {
        self.feed.iter().any(|endpoint| endpoint.starts_with("https://"))
    }

    /// The value of [`MANAGED_BY`].
    pub(crate) fn managed_by(&self) -> String {
        names::label_value(&self.controller_name.replace('/', "-"))
    }
}

/// The secrets of an owner's data planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaneSecrets {
    /// The client certificate for the feed; `None` for a feed without TLS.
    pub(crate) identity: Option<FeedIdentity>,
    /// The key for status pages.
    pub(crate) diagnostics: DiagnosticsKey,
    /// The keys with which processes decrypt secrets in the configuration.
    pub(crate) keys: KeyRecord,
}

/// The keys that encrypt secrets in the configuration.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Keyring(pub Vec<String>);

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.0.len()).finish()
    }
}

/// The Kubernetes objects of an owner.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub(crate) struct Objects {
    /// In the order of application: first the Secret for the feed, which is to be renewed even if other objects fail,
    /// and the objects that Pods need.
    pub(crate) children: Vec<Child>,
    /// A Secret that gets a certificate at its creation and keeps it. Clients without a known server name get it.
    /// Processes read it at their start alone, so another certificate would restart them.
    pub(crate) certificate: Option<Child>,
}

/// The Kubernetes objects of an owner's data planes; `None` for an owner without any port.
pub(crate) fn objects(
    infrastructure: &Infrastructure,
    installation: &Installation,
    material: &PlaneSecrets,
) -> Option<Objects> {
    if infrastructure.all_ports().is_empty() {
        return None;
    }
    let plan = Plan::new(infrastructure, installation);
    let parameters = &*infrastructure.parameters;
    let mut config: BTreeMap<String, String> = plan
        .processes
        .iter()
        .map(|process| (process.config_file(), process::config(&plan, process, material)))
        .collect();
    if plan.streams.is_some() {
        config.insert(sidecar::STATUS_KEY.to_owned(), material.diagnostics.as_str().to_owned());
    }
    let digest = short_digest(&json!(config).to_string());
    let mut children = Vec::new();
    if let Some(identity) = &material.identity {
        let secret = json!({ "type": "kubernetes.io/tls", "data": identity.to_data() });
        children.push(plan.child(ChildKind::Secret, &plan.names.feed, &secret));
    }
    if parameters.service_account_name.is_none() {
        let account = json!({ "automountServiceAccountToken": false });
        children.push(plan.child(ChildKind::ServiceAccount, &plan.names.main, &account));
    }
    config.extend(material.keys.to_text().map(|text| (keys::RECORD.to_owned(), text)));
    children.push(plan.child(ChildKind::Secret, &plan.names.config, &secret(&config)));
    children.push(plan.child(ChildKind::Service, &plan.names.main, &service::service(&plan)));
    let deployment = pod::deployment(&plan, &digest, material.keys.edition);
    children.push(plan.child(ChildKind::Deployment, &plan.names.main, &deployment));
    children.push(plan.child(ChildKind::PodDisruptionBudget, &plan.names.main, &pod::budget(&plan)));
    let certificate = plan.has_tls().then(|| {
        plan.child(ChildKind::Secret, &plan.names.certificate, &json!({ "type": "kubernetes.io/tls" }))
    });
    Some(Objects { children, certificate })
}

/// The Service of an owner.
pub fn service_name(infrastructure: &Infrastructure) -> ObjectName {
    ObjectName::new(infrastructure.namespace.clone(), Names::of(&infrastructure.owner).main)
}

/// The port of the status page of the process that serves each data plane.
pub(crate) fn status_ports(
    infrastructure: &Infrastructure,
    installation: &Installation,
) -> BTreeMap<DataPlaneKey, u16> {
    let ports = process_ports(infrastructure, installation);
    let of_processes = infrastructure
        .ports
        .iter()
        .filter_map(|(listener, port)| Some((port.data_plane.clone(), ports.get(listener)?.status)));
    let streams = infrastructure.streams.iter().filter(|streams| !streams.is_empty());
    let of_sidecar = streams.map(|streams| (streams.data_plane.clone(), sidecar::STATUS_PORT));
    of_processes.chain(of_sidecar).collect()
}

fn process_ports(
    infrastructure: &Infrastructure,
    installation: &Installation,
) -> BTreeMap<u16, ProcessPorts> {
    let is_fronted = |port: &InfrastructurePort| port.protocol == PortProtocol::Fronted;
    ports::allot(
        infrastructure.ports.iter().map(|(listener, port)| (*listener, is_fronted(port))),
        sidecar::ports_of_sidecar(infrastructure, installation),
        infrastructure.parameters.process.metrics_port,
    )
}

fn secret(data: &BTreeMap<String, String>) -> Value {
    let data: BTreeMap<&String, Value> = data.iter().map(|(name, text)| (name, encoded(text))).collect();
    json!({ "type": "Opaque", "data": data })
}

/// The plan of all objects of an owner.
struct Plan<'i> {
    infrastructure: &'i Infrastructure,
    installation: &'i Installation,
    names: Names,
    processes: Vec<Process>,
    /// The stream role of the sidecar, for a Gateway.
    streams: Option<sidecar::Streams<'i>>,
}

/// A PingSIX process for one port.
struct Process {
    /// The port of the listeners.
    listener: u16,
    protocol: PortProtocol,
    ports: ProcessPorts,
    /// The prefix of its configuration.
    prefix: String,
}

impl Process {
    /// The name of its container.
    fn name(&self) -> String {
        format!("pingsix-{}", self.listener)
    }

    /// The key of its configuration in the Secret.
    fn config_file(&self) -> String {
        format!("{}.yaml", self.listener)
    }
}

impl<'i> Plan<'i> {
    fn new(infrastructure: &'i Infrastructure, installation: &'i Installation) -> Self {
        let ports = process_ports(infrastructure, installation);
        let processes = infrastructure.ports.iter().filter_map(|(listener, port)| {
            Some(Process {
                listener: *listener,
                protocol: port.protocol,
                ports: *ports.get(listener)?,
                prefix: port.data_plane.prefix(&installation.root),
            })
        });
        Self {
            streams: sidecar::Streams::of(infrastructure, installation, &ports),
            infrastructure,
            installation,
            names: Names::of(&infrastructure.owner),
            processes: processes.collect(),
        }
    }

    fn has_tls(&self) -> bool {
        self.processes.iter().any(|process| process.protocol == PortProtocol::Tls)
    }

    /// The labels that select the owner's Pods. A Deployment cannot change them.
    fn selector(&self) -> Value {
        json!({ "app.kubernetes.io/name": "pingsix", "app.kubernetes.io/instance": self.names.main })
    }

    /// The labels of objects: those of the Gateway, and ours, which take precedence.
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.infrastructure.labels.clone();
        labels.extend(self.own_labels());
        labels
    }

    /// The labels of objects apart from those of the Gateway.
    fn own_labels(&self) -> BTreeMap<String, String> {
        let Infrastructure { owner, class, .. } = self.infrastructure;
        let mut labels = BTreeMap::new();
        let mut add = |name: &str, value: String| labels.insert(name.to_owned(), value);
        add("app.kubernetes.io/name", "pingsix".to_owned());
        add("app.kubernetes.io/instance", self.names.main.clone());
        add("app.kubernetes.io/component", "data-plane".to_owned());
        add(MANAGED_BY, self.installation.managed_by());
        if owner.kind == Kind::IngressClass {
            add("pingsix.io/ingress-class", names::label_value(class));
        } else {
            add(GATEWAY_NAME, names::label_value(&owner.name.name));
            add("gateway.networking.k8s.io/gateway-class-name", names::label_value(class));
        }
        labels
    }

    /// The annotations of the Gateway. Annotations that Kubernetes writes on Deployments are left out, because both
    /// would overwrite each other for ever; so is the number of the keyring.
    fn annotations(&self) -> BTreeMap<String, String> {
        let mut annotations = self.infrastructure.annotations.clone();
        annotations.retain(|name, _| !name.starts_with("deployment.kubernetes.io/") && name != keys::EDITION);
        annotations
    }

    /// An object of the owner; `content` is everything apart from the common fields.
    fn child(&self, kind: ChildKind, name: &str, content: &Value) -> Child {
        let Infrastructure { owner, uid, namespace, .. } = self.infrastructure;
        let (mut labels, mut annotations) = (self.labels(), self.annotations());
        if kind == ChildKind::ServiceAccount {
            // Clouds give rights to accounts by their annotations, and authors of Gateways must not get rights by them. Tools
            // expect the metadata of the Gateway at objects with its name.
            labels = self.own_labels();
            labels.remove(GATEWAY_NAME);
            annotations.clear();
        } else if kind == ChildKind::Service {
            let own = self.infrastructure.parameters.service.annotations.iter();
            annotations.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        }
        let mut object = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.as_str(),
            "metadata": {
                "name": name,
                "namespace": **namespace,
                "labels": labels,
            },
        });
        if !annotations.is_empty() {
            object["metadata"]["annotations"] = json!(annotations);
        }
        if let Some(uid) = uid {
            // The reference does not block the deletion: blocking needs permissions for the finalizers of the owner.
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": api_version(owner), "kind": owner.kind.as_str(), "name": *owner.name.name, "uid": **uid,
                "controller": true,
            }]);
        }
        for (field, value) in content.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        Child { kind, name: ObjectName::new(namespace.clone(), name), object }
    }
}

fn api_version(owner: &ObjectKey) -> String {
    format!("{}/v1", owner.kind.group())
}
