//! Infrastructure of managed data planes, and parameters of attached ones.

mod credentials;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value};

use crate::crd::{ExternalTrafficPolicy, LogLevel, ServiceType, SinkScheme};
use crate::model::{
    Address, DataPlaneKey, Executors, FieldPath, Kind, Layout, ObjectKey, ObjectName, Options, Problem,
    Reason, Severity,
};
use crate::snapshot::{Gateway, proxy_of_gateway};

pub use credentials::{CredentialsError, CredentialsErrorKind, SinkCredentials};

/// The infrastructure that a managed Gateway or IngressClass needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Infrastructure {
    /// The Gateway, or the IngressClass.
    pub owner: Arc<ObjectKey>,
    /// `metadata.uid` of the owner; `None` for one that was never stored by an API server.
    pub uid: Option<Arc<str>>,
    /// The namespace of all objects of the infrastructure: that of the Gateway, or of the parameters of the IngressClass.
    pub namespace: Arc<str>,
    /// The GatewayClass, or the IngressClass.
    pub class: Arc<str>,
    /// The ports of HTTP with a listener that is served, of the Gateway and of its ListenerSets.
    pub ports: BTreeMap<u16, InfrastructurePort>,
    /// The ports of TCP, UDP and TLS, for the sidecar; `None` for an IngressClass.
    pub streams: Option<StreamInfrastructure>,
    /// `spec.infrastructure.labels`, as far as the class allows them, for all objects but the ServiceAccount.
    pub labels: BTreeMap<String, String>,
    /// `spec.infrastructure.annotations`, likewise.
    pub annotations: BTreeMap<String, String>,
    /// The usable entries of `spec.addresses`.
    pub addresses: Vec<RequestedAddress>,
    /// The parameters.
    pub parameters: Arc<ManagedParameters>,
}

/// The data plane of a Gateway's sidecars. Sidecars read its documents without a port, too, so that a listener that comes
/// replaces no Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfrastructure {
    /// The data plane of the stream documents.
    pub data_plane: DataPlaneKey,
    /// The ports of listeners for TCP and TLS, and for HTTPS that the sidecar terminates.
    pub tcp: BTreeSet<u16>,
    /// The ports of listeners for UDP.
    pub udp: BTreeSet<u16>,
}

impl StreamInfrastructure {
    /// Whether there is no port.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.udp.is_empty()
    }
}

impl Infrastructure {
    /// Every port of clients, of any protocol.
    pub fn all_ports(&self) -> BTreeSet<u16> {
        let streams = self.streams.iter().flat_map(|streams| streams.tcp.union(&streams.udp));
        self.ports.keys().chain(streams).copied().collect()
    }
}

/// A port of an [`Infrastructure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfrastructurePort {
    /// The protocol of its clients.
    pub protocol: PortProtocol,
    /// The data plane that serves it.
    pub data_plane: DataPlaneKey,
}

/// The executors of data planes with these options and parameters.
pub(crate) fn executors(options: &Options, managed: Option<&ManagedParameters>) -> Executors {
    Executors {
        responder: options.responder.is_some(),
        stream_proxy: managed.is_some() || options.stream,
        tls_front: managed.is_some_and(|managed| managed.sidecar_https),
    }
}

/// The protocol of clients on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortProtocol {
    /// HTTP without TLS.
    Plaintext,
    /// HTTP over TLS, which PingSIX terminates.
    Tls,
    /// HTTP over TLS, which the sidecar terminates. The port is one of [`StreamInfrastructure::tcp`], too.
    Fronted,
}

/// The ports of every IngressClass: each Ingress is served on both (Kubernetes, `IngressSpec`).
pub const INGRESS_PORTS: [(u16, PortProtocol); 2] = [(80, PortProtocol::Plaintext), (443, PortProtocol::Tls)];

/// An address that a Gateway asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedAddress {
    /// The index in `spec.addresses`.
    pub index: usize,
    /// The type.
    pub kind: RequestedAddressKind,
    /// The address; `None` is any address of the type.
    pub value: Option<String>,
}

/// The type of an address that a Gateway asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedAddressKind {
    /// `IPAddress`
    IpAddress,
    /// `Hostname`
    Hostname,
}

/// Parameters of managed data planes: those of the class with the overrides of the Gateway, checked.
///
/// Absent values have no default here: the provisioner chooses defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagedParameters {
    /// The image of PingSIX.
    pub image: Option<String>,
    /// The number of Pods.
    pub replicas: Option<i32>,
    /// The resources of each PingSIX container.
    pub resources: Option<ResourceRequirements>,
    /// The Service in front of the Pods.
    pub service: ServiceParameters,
    /// The scheduling of Pods.
    pub scheduling: SchedulingParameters,
    /// The limit of voluntary disruptions of Pods.
    pub disruption_budget: Option<DisruptionLimit>,
    /// A ServiceAccount in the namespace of the Gateway, instead of a generated one.
    pub service_account_name: Option<String>,
    /// A patch of the Pod template.
    pub pod_template_patch: Option<Map<String, Value>>,
    /// Settings of the PingSIX processes.
    pub process: ProcessParameters,
    /// The image of the sidecar.
    pub sidecar_image: Option<String>,
    /// The resources of the sidecar's container.
    pub sidecar_resources: Option<ResourceRequirements>,
    /// The time limit of the connections of an ending sidecar, in seconds.
    pub sidecar_drain_seconds: Option<u32>,
    /// Whether the sidecar terminates TLS for HTTPS listeners of Gateways.
    pub sidecar_https: bool,
    /// The keys of labels and annotations that the Gateway may set; `None` is every key. An entry is a key, or a domain with
    /// `/*`.
    pub infrastructure_keys: Option<Vec<String>>,
}

impl ManagedParameters {
    /// Whether the Gateway may set a label or an annotation with this key.
    pub(crate) fn allows_key(&self, key: &str) -> bool {
        let Some(allowed) = &self.infrastructure_keys else { return true };
        allowed.iter().any(|allowed| match allowed.strip_suffix("/*") {
            Some(domain) => key.split_once('/').is_some_and(|(of_key, _)| of_key == domain),
            None => allowed == key,
        })
    }
}

/// The Service in front of the Pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceParameters {
    /// `spec.type`
    pub kind: ServiceType,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// `spec.loadBalancerClass`
    pub load_balancer_class: Option<String>,
    /// `spec.externalTrafficPolicy`
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
}

impl ServiceParameters {
    /// Whether clients from outside the cluster may have the address of a node. `Cluster` is the default of Kubernetes.
    pub(crate) fn hides_clients(&self) -> bool {
        self.kind != ServiceType::ClusterIp
            && self.external_traffic_policy != Some(ExternalTrafficPolicy::Local)
    }
}

/// The consequence of [`ServiceParameters::hides_clients`] for a field or an annotation that needs the addresses of clients.
pub(crate) const HIDDEN_CLIENTS: &str = "Clients may have the address of a node, because the Service of the data plane has \
                                         externalTrafficPolicy Cluster. They keep theirs with Local, which \
                                         spec.managed.service.externalTrafficPolicy of the PingsixProxy sets.";

/// Scheduling of Pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulingParameters {
    /// `spec.nodeSelector` of Pods.
    pub node_selector: BTreeMap<String, String>,
    /// `spec.tolerations` of Pods.
    pub tolerations: Vec<Toleration>,
    /// `spec.affinity` of Pods.
    pub affinity: Option<Affinity>,
    /// `spec.topologySpreadConstraints` of Pods.
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// `spec.priorityClassName` of Pods.
    pub priority_class_name: Option<String>,
}

/// A limit of voluntary disruptions, as in a PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisruptionLimit {
    /// `spec.minAvailable`
    MinAvailable(IntOrString),
    /// `spec.maxUnavailable`
    MaxUnavailable(IntOrString),
}

/// Settings of PingSIX processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessParameters {
    /// Threads of each process.
    pub threads: Option<u16>,
    /// The log level.
    pub log_level: LogLevel,
    /// The number of seconds without the controller after which a configuration counts as stale.
    pub stale_after_seconds: Option<u32>,
    /// Whether a process with a stale configuration is not ready.
    pub fail_readiness_when_stale: bool,
    /// The port of the first process's metrics.
    pub metrics_port: Option<u16>,
    /// The keys for the encryption of secret fields.
    pub keyring: Option<SecretKey>,
}

/// One key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// The Secret, in the namespace of the parameters that name it.
    pub secret: ObjectName,
    /// The key of its data.
    pub key: String,
}

/// Parameters of attached data planes: those of the class with the overrides of the Gateway, checked. For absent values,
/// the options of the controller count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedParameters {
    /// The layout of data planes.
    pub layout: Option<Layout>,
    /// The addresses of the data planes for statuses.
    pub addresses: Vec<Address>,
    /// The status pages of PingSIX instances, by their data plane.
    pub status_pages: BTreeMap<DataPlaneKey, BTreeSet<String>>,
    /// Whether the class names the status pages. Pages that a Gateway names get no key, because authors of Gateways must not
    /// see it.
    pub status_pages_are_of_class: bool,
    /// The sink.
    pub sink: Option<SinkParameters>,
}

/// The sink of an owner, in place of the controller's sinks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinkParameters {
    /// The PingsixProxy that names the sink.
    pub proxy: ObjectName,
    /// Kind, scheme, hosts and ports, such as `etcds://etcd.infra:2379`.
    pub url: String,
    /// Whether secrets may leave the machine in plaintext.
    pub allow_plaintext: bool,
    /// The Secret with the credentials, in the namespace of the PingsixProxy.
    pub credentials: Option<ObjectName>,
}

impl SinkParameters {
    /// The problem of an owner whose configuration cannot be published because of `cause`, half a sentence. Its field
    /// is the reference of the owner to the parameters. `gateway` is the owner, if that is a Gateway.
    pub fn problem(&self, owner: &ObjectKey, gateway: Option<&Gateway>, cause: &str) -> Problem {
        let own = gateway.and_then(|gateway| proxy_of_gateway(gateway, &owner.name.namespace));
        let field = if owner.kind != Kind::Gateway {
            "spec.parameters"
        } else if own.as_ref() == Some(&self.proxy) {
            "spec.infrastructure.parametersRef"
        } else {
            "spec.gatewayClassName"
        };
        Problem {
            object: Arc::new(owner.clone()),
            field: FieldPath::new(field),
            severity: Severity::Error,
            reason: Reason::InvalidParameters,
            message: format!("The configuration cannot be published: {cause}."),
        }
    }

    fn scheme(&self) -> Option<SinkScheme> {
        SinkScheme::split(&self.url).map(|(scheme, _)| scheme)
    }

    fn is_admin(&self) -> bool {
        self.scheme().is_some_and(|scheme| scheme.is_admin)
    }

    fn is_tls(&self) -> bool {
        self.scheme().is_some_and(|scheme| scheme.is_tls)
    }
}
