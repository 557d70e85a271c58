//! Metrics, access logs and request ids of data planes, and headers of their responses.

use garde::Validate;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metrics, access logs, request ids and response headers of data planes. PingSIX applies these settings to requests that
/// match a route. Other requests are not counted and not logged.
#[derive(KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct Telemetry {
    /// Counters and histograms of requests for Prometheus. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) metrics: Option<RequestMetrics>,

    /// A line per request in the log of the PingSIX process. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) access_log: Option<AccessLog>,

    /// A header with an id for each request. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) request_id: Option<RequestIdHeader>,

    /// Headers that every response of a backend gets, such as `Server`. They replace headers of the same names. Answers
    /// that PingSIX gives itself do not get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[garde(length(max = 16), dive)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub(crate) response_headers: Vec<ResponseHeader>,
}

/// Metrics of requests. The labels are the route, the host of the route, the status and the endpoint. The path is not a
/// label, because the number of paths is unbounded.
///
/// Managed data planes serve them on the port `managed.process.metrics.port`, by default 9091. Attached processes need
/// `pingsix.prometheus.address` in their configuration.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct RequestMetrics {
    /// The number of hosts with a label of their own; further hosts share the label `*`. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 0, max = 1000))]
    pub(crate) max_hosts: Option<u16>,
}

/// The access log. PingSIX writes it at the log level `Info`.
#[derive(KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct AccessLog {
    /// The line, with variables such as `$status`. Default: `$remote_addr "$request_method $uri" $status`.
    ///
    /// The variables are `$request_method`, `$uri` (the path), `$query_string`, `$http_host` (HTTP/2 alone), `$request_time`
    /// (milliseconds), `$http_user_agent`, `$http_referer`, `$remote_addr`, `$remote_port`, `$server_addr`, `$status`,
    /// `$server_protocol`, `$request_id`, `$body_bytes_sent` and `$error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(min = 1, max = 1024))]
    pub(crate) format: Option<String>,

    /// Parameters whose values `$query_string` hides, in the spelling of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[garde(length(max = 32), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub(crate) redact_query_params: Vec<String>,
}

/// The header with the id of a request. The id of a client stays as it is.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct RequestIdHeader {
    /// The name of the header. Default: `X-Request-Id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(min = 1, max = 256))]
    pub(crate) header: Option<String>,

    /// Whether the response has the header, too. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_response: Option<bool>,
}

/// A header of responses.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct ResponseHeader {
    /// The name.
    #[garde(length(min = 1, max = 256))]
    pub(crate) name: String,

    /// The value.
    #[garde(length(min = 1, max = 4096))]
    pub(crate) value: String,
}
