//! Plugins: names, configurations, and violations at run time.

use super::*;

#[test]
fn plugins_pingsix_does_not_have_are_refused() {
    for name in ["limit-req", "proxy-mirror", "ext-auth", "Redirect", ""] {
        refused_late(&plugin(name, &json!({})), Rule::PluginName);
    }
    refused_late(&json!({"global_rules/g": {"plugins": {"nope": {}}}}), Rule::PluginName);
    refused_late(&json!({"services/s": {"upstream_id": "u", "plugins": {"nope": {}}}}), Rule::PluginName);
}

#[test]
fn the_smallest_configuration_of_every_plugin_is_accepted() {
    let smallest = [
        ("basic-auth", json!({"username": "u", "password": "p"})),
        ("brotli", json!({})),
        ("cache", json!({"ttl": 1})),
        ("cors", json!({})),
        ("csrf", json!({"key": "k"})),
        ("echo", json!({"body": ""})),
        ("fault-injection", json!({"abort": {"http_status": 200}})),
        ("file-logger", json!({})),
        ("grpc-web", json!(null)),
        ("gzip", json!({})),
        ("ip-restriction", json!({})),
        ("jwt-auth", json!({"secret": "s"})),
        ("key-auth", json!({"key": "k"})),
        ("limit-count", json!({"time_window": 1, "count": 1})),
        ("prometheus", json!(null)),
        ("proxy-rewrite", json!({})),
        ("redirect", json!({"regex_uri": []})),
        ("request-id", json!({})),
        ("response-rewrite", json!({})),
        ("traffic-split", json!({"rules": [{"weighted_upstreams": [{"weight": 1}]}]})),
    ];
    let names: Vec<&str> = smallest.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, crate::pingsix::plugin::PLUGIN_NAMES);
    for (name, config) in &smallest {
        accepted(&plugin(name, config));
        if !matches!(*name, "grpc-web" | "prometheus") {
            let documents = plugin(name, &Value::Null);
            assert!(is_refused(&violations(&documents)), "{name} does not take null");
        }
    }
}

#[test]
fn configurations_pingsix_refuses_when_it_compiles_are_refused() {
    for (name, config, rule) in [
        ("redirect", json!({}), Rule::PluginDecode),
        ("redirect", json!({"uri": "/x"}), Rule::PluginDecode),
        ("redirect", json!({"regex_uri": ["a"]}), Rule::Redirect),
        ("redirect", json!({"regex_uri": ["(", "/"]}), Rule::Redirect),
        ("redirect", json!({"regex_uri": ["(?=x)", "/"]}), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "http_to_https": true}), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "http_to_https": true, "redirect_host": " "}), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "trusted_proxies": ["x"]}), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "ret_code": 70000}), Rule::PluginDecode),
        ("proxy-rewrite", json!({"regex_uri": ["a"]}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"regex_uri": ["[", "/"]}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"headers": {"set": {"A": "b"}}}), Rule::PluginDecode),
        ("response-rewrite", json!({"status_code": "200"}), Rule::PluginDecode),
        ("response-rewrite", json!({"headers": {"set": {"A": 1}}}), Rule::PluginDecode),
        ("fault-injection", json!({}), Rule::FaultInjection),
        ("fault-injection", json!({"abort": {"http_status": 199}}), Rule::FaultInjection),
        ("fault-injection", json!({"abort": {"http_status": 200, "percentage": 101}}), Rule::FaultInjection),
        ("fault-injection", json!({"delay": {"duration": -0.1}}), Rule::FaultInjection),
        ("fault-injection", json!({"delay": {}}), Rule::PluginDecode),
        ("echo", json!({}), Rule::PluginDecode),
        ("cors", json!({"allow_credential": true}), Rule::Cors),
        ("cors", json!({"allow_credential": true, "allow_origins": "**"}), Rule::Cors),
        ("cors", json!({"allow_credential": true, "allow_origins": "http://a"}), Rule::Cors),
        ("cors", json!({"allow_origins_by_regex": ["("]}), Rule::Cors),
        ("cors", json!({"max_age": "5"}), Rule::PluginDecode),
        ("limit-count", json!({}), Rule::PluginDecode),
        ("limit-count", json!({"time_window": 0, "count": 1}), Rule::LimitCount),
        ("limit-count", json!({"time_window": 86401, "count": 1}), Rule::LimitCount),
        ("limit-count", json!({"time_window": 1, "count": 0}), Rule::LimitCount),
        ("limit-count", json!({"time_window": 1, "count": 1, "rejected_code": 399}), Rule::LimitCount),
        ("limit-count", json!({"time_window": 1, "count": 1, "key": ""}), Rule::LimitCount),
        ("limit-count", json!({"time_window": 1, "count": 1, "key": "a b"}), Rule::LimitCount),
        ("limit-count", json!({"time_window": 1, "count": 1, "scope": "cluster"}), Rule::LimitCount),
        ("ip-restriction", json!({"whitelist": ["10.0.0.0/33"]}), Rule::IpRestriction),
        ("ip-restriction", json!({"blacklist": ["x"]}), Rule::IpRestriction),
        ("ip-restriction", json!({"forwarded_header_error_policy": "x"}), Rule::PluginDecode),
        ("key-auth", json!({}), Rule::KeyAuth),
        ("key-auth", json!({"keys": []}), Rule::KeyAuth),
        ("basic-auth", json!({"username": "", "password": "p"}), Rule::BasicAuth),
        ("basic-auth", json!({"username": "u", "password": ""}), Rule::BasicAuth),
        ("basic-auth", json!({"username": "u"}), Rule::PluginDecode),
        ("jwt-auth", json!({}), Rule::JwtAuth),
        ("jwt-auth", json!({"secret": "s", "algorithm": "HS384"}), Rule::JwtAuth),
        ("jwt-auth", json!({"secret": "s", "algorithm": "none"}), Rule::PluginDecode),
        ("jwt-auth", json!({"secret": "%", "base64_secret": true}), Rule::JwtAuth),
        ("jwt-auth", json!({"secret": "s", "algorithm": "RS256"}), Rule::JwtAuth),
        ("jwt-auth", json!({"public_key": "x", "algorithm": "ES256"}), Rule::JwtAuth),
        ("csrf", json!({"key": ""}), Rule::Csrf),
        ("csrf", json!({}), Rule::PluginDecode),
        ("cache", json!({"ttl": 0}), Rule::Cache),
        ("cache", json!({"ttl": 1, "cache_http_methods": ["G T"]}), Rule::Cache),
        ("cache", json!({"ttl": 1, "cache_http_statuses": [600]}), Rule::Cache),
        ("cache", json!({"ttl": 1, "no_cache_str": ["("]}), Rule::Cache),
        ("cache", json!({"ttl": 1, "vary": ["*"]}), Rule::Cache),
        ("cache", json!({"ttl": 1, "scope": "cluster"}), Rule::Cache),
        ("gzip", json!({"comp_level": 10}), Rule::Compression),
        ("brotli", json!({"comp_level": 12}), Rule::Compression),
        ("gzip", json!({"comp_level": "1"}), Rule::PluginDecode),
        ("request-id", json!({"algorithm": "nanoid"}), Rule::RequestId),
        ("prometheus", json!({"max_label_length": -1}), Rule::PluginDecode),
        ("file-logger", json!({"log_format": {}}), Rule::PluginDecode),
    ] {
        refused_late(&plugin(name, &config), rule);
    }
}

#[test]
fn configurations_that_look_wrong_and_are_not_are_accepted() {
    for (name, config) in [
        ("redirect", json!({"regex_uri": ["^/a/(.*)$", "/b/$1"], "uri": null, "ret_code": 308})),
        (
            "redirect",
            json!({"regex_uri": [], "trusted_proxies": ["10.0.0.1", "10.0.0.1/8", "::/0", "10.0.0.0/255.0.0.0"]}),
        ),
        (
            "proxy-rewrite",
            json!({"uri": "/x?y", "headers": {"set": [{"name": "A", "value": ""}], "remove": ["b"]}}),
        ),
        ("response-rewrite", json!({"headers": {"A": "b"}, "status_code": 201, "vars": []})),
        ("response-rewrite", json!({"headers": {"set": {"A": "b"}, "add": ["C: d"], "remove": ["E"]}})),
        (
            "fault-injection",
            json!({"abort": {"http_status": 999, "headers": {"A": 1, "B": true}, "body": ""}}),
        ),
        ("fault-injection", json!({"delay": {"duration": 0.5}})),
        ("cors", json!({"allow_credential": true, "allow_origins": "http://a", "allow_headers": "**"})),
        (
            "limit-count",
            json!({"time_window": 1, "count": 1, "key_type": "head", "key": "X-A", "key_missing_policy": "deny"}),
        ),
        ("limit-count", json!({"time_window": 1, "count": 1, "key": "request_uri"})),
        (
            "jwt-auth",
            json!({"secret": "s", "iss": "i", "aud": "a", "required_claims": ["aud", "iss", "sub"]}),
        ),
        ("prometheus", json!({"max_label_length": 4096, "max_unique_paths": 0, "max_unique_hosts": 0})),
        ("file-logger", json!({"log_format": "$remote_addr $$ $var_x $ [$status]"})),
        ("key-auth", json!({"key": null, "keys": ["a", "b"]})),
        ("gzip", json!({"comp_level": 0, "decompression": true})),
        ("brotli", json!({"comp_level": 11})),
        ("request-id", json!({"algorithm": "range_id", "range_id": {}})),
        ("jwt-auth", json!({"secret": "c2VjcmV0", "base64_secret": true, "algorithm": "HS512"})),
        ("grpc-web", json!({"anything": 1})),
    ] {
        accepted(&plugin(name, &config));
    }
}

#[test]
fn traffic_splits_of_the_wrong_form_are_refused_for_any_owner() {
    for (config, rule) in [
        (json!({}), Rule::PluginDecode),
        (json!({"rules": []}), Rule::TrafficSplit),
        (json!({"rules": [{"weighted_upstreams": []}]}), Rule::TrafficSplit),
        (json!({"rules": [{}]}), Rule::PluginDecode),
        (json!({"rules": [{"weighted_upstreams": [{"upstream_id": "u"}]}]}), Rule::PluginDecode),
        (json!({"rules": [{"weighted_upstreams": [{"weight": 0}]}]}), Rule::TrafficSplit),
        (json!({"rules": [{"weighted_upstreams": [{"weight": -1}]}]}), Rule::PluginDecode),
        (json!({"rules": [{"weighted_upstreams": [{"upstream_id": "none", "weight": 1}]}]}), Rule::Reference),
        (
            json!({"rules": [{"weighted_upstreams": [
                {"upstream_id": "u", "upstream": {"nodes": {"127.0.0.1:1": 1}}, "weight": 1}]}]}),
            Rule::TrafficSplit,
        ),
        (
            json!({"rules": [{"vars": [["a", "==", 1]], "weighted_upstreams": [{"weight": 1}]}]}),
            Rule::PluginDecode,
        ),
    ] {
        let plugins = json!({"traffic-split": config});
        refused(&route(&json!({"plugins": plugins})), rule);
        refused(&json!({"services/s": {"upstream_id": "u", "plugins": plugins}}), rule);
        refused(&json!({"global_rules/g": {"plugins": plugins}}), rule);
    }
}

#[test]
fn lists_in_the_place_of_objects_of_a_traffic_split_fail_late() {
    let target = json!({"upstream_id": "u", "weight": 1});
    let inline = json!({"nodes": {"127.0.0.1:1": 1}});
    for config in [
        json!([[{"weighted_upstreams": [target]}]]),
        json!({"rules": [[[], [target]]]}),
        json!({"rules": [{"weighted_upstreams": [[null, inline, 1]]}]}),
    ] {
        refused_late(&plugin("traffic-split", &config), Rule::TrafficSplit);
        refused_late(&json!({"global_rules/g": {"plugins": {"traffic-split": config}}}), Rule::TrafficSplit);
    }
    // Only inline upstreams are looked for by name inside a target.
    accepted(&plugin("traffic-split", &json!({"rules": [{"weighted_upstreams": [["u", null, 1]]}]})));
}

#[test]
fn networks_are_read_as_pingsix_reads_them() {
    for (network, is_one) in [
        ("10.0.0.0/+8", true),
        ("10.0.0.0/08", true),
        ("::/+0", true),
        ("10.0.0.0/0.0.0.0", true),
        ("10.0.0.0/255.255.255.255", true),
        ("10.0.0.0/255.0.255.0", false),
        ("10.0.0.0/0.0.0.255", false),
        ("10.0.0.0/-1", false),
        ("10.0.0.0/", false),
        ("10.0.0.0/8/8", false),
        ("::/ffff::", false),
        ("::/129", false),
        ("010.0.0.1", false),
    ] {
        let documents = plugin("ip-restriction", &json!({"whitelist": [network]}));
        assert_eq!(!is_refused(&violations(&documents)), is_one, "{network}");
    }
}

#[test]
fn inline_targets_of_a_traffic_split_fail_late() {
    let split = |upstream: Value| {
        plugin(
            "traffic-split",
            &json!({"rules": [{"weighted_upstreams": [{"upstream": upstream, "weight": 1}]}]}),
        )
    };
    refused_late(&split(json!(null)), Rule::TrafficSplit);
    refused_late(&split(json!({"nodes": {}})), Rule::NodeUsable);
    refused_late(&split(json!({"nodes": {"999.1.1.1:1": 1}})), Rule::DnsName);
    refused_late(
        &split(json!({"nodes": {"127.0.0.1:1": 1}, "tls": {"client_cert": "", "client_key": ""}})),
        Rule::ClientCertificate,
    );
    misbehaves(&split(json!({"nodes": {"127.0.0.1:1": 0}})), Rule::InlineWeight);
    accepted(&split(json!({"nodes": {"127.0.0.1:1": 0, "127.0.0.1:2": 1}})));
}

#[test]
fn configurations_that_are_accepted_and_do_something_else_are_flagged() {
    let split = |rule: Value| {
        let mut rule = rule;
        rule["weighted_upstreams"] = json!([{"weight": 1}]);
        json!({"rules": [rule]})
    };
    for (name, config, rule) in [
        ("proxy-rewrite", json!({"headers": {"X": "v"}}), Rule::IgnoredField),
        ("proxy-rewrite", json!({"uri": "/a b"}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"regex_uri": ["x", ""]}), Rule::ProxyRewrite),
        ("response-rewrite", json!({"body": "x"}), Rule::IgnoredField),
        ("response-rewrite", json!({"status_code": 9999}), Rule::ResponseRewrite),
        ("response-rewrite", json!({"headers": {"set": {}, "rename": {}}}), Rule::IgnoredField),
        ("response-rewrite", json!({"headers": {"set": "a"}}), Rule::ResponseRewrite),
        ("response-rewrite", json!({"vars": [["uri", "~~", "x"]]}), Rule::ResponseRewrite),
        ("traffic-split", split(json!({"match": [{"vars": []}]})), Rule::TrafficSplit),
        ("traffic-split", split(json!({"vars": [["uri", "~~", "x"]]})), Rule::TrafficSplit),
        ("traffic-split", split(json!({"vars": [["uri", "=="]]})), Rule::TrafficSplit),
        ("redirect", json!({"regex_uri": [], "ret_code": 1000}), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "ret_code": 99}), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "ret_code": 200}), Rule::Redirect),
        ("cors", json!({"allow_methods": "CONNECT"}), Rule::Cors),
        ("cors", json!({"allow_headers": "X_A"}), Rule::Cors),
        ("key-auth", json!({"key": ""}), Rule::KeyAuth),
        ("basic-auth", json!({"username": "a:b", "password": "p"}), Rule::BasicAuth),
        ("csrf", json!({"key": "k", "name": "a b"}), Rule::Csrf),
        (
            "fault-injection",
            json!({"abort": {"http_status": 200, "headers": {"a": []}}}),
            Rule::FaultInjection,
        ),
        ("request-id", json!({"algorithm": "range_id"}), Rule::RequestId),
        ("prometheus", json!({"max_label_length": 3}), Rule::Prometheus),
        ("file-logger", json!({"log_format": "$host"}), Rule::FileLogger),
        (
            "limit-count",
            json!({"time_window": 1, "count": 1, "key": "host", "key_missing_policy": "default"}),
            Rule::LimitCount,
        ),
        ("limit-count", json!({"time_window": 1, "count": 1, "policy": "redis"}), Rule::IgnoredField),
        ("gzip", json!({"_meta": {"disable": true}}), Rule::PluginMeta),
    ] {
        misbehaves(&plugin(name, &config), rule);
    }
}

/// PingSIX builds these. The contract tests against the real PingSIX show the answers.
#[test]
fn configurations_that_fail_requests_or_do_not_protect_are_harmful() {
    let header = |name: &str, value: &str| json!({"headers": {"set": [{"name": name, "value": value}]}});
    let jwt = |field: &str, value: Value| json!({"secret": "s", field: value});
    let limit = |key_type: &str, key: &str, policy: &str| json!({"time_window": 1, "count": 1, "key_type": key_type, "key": key, "key_missing_policy": policy});
    let abort = |abort: Value| json!({"abort": abort});
    let range = |range: Value| json!({"algorithm": "range_id", "range_id": range});
    let https = |host: &str| json!({"regex_uri": [], "http_to_https": true, "redirect_host": host});
    for (name, config, rule) in [
        ("proxy-rewrite", header("a b", "c"), Rule::ProxyRewrite),
        ("proxy-rewrite", header("a", "b\nc"), Rule::ProxyRewrite),
        ("proxy-rewrite", header("Content-Length", "5"), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"headers": {"remove": ["Host"]}}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"method": "G T"}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"uri": "x"}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"regex_uri": ["^/(.*)$", "x$1"]}), Rule::ProxyRewrite),
        ("proxy-rewrite", json!({"host": "a b"}), Rule::ProxyRewrite),
        ("response-rewrite", json!({"headers": {"a b": "c"}}), Rule::ResponseRewrite),
        ("response-rewrite", json!({"headers": {"set": {"A": "b\nc"}}}), Rule::ResponseRewrite),
        ("response-rewrite", json!({"headers": {"Transfer-Encoding": "x"}}), Rule::ResponseRewrite),
        ("response-rewrite", json!({"status_code": 101}), Rule::ResponseRewrite),
        ("redirect", https("a b"), Rule::Redirect),
        ("redirect", json!({"regex_uri": [], "ret_code": 100}), Rule::Redirect),
        ("fault-injection", abort(json!({"http_status": 1000})), Rule::FaultInjection),
        ("fault-injection", abort(json!({"http_status": 204, "body": "x"})), Rule::FaultInjection),
        ("fault-injection", abort(json!({"http_status": 200, "headers": {"a b": 1}})), Rule::FaultInjection),
        ("fault-injection", abort(json!({"http_status": 200, "headers": {"a": "\n"}})), Rule::FaultInjection),
        ("fault-injection", json!({"delay": {"duration": 86_400.5}}), Rule::FaultInjection),
        ("fault-injection", json!({"delay": {"duration": 1e20}}), Rule::FaultInjection),
        ("echo", json!({"body": "", "headers": {"a b": "c"}}), Rule::Echo),
        ("cors", json!({"expose_headers": "a\nb"}), Rule::Cors),
        ("csrf", json!({"key": "k", "name": "a\nb"}), Rule::Csrf),
        ("request-id", json!({"header_name": "a b"}), Rule::RequestId),
        ("request-id", json!({"header_name": "Content-Length"}), Rule::RequestId),
        ("request-id", range(json!({"length": 4097})), Rule::RequestId),
        ("request-id", range(json!({"char_set": "ab\n"})), Rule::RequestId),
        ("jwt-auth", jwt("iss", json!("i")), Rule::JwtAuth),
        ("jwt-auth", jwt("aud", json!("a")), Rule::JwtAuth),
        ("jwt-auth", jwt("required_claims", json!(["scope"])), Rule::JwtAuth),
        ("jwt-auth", json!({"secret": ""}), Rule::JwtAuth),
        ("limit-count", limit("head", "x-a", "allow"), Rule::LimitCount),
        ("limit-count", limit("cookie", "a", "allow"), Rule::LimitCount),
        ("limit-count", limit("vars", "arg_a", "allow"), Rule::LimitCount),
        ("limit-count", limit("vars", "host", "deny"), Rule::LimitCount),
        ("prometheus", json!({"max_label_length": 4097}), Rule::Prometheus),
        ("prometheus", json!({"max_unique_paths": 10_001}), Rule::Prometheus),
        ("prometheus", json!({"max_unique_hosts": 10_001}), Rule::Prometheus),
    ] {
        let documents = plugin(name, &config);
        assert_worst(&documents, Some((Severity::Harmful, rule)));
        assert!(!is_refused(&violations(&documents)) && is_unfit(&violations(&documents)), "{documents}");
    }
}

#[test]
fn messages_quote_no_secret() {
    for (name, config) in [
        ("key-auth", json!({"keys": "s3cret"})),
        ("basic-auth", json!({"username": "u", "password": ["s3cret"]})),
        ("jwt-auth", json!({"secret": {"s3cret": 1}})),
        ("csrf", json!({"key": ["s3cret"]})),
        ("basic-auth", json!("s3cret")),
    ] {
        let found = violations(&plugin(name, &config));
        assert!(is_refused(&found));
        assert!(!format!("{found:?}").contains("s3cret"), "{found:?}");
    }
    let found = violations(&json!({"ssls/s": {"cert": "c", "key": ["s3cret"], "snis": ["a"]}}));
    assert!(is_refused(&found) && !format!("{found:?}").contains("s3cret"), "{found:?}");
}
