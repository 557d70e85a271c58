//! Routes, without what translation does not read.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use gateway_api::experimental::grpcroutes::{GrpcRouteParentRefs, GrpcRouteSpec};
use gateway_api::experimental::httproutes::{HttpRouteParentRefs, HttpRouteSpec};
use gateway_api::experimental::tcproutes::{TcpRouteParentRefs, TcpRouteSpec};
use gateway_api::experimental::tlsroutes::{TlsRouteParentRefs, TlsRouteSpec};
use gateway_api::experimental::udproutes::{UdpRouteParentRefs, UdpRouteSpec};
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use super::metadata::{Identified, Metadata, share_namespace};
use super::pool::Pool;
use super::references::SpecReferences;
use super::wire;
use crate::model::{ObjectName, ParentRef};

/// A route: what its author wants, and who it is. Its status is no input of translation.
///
/// Reads and writes as the API has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Written<S>", bound(deserialize = "S: RouteSpec"))]
pub struct RouteObject<S> {
    /// `metadata`
    pub metadata: Metadata,
    /// `spec.parentRefs`, in order. Thousands of routes have the same ones.
    pub parent_refs: Arc<[ParentRef]>,
    /// The Services that the spec names, which are asked for far more often than the rest of it; sorted.
    pub(super) services: Box<[ObjectName]>,
    spec: Packed<S>,
}

/// An HTTPRoute.
pub type HttpRoute = RouteObject<HttpRouteSpec>;
/// A GRPCRoute.
pub type GrpcRoute = RouteObject<GrpcRouteSpec>;
/// A TLSRoute.
pub type TlsRoute = RouteObject<TlsRouteSpec>;
/// A TCPRoute.
pub type TcpRoute = RouteObject<TcpRouteSpec>;
/// A UDPRoute.
pub type UdpRoute = RouteObject<UdpRouteSpec>;

impl<S: RouteSpec> RouteObject<S> {
    /// `spec` without its `parentRefs`. It is decoded at each call: of all routes of a cluster, few are looked at.
    pub fn spec(&self) -> S {
        self.spec.unpack()
    }
}

/// The spec of a route as JSON, which takes a third of the memory of the generated type.
#[derive(Clone, PartialEq)]
struct Packed<S> {
    json: Box<str>,
    spec: PhantomData<fn() -> S>,
}

impl<S: RouteSpec> Packed<S> {
    fn new(spec: &S) -> Self {
        let json = serde_json::to_string(spec).expect("a spec has nothing that JSON has not");
        Self { json: json.into(), spec: PhantomData }
    }

    fn unpack(&self) -> S {
        serde_json::from_str(&self.json)
            .expect("it was written by the generated type, which reads what it writes")
    }
}

impl<S> fmt::Debug for Packed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

/// As the API has it.
#[derive(Serialize, Deserialize)]
struct Written<S> {
    metadata: ObjectMeta,
    spec: S,
}

/// The spec of a route of Gateway API.
pub trait RouteSpec: SpecReferences + Clone + Serialize + DeserializeOwned {
    /// Takes the parentRefs out.
    fn take_parent_refs(&mut self) -> Arc<[ParentRef]>;

    /// The same, with parentRefs.
    #[must_use]
    fn with_parent_refs(self, parent_refs: &[ParentRef]) -> Self;
}

macro_rules! route_specs {
    ($($spec:ident with $parent_ref:ident;)+) => {$(
        impl RouteSpec for $spec {
            fn take_parent_refs(&mut self) -> Arc<[ParentRef]> {
                let parents = self.parent_refs.take().unwrap_or_default().into_iter().enumerate();
                parents
                    .map(|(index, parent)| ParentRef {
                        index,
                        group: parent.group,
                        kind: parent.kind,
                        namespace: parent.namespace,
                        name: parent.name,
                        section_name: parent.section_name,
                        port: parent.port,
                    })
                    .collect()
            }

            fn with_parent_refs(self, parent_refs: &[ParentRef]) -> Self {
                let parents = parent_refs.iter().cloned().map(|parent| $parent_ref {
                    group: parent.group,
                    kind: parent.kind,
                    namespace: parent.namespace,
                    name: parent.name,
                    section_name: parent.section_name,
                    port: parent.port,
                });
                let parents: Vec<_> = parents.collect();
                Self { parent_refs: Some(parents).filter(|parents| !parents.is_empty()), ..self }
            }
        }
    )+};
}

route_specs! {
    HttpRouteSpec with HttpRouteParentRefs;
    GrpcRouteSpec with GrpcRouteParentRefs;
    TlsRouteSpec with TlsRouteParentRefs;
    TcpRouteSpec with TcpRouteParentRefs;
    UdpRouteSpec with UdpRouteParentRefs;
}

impl<S: RouteSpec> From<Written<S>> for RouteObject<S> {
    fn from(Written { metadata, mut spec }: Written<S>) -> Self {
        let (metadata, parent_refs) = (Metadata::from(&metadata), spec.take_parent_refs());
        let services = spec.services(&metadata.name.namespace);
        Self { metadata, parent_refs, services, spec: Packed::new(&spec) }
    }
}

impl<S: RouteSpec> Serialize for RouteObject<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let spec = self.spec().with_parent_refs(&self.parent_refs);
        Written { metadata: ObjectMeta::from(&self.metadata), spec }.serialize(serializer)
    }
}

impl<S> Identified for RouteObject<S> {
    fn name(&self) -> ObjectName {
        self.metadata.name.clone()
    }

    fn generation(&self) -> i64 {
        self.metadata.generation
    }

    fn share(&mut self, pool: &mut Pool) {
        share_namespace(&mut self.metadata.name, pool);
        pool.parent_refs(&mut self.parent_refs);
        self.services.iter_mut().for_each(|service| pool.name(service));
    }
}

macro_rules! from_generated {
    ($($kind:ident)+) => {$(
        impl From<wire::$kind> for $kind {
            fn from(wire::$kind { metadata, spec, .. }: wire::$kind) -> Self {
                Self::from(Written { metadata, spec })
            }
        }

        impl From<&wire::$kind> for $kind {
            fn from(route: &wire::$kind) -> Self {
                Self::from(Written { metadata: route.metadata.clone(), spec: route.spec.clone() })
            }
        }
    )+};
}

from_generated! { HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute }

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_is_what_was_written() {
        let written = json!({
            "metadata": {
                "name": "cart", "namespace": "shop", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "parentRefs": [
                    {"name": "public", "namespace": "infra", "sectionName": "web", "port": 80},
                    {"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "more"},
                ],
                "hostnames": ["cart.example"], "rules": [{"backendRefs": [{"name": "cart", "port": 80}]}],
            },
        });
        let mut route: HttpRoute = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&route).unwrap(), written);
        assert_eq!(
            HttpRoute::from(serde_json::from_value::<wire::HttpRoute>(written.clone()).unwrap()),
            route
        );

        let (mut pool, mut other): (_, HttpRoute) =
            (Pool::default(), serde_json::from_value(written).unwrap());
        route.share(&mut pool);
        other.share(&mut pool);
        assert!(Arc::ptr_eq(&route.parent_refs, &other.parent_refs));
        assert!(Arc::ptr_eq(&route.metadata.name.namespace, &other.metadata.name.namespace));
    }
}
