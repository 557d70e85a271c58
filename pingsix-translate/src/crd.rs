//! Our own kinds: the source of the manifests in `crds/`.

#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod backend_traffic_policy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod http_route_filter;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod pingsix_proxy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod policy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod security_policy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod traffic_policy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub(crate) use backend_traffic_policy::{
    ActiveHealthCheck, BackendRetry, BackendTimeout, ConsistentHash, HashSource, HealthCheckType,
    LoadBalancer,
};
pub use backend_traffic_policy::{BackendTrafficPolicy, BackendTrafficPolicySpec};
pub(crate) use http_route_filter::{FilterDirectResponse, FilterPathType};
pub use http_route_filter::{FilterPath, HttpRouteFilter, HttpRouteFilterSpec};
pub(crate) use pingsix_proxy::{
    AccessLog, Attached, AttachedAddress, AttachedAddressType, AttachedSink, FreeObject, HostOwnership,
    IngressSettings, Managed, ManagedService, Override, OverrideBounds, RequestIdHeader, RequestMetrics,
    ResponseHeader, Scheduling, SharedCache, SinkScheme, StatusUrl, Telemetry,
};
pub use pingsix_proxy::{
    AnnotationDialect, ExternalTrafficPolicy, LogLevel, PingsixProxy, PingsixProxySpec, PingsixProxyStatus,
    ServiceType,
};

pub(crate) use policy::{MergeStrategy, PolicyTargetReference, UnreadableField};
pub use policy::{PolicyStatus, SecretObjectReference};
pub(crate) use security_policy::{ApiKeyAuth, ClientIp, Csrf, ExtractFrom, Jwt, OriginWildcards};
pub use security_policy::{Authorization, BasicAuth, Cors, SecurityPolicy, SecurityPolicySpec};
pub(crate) use traffic_policy::{
    CacheMethod, Compression, CompressionType, FaultInjection, LocalRateLimit, MissingKey, RateLimit,
    RateLimitKey, RateLimitKeyType, RateLimitUnit, RequestId, RequestLimit, ResponseCache,
    ResponseHeaderChanges,
};
pub use traffic_policy::{TrafficPolicy, TrafficPolicySpec};

/// The definitions of all of them, in the order of their names.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        BackendTrafficPolicy::crd(),
        HttpRouteFilter::crd(),
        PingsixProxy::crd(),
        SecurityPolicy::crd(),
        TrafficPolicy::crd(),
    ]
}
