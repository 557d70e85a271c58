//! Processes that the controller runs.

use std::collections::BTreeMap;

use garde::Validate;
use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FreeObject, ManagedService, Process};

/// PingSIX processes that the controller runs: a Deployment and a Service for each Gateway.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct Managed {
    /// The image of PingSIX. Default: the option of the controller. A Gateway may set it if the class allows `Image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(r"^\S+$"))]
    #[garde(length(min = 1, max = 1024), custom(image_name))]
    pub(crate) image: Option<String>,

    /// The number of Pods. Without a number, the Deployment starts with one Pod, and an autoscaler or `kubectl scale`
    /// may change the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 0, max = 1000))]
    pub(crate) replicas: Option<i32>,

    /// The resources of each PingSIX container. A Pod has one container per port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<ResourceRequirements>,

    /// The Service in front of the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) service: Option<ManagedService>,

    /// The nodes of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) scheduling: Option<Scheduling>,

    /// The number of Pods that an eviction may remove at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disruption_budget: Option<DisruptionBudget>,

    /// A ServiceAccount in the namespace of the Gateway. Default: a new ServiceAccount without permissions. A Gateway
    /// may set it if the class allows `ServiceAccount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(min = 1, max = 253))]
    pub(crate) service_account_name: Option<String>,

    /// A patch of the controller's Pod template, as in a strategic merge: containers and volumes by their names. A
    /// Gateway may set it if the class allows `PodTemplatePatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod_template_patch: Option<FreeObject>,

    /// Settings of the PingSIX processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) process: Option<Process>,

    /// The sidecar, for answers that PingSIX cannot give itself, and for TCP, UDP and TLS: one container in each Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) sidecar: Option<Sidecar>,
}

/// The nodes of Pods. The fields have the meaning of the fields of a Pod.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct Scheduling {
    /// `spec.nodeSelector` of Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) node_selector: BTreeMap<String, String>,

    /// `spec.tolerations` of Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 64))]
    pub(crate) tolerations: Vec<Toleration>,

    /// `spec.affinity` of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) affinity: Option<FreeObject>,

    /// `spec.topologySpreadConstraints` of Pods. A constraint without a `labelSelector` applies to the Pods of the
    /// Gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 16))]
    pub(crate) topology_spread_constraints: Vec<TopologySpreadConstraint>,

    /// `spec.priorityClassName` of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(min = 1, max = 253))]
    pub(crate) priority_class_name: Option<String>,
}

/// The number of Pods that an eviction may remove at a time: one of the two fields, a number or a percentage such as
/// `25%`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.minAvailable) != has(self.maxUnavailable)")
        .message("exactly one of minAvailable and maxUnavailable has to be set")
)]
pub(crate) struct DisruptionBudget {
    /// The least number of available Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min_available: Option<IntOrString>,

    /// The most unavailable Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_unavailable: Option<IntOrString>,
}

/// The sidecar of a Pod.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct Sidecar {
    /// The image of the sidecar. Default: the option of the controller. A Gateway may set it if the class allows
    /// `Image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(r"^\S+$"))]
    #[garde(length(min = 1, max = 1024), custom(image_name))]
    pub(crate) image: Option<String>,

    /// The resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<ResourceRequirements>,

    /// The time limit, in seconds, of connections of TCP, UDP and TLS after a Pod stops taking new ones. Default: 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86400))]
    #[garde(range(max = 86_400))]
    pub(crate) drain_seconds: Option<u32>,

    /// Whether the sidecar terminates TLS for HTTPS listeners, in front of PingSIX: clients get whole certificate chains,
    /// can be asked for a certificate (`spec.tls.frontend` of a Gateway), and are told about misdirected requests. PingSIX
    /// then does not know the addresses of clients. For Gateways alone. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) https: Option<bool>,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "garde passes references")]
fn image_name(image: &Option<String>, (): &()) -> garde::Result {
    if image.as_ref().is_some_and(|image| image.contains(char::is_whitespace)) {
        return Err(garde::Error::new("an image has no white space in its name"));
    }
    Ok(())
}
