//! The kinds of APISIX and of the Go controller, which precede this one.

/// The API group of the predecessors' objects.
pub const APISIX_GROUP: &str = "apisix.apache.org";

macro_rules! source_kinds {
    ($($kind:ident, $version:literal, $name:literal;)+) => {
        /// The kinds of the predecessors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum SourceKind {
            $(#[doc = concat!("`", $name, "` of `", $version, "`.")] $kind,)+
        }

        impl SourceKind {
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            pub(crate) const fn version_and_name(self) -> (&'static str, &'static str) {
                match self { $(Self::$kind => ($version, $name),)+ }
            }

            /// The versions and names, in the order of declaration.
            pub(crate) const TYPES: &[(&str, &str)] = &[$(($version, $name),)+];

            pub(crate) fn of(version: &str, kind: &str) -> Option<Self> {
                match (version, kind) { $(($version, $name) => Some(Self::$kind),)+ _ => None }
            }
        }
    };
}

source_kinds! {
    ApisixRoute, "v2", "ApisixRoute";
    ApisixUpstream, "v2", "ApisixUpstream";
    ApisixTls, "v2", "ApisixTls";
    ApisixConsumer, "v2", "ApisixConsumer";
    ApisixPluginConfig, "v2", "ApisixPluginConfig";
    ApisixGlobalRule, "v2", "ApisixGlobalRule";
    GatewayProxy, "v1alpha1", "GatewayProxy";
    PluginConfig, "v1alpha1", "PluginConfig";
    HttpRoutePolicy, "v1alpha1", "HTTPRoutePolicy";
    BackendTrafficPolicy, "v1alpha1", "BackendTrafficPolicy";
    Consumer, "v1alpha1", "Consumer";
    L4RoutePolicy, "v1alpha1", "L4RoutePolicy";
}

/// The version of a kind of which a conversion reads objects, apart from kinds that stay as they are.
pub fn version_to_convert(group: &str, kind: &str) -> Option<&'static str> {
    let (version, _) = SourceKind::TYPES.iter().find(|(_, name)| group == APISIX_GROUP && *name == kind)?;
    Some(version)
}
