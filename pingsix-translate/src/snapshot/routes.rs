//! Routes, without what translation does not read.

use std::sync::Arc;

use gateway_api::experimental::grpcroutes::GrpcRouteSpec;
use gateway_api::experimental::httproutes::HttpRouteSpec;
use gateway_api::experimental::tcproutes::TcpRouteSpec;
use gateway_api::experimental::tlsroutes::TlsRouteSpec;
use gateway_api::experimental::udproutes::UdpRouteSpec;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::metadata::{Identified, Metadata};
use super::wire;
use crate::object::ObjectName;

/// A route: what its author wants, and who it is. Its status is no input of translation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written<S>", bound(deserialize = "S: Deserialize<'de>"))]
pub struct RouteObject<S> {
    /// `metadata`
    pub metadata: Metadata,
    /// `spec`
    pub spec: S,
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

/// As the API has it.
#[derive(Deserialize)]
struct Written<S> {
    metadata: ObjectMeta,
    spec: S,
}

impl<S> From<Written<S>> for RouteObject<S> {
    fn from(Written { metadata, spec }: Written<S>) -> Self {
        Self { metadata: Metadata::from(&metadata), spec }
    }
}

impl<S> Identified for RouteObject<S> {
    fn name(&self) -> ObjectName {
        self.metadata.name.clone()
    }

    fn generation(&self) -> i64 {
        self.metadata.generation
    }

    fn each_text(&mut self, share: &mut dyn FnMut(&mut Arc<str>)) {
        share(&mut self.metadata.name.namespace);
    }
}

macro_rules! from_generated {
    ($($kind:ident)+) => {$(
        impl From<wire::$kind> for $kind {
            fn from(route: wire::$kind) -> Self {
                Self { metadata: Metadata::from(&route.metadata), spec: route.spec }
            }
        }
    )+};
}

from_generated! { HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute }
