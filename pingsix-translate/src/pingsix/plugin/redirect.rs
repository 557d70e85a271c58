//! `redirect`: redirects.

use serde::{Deserialize, Serialize};

use crate::pingsix::omit;

omit::defaults! {
    ret_code: u16 = &302;
}

/// A redirect. [`http_to_https`](Self::http_to_https), when it triggers, wins over [`uri`](Self::uri), and that
/// over [`regex_uri`](Self::regex_uri). PingSIX: `src/plugins/redirect.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// Redirects requests of connections without TLS to `https://<redirect_host>`.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub http_to_https: bool,
    /// The path, and perhaps query, to redirect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Pairs of an unanchored pattern and the template that replaces the whole path. PingSIX refuses a
    /// configuration without this field, so it is always written.
    pub regex_uri: Vec<String>,
    /// The status; 302 when it is no HTTP status.
    #[serde(default = "ret_code::value", skip_serializing_if = "ret_code::is")]
    pub ret_code: u16,
    /// Whether the request's query is kept.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub append_query_string: bool,
    /// The host, perhaps with a port, of [`http_to_https`](Self::http_to_https), which requires it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_host: Option<String>,
    /// Networks whose `X-Forwarded-Proto: https` counts as TLS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
}

impl Default for Redirect {
    fn default() -> Self {
        Self {
            http_to_https: false,
            uri: None,
            regex_uri: Vec::new(),
            ret_code: ret_code::value(),
            append_query_string: false,
            redirect_host: None,
            trusted_proxies: Vec::new(),
        }
    }
}
