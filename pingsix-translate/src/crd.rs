//! Our own kinds: the source of the manifests in `crds/`.

#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod backend_traffic_policy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod pingsix_proxy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use backend_traffic_policy::{
    ActiveHealthCheck, BackendClientTls, BackendHealthCheck, BackendRetry, BackendTimeout,
    BackendTrafficPolicy, BackendTrafficPolicySpec, ConsistentHash, HashSource, HealthCheckType,
    HttpHealthCheck, LoadBalancer, PolicyAncestor, PolicyAncestorStatus, PolicyStatus, PolicyTargetReference,
    SecretObjectReference,
};
pub use pingsix_proxy::{
    Attached, AttachedAddress, AttachedAddressType, AttachedSink, DataEncryption, DisruptionBudget,
    ExternalTrafficPolicy, FreeObject, HostOwnership, IngressSettings, KeyringReference, LogLevel, Managed,
    ManagedService, Metrics, Override, OverrideBounds, PingsixProxy, PingsixProxySpec, PingsixProxyStatus,
    Process, ProcessStatus, ProxyBudget, Responder, Scheduling, SecretReference, ServiceType, StatusUrl,
};

/// The definitions of all of them, in the order of their names.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![BackendTrafficPolicy::crd(), PingsixProxy::crd()]
}
