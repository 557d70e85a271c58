//! `BackendTrafficPolicy`: how PingSIX chooses, checks and reaches the endpoints of a Service.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type of its own")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FreeObject;
use super::policy::{PolicyStatus, PolicyTargetReference, SecretObjectReference};

/// `spec` of a `BackendTrafficPolicy`. Durations are those of Gateway API, such as `5s`, in whole seconds.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "pingsix.io",
    version = "v1alpha1",
    kind = "BackendTrafficPolicy",
    plural = "backendtrafficpolicies",
    shortname = "btp",
    category = "pingsix",
    namespaced,
    status = "PolicyStatus",
    derive = "PartialEq",
    label("gateway.networking.k8s.io/policy", "Direct"),
    doc = "The choice of endpoints, health checks, timeouts, retries and the client certificate for connections to \
           Services. A direct policy: of several for one target, the oldest counts.",
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRefs[0].name"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.ancestors[0].conditions[?(@.type==\"Accepted\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.ancestors[0].conditions[?(@.type==\"Accepted\")].reason",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct BackendTrafficPolicySpec {
    /// The Services, or ports of them, in the namespace of the policy.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(
        validation = Rule::new("self.all(target, target.group == '' && target.kind == 'Service')")
            .message("the targets have to be Services")
    )]
    pub(crate) target_refs: Vec<PolicyTargetReference>,

    /// The load-balancing method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) load_balancer: Option<LoadBalancer>,

    /// Checks that take failing endpoints out of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) health_check: Option<BackendHealthCheck>,

    /// Timeouts towards endpoints. `timeouts` of an HTTPRoute win over `send` and `read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<BackendTimeout>,

    /// Further attempts after a connection to an endpoint failed. `retry` of an HTTPRoute wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<BackendRetry>,

    /// TLS towards endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<BackendClientTls>,

    /// Not supported: PingSIX has no sessions. `ConsistentHash` by a cookie or header comes close.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_persistence: Option<FreeObject>,
}

/// The load-balancing method.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("(self.type == 'ConsistentHash') == has(self.consistentHash)")
        .message("consistentHash belongs to the type ConsistentHash, which needs it")
)]
pub(crate) struct LoadBalancer {
    /// `RoundRobin`, `Random` or `ConsistentHash`. The controller refuses other types by name, such as `LeastRequest`.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) r#type: String,
    /// The part of a request that decides about the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) consistent_hash: Option<ConsistentHash>,
}

/// The part of a request that decides about the endpoint. Requests without the part share one endpoint.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("(self.type in ['Header', 'Cookie', 'QueryParam']) == has(self.name)")
        .message("a Header, a Cookie and a QueryParam need a name, the other types have none")
)]
pub(crate) struct ConsistentHash {
    /// The hashed part of the request.
    pub(crate) r#type: HashSource,
    /// The name of the header, cookie or query parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub(crate) name: Option<String>,
}

/// The hashed part of the request.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashSource {
    /// The address of the connection's peer.
    #[serde(rename = "SourceIP")]
    SourceIp,
    /// A request header.
    Header,
    /// A cookie.
    Cookie,
    /// A query parameter.
    QueryParam,
    /// The path without the query.
    #[serde(rename = "URI")]
    Uri,
}

/// Health checks.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackendHealthCheck {
    /// Probes of each data plane process to each endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) active: Option<ActiveHealthCheck>,
    /// Not supported: PingSIX does not judge endpoints by the answers to clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) passive: Option<FreeObject>,
}

/// Probes. While all endpoints fail them, requests are answered with 500.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.type == 'HTTP' || !has(self.http)").message("http belongs to the type HTTP"))]
pub(crate) struct ActiveHealthCheck {
    /// `HTTP`, over TLS where requests are, or `TCP`.
    pub(crate) r#type: HealthCheckType,
    /// The request of a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpHealthCheck>,
    /// The time between two probes.
    #[serde(default = "ActiveHealthCheck::default_interval")]
    #[schemars(length(max = 32))]
    pub(crate) interval: String,
    /// Successes in a row after which an endpoint is used again.
    #[serde(default = "ActiveHealthCheck::default_healthy_threshold")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) healthy_threshold: u32,
    /// Failures in a row after which an endpoint is not used any more.
    #[serde(default = "ActiveHealthCheck::default_unhealthy_threshold")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) unhealthy_threshold: u32,
    /// Another port of the endpoints than that of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub(crate) port: Option<u16>,
}

impl ActiveHealthCheck {
    fn default_interval() -> String {
        "3s".to_owned()
    }

    fn default_healthy_threshold() -> u32 {
        1
    }

    fn default_unhealthy_threshold() -> u32 {
        3
    }
}

/// The protocol of probes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthCheckType {
    /// A GET request.
    #[serde(rename = "HTTP")]
    Http,
    /// A connection.
    #[serde(rename = "TCP")]
    Tcp,
}

/// The request of a probe.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpHealthCheck {
    /// The path, perhaps with a query.
    #[serde(default = "HttpHealthCheck::default_path")]
    #[schemars(length(min = 1, max = 1024))]
    pub(crate) path: String,
    /// The Host header. Default: the Host to which a route rewrites requests, or none. Over TLS, the name that PingSIX
    /// verifies takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub(crate) hostname: Option<String>,
    /// The statuses of success.
    #[serde(default = "HttpHealthCheck::default_statuses")]
    #[schemars(length(min = 1, max = 64))]
    pub(crate) expected_statuses: Vec<u16>,
}

impl Default for HttpHealthCheck {
    fn default() -> Self {
        Self { path: Self::default_path(), hostname: None, expected_statuses: Self::default_statuses() }
    }
}

impl HttpHealthCheck {
    fn default_path() -> String {
        "/".to_owned()
    }

    fn default_statuses() -> Vec<u16> {
        vec![200]
    }
}

/// Timeouts in whole seconds, from 1s to 86400s.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackendTimeout {
    /// To connect, the TLS handshake included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub(crate) connect: Option<String>,
    /// Between two writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub(crate) send: Option<String>,
    /// Between two reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub(crate) read: Option<String>,
}

/// Further attempts after a failed connection. Requests that an endpoint has received are not repeated.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackendRetry {
    /// The number of further attempts. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 16))]
    pub(crate) num_retries: Option<u32>,
    /// The time after which no further attempt begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub(crate) timeout: Option<String>,
    /// Not supported: PingSIX repeats no request for its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub(crate) status_codes: Vec<u16>,
}

/// TLS towards endpoints, beside a BackendTLSPolicy.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackendClientTls {
    /// The certificate that the data plane shows to endpoints: a Secret of type `kubernetes.io/tls`.
    pub(crate) client_certificate_ref: SecretObjectReference,
}
