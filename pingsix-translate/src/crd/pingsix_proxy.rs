//! `PingsixProxy`: how the PingSIX processes of a class, or of one Gateway, are run and reached.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type of its own")]

mod attached;
mod budget;
mod feed;
mod free;
mod ingress;
mod managed;
mod overrides;
mod process;
mod service;
mod telemetry;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::attached::{
    Attached, AttachedAddress, AttachedAddressType, AttachedSink, SinkScheme, StatusUrl,
};
pub(crate) use self::budget::ProxyBudget;
pub(crate) use self::feed::FeedSettings;
pub(crate) use self::free::FreeObject;
pub use self::ingress::AnnotationDialect;
pub(crate) use self::ingress::{HostOwnership, IngressSettings};
pub(crate) use self::managed::{Managed, Scheduling};
pub(crate) use self::overrides::OverrideBounds;
pub use self::process::LogLevel;
pub(crate) use self::process::Process;
pub(crate) use self::service::ManagedService;
pub use self::service::{ExternalTrafficPolicy, ServiceType};
pub(crate) use self::telemetry::{AccessLog, RequestIdHeader, RequestMetrics, ResponseHeader, Telemetry};

/// `spec` of a `PingsixProxy`.
#[derive(
    CustomResource, KubeSchema, garde::Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq,
)]
#[kube(
    group = "pingsix.io",
    version = "v1alpha1",
    kind = "PingsixProxy",
    plural = "pingsixproxies",
    shortname = "pxp",
    category = "pingsix",
    namespaced,
    status = "PingsixProxyStatus",
    derive = "PartialEq",
    doc = "Parameters of the PingSIX processes of a GatewayClass, a Gateway or an IngressClass, referenced by \
           `GatewayClass.spec.parametersRef`, `Gateway.spec.infrastructure.parametersRef` or \
           `IngressClass.spec.parameters`. Fields of a Gateway's parameters override those of its class.",
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".status.mode",
        description = "Attached, when you run the processes, or Managed, when the controller runs them."
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Accepted\")].reason",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
#[x_kube(
    validation = Rule::new("has(self.attached) != has(self.managed)")
        .message("exactly one of attached and managed has to be set")
)]
pub struct PingsixProxySpec {
    /// Attached PingSIX processes, which you run, and their addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) attached: Option<Attached>,

    /// PingSIX processes that the controller runs, in the namespace of the Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) managed: Option<Managed>,

    /// The shares of namespaces in the budget of each data plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) budget: Option<ProxyBudget>,

    /// Limits for the feed, from which data planes read changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) feed: Option<FeedSettings>,

    /// Whether TrafficPolicies may have responses cached (`spec.cache`) where namespaces share a data plane: by an
    /// IngressClass, or by a Gateway that admits routes or ListenerSets of other namespaces. All responses lie in the memory
    /// of the same processes, and PingSIX bounds their bodies alone. Default: `Forbidden`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared_cache: Option<SharedCache>,

    /// Fields of the class that Gateways may override, too. Only parameters of a class may set it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 11))]
    #[garde(length(max = 11))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub(crate) allow_overrides: Vec<Override>,

    /// Limits for the fields of `allowOverrides`, and for the metadata of Gateways. Only parameters of a class may set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) override_bounds: Option<OverrideBounds>,

    /// Settings for the Ingresses of a class. Only parameters of an IngressClass may set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) ingress: Option<IngressSettings>,

    /// Metrics, access logs, request ids and response headers of data planes. Each field of a Gateway's
    /// telemetry replaces the same field of its class as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) telemetry: Option<Telemetry>,
}

impl PingsixProxySpec {
    /// The dialects of the annotations that an IngressClass with these parameters reads.
    pub fn annotation_dialects(&self) -> &[AnnotationDialect] {
        self.ingress.as_ref().map(|settings| settings.annotations.as_slice()).unwrap_or_default()
    }
}

/// Whether TrafficPolicies may have responses cached where namespaces share a data plane.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SharedCache {
    /// They may not: `spec.cache` is not applied there, and `pingsix.io/Limited` says so.
    #[default]
    Forbidden,
    /// They may.
    Allowed,
}

/// A field that a Gateway may set only if its class allows it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Override {
    /// `managed.image` and `managed.sidecar.image`
    Image,
    /// `managed.podTemplatePatch`
    PodTemplatePatch,
    /// `managed.serviceAccountName`
    ServiceAccount,
    /// `attached.sink`: its URL and its credentials.
    Sink,
    /// `managed.replicas`, up to `overrideBounds.maxReplicas`.
    Replicas,
    /// `managed.resources` and `managed.sidecar.resources`.
    Resources,
    /// `managed.scheduling` without `priorityClassName`, and `managed.disruptionBudget`: the nodes of Pods, and whether
    /// the nodes can be drained.
    Scheduling,
    /// `managed.scheduling.priorityClassName`, one of `overrideBounds.priorityClassNames`.
    PriorityClass,
    /// `managed.service`: its type, annotations, class of load balancers and traffic policy.
    Service,
    /// `attached.statusUrls` with hosts other than Services of the Gateway's namespace: the controller sends requests
    /// to these hosts.
    StatusUrls,
    /// `sharedCache`: the memory that cached responses of several namespaces take.
    SharedCache,
}

impl Override {
    /// As it is written.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "Image",
            Self::PodTemplatePatch => "PodTemplatePatch",
            Self::ServiceAccount => "ServiceAccount",
            Self::Sink => "Sink",
            Self::Replicas => "Replicas",
            Self::Resources => "Resources",
            Self::Scheduling => "Scheduling",
            Self::PriorityClass => "PriorityClass",
            Self::Service => "Service",
            Self::StatusUrls => "StatusUrls",
            Self::SharedCache => "SharedCache",
        }
    }
}

/// `status` of a `PingsixProxy`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PingsixProxyStatus {
    /// `Attached` or `Managed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,

    /// The condition `Accepted`, which names an unusable field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub(crate) conditions: Vec<Condition>,
}

/// A Secret in the namespace of the `PingsixProxy`.
#[derive(JsonSchema, garde::Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretReference {
    /// The name of the Secret.
    #[garde(length(min = 1, max = 253))]
    pub(crate) name: String,
}
