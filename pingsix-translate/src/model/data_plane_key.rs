//! Identities of data planes.

use std::fmt;
use std::sync::Arc;

use super::kind::Kind;
use super::object::{ObjectKey, ObjectName};

/// Identity of a data plane: one PingSIX fleet, or one fleet of stream proxies, that reads one prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataPlaneKey {
    /// The data plane of a Gateway, or of one of its ports.
    Gateway {
        /// The Gateway.
        gateway: ObjectName,
        /// The port, with [`crate::Layout::PerPort`].
        port: Option<u16>,
    },
    /// The data plane of an IngressClass.
    Ingress {
        /// The IngressClass.
        class: Arc<str>,
    },
    /// The stream documents of a Gateway, for all of its ports.
    Stream {
        /// The Gateway.
        gateway: ObjectName,
    },
}

impl DataPlaneKey {
    /// The etcd prefix, without a trailing slash. No data plane's prefix contains another's: each kind has a root of
    /// its own, the segments after it have a fixed number, and Kubernetes names contain neither `/` nor `:`.
    pub fn prefix(&self, root: &str) -> String {
        match self {
            Self::Gateway { .. } => format!("{root}/{self}"),
            Self::Ingress { class } => format!("{root}-ingress/{class}"),
            Self::Stream { gateway } => format!("{root}-stream/{gateway}"),
        }
    }

    /// The one port it serves, with [`crate::Layout::PerPort`].
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Gateway { port, .. } => *port,
            Self::Ingress { .. } | Self::Stream { .. } => None,
        }
    }

    /// The object the data plane belongs to.
    pub fn owner(&self) -> ObjectKey {
        match self {
            Self::Gateway { gateway, .. } | Self::Stream { gateway } => {
                ObjectKey { kind: Kind::Gateway, name: gateway.clone() }
            }
            Self::Ingress { class } => ObjectKey::new(Kind::IngressClass, "", class.clone()),
        }
    }
}

impl fmt::Display for DataPlaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gateway { gateway, port: None } => write!(f, "{gateway}"),
            Self::Gateway { gateway, port: Some(port) } => write!(f, "{gateway}:{port}"),
            // No namespace has an upper-case letter, so no Gateway is called this.
            Self::Ingress { class } => write!(f, "{}/{class}", Kind::IngressClass),
            Self::Stream { gateway } => write!(f, "stream/{gateway}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_contains_another() {
        // Names that look like parts of other kinds' prefixes.
        let names = ["a", "b", "ingress", "stream", "pingsix", "pingsix-ingress", "a-ingress", "a-stream"];
        let mut prefixes = Vec::new();
        for root in ["/pingsix", "/a", "/a/b"] {
            let mut of_root = Vec::new();
            for name in names {
                of_root.push(DataPlaneKey::Ingress { class: name.into() }.prefix(root));
                for namespace in names {
                    let gateway = ObjectName::new(namespace, name);
                    of_root.push(DataPlaneKey::Stream { gateway: gateway.clone() }.prefix(root));
                    for port in [None, Some(8), Some(80)] {
                        of_root.push(DataPlaneKey::Gateway { gateway: gateway.clone(), port }.prefix(root));
                    }
                }
            }
            prefixes.push(of_root);
        }
        for of_root in prefixes {
            for (index, prefix) in of_root.iter().enumerate() {
                // PingSIX reads everything that starts with its prefix and a slash.
                let below = format!("{prefix}/");
                let contained = of_root.iter().enumerate().find(|(other_index, other)| {
                    *other_index != index && format!("{other}/").starts_with(&below)
                });
                assert_eq!(contained, None, "{prefix}");
            }
        }
    }

    #[test]
    fn stream_documents_have_a_root_of_their_own() {
        let key = DataPlaneKey::Stream { gateway: ObjectName::new("infra", "web") };
        assert_eq!(key.prefix("/pingsix"), "/pingsix-stream/infra/web");
        assert_eq!((key.to_string().as_str(), key.port()), ("stream/infra/web", None));
        assert_eq!(key.owner(), ObjectKey::new(Kind::Gateway, "infra", "web"));
    }

    #[test]
    fn no_two_data_planes_share_a_name() {
        let class = DataPlaneKey::Ingress { class: "web".into() };
        assert_eq!(class.to_string(), "IngressClass/web");
        let gateway = DataPlaneKey::Gateway { gateway: ObjectName::new("ingressclass", "web"), port: None };
        assert_ne!(class.to_string(), gateway.to_string());
    }
}
