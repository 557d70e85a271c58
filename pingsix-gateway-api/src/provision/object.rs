//! An object to be held by Kubernetes.

use std::fmt;

use k8s_openapi::ByteString;
use kube::core::{ApiResource, GroupVersionKind};
use pingsix_translate::ObjectName;
use serde_json::{Value, json};

/// A kind of object that is made for owners, in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// Of Pods.
    ServiceAccount,
    /// The configuration and keys of Pods.
    Secret,
    /// In front of Pods.
    Service,
    /// Of Pods.
    Deployment,
    /// The limit of voluntary disruptions.
    PodDisruptionBudget,
}

impl ChildKind {
    /// Every kind, in declaration order.
    pub const ALL: &'static [Self] =
        &[Self::ServiceAccount, Self::Secret, Self::Service, Self::Deployment, Self::PodDisruptionBudget];

    /// Its API group, its name, and its resource name in requests to the API server.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::ServiceAccount => ("", "ServiceAccount", "serviceaccounts"),
            Self::Secret => ("", "Secret", "secrets"),
            Self::Service => ("", "Service", "services"),
            Self::Deployment => ("apps", "Deployment", "deployments"),
            Self::PodDisruptionBudget => ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
        }
    }

    /// The spelling Kubernetes uses.
    pub const fn as_str(self) -> &'static str {
        self.names().1
    }

    /// Its API group.
    pub const fn group(self) -> &'static str {
        self.names().0
    }

    /// The resource name in requests to the API server.
    pub const fn resource(self) -> &'static str {
        self.names().2
    }

    pub(super) fn api_version(self) -> String {
        self.api_resource().api_version
    }

    pub(crate) fn api_resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group(), "v1", self.as_str());
        ApiResource::from_gvk_with_plural(&kind, self.resource())
    }
}

impl fmt::Display for ChildKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object for server-side apply. Absent fields belong to Kubernetes or to other clients.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub(crate) struct Child {
    /// Its kind.
    pub(crate) kind: ChildKind,
    /// The namespace and name.
    pub(crate) name: ObjectName,
    /// All of it.
    pub(crate) object: Value,
}

impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind, self.name)
    }
}

impl fmt::Debug for Child {
    /// Without what Secrets hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.object.clone();
        if shown.get("data").is_some() {
            shown["data"] = json!("not shown");
        }
        f.debug_struct("Child").field("object", &shown).finish_non_exhaustive()
    }
}

/// The data of a Secret, encoded as in the API.
pub(super) fn encoded(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap_or_default()
}
