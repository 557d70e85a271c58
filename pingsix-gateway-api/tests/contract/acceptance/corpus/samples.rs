//! Sound documents and configurations.

use serde_json::{Value, json};

use super::material::Material;

/// Documents of every kind, most of their fields set.
pub(super) fn documents(material: &Material) -> Vec<(String, Value)> {
    let Material { cert, key, other_cert, .. } = material;
    let timeout = json!({ "connect": 1, "send": 2, "read": 86400 });
    let inline =
        json!({ "nodes": { "127.0.0.1:9": 1, "127.0.0.2:9": 2 }, "type": "random", "timeout": timeout });
    let active = json!({
        "type": "http", "timeout": 1, "http_path": "/health", "host": "x.t", "port": 9, "https_verify_certificate": false,
        "req_headers": ["X-A: b"], "healthy": { "interval": 3600, "http_statuses": [200, 204], "successes": 1 },
        "unhealthy": { "http_failures": 3, "tcp_failures": 2 },
    });
    let subjects = [
        (
            "upstreams/x",
            json!({
                "id": "x", "name": "n", "retries": 2, "retry_timeout": 3, "timeout": timeout, "nodes": { "127.0.0.1:9": 1, "[::1]:9": 3 },
                "type": "ketama", "hash_on": "head", "key": "x-a", "scheme": "grpc", "pass_host": "rewrite", "upstream_host": "x.t",
            }),
        ),
        ("upstreams/nodes", json!({ "nodes": { "127.0.0.1:9": 1 } })),
        (
            "upstreams/several",
            json!({ "nodes": { "127.0.0.1:9": 1, "127.0.0.2": 2, "localhost:9": 1 }, "type": "fnv" }),
        ),
        ("upstreams/checks", json!({ "nodes": { "127.0.0.1:9": 1 }, "checks": { "active": active } })),
        (
            "upstreams/tcp",
            json!({ "nodes": { "127.0.0.1:9": 1 }, "checks": { "active": { "type": "tcp", "healthy": { "interval": 3600 } } } }),
        ),
        (
            "upstreams/tls",
            json!({
                "nodes": { "127.0.0.1:9": 1 }, "scheme": "https", "pass_host": "rewrite", "upstream_host": "x.t",
                "tls": { "client_cert": cert, "client_key": key },
            }),
        ),
        (
            "services/x",
            json!({ "name": "n", "upstream_id": "u", "hosts": ["x.t", "*.x.t"], "plugins": { "cors": {} } }),
        ),
        ("services/inline", json!({ "upstream": inline, "hosts": ["x.t"] })),
        (
            "routes/x",
            json!({
                "id": "x", "name": "n", "uris": ["/x", "/x/{*p}"], "methods": ["GET", "POST"], "hosts": ["x.t", "*.x.t"], "priority": 7,
                "plugins": {}, "upstream_id": "u", "timeout": timeout,
            }),
        ),
        ("routes/uri", json!({ "uri": "/x/{a}", "host": "x.t", "service_id": "s", "upstream_id": "u" })),
        ("routes/inline", json!({ "uri": "/x", "host": "x.t", "upstream": inline })),
        ("routes/service", json!({ "uri": "/x", "service_id": "s" })),
        ("ssls/x", json!({ "cert": cert, "key": key, "snis": ["x.t", "*.x.t"] })),
        ("ssls/chain", json!({ "cert": format!("{cert}{other_cert}"), "key": key, "snis": ["x.t"] })),
        (
            "global_rules/x",
            json!({ "id": "x", "plugins": { "cors": { "allow_origins": "http://a.t" }, "prometheus": {} } }),
        ),
    ];
    subjects.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A `traffic-split` with targets of all forms.
pub(super) fn split() -> Value {
    json!({ "rules": [
        { "vars": [["http_x-a", "==", "b"], ["arg_c", "!=", ""]], "weighted_upstreams": [{ "upstream_id": "u", "weight": 3 }, { "weight": 1 }] },
        { "weighted_upstreams": [{ "upstream": { "nodes": { "127.0.0.1:9": 1 }, "scheme": "http" }, "weight": 1 }] },
    ] })
}

/// A rich configuration of every plugin.
pub(super) fn plugins(material: &Material) -> Vec<(&'static str, Value)> {
    vec![
        ("basic-auth", json!({ "username": "u", "password": "p", "hide_credentials": true })),
        ("brotli", json!({ "comp_level": 11, "decompression": true })),
        (
            "cache",
            json!({
                "ttl": 60, "cache_http_methods": ["GET"], "cache_http_statuses": [200, 404], "no_cache_str": ["^/private"], "vary": ["Accept"],
                "hide_cache_headers": true, "max_file_size_bytes": 1024, "stale_while_revalidate_secs": 5, "respect_s_maxage": false,
                "cache_authenticated_requests": false, "cache_set_cookie_responses": false, "scope": "local",
            }),
        ),
        (
            "cors",
            json!({
                "allow_origins": "http://a.t,http://b.t", "allow_methods": "GET,POST", "allow_headers": "X-A,X-B", "expose_headers": "X-C",
                "max_age": 60, "allow_credential": true, "allow_origins_by_regex": ["^https?://.*\\.t$"],
            }),
        ),
        ("csrf", json!({ "key": "k", "expires": 60, "name": "n" })),
        ("echo", json!({ "body": "b", "headers": { "X-A": "b" } })),
        (
            "fault-injection",
            json!({
                "delay": { "duration": 0.5, "percentage": 10 },
                "abort": { "http_status": 503, "body": "b", "headers": { "X-A": "b", "X-B": 1 }, "percentage": 50 },
            }),
        ),
        ("file-logger", json!({ "log_format": "$host", "redact_query_params": ["token"] })),
        ("grpc-web", json!({ "a": 1 })),
        ("gzip", json!({ "comp_level": 9, "decompression": false })),
        (
            "ip-restriction",
            json!({
                "whitelist": ["10.0.0.0/8", "::1"], "blacklist": ["10.1.0.0/16"], "trusted_proxies": ["127.0.0.1"], "message": "m",
                "use_forwarded_headers": true, "forwarded_header_error_policy": "deny",
            }),
        ),
        (
            "jwt-auth",
            json!({
                "secret": "c2VjcmV0", "base64_secret": true, "algorithm": "HS512", "header": "authorization", "query": "q", "cookie": "c",
                "lifetime_grace_period": 5, "iss": "i", "aud": "a", "required_claims": ["sub"], "hide_credentials": true, "store_in_ctx": true,
            }),
        ),
        ("jwt-auth", json!({ "public_key": material.public_key, "algorithm": "ES256" })),
        (
            "key-auth",
            json!({ "key": "k", "keys": ["a", "b"], "header": "x-key", "query": "q", "hide_credentials": true }),
        ),
        (
            "limit-count",
            json!({
                "time_window": 60, "count": 10, "key_type": "head", "key": "x-a", "rejected_code": 429, "rejected_msg": "m",
                "show_limit_quota_header": false, "key_missing_policy": "default", "scope": "local",
            }),
        ),
        (
            "prometheus",
            json!({ "max_label_length": 10, "max_unique_paths": 5, "max_unique_hosts": 5, "prefer_name": true }),
        ),
        (
            "proxy-rewrite",
            json!({
                "uri": "/y", "method": "POST", "regex_uri": ["^/x(.*)$", "/y$1"], "host": "y.t",
                "headers": { "set": [{ "name": "X-A", "value": "b" }], "add": [{ "name": "X-B", "value": "c" }], "remove": ["X-C"] },
            }),
        ),
        (
            "redirect",
            json!({
                "http_to_https": true, "redirect_host": "x.t:8443", "uri": "/y", "regex_uri": ["^/x(.*)$", "/y$1"], "ret_code": 301,
                "append_query_string": true, "trusted_proxies": ["10.0.0.0/8"],
            }),
        ),
        (
            "request-id",
            json!({
                "header_name": "X-Id", "include_in_response": false, "algorithm": "range_id", "range_id": { "char_set": "abc", "length": 8 },
            }),
        ),
        (
            "response-rewrite",
            json!({
                "status_code": 201, "headers": { "set": { "X-A": "b" }, "add": ["X-B: c"], "remove": ["X-C"] }, "vars": [["http_x-a", "==", "b"]],
            }),
        ),
        ("response-rewrite", json!({ "headers": { "X-A": "b" } })),
        ("traffic-split", split()),
    ]
}
