//! `cors`: cross-origin resource sharing.

use serde::{Deserialize, Serialize};

use crate::pingsix::omit;

omit::defaults! {
    star: str = "*";
    max_age: i32 = &5;
}

/// Cross-origin resource sharing: answers preflights and marks responses. PingSIX: `src/plugins/cors.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cors {
    /// Origins, separated by commas; `*` and `**` are any.
    #[serde(default = "star::value", skip_serializing_if = "star::is")]
    pub allow_origins: String,
    /// Methods, separated by commas; `*`, or `**` for all PingSIX knows.
    #[serde(default = "star::value", skip_serializing_if = "star::is")]
    pub allow_methods: String,
    /// Request headers, separated by commas; `*`, or `**` to reflect the requested ones.
    #[serde(default = "star::value", skip_serializing_if = "star::is")]
    pub allow_headers: String,
    /// Response headers that scripts may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_headers: Option<String>,
    /// The time in seconds for which a preflight is valid.
    #[serde(default = "max_age::value", skip_serializing_if = "max_age::is")]
    pub max_age: i32,
    /// Whether credentials are allowed; not with any origin, nor with headers `*`.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub allow_credential: bool,
    /// Unanchored patterns of further origins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_origins_by_regex: Option<Vec<String>>,
}

impl Cors {
    /// The methods for which the plugin can allow a preflight.
    pub(crate) const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"];
}

impl Default for Cors {
    fn default() -> Self {
        Self {
            allow_origins: star::value(),
            allow_methods: star::value(),
            allow_headers: star::value(),
            expose_headers: None,
            max_age: max_age::value(),
            allow_credential: false,
            allow_origins_by_regex: None,
        }
    }
}
