//! `PingsixProxy`: how the PingSIX processes of a class, or of one Gateway, are run and reached.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type of its own")]

mod attached;
mod budget;
mod free;
mod ingress;
mod managed;
mod overrides;
mod process;
mod service;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::attached::{Attached, AttachedAddress, AttachedAddressType, AttachedSink, StatusUrl};
pub use self::budget::ProxyBudget;
pub use self::free::FreeObject;
pub use self::ingress::{HostOwnership, IngressSettings};
pub use self::managed::{DisruptionBudget, Managed, Responder, Scheduling};
pub use self::overrides::OverrideBounds;
pub use self::process::{DataEncryption, KeyringReference, LogLevel, Metrics, Process, ProcessStatus};
pub use self::service::{ExternalTrafficPolicy, ManagedService, ServiceType};

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
    doc = "How the PingSIX processes of a GatewayClass, a Gateway or an IngressClass are run and reached. \
           It is named by `GatewayClass.spec.parametersRef`, `Gateway.spec.infrastructure.parametersRef` or \
           `IngressClass.spec.parameters`; what a Gateway names overrides what its class names, field by field.",
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".status.mode",
        description = "Whether the processes are run by somebody else (Attached) or by the controller (Managed)."
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
    /// PingSIX processes that somebody else runs, and how they are reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub attached: Option<Attached>,

    /// PingSIX processes that the controller runs, in the namespace of the Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub managed: Option<Managed>,

    /// How the budget of each data plane is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub budget: Option<ProxyBudget>,

    /// What Gateways may override although it is for the class to say. It counts in what a class names, and in nothing
    /// else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[garde(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allow_overrides: Vec<Override>,

    /// How far Gateways may go with what `allowOverrides` allows them. It counts in what a class names, and in nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub override_bounds: Option<OverrideBounds>,

    /// What counts for the Ingresses of a class. It counts in what an IngressClass names, and in nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub ingress: Option<IngressSettings>,
}

/// What a Gateway may say only if its class allows it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Override {
    /// `managed.image` and `managed.responder.image`
    Image,
    /// `managed.podTemplatePatch`
    PodTemplatePatch,
    /// `managed.serviceAccountName`
    ServiceAccount,
    /// `attached.sink`: its URL and its credentials.
    Sink,
    /// `managed.replicas`, up to `overrideBounds.maxReplicas`.
    Replicas,
    /// `managed.resources` and `managed.responder.resources`.
    Resources,
    /// `managed.scheduling` without `priorityClassName`, and `managed.disruptionBudget`: on which nodes Pods run, and whether
    /// these can be drained.
    Scheduling,
    /// `managed.scheduling.priorityClassName`, one of `overrideBounds.priorityClassNames`.
    PriorityClass,
    /// `managed.service`: its type, annotations, class of load balancers and traffic policy.
    Service,
    /// `attached.statusUrls` whose hosts are no Services of the Gateway's namespace: the controller sends requests there.
    StatusUrls,
}

impl Override {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
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
        }
    }
}

/// `status` of a `PingsixProxy`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PingsixProxyStatus {
    /// `Attached` or `Managed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,

    /// What the controller has to say: `Accepted`, which names the field if one cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// A Secret in the namespace of the `PingsixProxy`.
#[derive(JsonSchema, garde::Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Its name.
    #[garde(length(min = 1, max = 253))]
    pub name: String,
}
