//! `request-id`, `prometheus`, `file-logger` and `grpc-web`: plugins without effect on routing.

use serde::{Deserialize, Deserializer, Serialize};

use crate::pingsix::omit;

omit::defaults! {
    id_header: str = "X-Request-Id";
    algorithm: str = "uuid";
    hundred: usize = &100;
    thousand: usize = &1000;
    log_format: str = "$remote_addr \"$request_method $uri\" $status";
}

/// A request id, kept when the client sends one. PingSIX: `src/plugins/request_id.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestId {
    /// The header that carries the id.
    #[serde(default = "id_header::value", skip_serializing_if = "id_header::is")]
    pub header_name: String,
    /// Whether the response carries it too.
    #[serde(default = "omit::yes", skip_serializing_if = "omit::is_yes")]
    pub include_in_response: bool,
    /// `uuid` or `range_id`.
    #[serde(default = "algorithm::value", skip_serializing_if = "algorithm::is")]
    pub algorithm: String,
    /// The form of ids of the algorithm `range_id`. Without this object, such ids are empty.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub range_id: RangeId,
}

impl Default for RequestId {
    fn default() -> Self {
        Self {
            header_name: id_header::value(),
            include_in_response: true,
            algorithm: algorithm::value(),
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
pub(crate) struct Prometheus {
    /// The longest path label in bytes.
    #[serde(default = "hundred::value", skip_serializing_if = "hundred::is")]
    pub max_label_length: usize,
    /// The limit of distinct path labels.
    #[serde(default = "thousand::value", skip_serializing_if = "thousand::is")]
    pub max_unique_paths: usize,
    /// The limit of distinct host labels.
    #[serde(default = "hundred::value", skip_serializing_if = "hundred::is")]
    pub max_unique_hosts: usize,
    /// Whether labels carry names rather than ids.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub prefer_name: bool,
}

impl Default for Prometheus {
    fn default() -> Self {
        Self {
            max_label_length: hundred::value(),
            max_unique_paths: thousand::value(),
            max_unique_hosts: hundred::value(),
            prefer_name: false,
        }
    }
}

/// An access log in the log of the process. PingSIX: `src/plugins/file_logger.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileLogger {
    /// The line, with `$variable`s.
    #[serde(default = "log_format::value", skip_serializing_if = "log_format::is")]
    pub log_format: String,
    /// Query parameters whose values are hidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact_query_params: Vec<String>,
}

impl Default for FileLogger {
    fn default() -> Self {
        Self { log_format: log_format::value(), redact_query_params: Vec::new() }
    }
}

impl FileLogger {
    /// The variables of a line (`LogFormat::write_variable`), beside those of PingSIX's own plugins, which start with `var_`.
    pub(crate) const VARIABLES: [&str; 15] = [
        "request_method",
        "uri",
        "query_string",
        "http_host",
        "request_time",
        "http_user_agent",
        "http_referer",
        "remote_addr",
        "remote_port",
        "server_addr",
        "status",
        "server_protocol",
        "request_id",
        "body_bytes_sent",
        "error",
    ];

    /// The names of the variables in a line: `$` with letters, digits and underscores.
    pub(crate) fn variables(format: &str) -> impl Iterator<Item = &str> {
        format.split('$').skip(1).filter_map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
        })
    }
}

/// gRPC-Web for browsers; the backend must speak `grpc` or `grpcs`. PingSIX accepts any configuration and
/// ignores it. PingSIX: `src/plugins/grpc_web.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrpcWeb {}

impl<'de> Deserialize<'de> for GrpcWeb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}
