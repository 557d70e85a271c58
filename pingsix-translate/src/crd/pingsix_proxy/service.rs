//! The Service in front of the Pods that the controller runs.

use std::collections::BTreeMap;

use garde::Validate;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Service in front of the Pods. Its fields have the meaning of the fields of a Service.
#[derive(KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
#[x_kube(
    validation = Rule::new("!has(self.loadBalancerClass) || !has(self.type) || self.type == 'LoadBalancer'")
        .message("loadBalancerClass is for Services of type LoadBalancer"),
    validation = Rule::new("!has(self.externalTrafficPolicy) || !has(self.type) || self.type != 'ClusterIP'")
        .message("externalTrafficPolicy is for Services that are reached from outside the cluster")
)]
pub(crate) struct ManagedService {
    /// `spec.type`. Default: `LoadBalancer`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<ServiceType>,

    /// Annotations, for example for load balancers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,

    /// `spec.loadBalancerClass`. Kubernetes does not allow changes of an existing Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[garde(length(min = 1, max = 253))]
    pub(crate) load_balancer_class: Option<String>,

    /// `spec.externalTrafficPolicy`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) external_traffic_policy: Option<ExternalTrafficPolicy>,
}

/// The type of the Service.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// An address of a load balancer.
    #[default]
    LoadBalancer,
    /// Ports of every node.
    NodePort,
    /// An address inside the cluster.
    #[serde(rename = "ClusterIP")]
    ClusterIp,
}

impl ServiceType {
    /// The spelling Kubernetes uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancer => "LoadBalancer",
            Self::NodePort => "NodePort",
            Self::ClusterIp => "ClusterIP",
        }
    }
}

/// The Pods that get connections from outside the cluster.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalTrafficPolicy {
    /// Pods of every node. The address of the client is lost.
    Cluster,
    /// Pods of the node that the client reached.
    Local,
}

impl ExternalTrafficPolicy {
    /// The spelling Kubernetes uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Local => "Local",
        }
    }
}
