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

pub use backend_traffic_policy::{
    ActiveHealthCheck, BackendClientTls, BackendHealthCheck, BackendRetry, BackendTimeout,
    BackendTrafficPolicy, BackendTrafficPolicySpec, ConsistentHash, HashSource, HealthCheckType,
    HttpHealthCheck, LoadBalancer,
};
pub use http_route_filter::{
    FilterDirectResponse, FilterPath, FilterPathType, FilterUrlRewrite, HttpRouteFilter, HttpRouteFilterSpec,
};
pub use pingsix_proxy::{
    AccessLog, AnnotationDialect, Attached, AttachedAddress, AttachedAddressType, AttachedSink,
    DataEncryption, DisruptionBudget, ExternalTrafficPolicy, FreeObject, HostOwnership, IngressSettings,
    KeyringReference, LogLevel, Managed, ManagedService, Metrics, Override, OverrideBounds, PingsixProxy,
    PingsixProxySpec, PingsixProxyStatus, Process, ProcessStatus, ProxyBudget, RequestIdHeader,
    RequestMetrics, ResponseHeader, Scheduling, SecretReference, ServiceType, SharedCache, Sidecar,
    StatusUrl, Telemetry,
};

pub use policy::{
    AncestorReference, MergeStrategy, PolicyAncestorStatus, PolicyStatus, PolicyTargetReference,
    SecretObjectReference, UnreadableField,
};
pub use security_policy::{
    Anonymous, ApiKeyAuth, Authorization, BasicAuth, ClientIp, Cors, Csrf, ExtractFrom, Jwt, OriginWildcards,
    SecurityPolicy, SecurityPolicySpec,
};
pub use traffic_policy::{
    CacheMethod, Compression, CompressionType, FaultAbort, FaultDelay, FaultInjection, GrpcWeb,
    LocalRateLimit, MissingKey, RateLimit, RateLimitKey, RateLimitKeyType, RateLimitUnit, RequestId,
    RequestLimit, ResponseCache, ResponseHeaderChanges, TrafficPolicy, TrafficPolicySpec,
};

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
