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
pub struct Managed {
    /// The image of PingSIX; the default is the controller's. Only a class may set it unless it allows `Image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(r"^\S+$"))]
    #[garde(length(min = 1, max = 1024), custom(image_name))]
    pub image: Option<String>,

    /// How many Pods. When nobody says, the number is left to whoever scales the Deployment, and begins with 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 0, max = 1000))]
    pub replicas: Option<i32>,

    /// Of each PingSIX container, of which there is one per port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// The Service in front of the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub service: Option<ManagedService>,

    /// Where Pods run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub scheduling: Option<Scheduling>,

    /// How many Pods may be taken away at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption_budget: Option<DisruptionBudget>,

    /// A ServiceAccount in the namespace of the Gateway; without it, one is made that may do nothing. Only a class may set
    /// it unless it allows `ServiceAccount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// Part of a Pod template, merged into the one that the controller writes (as in a strategic merge: containers and
    /// volumes by their names). Only a class may set it unless it allows `PodTemplatePatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_patch: Option<FreeObject>,

    /// Settings of the PingSIX processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub process: Option<Process>,

    /// The responder, which gives the answers that PingSIX cannot give itself; one container in each Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub responder: Option<Responder>,
}

/// Where Pods run: fields of a Pod, which mean what they mean there.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct Scheduling {
    /// `spec.nodeSelector` of Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// `spec.tolerations` of Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 64))]
    pub tolerations: Vec<Toleration>,

    /// `spec.affinity` of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<FreeObject>,

    /// `spec.topologySpreadConstraints` of Pods. One without a `labelSelector` is for the Pods of the Gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 16))]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,

    /// `spec.priorityClassName` of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(min = 1, max = 253))]
    pub priority_class_name: Option<String>,
}

/// How many Pods may be taken away at a time: one of the two, a number or a percentage such as `25%`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.minAvailable) != has(self.maxUnavailable)")
        .message("exactly one of minAvailable and maxUnavailable has to be set")
)]
pub struct DisruptionBudget {
    /// How many have to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,

    /// How many may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
}

/// The responder of a Pod.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct Responder {
    /// Its image; the default is the controller's. Only a class may set it unless it allows `Image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(r"^\S+$"))]
    #[garde(length(min = 1, max = 1024), custom(image_name))]
    pub image: Option<String>,

    /// Of its container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "garde passes references")]
fn image_name(image: &Option<String>, (): &()) -> garde::Result {
    if image.as_ref().is_some_and(|image| image.contains(char::is_whitespace)) {
        return Err(garde::Error::new("an image has no white space in its name"));
    }
    Ok(())
}
