//! Parameters of a class for its Ingresses.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings for the Ingresses of a class. Only parameters of an IngressClass may set them.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct IngressSettings {
    /// The owner of a host that Ingresses of several namespaces name.
    #[serde(default)]
    pub(crate) host_ownership: HostOwnership,

    /// The annotations of other controllers that change Ingresses. Without any, such annotations have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    #[garde(length(max = 2))]
    pub(crate) annotations: Vec<AnnotationDialect>,
}

/// The annotations of another controller.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnnotationDialect {
    /// The annotations of ingress-nginx.
    #[serde(rename = "nginx.ingress.kubernetes.io")]
    IngressNginx,
    /// The annotations of the APISIX Ingress controller.
    #[serde(rename = "k8s.apisix.apache.org")]
    Apisix,
}

impl AnnotationDialect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::IngressNginx, Self::Apisix];

    /// The domain of the annotations.
    pub const fn domain(self) -> &'static str {
        match self {
            Self::IngressNginx => "nginx.ingress.kubernetes.io",
            Self::Apisix => "k8s.apisix.apache.org",
        }
    }

    /// The whole name of an annotation.
    pub(crate) fn whole_name(self, name: &str) -> String {
        format!("{}/{name}", self.domain())
    }
}

/// The owner of a host that Ingresses of several namespaces name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostOwnership {
    /// All namespaces: among all paths of the host, the most specific path wins, then the path of the oldest Ingress.
    #[default]
    Shared,
    /// The namespace of the oldest Ingress with the host. Ingresses of other namespaces are refused for that host
    /// alone. The rule applies to the empty host of the default backend, and to certificates, too.
    OldestNamespace,
}
