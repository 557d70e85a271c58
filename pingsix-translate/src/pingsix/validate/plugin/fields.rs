//! The known fields of each plugin. PingSIX ignores all other fields.

use crate::pingsix::plugin::{
    BasicAuth, Brotli, Cache, Cors, Csrf, Echo, FaultInjection, FileLogger, Gzip, IpRestriction, JwtAuth,
    KeyAuth, LimitCount, PluginConfig, Prometheus, ProxyRewrite, Redirect, RequestId, ResponseRewrite,
    TrafficSplit,
};

/// The fields of a plugin; empty for a plugin without effective fields.
pub(super) fn known(plugin: &str) -> &'static [&'static str] {
    match plugin {
        TrafficSplit::NAME => &["rules"],
        ProxyRewrite::NAME => &["uri", "method", "regex_uri", "host", "headers"],
        Redirect::NAME => REDIRECT,
        ResponseRewrite::NAME => &["status_code", "headers", "vars"],
        FaultInjection::NAME => &["delay", "abort"],
        Echo::NAME => &["body", "headers"],
        Cors::NAME => CORS,
        LimitCount::NAME => LIMIT_COUNT,
        IpRestriction::NAME => IP_RESTRICTION,
        KeyAuth::NAME => &["header", "query", "key", "keys", "hide_credentials"],
        BasicAuth::NAME => &["username", "password", "hide_credentials"],
        JwtAuth::NAME => JWT_AUTH,
        Csrf::NAME => &["key", "expires", "name"],
        Cache::NAME => CACHE,
        Gzip::NAME | Brotli::NAME => &["comp_level", "decompression"],
        RequestId::NAME => &["header_name", "include_in_response", "algorithm", "range_id"],
        Prometheus::NAME => &["max_label_length", "max_unique_paths", "max_unique_hosts", "prefer_name"],
        FileLogger::NAME => &["log_format", "redact_query_params"],
        _ => &[],
    }
}

const REDIRECT: &[&str] = &[
    "http_to_https",
    "uri",
    "regex_uri",
    "ret_code",
    "append_query_string",
    "redirect_host",
    "trusted_proxies",
];

const CORS: &[&str] = &[
    "allow_origins",
    "allow_methods",
    "allow_headers",
    "expose_headers",
    "max_age",
    "allow_credential",
    "allow_origins_by_regex",
];

const LIMIT_COUNT: &[&str] = &[
    "key_type",
    "key",
    "time_window",
    "count",
    "rejected_code",
    "rejected_msg",
    "show_limit_quota_header",
    "key_missing_policy",
    "scope",
];

const IP_RESTRICTION: &[&str] = &[
    "whitelist",
    "blacklist",
    "message",
    "trusted_proxies",
    "use_forwarded_headers",
    "forwarded_header_error_policy",
];

const JWT_AUTH: &[&str] = &[
    "header",
    "query",
    "cookie",
    "hide_credentials",
    "store_in_ctx",
    "secret",
    "algorithm",
    "base64_secret",
    "lifetime_grace_period",
    "public_key",
    "iss",
    "aud",
    "required_claims",
];

const CACHE: &[&str] = &[
    "ttl",
    "cache_http_methods",
    "cache_http_statuses",
    "no_cache_str",
    "vary",
    "hide_cache_headers",
    "scope",
    "max_file_size_bytes",
    "stale_while_revalidate_secs",
    "respect_s_maxage",
    "cache_authenticated_requests",
    "cache_set_cookie_responses",
];
