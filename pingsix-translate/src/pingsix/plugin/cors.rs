//! `cors`: cross-origin resource sharing.

use serde::{Deserialize, Serialize};

use super::PluginConfig;
use crate::pingsix::omit;

/// Cross-origin resource sharing: answers preflights and marks responses. PingSIX: `src/plugins/cors.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cors {
    /// Origins, separated by commas; `*` and `**` are any.
    #[serde(default = "omit::star", skip_serializing_if = "omit::is_star")]
    pub allow_origins: String,
    /// Methods, separated by commas; `*`, or `**` for all PingSIX knows.
    #[serde(default = "omit::star", skip_serializing_if = "omit::is_star")]
    pub allow_methods: String,
    /// Request headers, separated by commas; `*`, or `**` to reflect the requested ones.
    #[serde(default = "omit::star", skip_serializing_if = "omit::is_star")]
    pub allow_headers: String,
    /// Response headers that scripts may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_headers: Option<String>,
    /// The time in seconds for which a preflight is valid.
    #[serde(default = "default_max_age", skip_serializing_if = "is_default_max_age")]
    pub max_age: i32,
    /// Whether credentials are allowed; not with any origin, nor with headers `*`.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub allow_credential: bool,
    /// Unanchored patterns of further origins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_origins_by_regex: Option<Vec<String>>,
}

impl PluginConfig for Cors {
    const NAME: &'static str = "cors";
}

impl Default for Cors {
    fn default() -> Self {
        Self {
            allow_origins: omit::star(),
            allow_methods: omit::star(),
            allow_headers: omit::star(),
            expose_headers: None,
            max_age: default_max_age(),
            allow_credential: false,
            allow_origins_by_regex: None,
        }
    }
}

fn default_max_age() -> i32 {
    5
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_default_max_age(seconds: &i32) -> bool {
    *seconds == default_max_age()
}
