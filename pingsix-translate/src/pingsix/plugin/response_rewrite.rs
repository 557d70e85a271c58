//! `response-rewrite`: changes to responses that come from a backend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The variables that the plugin replaces in the values of headers. PingSIX: `src/plugins/response_rewrite.rs`.
pub(crate) const EXPANDED_IN_HEADERS: [&str; 3] = ["$remote_addr", "$upstream_addr", "$request_id"];

/// Changes to responses of backends; answers of plugins and of PingSIX itself are not touched.
/// PingSIX: `src/plugins/response_rewrite.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseRewrite {
    /// The status; ignored when it is no HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// Changes to headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<ResponseHeaders>,
    /// Conditions on the request, as in [`super::SplitRule::vars`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vars: Option<Vec<Vec<String>>>,
}

/// Changes to response headers. PingSIX takes an object whose values are all texts for the first form, even
/// when its keys are those of the second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResponseHeaders {
    /// Headers to set.
    Simple(BTreeMap<String, String>),
    /// Changes applied in the order remove, set, add.
    Structured {
        /// Headers that get one more value, each `Name: value`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<String>,
        /// Headers whose values are replaced.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        set: BTreeMap<String, String>,
        /// Names of headers to remove.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
    },
}
