//! The table of referents: the objects to which an owner and its objects refer.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::endpoint_slice::EndpointSlice;
use super::kinds::{ConfigMap, HttpRouteFilter, Namespace, PingsixProxy, ReferenceGrant, Secret};
use super::part::{PartName, add_differing, copy, text_at};
use super::service::Service;
use crate::model::{Kind, ObjectKey, ObjectName, Origin};
use crate::shared_map::SharedMap;

/// Declares the maps of referents: a map, the kind of its parts, their names and their type.
macro_rules! referents {
    ($($(#[$doc:meta])* $field:ident: $kind:ident, $name:ty => $part:ty;)+) => {
        /// Objects to which others refer. The `Debug` text has their names, and nothing of their content.
        #[derive(Clone, Default)]
        pub struct Referents {
            $($(#[$doc])* pub $field: SharedMap<$name, $part>,)+
            /// Objects that must not be used because PingSIX has refused their documents. The controller fills the
            /// quarantine; it is empty in a snapshot from manifests.
            pub quarantine: Quarantine,
            /// Secrets and ConfigMaps about which the API server has not answered yet. The controller fills this set; it is
            /// empty in a snapshot from manifests. References to these objects are refused for
            /// [`Reason::Pending`](crate::model::Reason::Pending).
            pub pending: Pending,
            /// The addresses of the data planes themselves, which no backend may have. The controller fills this set; it is
            /// empty in a snapshot from manifests.
            pub own_addresses: OwnAddresses,
        }

        impl fmt::Debug for Referents {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut referents = f.debug_struct("Referents");
                $(referents.field(stringify!($field), &self.$field.keys().collect::<BTreeSet<_>>());)+
                referents.field("quarantine", &self.quarantine).field("pending", &self.pending);
                referents.field("own_addresses", &self.own_addresses).finish()
            }
        }

        #[allow(clippy::wildcard_enum_match_arm, reason = "no other kind is one of referents")]
        impl Referents {
            /// Adds the parts that differ in content.
            pub(super) fn add_differences(&self, before: &Self, keys: &mut BTreeSet<ObjectKey>) {
                $(add_differing(keys, Kind::$kind, &self.$field, &before.$field);)+
            }

            /// Takes a part from other referents.
            pub(super) fn take_part(&mut self, from: &Self, part: &ObjectKey) {
                match part.kind {
                    $(Kind::$kind => copy(&mut self.$field, &from.$field, &<$name>::of(&part.name)),)+
                    _ => {}
                }
            }

            /// The text of a part; `None` for an absent part.
            pub(super) fn text_of(&self, part: &ObjectKey) -> Option<String> {
                match part.kind {
                    $(Kind::$kind => text_at(&self.$field, &<$name>::of(&part.name)),)+
                    _ => None,
                }
            }
        }
    };
}

referents! {
    /// Services that routes or Ingresses refer to.
    services: Service, ObjectName => Arc<Service>;
    /// EndpointSlices by the Service they belong to, sorted by name.
    endpoint_slices: EndpointSlice, ObjectName => Vec<Arc<EndpointSlice>>;
    /// ReferenceGrants in the namespaces of referents.
    reference_grants: ReferenceGrant, ObjectName => Arc<ReferenceGrant>;
    /// Secrets that Gateways, listeners, Ingresses and policies refer to.
    secrets: Secret, ObjectName => Arc<Secret>;
    /// ConfigMaps that Gateways, Ingresses and policies refer to.
    config_maps: ConfigMap, ObjectName => Arc<ConfigMap>;
    /// Namespaces of routes and ListenerSets.
    namespaces: Namespace, Arc<str> => Arc<Namespace>;
    /// The parameters that a Gateway and its class refer to, or an IngressClass.
    proxies: PingsixProxy, ObjectName => Arc<PingsixProxy>;
    /// HTTPRouteFilters to which HTTPRoutes refer.
    http_route_filters: HttpRouteFilter, ObjectName => Arc<HttpRouteFilter>;
}

/// An address of data planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnAddress {
    /// The address of a Pod, with all its ports: those for clients lead back to the data plane, and the others have metrics
    /// and status pages.
    Pod(IpAddr),
    /// An address and port for clients.
    Clients(SocketAddr),
}

/// The addresses of data planes.
pub type OwnAddresses = SharedMap<OwnAddress, ()>;

/// Objects that have not been read yet. An object that is in the snapshot counts as read.
pub type Pending = SharedMap<ObjectKey, ()>;

/// The objects in quarantine, each with the answer of PingSIX in one sentence:
///
/// - rules of HTTPRoutes and GRPCRoutes ([`Section::Rule`](crate::Section::Rule)),
/// - parts of Ingresses, other than [`Section::Whole`](crate::Section::Whole),
/// - Services, Secrets and policies, whole.
///
/// Other entries have no effect.
pub type Quarantine = SharedMap<Origin, Arc<str>>;

/// PingsixProxies, by name.
pub type Proxies = SharedMap<ObjectName, Arc<PingsixProxy>>;
