//! Parameters of a class for its Ingresses.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings for the Ingresses of a class. Only parameters of an IngressClass may set them.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct IngressSettings {
    /// The owner of a host that Ingresses of several namespaces name.
    #[serde(default)]
    pub host_ownership: HostOwnership,
}

/// The owner of a host that Ingresses of several namespaces name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOwnership {
    /// All namespaces: among all paths of the host, the most specific path wins, then the path of the oldest Ingress.
    #[default]
    Shared,
    /// The namespace of the oldest Ingress with the host. Ingresses of other namespaces are refused for that host
    /// alone. The rule applies to the empty host of the default backend, and to certificates, too.
    OldestNamespace,
}
