//! `proxy-rewrite`: changes to the request on its way to the backend.

use serde::{Deserialize, Serialize};

/// Changes to the request to the backend, after matching. PingSIX: `src/plugins/proxy_rewrite.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyRewrite {
    /// The whole path; wins over [`regex_uri`](Self::regex_uri).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Pairs of an unanchored pattern and the template that replaces the whole path; the first match counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regex_uri: Vec<String>,
    /// The Host header; a `pass_host` other than `pass` overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Changes to headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<HeaderChanges>,
}

/// Changes to request headers, applied in the order set, remove, add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderChanges {
    /// Headers that get one more value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Header>,
    /// Headers whose values are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Header>,
    /// Names of headers to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// A header and its value; variables are not expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}
