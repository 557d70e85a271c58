//! Keys, types, fields and references.

use super::*;

#[test]
fn keys_that_name_no_document_are_fatal() {
    for key in [
        "consumers/x",
        "stream_routes/1",
        "plugin_metadata/x",
        "plugin_configs/x",
        "protos/1",
        "routes/a/b",
        "routes",
        "routes/",
        "foo",
    ] {
        assert_worst(&json!({key: {}}), Some((Severity::Fatal, Rule::Key)));
    }
}

#[test]
fn keys_with_a_dot_are_ignored_and_odd_ids_are_fine() {
    for key in [".meta", "routes/.x", "consumers/.x"] {
        accepted(&json!({key: "anything"}));
    }
    for key in ["global_rules/a b", "global_rules/a:b", "global_rules/{}", "global_rules/é"] {
        accepted(&json!({key: {}}));
    }
}

#[test]
fn values_that_are_no_documents_are_refused() {
    let options = ValidateOptions { prefix: "/p".into(), ..ValidateOptions::default() };
    for value in ["not json", "", "null", "[", "7", "\"x\""] {
        let found = validate_pairs([("/p/routes/r", value)], &options);
        assert_eq!(worst(&found), Some((Severity::Rejected, Rule::Decode)), "{value}");
    }
    let found = validate_pairs([("/p/.pingsix_graph_revision", "2")], &options);
    assert_eq!(worst(&found), Some((Severity::Fatal, Rule::Guard)));
    for guard in ["1", "pingsix-graph-v1"] {
        assert_eq!(validate_pairs([("/p/.pingsix_graph_revision", guard)], &options), []);
    }
    let found = validate_pairs([(&b"/p/routes/\xff"[..], "{}")], &options);
    assert_eq!(worst(&found), Some((Severity::Fatal, Rule::Key)));
}

#[test]
fn routes_of_the_wrong_form_are_refused() {
    for (fields, rule) in [
        (json!({"uri": "<absent>"}), Rule::RouteUri),
        (json!({"uri": null}), Rule::RouteUri),
        (json!({"uris": ["/a"]}), Rule::RouteUri),
        (json!({"uri": "<absent>", "uris": null}), Rule::Decode),
        (json!({"host": "a", "hosts": ["b"]}), Rule::RouteHost),
        (json!({"upstream_id": "<absent>"}), Rule::UpstreamChoice),
        (json!({"upstream": {"nodes": {"127.0.0.1:1": 1}}}), Rule::UpstreamChoice),
        (json!({"upstream_id": "none"}), Rule::Reference),
        (json!({"service_id": "none"}), Rule::Reference),
        (json!({"upstream_id": 7}), Rule::Decode),
        (json!({"id": 7}), Rule::Decode),
        (json!({"id": null}), Rule::Decode),
        (json!({"name": 7}), Rule::Decode),
        (json!({"priority": -1}), Rule::Decode),
        (json!({"priority": 4_294_967_296_u64}), Rule::Decode),
        (json!({"priority": 1.0}), Rule::Decode),
        (json!({"priority": "1"}), Rule::Decode),
        (json!({"priority": null}), Rule::Decode),
        (json!({"plugins": null}), Rule::Decode),
        (json!({"methods": ["G T"]}), Rule::Method),
        (json!({"methods": [""]}), Rule::Method),
        (json!({"methods": null}), Rule::Decode),
        (json!({"timeout": {"connect": 0, "send": 1, "read": 1}}), Rule::Range),
        (json!({"timeout": {"connect": 1, "send": 86401, "read": 1}}), Rule::Range),
        (json!({"timeout": {"connect": 1, "send": 1, "read": 0.5}}), Rule::Decode),
        (json!({"timeout": {"connect": 1, "send": 1, "read": 1.0}}), Rule::Decode),
        (json!({"timeout": {"connect": 1, "send": 1}}), Rule::Decode),
    ] {
        refused(&route(&fields), rule);
    }
}

#[test]
fn routes_that_look_wrong_and_are_not_are_accepted() {
    for fields in [
        json!({"uris": []}),
        json!({"uri": "<absent>", "uris": ["/a", "/b"]}),
        json!({"host": null, "upstream": null, "service_id": null, "timeout": null, "name": null}),
        json!({"hosts": ["a.t", "*.t", "A_b.t", "*"]}),
        json!({"hosts": ["[::1]"]}),
        json!({"methods": ["GET", "M-SEARCH"]}),
        json!({"priority": 4_294_967_295_u64}),
        json!({"timeout": {"connect": 1, "send": 86400, "read": 1}}),
        json!({"uri": "/x/{a}/{*p}"}),
        json!({"uri": "/v{x}"}),
        json!({"uri": "/x%7By"}),
        json!({"uri": "/time:12"}),
        json!({"uri": "/x*y"}),
        json!({"id": "something else", "labels": {"a": "b"}, "status": 1}),
    ] {
        accepted(&route(&fields));
    }
}

#[test]
fn upstreams_of_the_wrong_form_are_refused_named_and_inline() {
    for (fields, rule) in [
        (json!({"nodes": "<absent>"}), Rule::Decode),
        (json!({"nodes": {}}), Rule::Empty),
        (json!({"nodes": []}), Rule::Decode),
        (json!({"nodes": [{"host": "h", "port": 1, "weight": 1}]}), Rule::Decode),
        (json!({"nodes": {"127.0.0.1:80": 0}}), Rule::NodeWeight),
        (json!({"nodes": {"127.0.0.1:80": 1, "127.0.0.1:81": 0}}), Rule::NodeWeight),
        (json!({"nodes": {"127.0.0.1:80": -1}}), Rule::Decode),
        (json!({"nodes": {"127.0.0.1:80": 1.5}}), Rule::Decode),
        (json!({"nodes": {"127.0.0.1:0": 1}}), Rule::NodeKey),
        (json!({"nodes": {"127.0.0.1:65536": 1}}), Rule::NodeKey),
        (json!({"nodes": {"a_b:80": 1}}), Rule::NodeKey),
        (json!({"nodes": {"a.b.:80": 1}}), Rule::NodeKey),
        (json!({"nodes": {"::1": 1}}), Rule::NodeKey),
        (json!({"nodes": {"[::ffff:1.2.3.4]:80": 1}}), Rule::NodeKey),
        (json!({"nodes": {"[fe80::1%eth0]:80": 1}}), Rule::NodeKey),
        (json!({"nodes": {"": 1}}), Rule::NodeKey),
        (json!({"type": "chash"}), Rule::Decode),
        (json!({"type": "RoundRobin"}), Rule::Decode),
        (json!({"hash_on": "header"}), Rule::Decode),
        (json!({"scheme": "HTTP"}), Rule::Decode),
        (json!({"pass_host": "other"}), Rule::Decode),
        (json!({"pass_host": "rewrite"}), Rule::RewriteHost),
        (json!({"retries": -1}), Rule::Decode),
        (json!({"retry_timeout": 0.5}), Rule::Decode),
        (json!({"checks": {}}), Rule::Decode),
        (json!({"checks": {"passive": {}}}), Rule::Decode),
        (json!({"checks": {"active": {"healthy": {"interval": 0}}}}), Rule::Range),
        (json!({"checks": {"active": {"timeout": 0}}}), Rule::Range),
        (json!({"checks": {"active": {"port": 70000}}}), Rule::Range),
        (json!({"checks": {"active": {"unhealthy": {"tcp_failures": 0}}}}), Rule::Range),
        (json!({"tls": {"client_cert": "x"}}), Rule::Decode),
        (json!({"tls": {"verify": false}}), Rule::Decode),
        (json!({"timeout": {"connect": 0, "send": 1, "read": 1}}), Rule::Range),
    ] {
        refused(&upstream(&fields), rule);
        let named = upstream(&fields);
        let inline = named.get("upstreams/x").expect("the upstream");
        refused(&route(&json!({"upstream_id": "<absent>", "upstream": inline})), rule);
    }
}

#[test]
fn upstreams_that_look_wrong_and_are_not_are_accepted() {
    for fields in [
        json!({"nodes": {"127.0.0.1": 1}}),
        json!({"nodes": {"[::1]:80": 1, "[2001:DB8::1]": 2}}),
        json!({"retries": null, "retry_timeout": null, "checks": null, "tls": null}),
        json!({"retries": 0}),
        json!({"type": "ketama", "hash_on": "cookie", "key": "x"}),
        json!({"checks": {"active": {}}}),
        json!({"checks": {"active": {"type": "tcp", "http_path": "/a b", "req_headers": ["x"]}}}),
        json!({"checks": {"active": {"http_path": "/x?y", "req_headers": ["X-A: b", "a:"], "healthy": {}}}}),
        json!({"scheme": "https", "pass_host": "rewrite", "upstream_host": "a.t"}),
    ] {
        accepted(&upstream(&fields));
    }
}

#[test]
fn upstreams_fail_late_where_pingsix_compiles_them() {
    for fields in [
        json!({"checks": {"active": {"http_path": "/a b"}}}),
        json!({"checks": {"active": {"req_headers": ["no colon"]}}}),
        json!({"checks": {"active": {"req_headers": ["a b: c"]}}}),
        json!({"checks": {"active": {"req_headers": [": c"]}}}),
    ] {
        refused_late(&upstream(&fields), Rule::HealthCheck);
    }
    for node in ["999.1.1.1:80", "[abc]:80"] {
        refused_late(&upstream(&json!({"nodes": {node: 1}})), Rule::DnsName);
    }
}

#[test]
fn names_are_flagged_as_the_options_say() {
    let named = upstream(&json!({"nodes": {"a.t:80": 1}}));
    misbehaves(&named, Rule::DnsName);
    let options = ValidateOptions { dns_names: DnsNames::Refuse, ..ValidateOptions::default() };
    let outcome = |documents: &Value| worst(&violations_with(documents, &options));
    assert_eq!(outcome(&named), Some((Severity::RejectedLate, Rule::DnsName)));
    let beside = upstream(&json!({"nodes": {"a.t:80": 1, "127.0.0.1:80": 1}}));
    assert_eq!(outcome(&beside), Some((Severity::Misbehaves, Rule::DnsName)));
    let local = upstream(&json!({"nodes": {"localhost:80": 1}}));
    assert_eq!(outcome(&local), Some((Severity::Misbehaves, Rule::DnsName)));
}

#[test]
fn upstreams_that_are_accepted_and_do_not_work_are_flagged() {
    for (fields, rule) in [
        (json!({"scheme": "https"}), Rule::TlsName),
        (json!({"scheme": "grpcs", "pass_host": "node"}), Rule::TlsName),
        (json!({"scheme": "https", "pass_host": "rewrite", "upstream_host": "a:1"}), Rule::TlsName),
        (json!({"pass_host": "rewrite", "upstream_host": ""}), Rule::TlsName),
        (json!({"nodes": {"127.0.0.1:80": 100_000_000}}), Rule::WeightTotal),
    ] {
        misbehaves(&upstream(&fields), rule);
    }
}

fn service(fields: &Value) -> Value {
    json!({"services/s": overlay(json!({"upstream_id": "u"}), fields)})
}

#[test]
fn services_of_the_wrong_form_are_refused() {
    for (fields, rule) in [
        (json!({"upstream_id": "<absent>"}), Rule::UpstreamChoice),
        (json!({"upstream": {"nodes": {"127.0.0.1:1": 1}}}), Rule::UpstreamChoice),
        (json!({"upstream_id": "none"}), Rule::Reference),
        (json!({"hosts": null}), Rule::Decode),
        (json!({"upstream_id": "<absent>", "upstream": {"nodes": []}}), Rule::Decode),
    ] {
        refused(&service(&fields), rule);
    }
    let inline = |nodes: Value| service(&json!({"upstream_id": "<absent>", "upstream": {"nodes": nodes}}));
    refused_late(&inline(json!({})), Rule::NodeUsable);
    refused_late(&inline(json!({"127.0.0.1:70000": 1})), Rule::NodeUsable);
    refused_late(&inline(json!({"a:b:c": 1})), Rule::NodeUsable);
    misbehaves(&inline(json!({"127.0.0.1:80": 0})), Rule::InlineWeight);
    accepted(&inline(json!({"127.0.0.1:80": 0, "127.0.0.1:81": 1})));
    accepted(&service(&json!({"upstream_id": "<absent>",
        "upstream": {"nodes": {"127.0.0.1:80": 1}, "timeout": {"connect": 0, "send": 1, "read": 1}}})));
}

#[test]
fn a_route_may_leave_the_upstream_to_its_service() {
    let mut documents = service(&json!({"hosts": ["a.t"]}));
    documents["routes/r"] = json!({"uri": "/", "service_id": "s"});
    accepted(&documents);
}

#[test]
fn global_rules_may_be_empty() {
    accepted(&json!({"global_rules/g": {}}));
    refused(&json!({"global_rules/g": {"plugins": []}}), Rule::Decode);
}

#[test]
fn references_to_documents_that_do_not_decode_are_not_dangling() {
    let found = violations(&json!({"upstreams/bad": {}, "routes/r": {"uri": "/", "upstream_id": "bad"}}));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].field, "");
    assert_eq!(found[0].subject.to_string(), "upstreams/bad");
}

#[test]
fn violations_name_the_field() {
    let field = |documents: &Value| violations(documents).first().map(|violation| violation.field.clone());
    let at = |documents: &Value| field(documents).expect("a violation");
    assert_eq!(at(&route(&json!({"timeout": {"connect": 0, "send": 1, "read": 1}}))), "timeout.connect");
    assert_eq!(at(&route(&json!({"timeout": {"connect": "x", "send": 1, "read": 1}}))), "timeout.connect");
    assert_eq!(at(&route(&json!({"methods": ["GET", ""]}))), "methods[1]");
    assert_eq!(at(&plugin("redirect", &json!({}))), "plugins.redirect");
    assert_eq!(at(&plugin("redirect", &json!({"regex_uri": ["(", ""]}))), "plugins.redirect.regex_uri[0]");
    assert_eq!(
        at(&plugin("limit-count", &json!({"count": 0, "time_window": 1}))),
        "plugins.limit-count.count"
    );
}

#[test]
fn fields_that_do_nothing_are_flagged() {
    for fields in [
        json!({"vars": [["arg_a", "==", "1"]]}),
        json!({"remote_addrs": ["10.0.0.0/8"]}),
        json!({"status": 0}),
        json!({"enable_websocket": true}),
        json!({"plugin_config_id": "1"}),
    ] {
        misbehaves(&route(&fields), Rule::IgnoredField);
    }
}

#[test]
fn static_configurations_are_checked_as_a_whole() {
    let options = ValidateOptions::default();
    let worst_of = |value: Value| worst(&validate_static(&value, &options));
    let sound = json!({"pingora": {}, "pingsix": {}, "upstreams": [{"id": "u", "nodes": {"127.0.0.1:1": 1}}],
        "routes": [{"id": "r", "uri": "/", "upstream_id": "u"}]});
    assert_eq!(worst_of(sound), None);
    for (value, rule) in [
        (json!({"routes": null}), Rule::Decode),
        (json!({"route": []}), Rule::Decode),
        (json!([]), Rule::Decode),
        (json!({"global_rules": [{}]}), Rule::StaticId),
        (json!({"global_rules": [{"id": ""}]}), Rule::StaticId),
        (json!({"global_rules": [{"id": "g"}, {"id": "g"}]}), Rule::StaticId),
        (json!({"routes": [{"id": "r", "uri": "/", "upstream_id": "u"}]}), Rule::Reference),
    ] {
        assert_eq!(worst_of(value), Some((Severity::Rejected, rule)));
    }
}

#[test]
fn typed_and_raw_agree() {
    let mut config = Config::new();
    config.insert("r", crate::pingsix::Route { uri: Some("/{".into()), ..Default::default() });
    let typed = validate(&config, &ValidateOptions::default());
    let raw = validate_raw(
        config.iter().map(|(key, document)| (key.to_string(), document.to_value())),
        &ValidateOptions::default(),
    );
    assert_eq!(typed, raw);
    assert!(is_refused(&typed));
    assert!(!is_refused(&[]));
}
