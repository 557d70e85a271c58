//! The table of kinds: a row for each kind of object that translation reads.
//!
//! A row has all facts about the kind as such. [`for_each_kind`] hands the table to macros that need an item for each
//! kind: an object, a store, an event. Code about one kind asks the [`Kind`] for its properties, or compares it; no
//! `match` lists all kinds.

use std::fmt;

use super::traffic::Traffic;

/// The API group of Gateway API.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The API group of Ingress.
pub const INGRESS_GROUP: &str = "networking.k8s.io";

/// The API group of our own kinds.
pub const PINGSIX_GROUP: &str = "pingsix.io";

/// Calls a macro with the table of kinds. For the crates of this project: columns may come and go.
///
/// A row begins with the name of the [`Kind`], which is also the name of its type in [`snapshot`](crate::snapshot), and the
/// name of collections of its objects. A callback takes the rest of the row as one `tt`:
/// `($($kind:ident in $field:ident $facts:tt)+)`.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_kind {
    ($callback:ident) => {
        $callback! {
            // Group, name, scope, versions with the same decoding and the current one first, and the role. The order of
            // the rows decides between objects of one age and name, and the order of outputs.
            GatewayClass in gateway_classes { GATEWAY_GROUP, "GatewayClass", Cluster, ["v1", "v1beta1"], Role::Other }
            Gateway in gateways { GATEWAY_GROUP, "Gateway", Namespaced, ["v1", "v1beta1"], Role::Other }
            ListenerSet in listener_sets { GATEWAY_GROUP, "ListenerSet", Namespaced, ["v1"], Role::Other }
            HttpRoute in http_routes { GATEWAY_GROUP, "HTTPRoute", Namespaced, ["v1", "v1beta1"], Role::Route(Traffic::Http) }
            GrpcRoute in grpc_routes { GATEWAY_GROUP, "GRPCRoute", Namespaced, ["v1"], Role::Route(Traffic::Grpc) }
            TlsRoute in tls_routes { GATEWAY_GROUP, "TLSRoute", Namespaced, ["v1"], Role::Route(Traffic::Tls) }
            TcpRoute in tcp_routes { GATEWAY_GROUP, "TCPRoute", Namespaced, ["v1", "v1alpha2"], Role::Route(Traffic::Tcp) }
            UdpRoute in udp_routes { GATEWAY_GROUP, "UDPRoute", Namespaced, ["v1", "v1alpha2"], Role::Route(Traffic::Udp) }
            BackendTlsPolicy in backend_tls_policies {
                GATEWAY_GROUP, "BackendTLSPolicy", Namespaced, ["v1", "v1alpha3"], Role::DirectPolicy
            }
            SecurityPolicy in security_policies {
                PINGSIX_GROUP, "SecurityPolicy", Namespaced, ["v1alpha1"], Role::InheritedPolicy
            }
            TrafficPolicy in traffic_policies {
                PINGSIX_GROUP, "TrafficPolicy", Namespaced, ["v1alpha1"], Role::InheritedPolicy
            }
            ReferenceGrant in reference_grants { GATEWAY_GROUP, "ReferenceGrant", Namespaced, ["v1", "v1beta1"], Role::Other }
            IngressClass in ingress_classes { INGRESS_GROUP, "IngressClass", Cluster, ["v1"], Role::Other }
            Ingress in ingresses { INGRESS_GROUP, "Ingress", Namespaced, ["v1"], Role::Other }
            Service in services { "", "Service", Namespaced, ["v1"], Role::Other }
            EndpointSlice in endpoint_slices { "discovery.k8s.io", "EndpointSlice", Namespaced, ["v1"], Role::Other }
            Secret in secrets { "", "Secret", Namespaced, ["v1"], Role::Other }
            ConfigMap in config_maps { "", "ConfigMap", Namespaced, ["v1"], Role::Other }
            Namespace in namespaces { "", "Namespace", Cluster, ["v1"], Role::Other }
            HttpRouteFilter in http_route_filters { PINGSIX_GROUP, "HTTPRouteFilter", Namespaced, ["v1alpha1"], Role::Other }
            PingsixProxy in proxies { PINGSIX_GROUP, "PingsixProxy", Namespaced, ["v1alpha1"], Role::Other }
            BackendTrafficPolicy in backend_traffic_policies {
                PINGSIX_GROUP, "BackendTrafficPolicy", Namespaced, ["v1alpha1"], Role::DirectPolicy
            }
        }
    };
}

/// A row of the table.
struct Facts {
    group: &'static str,
    name: &'static str,
    scope: Scope,
    versions: &'static [&'static str],
    role: Role,
}

/// The role of a kind in translation.
#[derive(Clone, Copy)]
enum Role {
    /// A route whose clients send this traffic.
    Route(Traffic),
    /// A policy that affects its targets alone (GEP-2648).
    DirectPolicy,
    /// A policy that Gateways hand down to routes (GEP-2649).
    InheritedPolicy,
    Other,
}

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Cluster,
    Namespaced,
}

macro_rules! kinds {
    ($($kind:ident in $field:ident { $group:expr, $name:literal, $scope:ident, $versions:expr, $role:expr })+) => {
        /// The kinds translation reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(#[doc = concat!("The kind `", $name, "`.")] $kind,)+
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            const fn facts(self) -> Facts {
                match self {
                    $(Self::$kind => Facts {
                        group: $group, name: $name, scope: Scope::$scope, versions: &$versions, role: $role,
                    },)+
                }
            }
        }
    };
}

for_each_kind! { kinds }

impl Kind {
    /// The spelling Kubernetes uses, for example `HTTPRoute`.
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        self.facts().group
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        matches!(self.facts().scope, Scope::Namespaced)
    }

    /// The versions whose objects decode alike, without the group; the current one first.
    pub const fn versions(self) -> &'static [&'static str] {
        self.facts().versions
    }

    /// The version of its objects, without the group. Only this version is read from a cluster, by the controller and
    /// by `pingsix-gatewayctl`, so that both see the same objects.
    pub const fn version(self) -> &'static str {
        self.versions()[0]
    }

    /// `apiVersion` of its objects.
    pub fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    /// The traffic of a route kind's clients; `None` for other kinds.
    pub(crate) const fn traffic(self) -> Option<Traffic> {
        match self.facts().role {
            Role::Route(traffic) => Some(traffic),
            Role::DirectPolicy | Role::InheritedPolicy | Role::Other => None,
        }
    }

    /// Whether it is a kind of route.
    pub const fn is_route(self) -> bool {
        self.traffic().is_some()
    }

    /// Whether it is a kind of route whose clients send requests: HTTPRoute and GRPCRoute.
    pub const fn has_requests(self) -> bool {
        match self.traffic() {
            Some(traffic) => traffic.has_requests(),
            None => false,
        }
    }

    /// Whether it is a kind of policy.
    pub const fn is_policy(self) -> bool {
        matches!(self.facts().role, Role::DirectPolicy | Role::InheritedPolicy)
    }

    /// Whether it is a kind of policy that Gateways hand down to routes.
    pub const fn is_inherited_policy(self) -> bool {
        matches!(self.facts().role, Role::InheritedPolicy)
    }

    /// Whether a label selector of a controller applies to objects of this kind. A hidden object of these kinds weakens
    /// no other object.
    pub const fn is_selected_by_label(self) -> bool {
        self.is_route() || matches!(self, Self::Gateway | Self::ListenerSet | Self::Ingress)
    }

    /// Every kind of route, in the order of the table.
    pub fn routes() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.is_route())
    }

    /// Every kind of policy, in the order of the table.
    pub fn policies() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.is_policy())
    }

    /// The kind with this group and name, if translation reads it.
    pub fn from_group_kind(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.group() == group && known.as_str() == kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
