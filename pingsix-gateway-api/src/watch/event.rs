//! What a watch saw, as one type for all kinds.

use kube_runtime::watcher;
use pingsix_translate::Kind;
use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, Ingress,
    IngressClass, ListenerSet, Namespace, ReferenceGrant, Secret, Service, TcpRoute, TlsRoute, UdpRoute,
};

use super::object::Watched;

macro_rules! events {
    ($($kind:ident)+) => {
        /// What a watch of one kind saw.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Event {
            $(
                #[doc = concat!("Of kind ", stringify!($kind), ".")]
                $kind(watcher::Event<Watched<$kind>>),
            )+
        }

        $(
            impl From<watcher::Event<Watched<$kind>>> for Event {
                fn from(event: watcher::Event<Watched<$kind>>) -> Self {
                    Self::$kind(event)
                }
            }
        )+

        impl Event {
            /// Whether it is part of a list, which is taken in at its end.
            pub const fn is_of_a_list(&self) -> bool {
                match self {
                    $(Self::$kind(
                        watcher::Event::Init | watcher::Event::InitApply(_) | watcher::Event::InitDone,
                    ) => true,
                    Self::$kind(watcher::Event::Apply(_) | watcher::Event::Delete(_)) => false,)+
                }
            }

            /// The kind it is about.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }
        }
    };
}

events! {
    GatewayClass Gateway ListenerSet HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute BackendTlsPolicy ReferenceGrant
    IngressClass Ingress Service EndpointSlice Secret ConfigMap Namespace PingsixProxy
}
