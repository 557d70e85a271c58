//! Identities of data planes.

use std::fmt;
use std::str::FromStr;
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
    /// The data plane of an IngressClass, or of one of its ports.
    Ingress {
        /// The IngressClass.
        class: Arc<str>,
        /// The port, with [`crate::Layout::PerPort`].
        port: Option<u16>,
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
            Self::Ingress { class, port } => format!("{root}-ingress/{class}{}", PortSuffix(*port)),
            Self::Stream { gateway } => format!("{root}-stream/{gateway}"),
        }
    }

    /// The data plane with an etcd prefix, if there can be one: the reverse of [`Self::prefix`].
    pub fn from_prefix(prefix: &str, root: &str) -> Option<Self> {
        let rest = prefix.strip_prefix(root)?;
        let key = if let Some(class) = rest.strip_prefix("-ingress/") {
            of_class_and_port(class)?
        } else if let Some(gateway) = rest.strip_prefix("-stream/") {
            Self::Stream { gateway: gateway.parse().ok()? }
        } else {
            of_gateway_and_port(rest.strip_prefix('/')?)?
        };
        (key.prefix(root) == prefix).then_some(key)
    }

    /// The one port it serves, with [`crate::Layout::PerPort`].
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Gateway { port, .. } | Self::Ingress { port, .. } => *port,
            Self::Stream { .. } => None,
        }
    }

    /// The object the data plane belongs to.
    pub fn owner(&self) -> ObjectKey {
        match self {
            Self::Gateway { gateway, .. } | Self::Stream { gateway } => {
                ObjectKey { kind: Kind::Gateway, name: gateway.clone() }
            }
            Self::Ingress { class, .. } => ObjectKey::new(Kind::IngressClass, "", class.clone()),
        }
    }
}

impl fmt::Display for DataPlaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gateway { gateway, port } => write!(f, "{gateway}{}", PortSuffix(*port)),
            // No namespace has an upper-case letter, so no Gateway is called this.
            Self::Ingress { class, port } => write!(f, "{}/{class}{}", Kind::IngressClass, PortSuffix(*port)),
            Self::Stream { gateway } => write!(f, "stream/{gateway}"),
        }
    }
}

/// Error for a text that is the name of no data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NAMESPACE/GATEWAY[:PORT], IngressClass/NAME[:PORT] or stream/NAMESPACE/GATEWAY")]
pub struct ParseDataPlaneKeyError;

/// The reverse of `Display`.
impl FromStr for DataPlaneKey {
    type Err = ParseDataPlaneKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let of_stream = text.strip_prefix("stream/").and_then(|gateway| gateway.parse().ok());
        let of_class = text.strip_prefix(Kind::IngressClass.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let key = match (of_stream, of_class) {
            (Some(gateway), _) => Some(Self::Stream { gateway }),
            (None, Some(class)) => of_class_and_port(class),
            (None, None) => of_gateway_and_port(text),
        };
        key.filter(|key| key.to_string() == text).ok_or(ParseDataPlaneKeyError)
    }
}

/// The end of a name: a colon and the port, if there is one.
struct PortSuffix(Option<u16>);

impl fmt::Display for PortSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn of_gateway_and_port(text: &str) -> Option<DataPlaneKey> {
    let (gateway, port) = split_port(text)?;
    Some(DataPlaneKey::Gateway { gateway: gateway.parse().ok()?, port })
}

fn of_class_and_port(text: &str) -> Option<DataPlaneKey> {
    let (class, port) = split_port(text)?;
    let is_name = !class.is_empty() && !class.contains('/');
    is_name.then(|| DataPlaneKey::Ingress { class: class.into(), port })
}

fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    match text.split_once(':') {
        None => Some((text, None)),
        Some((name, port)) => Some((name, Some(port.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data planes of every kind, with names that look like parts of the prefixes of other kinds.
    fn data_planes() -> impl Iterator<Item = DataPlaneKey> {
        const NAMES: [&str; 8] =
            ["a", "b", "ingress", "stream", "pingsix", "pingsix-ingress", "a-ingress", "a-stream"];
        let ports = [None, Some(8), Some(80)];
        let classes = NAMES
            .into_iter()
            .flat_map(move |class| ports.map(|port| DataPlaneKey::Ingress { class: class.into(), port }));
        let gateways =
            NAMES.into_iter().flat_map(|namespace| NAMES.map(|name| ObjectName::new(namespace, name)));
        let of_gateways = gateways.flat_map(move |gateway| {
            let by_port = ports.map(|port| DataPlaneKey::Gateway { gateway: gateway.clone(), port });
            by_port.into_iter().chain([DataPlaneKey::Stream { gateway }])
        });
        classes.chain(of_gateways)
    }

    #[test]
    fn no_prefix_contains_another() {
        for root in ["/pingsix", "/a", "/a/b"] {
            let prefixes: Vec<String> = data_planes().map(|key| key.prefix(root)).collect();
            for (index, prefix) in prefixes.iter().enumerate() {
                // PingSIX reads everything that starts with its prefix and a slash.
                let below = format!("{prefix}/");
                let contained = prefixes.iter().enumerate().find(|(other_index, other)| {
                    *other_index != index && format!("{other}/").starts_with(&below)
                });
                assert_eq!(contained, None, "{prefix}");
            }
        }
    }

    #[test]
    fn a_data_plane_is_told_from_its_name_and_from_its_prefix() {
        for key in data_planes() {
            assert_eq!(key.to_string().parse(), Ok(key.clone()));
            assert_eq!(DataPlaneKey::from_prefix(&key.prefix("/pingsix"), "/pingsix"), Some(key));
        }
    }

    #[test]
    fn other_texts_are_no_data_planes() {
        let no_names = [
            "",
            "web",
            "shop/web:x",
            "shop/web:080",
            "shop/web:+80",
            "shop/web:",
            "IngressClass/",
            "IngressClass/a/b",
        ];
        for text in no_names {
            assert_eq!(text.parse::<DataPlaneKey>(), Err(ParseDataPlaneKeyError), "{text}");
        }
        let no_prefixes = [
            "/pingsix",
            "/pingsix/web",
            "/pingsixes/shop/web",
            "/pingsix/shop/web:x",
            "/pingsix/shop/web:080",
            "/pingsix-ingress/web:080",
            "/pingsix-ingress/a/b",
            "/pingsix-stream/web",
        ];
        for prefix in no_prefixes {
            assert_eq!(DataPlaneKey::from_prefix(prefix, "/pingsix"), None, "{prefix}");
        }
    }

    #[test]
    fn the_ports_of_an_ingress_class_are_apart() {
        let key = DataPlaneKey::Ingress { class: "web".into(), port: Some(443) };
        assert_eq!((key.to_string().as_str(), key.port()), ("IngressClass/web:443", Some(443)));
        assert_eq!(key.prefix("/pingsix"), "/pingsix-ingress/web:443");
        assert_eq!(key.owner(), ObjectKey::new(Kind::IngressClass, "", "web"));
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
        let class = DataPlaneKey::Ingress { class: "web".into(), port: None };
        assert_eq!(class.to_string(), "IngressClass/web");
        let gateway = DataPlaneKey::Gateway { gateway: ObjectName::new("ingressclass", "web"), port: None };
        assert_ne!(class.to_string(), gateway.to_string());
    }
}
