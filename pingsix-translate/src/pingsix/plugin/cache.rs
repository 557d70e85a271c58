//! `cache`: responses kept in memory.

use serde::{Deserialize, Serialize};

use super::Scope;
use crate::pingsix::omit;

/// A response cache in the memory of each process. PingSIX: `src/plugins/cache.rs`.
#[expect(clippy::struct_excessive_bools, reason = "the fields are PingSIX's")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Cache {
    /// The time in seconds for which a response is fresh, from 1.
    #[garde(range(min = 1))]
    pub ttl: u64,
    /// Methods whose responses are kept.
    #[serde(default = "default_methods", skip_serializing_if = "is_default_methods")]
    pub cache_http_methods: Vec<String>,
    /// Statuses that are kept, 100 to 599.
    #[serde(default = "default_statuses", skip_serializing_if = "is_default_statuses")]
    #[garde(inner(range(min = 100, max = 599)))]
    pub cache_http_statuses: Vec<u16>,
    /// Patterns of requests that are not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_cache_str: Vec<String>,
    /// Request headers that tell responses apart; not `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<String>,
    /// Whether `X-Cache-Status` is left out.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub hide_cache_headers: bool,
    /// The place of stored responses; PingSIX refuses [`Scope::Cluster`].
    #[serde(default, skip_serializing_if = "omit::default")]
    pub scope: Scope,
    /// The largest body in bytes; 0 is no limit, absence the process default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_size_bytes: Option<usize>,
    /// The time in seconds for which a stale response is served while PingSIX fetches a fresh one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_while_revalidate_secs: Option<u64>,
    /// Whether `s-maxage` overrides the freshness.
    #[serde(default = "omit::yes", skip_serializing_if = "omit::is_yes")]
    pub respect_s_maxage: bool,
    /// Whether requests with credentials are served from the cache.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub cache_authenticated_requests: bool,
    /// Whether responses that set cookies are kept.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub cache_set_cookie_responses: bool,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            ttl: 1,
            cache_http_methods: default_methods(),
            cache_http_statuses: default_statuses(),
            no_cache_str: Vec::new(),
            vary: Vec::new(),
            hide_cache_headers: false,
            scope: Scope::default(),
            max_file_size_bytes: None,
            stale_while_revalidate_secs: None,
            respect_s_maxage: true,
            cache_authenticated_requests: false,
            cache_set_cookie_responses: false,
        }
    }
}

fn default_methods() -> Vec<String> {
    vec!["GET".to_owned(), "HEAD".to_owned()]
}

fn is_default_methods(methods: &[String]) -> bool {
    methods == ["GET", "HEAD"]
}

fn default_statuses() -> Vec<u16> {
    vec![200]
}

fn is_default_statuses(statuses: &[u16]) -> bool {
    statuses == [200]
}
