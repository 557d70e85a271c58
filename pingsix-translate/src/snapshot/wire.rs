//! The types with all fields of the API, of kinds that are kept in part.

pub use gateway_api::experimental::grpcroutes::GrpcRoute;
pub use gateway_api::experimental::httproutes::HttpRoute;
pub use gateway_api::experimental::tlsroutes::TlsRoute;
pub use k8s_openapi::api::core::v1::Service;
pub use k8s_openapi::api::discovery::v1::EndpointSlice;

use gateway_api::experimental::tcproutes::{TcpRouteSpec, TcpRouteStatus};
use gateway_api::experimental::udproutes::{UdpRouteSpec, UdpRouteStatus};

use super::kinds::resource;

resource! {
    /// A TCPRoute of version v1, whose schema is that of v1alpha2.
    TcpRoute, TcpRouteSpec, TcpRouteStatus, "TCPRoute", "tcproutes"
}

resource! {
    /// A UDPRoute of version v1, whose schema is that of v1alpha2.
    UdpRoute, UdpRouteSpec, UdpRouteStatus, "UDPRoute", "udproutes"
}
