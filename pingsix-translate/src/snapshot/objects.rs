//! A plain collection of objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::ObjectMeta;

use super::endpoint_slice::EndpointSlice;
use super::kinds::{
    BackendTlsPolicy, ConfigMap, Gateway, GatewayClass, Ingress, IngressClass, ListenerSet, Namespace,
    ReferenceGrant, Secret,
};
use super::metadata::Identified;
use super::routes::{GrpcRoute, HttpRoute, TcpRoute, TlsRoute, UdpRoute};
use super::service::Service;
use crate::crd::PingsixProxy;
use crate::model::{Kind, ObjectKey, ObjectName};

macro_rules! objects {
    ($($(#[$doc:meta])* $kind:ident in $field:ident;)+) => {
        /// One object of a kind translation reads.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "every variant is one pointer")]
        pub enum Object { $($(#[$doc])* $kind(Arc<$kind>),)+ }

        impl Object {
            /// What the object is.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }

            /// Its identity.
            pub fn key(&self) -> ObjectKey {
                match self {
                    $(Self::$kind(object) => ObjectKey { kind: Kind::$kind, name: object.name() },)+
                }
            }
        }

        /// A plain collection of objects, from which snapshots are cut. Tools without a cluster use it; a
        /// controller keeps indexed stores instead and builds snapshots from those.
        #[derive(Clone, Debug, Default)]
        pub struct Objects { $(pub(super) $field: BTreeMap<ObjectName, Arc<$kind>>,)+ }

        impl Objects {
            /// Adds an object, or replaces the one with the same key; returns whether one was replaced.
            pub fn insert(&mut self, object: Object) -> bool {
                let ObjectKey { name, .. } = object.key();
                match object { $(Object::$kind(object) => self.$field.insert(name, object).is_some(),)+ }
            }

            /// Whether an object with this key is there.
            pub fn contains(&self, key: &ObjectKey) -> bool {
                match key.kind { $(Kind::$kind => self.$field.contains_key(&key.name),)+ }
            }

            $(
                $(#[$doc])*
                ///
                /// All of them, by name.
                pub fn $field(&self) -> impl Iterator<Item = (&ObjectName, &Arc<$kind>)> {
                    self.$field.iter()
                }
            )+
        }
    };
}

objects! {
    /// A GatewayClass.
    GatewayClass in gateway_classes;
    /// A Gateway.
    Gateway in gateways;
    /// A ListenerSet.
    ListenerSet in listener_sets;
    /// An HTTPRoute.
    HttpRoute in http_routes;
    /// A GRPCRoute.
    GrpcRoute in grpc_routes;
    /// A TLSRoute.
    TlsRoute in tls_routes;
    /// A TCPRoute.
    TcpRoute in tcp_routes;
    /// A UDPRoute.
    UdpRoute in udp_routes;
    /// A BackendTLSPolicy.
    BackendTlsPolicy in backend_tls_policies;
    /// A ReferenceGrant.
    ReferenceGrant in reference_grants;
    /// An IngressClass.
    IngressClass in ingress_classes;
    /// An Ingress.
    Ingress in ingresses;
    /// A Service.
    Service in services;
    /// An EndpointSlice.
    EndpointSlice in endpoint_slices;
    /// A Secret.
    Secret in secrets;
    /// A ConfigMap.
    ConfigMap in config_maps;
    /// A Namespace.
    Namespace in namespaces;
    /// A PingsixProxy.
    PingsixProxy in proxies;
}

/// The identity of an object with this metadata.
pub(crate) fn key_of(kind: Kind, metadata: &ObjectMeta) -> ObjectKey {
    let namespace = if kind.is_namespaced() { metadata.namespace.as_deref().unwrap_or_default() } else { "" };
    ObjectKey::new(kind, namespace, metadata.name.as_deref().unwrap_or_default())
}
