//! What counts for the Ingresses of a class.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What counts for the Ingresses of a class, in what an IngressClass names, and nowhere else.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct IngressSettings {
    /// Whose a host is that Ingresses of several namespaces name.
    #[serde(default)]
    pub host_ownership: HostOwnership,
}

/// Whose a host is that Ingresses of several namespaces name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOwnership {
    /// Everybody's: of all paths for the host, the most specific counts, then that of the oldest Ingress.
    #[default]
    Shared,
    /// The namespace's whose Ingress is the oldest that names the host. Ingresses of other namespaces are refused for that
    /// host alone. So it is with the host of no name, to which the default backend belongs, and with certificates.
    OldestNamespace,
}
