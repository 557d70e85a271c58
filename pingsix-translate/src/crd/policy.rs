//! Types that the policies of our group share: targets, merging, references and status.

mod reader;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::reader::SpecReader;
pub(crate) use self::reader::UnreadableField;
use crate::model::Kind;

/// Whether a field has its default, which is not written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The rules for the targets and the strategy of inherited policies. Translation checks the same.
pub(super) fn targets_of_one_class() -> Rule {
    Rule::new(
        "self.targetRefs.all(target, target.kind in ['Gateway', 'ListenerSet']) || \
         self.targetRefs.all(target, target.kind in ['HTTPRoute', 'GRPCRoute']) || \
         self.targetRefs.all(target, target.kind == 'Ingress')",
    )
    .message("the targets have to be Gateways and ListenerSets, or routes, or Ingresses")
}

/// See [`targets_of_one_class`].
pub(super) fn ingresses_without_section() -> Rule {
    Rule::new("self.targetRefs.all(target, target.kind != 'Ingress' || !has(target.sectionName))")
        .message("an Ingress has no sections")
}

/// See [`targets_of_one_class`].
pub(super) fn overrides_of_wide_targets() -> Rule {
    Rule::new(
        "!has(self.strategy) || self.strategy != 'Overrides' || \
         self.targetRefs.all(target, target.kind in ['Gateway', 'ListenerSet'])",
    )
    .message("only policies of Gateways and ListenerSets may have the strategy Overrides")
}

/// An object to which a policy applies, in the namespace of the policy.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyTargetReference {
    /// The API group of the object. Services are in the core group, which is empty.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub(crate) group: String,

    /// The kind of the object.
    #[schemars(length(min = 1, max = 63))]
    pub(crate) kind: String,

    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub(crate) name: String,

    /// A part of the object: a listener of a Gateway or ListenerSet, or a rule of a route, or a port of a Service, by
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub(crate) section_name: Option<String>,
}

impl PolicyTargetReference {
    /// Whether the object is a Gateway or ListenerSet, which hand policies down to routes.
    pub(crate) fn is_wide(&self) -> bool {
        [Kind::Gateway, Kind::ListenerSet].iter().any(|kind| kind.as_str() == self.kind)
    }
}

/// The precedence between two policies of one kind with overlapping targets. Either way, each
/// top-level field counts for itself.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MergeStrategy {
    /// The policy with the narrower target.
    #[default]
    Defaults,
    /// The policy with the wider target. Only policies of Gateways and ListenerSets may override others.
    Overrides,
}

/// A Secret, or a ConfigMap where the field allows one. An object of another namespace needs a ReferenceGrant there.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretObjectReference {
    /// The API group. Secrets and ConfigMaps are in the core group, which is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub(crate) group: Option<String>,

    /// The kind: `Secret`, or `ConfigMap` where the field allows one. Default: `Secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub(crate) kind: Option<String>,

    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The namespace of the object. Default: the namespace of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// `status` of a policy.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// An entry for each Gateway or IngressClass through which the policy takes effect, for each target that does not
    /// exist, and for each controller.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub(crate) ancestors: Vec<PolicyAncestorStatus>,
}

/// The state of a policy with respect to one Gateway or IngressClass, or to a target that does not exist.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyAncestorStatus {
    /// The Gateway or IngressClass, or the target.
    pub(crate) ancestor_ref: AncestorReference,

    /// The controller that wrote the entry.
    pub(crate) controller_name: String,

    /// The conditions, such as `Accepted`.
    #[serde(default)]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub(crate) conditions: Vec<Condition>,
}

/// A Gateway, an IngressClass or a target, in the status of a policy.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AncestorReference {
    /// The API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,

    /// The kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,

    /// The namespace; an IngressClass has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,

    /// The name.
    pub(crate) name: String,

    /// A listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) section_name: Option<String>,

    /// A port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<i32>,
}
