use std::sync::Arc;

use serde_json::{Value, json};

use crate::crd::PingsixProxy;
use crate::fixture::object;
use crate::model::ObjectName;
use crate::parameters::{NamedProxy, ProxyLayers};
use crate::pingsix::plugin::FileLogger;

fn proxy(telemetry: &Value) -> PingsixProxy {
    Arc::unwrap_or_clone(object(
        json!({"metadata": {"name": "p"}, "spec": {"attached": {}, "telemetry": telemetry}}),
    ))
}

/// The plugins of the rule for a Gateway and its class, and the names of the PingsixProxies.
fn rule_of(gateway: &Value, class: &Value) -> Option<(Value, Vec<String>)> {
    let (gateway, class) = (proxy(gateway), proxy(class));
    let names = [ObjectName::new("shop", "own"), ObjectName::new("infra", "class")];
    let rule = super::rule(ProxyLayers {
        gateway: Some(NamedProxy { name: &names[0], proxy: &gateway }),
        class: Some(NamedProxy { name: &names[1], proxy: &class }),
    })?;
    let proxies = rule.proxies.iter().map(|proxy| proxy.name.to_string()).collect();
    Some((serde_json::to_value(&rule.rule.plugins).unwrap(), proxies))
}

fn refusals(telemetry: &Value) -> Vec<String> {
    super::super::refusals(&proxy(telemetry)).iter().map(ToString::to_string).collect()
}

#[test]
fn without_telemetry_there_is_no_global_rule() {
    assert_eq!(rule_of(&json!({}), &json!({})), None);
}

#[test]
fn each_field_becomes_a_plugin_with_its_defaults() {
    let all = json!({
        "metrics": {}, "accessLog": {}, "requestId": {}, "responseHeaders": [{"name": "Server", "value": "edge"}],
    });
    let (plugins, proxies) = rule_of(&json!({}), &all).unwrap();
    assert_eq!(
        plugins,
        json!({
            "prometheus": {"max_unique_paths": 0, "prefer_name": true},
            "file-logger": {},
            "request-id": {},
            "response-rewrite": {"headers": {"set": {"Server": "edge"}}},
        })
    );
    assert_eq!(proxies, ["infra/class"]);
}

#[test]
fn a_gateway_overrides_field_by_field_and_both_are_named() {
    let class = json!({"metrics": {"maxHosts": 7}, "accessLog": {"format": "$status"}});
    let own = json!({"accessLog": {"redactQueryParams": ["token"]}, "requestId": {"header": "X-Id", "inResponse": false}});
    let (plugins, proxies) = rule_of(&own, &class).unwrap();
    assert_eq!(
        plugins,
        json!({
            "prometheus": {"max_unique_paths": 0, "max_unique_hosts": 7, "prefer_name": true},
            "file-logger": {"redact_query_params": ["token"]},
            "request-id": {"header_name": "X-Id", "include_in_response": false},
        })
    );
    assert_eq!(proxies, ["infra/class", "shop/own"]);
}

#[test]
fn values_that_pingsix_cannot_use_are_named_with_their_fields() {
    let cases = [
        (
            json!({"accessLog": {"format": "a\nb"}}),
            "spec.telemetry.accessLog.format: The value has a control character",
        ),
        (
            json!({"accessLog": {"format": "$status $cookie"}}),
            "spec.telemetry.accessLog.format: PingSIX has no variable $cookie.",
        ),
        (
            json!({"accessLog": {"format": "$var_secret"}}),
            "spec.telemetry.accessLog.format: PingSIX has no variable $var_secret.",
        ),
        (json!({"accessLog": {"format": ""}}), "spec.telemetry.accessLog.format: The value cannot be used"),
        (json!({"accessLog": {"redactQueryParams": [""]}}), "spec.telemetry.accessLog.redactQueryParams[0]"),
        (json!({"metrics": {"maxHosts": 1001}}), "spec.telemetry.metrics.maxHosts: The value cannot be used"),
        (
            json!({"requestId": {"header": "a b"}}),
            "spec.telemetry.requestId.header: \"a b\" is not a header name.",
        ),
        (
            json!({"requestId": {"header": "Host"}}),
            "spec.telemetry.requestId.header: Header Host belongs to the gateway.",
        ),
        (
            json!({"responseHeaders": [{"name": "Connection", "value": "close"}]}),
            "spec.telemetry.responseHeaders[0].name: Header Connection belongs to the gateway.",
        ),
        (
            json!({"responseHeaders": [{"name": "Server", "value": "a"}, {"name": "server", "value": "b"}]}),
            "spec.telemetry.responseHeaders[1].name: Header server is there twice.",
        ),
        (
            json!({"responseHeaders": [{"name": "Server", "value": "é\n"}]}),
            "spec.telemetry.responseHeaders[0].value: The value of header Server is not visible ASCII.",
        ),
        (
            json!({"responseHeaders": [{"name": "Server", "value": "for $remote_addr"}]}),
            "spec.telemetry.responseHeaders[0].value: PingSIX would replace $remote_addr in the value of header Server.",
        ),
    ];
    for (telemetry, expected) in cases {
        let refusals = refusals(&telemetry);
        assert!(refusals.len() == 1 && refusals[0].starts_with(expected), "{telemetry}: {refusals:?}");
    }
    let every = FileLogger::VARIABLES.map(|name| format!("${name}")).join(" ");
    assert_eq!(refusals(&json!({"accessLog": {"format": format!("{every} $ 100% $$status")}})), [""; 0]);
}
