//! How far a Gateway may go with what its class allows.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far Gateways may go with what `allowOverrides` allows them.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct OverrideBounds {
    /// The most Pods that a Gateway may ask for, with `Replicas`; as many as a PingsixProxy can say if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 0, max = 1000))]
    pub max_replicas: Option<i32>,

    /// The priority classes that a Gateway may name, with `PriorityClass`. If there are none, every one whose name does not
    /// begin with `system-`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[garde(length(max = 64), inner(length(min = 1, max = 253)))]
    pub priority_class_names: Vec<String>,
}
