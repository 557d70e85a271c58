//! What has to run for a Gateway, or an IngressClass, whose data planes the controller runs; and how those are reached that
//! somebody else runs.

mod credentials;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value};

use crate::crd::{ExternalTrafficPolicy, LogLevel, ServiceType};
use crate::model::{
    Address, DataPlaneKey, FieldPath, Kind, Layout, ObjectKey, ObjectName, Problem, Reason, Severity,
};
use crate::snapshot::{Gateway, proxy_of_gateway};

pub use credentials::SinkCredentials;

/// What a managed Gateway or IngressClass needs to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Infrastructure {
    /// The Gateway, or the IngressClass.
    pub owner: Arc<ObjectKey>,
    /// `metadata.uid` of the owner; `None` for one that was never stored by an API server.
    pub uid: Option<Arc<str>>,
    /// Where everything that is made for it lives: the namespace of the Gateway, or that of the parameters of the
    /// IngressClass.
    pub namespace: Arc<str>,
    /// The GatewayClass, or the IngressClass.
    pub class: Arc<str>,
    /// The ports with a listener that is served, of the Gateway and of its ListenerSets.
    pub ports: BTreeMap<u16, InfrastructurePort>,
    /// `spec.infrastructure.labels`, for everything that is made.
    pub labels: BTreeMap<String, String>,
    /// `spec.infrastructure.annotations`, likewise.
    pub annotations: BTreeMap<String, String>,
    /// `spec.addresses`, of types and with values that could be had.
    pub addresses: Vec<RequestedAddress>,
    /// How it is run.
    pub parameters: Arc<ManagedParameters>,
}

/// A port of an [`Infrastructure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfrastructurePort {
    /// What clients speak on it.
    pub protocol: PortProtocol,
    /// The data plane that serves it.
    pub data_plane: DataPlaneKey,
}

/// What clients speak on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortProtocol {
    /// HTTP without TLS.
    Plaintext,
    /// HTTP over TLS.
    Tls,
}

/// An address that a Gateway asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedAddress {
    /// Its index in `spec.addresses`.
    pub index: usize,
    /// What is asked for.
    pub kind: RequestedAddressKind,
    /// The address itself; `None` when any of the type will do.
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

/// How data planes are run: what the class says, with what the Gateway says in its place, read and checked.
///
/// What nobody says is not there: defaults are for whoever runs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagedParameters {
    /// The image of PingSIX.
    pub image: Option<String>,
    /// How many Pods.
    pub replicas: Option<i32>,
    /// Of each PingSIX container.
    pub resources: Option<ResourceRequirements>,
    /// The Service in front of the Pods.
    pub service: ServiceParameters,
    /// Where Pods run.
    pub scheduling: SchedulingParameters,
    /// How many Pods may be taken away at a time.
    pub disruption_budget: Option<DisruptionLimit>,
    /// A ServiceAccount in the namespace of the Gateway, in place of one made for it.
    pub service_account_name: Option<String>,
    /// Merged into the template of Pods.
    pub pod_template_patch: Option<Map<String, Value>>,
    /// Settings of the PingSIX processes.
    pub process: ProcessParameters,
    /// The image of the responder.
    pub responder_image: Option<String>,
    /// Of the responder's container.
    pub responder_resources: Option<ResourceRequirements>,
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

/// Where Pods run.
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

/// How many Pods may be taken away at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisruptionLimit {
    /// How many have to stay.
    MinAvailable(IntOrString),
    /// How many may be missing.
    MaxUnavailable(IntOrString),
}

/// Settings of PingSIX processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessParameters {
    /// Threads of each process.
    pub threads: Option<u16>,
    /// What is logged.
    pub log_level: LogLevel,
    /// After how many seconds without the controller a configuration counts as stale.
    pub stale_after_seconds: Option<u32>,
    /// Whether a process with a stale configuration is not ready.
    pub fail_readiness_when_stale: bool,
    /// The port of the first process's metrics.
    pub metrics_port: Option<u16>,
    /// The keys that what is secret is encrypted with.
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

/// How data planes are reached that somebody else runs: what the class says, with what the Gateway says in its place, read
/// and checked. What nobody says is as the controller's options have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedParameters {
    /// How listeners are spread over data planes.
    pub layout: Option<Layout>,
    /// What is written into statuses as the place where the data planes are reached.
    pub addresses: Vec<Address>,
    /// The status pages of PingSIX instances, by their data plane.
    pub status_pages: BTreeMap<DataPlaneKey, BTreeSet<String>>,
    /// Whether the class names them: who may write a Gateway is not to be sent a key.
    pub status_pages_are_of_class: bool,
    /// Where configuration is published.
    pub sink: Option<SinkParameters>,
}

/// Where configuration is published, in place of the controller's sinks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinkParameters {
    /// The PingsixProxy that says so.
    pub proxy: ObjectName,
    /// Kind, scheme, hosts and ports, such as `etcds://etcd.infra:2379`.
    pub url: String,
    /// Whether what is secret may leave the machine in plaintext.
    pub allow_plaintext: bool,
    /// The Secret with what it takes to be let in, in the namespace of the PingsixProxy.
    pub credentials: Option<ObjectName>,
}

impl SinkParameters {
    /// Says that an entry of the Secret cannot be used: half a sentence, like those of [`SinkCredentials::read`]. `problem`
    /// goes on with a sentence that begins with the entry.
    pub fn fault_of(&self, entry: &str, problem: &str) -> String {
        self.fault(&format!("whose entry \"{entry}\" {problem}"))
    }

    /// That the configuration of an owner cannot be published there because of `fault`, half a sentence. It names the field
    /// through which the owner has its parameters; `gateway` is the owner itself, if it is a Gateway.
    pub fn problem(&self, owner: &ObjectKey, gateway: Option<&Gateway>, fault: &str) -> Problem {
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
            message: format!("The configuration cannot be published: {fault}."),
        }
    }

    fn fault(&self, problem: &str) -> String {
        let (kind, secret) = (Kind::PingsixProxy, Kind::Secret);
        let name = self.credentials.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{kind} {} names for its sink {secret} {name}, {problem}", self.proxy)
    }

    fn is_admin(&self) -> bool {
        self.url.starts_with("admin+")
    }

    fn is_tls(&self) -> bool {
        self.url.starts_with("etcds:") || self.url.starts_with("admin+https:")
    }
}
