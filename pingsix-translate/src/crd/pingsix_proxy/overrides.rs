//! Bounds of overrides by Gateways.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits for the fields of `allowOverrides`, and for the metadata of Gateways.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct OverrideBounds {
    /// The most Pods of a Gateway, with `Replicas`. Default: the maximum of `managed.replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 0, max = 1000))]
    pub(crate) max_replicas: Option<i32>,

    /// The priority classes that a Gateway may name, with `PriorityClass`. Default: all classes except those with the
    /// prefix `system-`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[garde(length(max = 64), inner(length(min = 1, max = 253)))]
    pub(crate) priority_class_names: Vec<String>,

    /// The labels and annotations of `Gateway.spec.infrastructure` that managed Pods and their objects get: a key, or a
    /// domain with `/*` for all of its keys. Metadata of the class takes precedence, and a ServiceAccount gets none of
    /// the Gateway's. Default: all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[garde(inner(length(max = 64), inner(length(min = 1, max = 317))))]
    pub(crate) infrastructure_keys: Option<Vec<String>>,
}
