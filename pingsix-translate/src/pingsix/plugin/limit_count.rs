//! `limit-count`: a number of requests per fixed window.

use serde::{Deserialize, Serialize};

use crate::pingsix::omit;
use crate::pingsix::upstream::HashOn;

omit::defaults! {
    key: str = "remote_addr";
    rejected_code: u16 = &503;
}

/// A number of requests per fixed window, key and process. PingSIX: `src/plugins/limit_count.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct LimitCount {
    /// The source of the key.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub key_type: HashOn,
    /// The variable, header or cookie that distinguishes clients: letters, digits, `.`, `_`, `-`.
    #[serde(default = "key::value", skip_serializing_if = "key::is")]
    pub key: String,
    /// The window in seconds, 1 to 86400.
    #[garde(range(min = 1, max = 86400))]
    pub time_window: u32,
    /// Requests per window, from 1.
    #[garde(range(min = 1))]
    pub count: u32,
    /// The status of rejected requests, 400 to 599.
    #[serde(default = "rejected_code::value", skip_serializing_if = "rejected_code::is")]
    #[garde(range(min = 400, max = 599))]
    pub rejected_code: u16,
    /// The body of rejected requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_msg: Option<String>,
    /// Whether responses have headers with the quota.
    #[serde(default = "omit::yes", skip_serializing_if = "omit::is_yes")]
    pub show_limit_quota_header: bool,
    /// The handling of a request without the key.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub key_missing_policy: KeyMissingPolicy,
    /// The place of counters; PingSIX refuses [`Scope::Cluster`].
    #[serde(default, skip_serializing_if = "omit::default")]
    pub scope: Scope,
}

impl LimitCount {
    /// Whether requests are counted by the address of the client.
    pub(crate) fn is_by_address(&self) -> bool {
        self.key_type == HashOn::Vars && key::is(&self.key)
    }
}

impl Default for LimitCount {
    fn default() -> Self {
        Self {
            key_type: HashOn::default(),
            key: key::value(),
            time_window: 1,
            count: 1,
            rejected_code: rejected_code::value(),
            rejected_msg: None,
            show_limit_quota_header: true,
            key_missing_policy: KeyMissingPolicy::default(),
            scope: Scope::default(),
        }
    }
}

/// The handling of a request without the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyMissingPolicy {
    /// The request passes uncounted.
    #[default]
    Allow,
    /// PingSIX answers 400.
    Deny,
    /// All such requests share one counter.
    Default,
}

/// The place of a plugin's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In the process.
    #[default]
    Local,
    /// Shared by processes; no plugin supports it.
    Cluster,
}
