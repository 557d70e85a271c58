//! `request-id`, `prometheus`, `file-logger` and `grpc-web`: plugins without effect on routing.

use serde::{Deserialize, Deserializer, Serialize};

use super::PluginConfig;
use crate::pingsix::omit;

/// A request id, kept when the client sends one. PingSIX: `src/plugins/request_id.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestId {
    /// The header that carries the id.
    #[serde(default = "RequestId::default_header", skip_serializing_if = "RequestId::is_default_header")]
    pub header_name: String,
    /// Whether the response carries it too.
    #[serde(default = "omit::yes", skip_serializing_if = "omit::is_yes")]
    pub include_in_response: bool,
    /// `uuid` or `range_id`.
    #[serde(
        default = "RequestId::default_algorithm",
        skip_serializing_if = "RequestId::is_default_algorithm"
    )]
    pub algorithm: String,
    /// The form of ids of the algorithm `range_id`. Without this object, such ids are empty.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub range_id: RangeId,
}

impl PluginConfig for RequestId {
    const NAME: &'static str = "request-id";
}

impl Default for RequestId {
    fn default() -> Self {
        Self {
            header_name: Self::default_header(),
            include_in_response: true,
            algorithm: Self::default_algorithm(),
            range_id: RangeId::default(),
        }
    }
}

impl RequestId {
    /// Puts an empty `X-Forwarded-For` in the place of a missing or unreadable one. PingSIX adds ids to other requests alone.
    pub(crate) fn empty_forwarded_for() -> Self {
        Self {
            header_name: Self::FORWARDED_FOR.to_owned(),
            include_in_response: false,
            algorithm: "range_id".to_owned(),
            ..Self::default()
        }
    }

    /// The header in which an empty id is of use.
    pub(crate) const FORWARDED_FOR: &str = "X-Forwarded-For";

    fn default_header() -> String {
        "X-Request-Id".to_owned()
    }

    fn is_default_header(header: &str) -> bool {
        header == "X-Request-Id"
    }

    fn default_algorithm() -> String {
        "uuid".to_owned()
    }

    fn is_default_algorithm(algorithm: &str) -> bool {
        algorithm == "uuid"
    }
}

/// The form of a random id. The default is the empty id that PingSIX uses without this object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeId {
    /// The characters to draw from; letters and digits when the object is present without this field.
    #[serde(default = "RangeId::default_char_set")]
    pub char_set: String,
    /// The number of characters; 16 when the object is present without this field.
    #[serde(default = "RangeId::default_length")]
    pub length: u32,
}

impl RangeId {
    fn default_char_set() -> String {
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIGKLMNOPQRSTUVWXYZ0123456789".to_owned()
    }

    fn default_length() -> u32 {
        16
    }
}

/// Metrics of the requests with this plugin. PingSIX: `src/plugins/prometheus.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prometheus {
    /// The longest path label in bytes.
    #[serde(default = "Prometheus::hundred", skip_serializing_if = "Prometheus::is_hundred")]
    pub max_label_length: usize,
    /// The limit of distinct path labels.
    #[serde(default = "Prometheus::thousand", skip_serializing_if = "Prometheus::is_thousand")]
    pub max_unique_paths: usize,
    /// The limit of distinct host labels.
    #[serde(default = "Prometheus::hundred", skip_serializing_if = "Prometheus::is_hundred")]
    pub max_unique_hosts: usize,
    /// Whether labels carry names rather than ids.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub prefer_name: bool,
}

impl PluginConfig for Prometheus {
    const NAME: &'static str = "prometheus";
}

impl Default for Prometheus {
    fn default() -> Self {
        Self {
            max_label_length: Self::hundred(),
            max_unique_paths: Self::thousand(),
            max_unique_hosts: Self::hundred(),
            prefer_name: false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
impl Prometheus {
    fn hundred() -> usize {
        100
    }

    fn is_hundred(number: &usize) -> bool {
        *number == Self::hundred()
    }

    fn thousand() -> usize {
        1000
    }

    fn is_thousand(number: &usize) -> bool {
        *number == Self::thousand()
    }
}

/// An access log in the log of the process. PingSIX: `src/plugins/file_logger.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLogger {
    /// The line, with `$variable`s.
    #[serde(default = "FileLogger::default_format", skip_serializing_if = "FileLogger::is_default_format")]
    pub log_format: String,
    /// Query parameters whose values are hidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact_query_params: Vec<String>,
}

impl PluginConfig for FileLogger {
    const NAME: &'static str = "file-logger";
}

impl Default for FileLogger {
    fn default() -> Self {
        Self { log_format: Self::default_format(), redact_query_params: Vec::new() }
    }
}

impl FileLogger {
    fn default_format() -> String {
        "$remote_addr \"$request_method $uri\" $status".to_owned()
    }

    fn is_default_format(format: &str) -> bool {
        format == Self::default_format()
    }
}

/// gRPC-Web for browsers; the backend must speak `grpc` or `grpcs`. PingSIX accepts any configuration and
/// ignores it. PingSIX: `src/plugins/grpc_web.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrpcWeb {}

impl PluginConfig for GrpcWeb {
    const NAME: &'static str = "grpc-web";
}

impl<'de> Deserialize<'de> for GrpcWeb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}
