//! One piece of work for a kind that is chosen while running.

use pingsix_translate::Kind;
use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, Ingress,
    IngressClass, ListenerSet, Namespace, ReferenceGrant, Secret, Service, TcpRoute, TlsRoute, UdpRoute,
};
use serde::Serialize;

use super::{Stored, World};

/// Work on the objects of one kind.
pub(crate) trait PerKind {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<K: Stored + Serialize>(&self, world: &World) -> Self::Output;
}

/// Does a piece of work on the objects of a kind.
pub(crate) fn with_kind<W: PerKind>(work: &W, kind: Kind, world: &World) -> W::Output {
    match kind {
        Kind::GatewayClass => work.run::<GatewayClass>(world),
        Kind::Gateway => work.run::<Gateway>(world),
        Kind::ListenerSet => work.run::<ListenerSet>(world),
        Kind::HttpRoute => work.run::<HttpRoute>(world),
        Kind::GrpcRoute => work.run::<GrpcRoute>(world),
        Kind::TlsRoute => work.run::<TlsRoute>(world),
        Kind::TcpRoute => work.run::<TcpRoute>(world),
        Kind::UdpRoute => work.run::<UdpRoute>(world),
        Kind::BackendTlsPolicy => work.run::<BackendTlsPolicy>(world),
        Kind::ReferenceGrant => work.run::<ReferenceGrant>(world),
        Kind::IngressClass => work.run::<IngressClass>(world),
        Kind::Ingress => work.run::<Ingress>(world),
        Kind::Service => work.run::<Service>(world),
        Kind::EndpointSlice => work.run::<EndpointSlice>(world),
        Kind::Secret => work.run::<Secret>(world),
        Kind::ConfigMap => work.run::<ConfigMap>(world),
        Kind::Namespace => work.run::<Namespace>(world),
        Kind::PingsixProxy => work.run::<PingsixProxy>(world),
    }
}
