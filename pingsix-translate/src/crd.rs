//! Our own kinds: the source of the manifests in `crds/`.

#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod pingsix_proxy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod policy;
#[allow(unreachable_pub, reason = "the derive of kube writes its parts as public")]
mod security_policy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use pingsix_proxy::{
    Attached, AttachedAddress, AttachedAddressType, AttachedSink, DataEncryption, DisruptionBudget,
    ExternalTrafficPolicy, FreeObject, HostOwnership, IngressSettings, KeyringReference, LogLevel, Managed,
    ManagedService, Metrics, Override, OverrideBounds, PingsixProxy, PingsixProxySpec, PingsixProxyStatus,
    Process, ProcessStatus, ProxyBudget, Responder, Scheduling, SecretReference, ServiceType, StatusUrl,
};

pub use policy::{
    AncestorReference, MergeStrategy, PolicyAncestorStatus, PolicyStatus, PolicyTargetReference,
    SecretObjectReference,
};
pub use security_policy::{
    Anonymous, ApiKeyAuth, Authorization, BasicAuth, ClientIp, Cors, Csrf, ExtractFrom, Jwt, SecurityPolicy,
    SecurityPolicySpec,
};

/// The definitions of all of them.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![PingsixProxy::crd(), SecurityPolicy::crd()]
}
