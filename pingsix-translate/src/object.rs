//! Identities of Kubernetes objects: what every other module names them by.

use std::fmt;
use std::sync::Arc;

/// The kinds translation reads. The only place where kind and group names are spelled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `gateway.networking.k8s.io/GatewayClass`
    GatewayClass,
    /// `gateway.networking.k8s.io/Gateway`
    Gateway,
    /// `gateway.networking.k8s.io/HTTPRoute`
    HttpRoute,
    /// `gateway.networking.k8s.io/ReferenceGrant`
    ReferenceGrant,
    /// `Service` of the core group
    Service,
    /// `discovery.k8s.io/EndpointSlice`
    EndpointSlice,
    /// `Secret` of the core group
    Secret,
    /// `Namespace` of the core group
    Namespace,
}

impl Kind {
    /// Every kind, in declaration order.
    pub const ALL: [Self; 8] = [
        Self::GatewayClass,
        Self::Gateway,
        Self::HttpRoute,
        Self::ReferenceGrant,
        Self::Service,
        Self::EndpointSlice,
        Self::Secret,
        Self::Namespace,
    ];

    /// The spelling Kubernetes uses, for example `HTTPRoute`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GatewayClass => "GatewayClass",
            Self::Gateway => "Gateway",
            Self::HttpRoute => "HTTPRoute",
            Self::ReferenceGrant => "ReferenceGrant",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Secret => "Secret",
            Self::Namespace => "Namespace",
        }
    }

    /// The API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::GatewayClass | Self::Gateway | Self::HttpRoute | Self::ReferenceGrant => GATEWAY_GROUP,
            Self::EndpointSlice => "discovery.k8s.io",
            Self::Service | Self::Secret | Self::Namespace => "",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::GatewayClass | Self::Namespace)
    }

    /// The kind with this group and name, if translation reads it.
    pub fn from_group_kind(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.group() == group && known.as_str() == kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The API group of Gateway API.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// Namespace and name of a namespaced object. Displays as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectName {
    /// Names an object.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Identity of one object. Displays as `HTTPRoute shop/cart` or `GatewayClass pingsix`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// What it is.
    pub kind: Kind,
    /// Where it is; the namespace is empty for cluster-scoped kinds.
    pub name: ObjectName,
}

impl ObjectKey {
    /// The key of a namespaced object; for a cluster-scoped kind pass an empty namespace.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { kind, name: ObjectName::new(namespace, name) }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name.name)
        } else {
            write!(f, "{} {}", self.kind, self.name)
        }
    }
}

/// Age of an object: what Gateway API breaks ties by. Older compares less.
///
/// An object without `creationTimestamp` (it was never stored by an API server) counts as newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age(i64);

impl Age {
    /// Reads the age of an object.
    pub(crate) fn of(metadata: &kube::core::ObjectMeta) -> Self {
        Self(metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second()))
    }
}
