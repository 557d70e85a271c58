use std::collections::BTreeSet;
use std::path::PathBuf;

use pingsix_translate::crd::definitions;
use pingsix_translate::manifest::documents;
use regex::Regex;
use serde_json::json;

use super::definition::{Form, Node, definition};
use super::format::Format;
use super::limits::{self, Limit};
use super::*;
use pingsix_translate::{GATEWAY_GROUP, Kind};
use serde_json::Value;

fn kind(name: &str) -> Kind {
    Kind::ALL.iter().copied().find(|kind| kind.as_str() == name).unwrap()
}

/// `field: message` of each problem of a spec.
#[expect(clippy::needless_pass_by_value, reason = "the specs are literals")]
fn told(name: &str, spec: Value) -> Vec<String> {
    let object = json!({ "apiVersion": kind(name).api_version(), "kind": name, "metadata": { "name": "a" }, "spec": spec });
    problems(kind(name), &object)
        .into_iter()
        .map(|problem| format!("{}: {}", problem.field, problem.message))
        .collect()
}

#[test]
fn wrong_forms_say_what_is_expected() {
    let said = told(
        "HTTPRoute",
        json!({
            "hostnames": "a.test",
            "parentRefs": [{ "name": 2048, "port": "80" }],
            "rules": [
                { "timeouts": { "request": 30 }, "matches": { "path": {} } },
                { "filters": [{ "type": "CORS", "cors": { "maxAge": "600s", "allowCredentials": "yes" } }] },
            ],
        }),
    );
    assert_eq!(
        said,
        [
            "spec.hostnames: The value is a string, and the field is a list; begin each entry with '- '.",
            "spec.parentRefs[0].name: The value is the number 2048, and the field is a string; write \"2048\" in quotes.",
            "spec.parentRefs[0].port: The value is the string \"80\", and the field is an integer; write 80 without quotes.",
            "spec.rules[0].matches: The value is an object, and the field is a list; begin each entry with '- '.",
            "spec.rules[0].timeouts.request: The value is the number 30, and the field is a duration such as 10s, 500ms or 1h30m.",
            "spec.rules[1].filters[0].cors.allowCredentials: The value is the string \"yes\", and the field is true or false.",
            "spec.rules[1].filters[0].cors.maxAge: The value is the string \"600s\", and the field is an integer of seconds.",
        ]
    );
}

#[test]
fn unknown_fields_have_advice_and_end_the_judgement_of_their_value() {
    let said = told(
        "HTTPRoute",
        json!({
            "hostname": { "a": 1 },
            "backendRefs": [],
            "rules": [{ "matches": [{ "path": { "typo": 1 }, "zzz": { "b": 1 } }] }],
        }),
    );
    let refuses = "so kubectl refuses the object.";
    assert_eq!(
        said,
        [
            format!(
                "spec.backendRefs: The API has no field spec.backendRefs, {refuses} A field of this name belongs to spec.rules[]."
            ),
            format!("spec.hostname: The API has no field spec.hostname, {refuses} Did you mean hostnames?"),
            format!(
                "spec.rules[0].matches[0].path.typo: The API has no field spec.rules[0].matches[0].path.typo, {refuses} Did you mean type?"
            ),
            format!(
                "spec.rules[0].matches[0].zzz: The API has no field spec.rules[0].matches[0].zzz, {refuses}"
            ),
        ]
    );
}

#[test]
fn values_that_may_be_secret_are_not_quoted() {
    let secret = json!({ "metadata": { "name": "a" }, "type": 918_273, "data": { "a": 918_273 }, "stringData": { "b": 918_273 } });
    let route = json!([{ "filters": [{ "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": [
        { "name": "a", "value": 918_273 }, { "name": "918273:", "value": "918273\n" },
    ] } }] }]);
    let said =
        format!("{:?} {:?}", problems(Kind::Secret, &secret), told("HTTPRoute", json!({ "rules": route })));
    assert_eq!(said.matches("field: ").count(), 3, "{said}");
    assert!(!said.contains("918273"), "{said}");
}

#[test]
fn problems_are_bounded() {
    let entries: serde_json::Map<String, Value> =
        (0..100_000).map(|index| (format!("unknown-{index}"), json!(1))).collect();
    assert!(told("HTTPRoute", Value::Object(entries)).len() <= 64);
}

/// Violations of each rule of our own definitions, by kind and message.
const VIOLATIONS: &[(&str, &str)] = &[
    (
        "BackendTrafficPolicy",
        r#"{"healthCheck": {"active": {"type": "TCP", "http": {"path": "/"}, "interval": "5s"}}}"#,
    ),
    ("BackendTrafficPolicy", r#"{"loadBalancer": {"type": "ConsistentHash"}}"#),
    (
        "BackendTrafficPolicy",
        r#"{"loadBalancer": {"type": "ConsistentHash", "consistentHash": {"type": "Header"}}}"#,
    ),
    ("BackendTrafficPolicy", r#"{"targetRefs": [{"kind": "Gateway", "name": "a"}]}"#),
    ("HTTPRouteFilter", "{}"),
    ("HTTPRouteFilter", r#"{"directResponse": {"statusCode": 204, "body": "a"}}"#),
    ("PingsixProxy", "{}"),
    ("PingsixProxy", r#"{"managed": {"disruptionBudget": {}}}"#),
    ("PingsixProxy", r#"{"managed": {"service": {"type": "NodePort", "loadBalancerClass": "a"}}}"#),
    ("PingsixProxy", r#"{"managed": {"service": {"type": "ClusterIP", "externalTrafficPolicy": "Local"}}}"#),
    (
        "SecurityPolicy",
        r#"{"basicAuth": {"secretRef": {"name": "a"}}, "anonymous": {}, "strategy": "Overrides", "targetRefs": [{"kind": "Gateway", "name": "a"}]}"#,
    ),
    (
        "SecurityPolicy",
        r#"{"strategy": "Overrides", "targetRefs": [{"kind": "Ingress", "name": "a", "sectionName": "a"}, {"kind": "Gateway", "name": "b"}]}"#,
    ),
    ("SecurityPolicy", r#"{"authorization": {}, "jwt": {"algorithm": "HS256"}}"#),
    (
        "TrafficPolicy",
        r#"{"strategy": "Overrides", "targetRefs": [{"kind": "Ingress", "name": "a", "sectionName": "a"}, {"kind": "Gateway", "name": "b"}]}"#,
    ),
    ("TrafficPolicy", r#"{"compression": [{"type": "Gzip", "level": 10}]}"#),
    ("TrafficPolicy", r#"{"compression": [{"type": "Gzip"}, {"type": "Gzip"}]}"#),
    ("TrafficPolicy", r#"{"faultInjection": {}, "responseHeaders": {}}"#),
    (
        "TrafficPolicy",
        r#"{"rateLimit": {"local": {"limit": {"requests": 1, "unit": "Hour"}, "key": {"name": "a"}}}}"#,
    ),
];

/// The messages of the rules of a schema.
fn messages(schema: &Value, found: &mut BTreeSet<String>) {
    if let Value::Object(fields) = schema {
        let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
        found.extend(rules.filter_map(|rule| rule["message"].as_str()).map(str::to_owned));
        fields.values().for_each(|inner| messages(inner, found));
    }
}

#[test]
fn each_rule_of_our_definitions_is_judged() {
    for published in definitions() {
        let name = &published.spec.names.kind;
        let mut left = BTreeSet::new();
        messages(&serde_json::to_value(&published).unwrap(), &mut left);
        for (_, spec) in VIOLATIONS.iter().filter(|(kind, _)| kind == name) {
            let said = told(name, serde_json::from_str(spec).unwrap());
            left.retain(|message| !said.iter().any(|said| said.contains(message.as_str())));
        }
        assert!(left.is_empty(), "{name} has no judgement of {left:?}");
    }
}

/// Violations of each rule of Gateway API and of Kubernetes: kind, spec, and the field that is told.
const VIOLATIONS_OF_OTHERS: &[(&str, &str, &str)] = &[
    ("HTTPRoute", r#"{"rules": [{"filters": [{"type": "URLRewrite"}]}]}"#, "spec.rules[0].filters[0]"),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "CORS", "cors": {}, "urlRewrite": {}}]}]}"#,
        "spec.rules[0].filters[0].urlRewrite",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "RequestRedirect", "requestRedirect": {"path": {"type": "ReplaceFullPath"}}}]}]}"#,
        "spec.rules[0].filters[0].requestRedirect.path",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath"}}}]}]}"#,
        "spec.rules[0].filters[0].urlRewrite.path",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "ExternalAuth", "externalAuth": {"protocol": "GRPC", "backendRef": {"name": "a", "port": 1}}}]}]}"#,
        "spec.rules[0].filters[0].externalAuth",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"sessionPersistence": {"type": "Header", "cookieConfig": {}}}]}"#,
        "spec.rules[0].sessionPersistence.cookieConfig",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"sessionPersistence": {"cookieConfig": {"lifetimeType": "Permanent"}}}]}"#,
        "spec.rules[0].sessionPersistence.absoluteTimeout",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "CORS", "cors": {}}, {"type": "CORS", "cors": {}}]}]}"#,
        "spec.rules[0].filters[1]",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "URLRewrite", "urlRewrite": {}}, {"type": "RequestRedirect", "requestRedirect": {}}]}]}"#,
        "spec.rules[0].filters[1]",
    ),
    (
        "GRPCRoute",
        r#"{"rules": [{"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "a", "port": 1}, "percent": 1, "fraction": {"numerator": 1}}}]}]}"#,
        "spec.rules[0].filters[0].requestMirror.fraction",
    ),
    (
        "GRPCRoute",
        r#"{"rules": [{"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "a", "port": 1}, "fraction": {"numerator": 101}}}]}]}"#,
        "spec.rules[0].filters[0].requestMirror.fraction.numerator",
    ),
    (
        "GRPCRoute",
        r#"{"rules": [{"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "a"}}}]}]}"#,
        "spec.rules[0].filters[0].requestMirror.backendRef.port",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "CORS", "cors": {"allowMethods": ["GET", "*"]}}]}]}"#,
        "spec.rules[0].filters[0].cors.allowMethods[1]",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "CORS", "cors": {"allowHeaders": ["*", "a"]}}]}]}"#,
        "spec.rules[0].filters[0].cors.allowHeaders[0]",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"filters": [{"type": "CORS", "cors": {"allowOrigins": ["*", "http://a"]}}]}]}"#,
        "spec.rules[0].filters[0].cors.allowOrigins[0]",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"matches": [{"path": {"value": "/a/../b"}}]}]}"#,
        "spec.rules[0].matches[0].path.value",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"matches": [{"path": {"value": "/a%2"}}]}]}"#,
        "spec.rules[0].matches[0].path.value",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"matches": [{"path": {"value": "/a/."}}]}]}"#,
        "spec.rules[0].matches[0].path.value",
    ),
    (
        "GRPCRoute",
        r#"{"rules": [{"matches": [{"method": {"type": "Exact"}}]}]}"#,
        "spec.rules[0].matches[0].method",
    ),
    (
        "GRPCRoute",
        r#"{"rules": [{"matches": [{"method": {"service": "a/b"}}]}]}"#,
        "spec.rules[0].matches[0].method.service",
    ),
    (
        "GRPCRoute",
        r#"{"rules": [{"matches": [{"method": {"method": "a.b"}}]}]}"#,
        "spec.rules[0].matches[0].method.method",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"backendRefs": [{"name": "a", "port": 1}], "filters": [{"type": "RequestRedirect", "requestRedirect": {}}]}]}"#,
        "spec.rules[0].backendRefs",
    ),
    (
        "HTTPRoute",
        r#"{"rules": [{"matches": [{"path": {"type": "Exact", "value": "/a"}}], "filters": [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}]}]}"#,
        "spec.rules[0].matches",
    ),
    ("HTTPRoute", r#"{"rules": [{"name": "a"}, {"name": "a"}]}"#, "spec.rules[1]"),
    (
        "HTTPRoute",
        r#"{"rules": [{"timeouts": {"request": "1m", "backendRequest": "61s"}}]}"#,
        "spec.rules[0].timeouts.backendRequest",
    ),
    ("TCPRoute", r#"{"rules": [{"backendRefs": [{"name": "a"}]}]}"#, "spec.rules[0].backendRefs[0].port"),
    (
        "TCPRoute",
        r#"{"parentRefs": [{"name": "a"}, {"name": "a"}], "rules": [{"backendRefs": [{"name": "a", "port": 1}]}]}"#,
        "spec.parentRefs[1]",
    ),
    (
        "UDPRoute",
        r#"{"parentRefs": [{"name": "a"}, {"name": "a", "port": 1}], "rules": [{"backendRefs": [{"name": "a", "port": 1}]}]}"#,
        "spec.parentRefs[1]",
    ),
    (
        "TLSRoute",
        r#"{"hostnames": ["a.test", "1.2.3.4"], "rules": [{"backendRefs": [{"name": "a", "port": 1}]}]}"#,
        "spec.hostnames[1]",
    ),
    (
        "Gateway",
        r#"{"gatewayClassName": "a", "listeners": [{"name": "a", "port": 1, "protocol": "TCP", "hostname": "a"}]}"#,
        "spec.listeners[0].hostname",
    ),
    (
        "Gateway",
        r#"{"gatewayClassName": "a", "listeners": [{"name": "a", "port": 1, "protocol": "HTTP"}, {"name": "b", "port": 1, "protocol": "HTTP"}]}"#,
        "spec.listeners[1].hostname",
    ),
    (
        "ListenerSet",
        r#"{"parentRef": {"name": "a"}, "listeners": [{"name": "a", "port": 1, "protocol": "TLS"}]}"#,
        "spec.listeners[0].tls",
    ),
    (
        "ListenerSet",
        r#"{"parentRef": {"name": "a"}, "listeners": [{"name": "a", "port": 1, "protocol": "TCP"}, {"name": "b", "port": 1, "protocol": "TCP"}]}"#,
        "spec.listeners[1].hostname",
    ),
    (
        "Gateway",
        r#"{"gatewayClassName": "a", "listeners": [{"name": "a", "port": 1, "protocol": "HTTPS", "tls": {}}]}"#,
        "spec.listeners[0].tls.certificateRefs",
    ),
    (
        "Gateway",
        r#"{"gatewayClassName": "a", "addresses": [{"value": "1.2.3.4"}, {"value": "1.2.3.4"}], "listeners": [{"name": "a", "port": 1, "protocol": "HTTP"}]}"#,
        "spec.addresses[1]",
    ),
    (
        "Gateway",
        r#"{"gatewayClassName": "a", "addresses": [{"type": "Hostname", "value": "A"}], "listeners": [{"name": "a", "port": 1, "protocol": "HTTP"}]}"#,
        "spec.addresses[0].value",
    ),
    (
        "Gateway",
        r#"{"gatewayClassName": "a", "infrastructure": {"annotations": {"a b": "c"}}, "listeners": [{"name": "a", "port": 1, "protocol": "HTTP"}]}"#,
        "spec.infrastructure.annotations.a b",
    ),
    (
        "BackendTLSPolicy",
        r#"{"targetRefs": [{"group": "", "kind": "Service", "name": "a"}], "validation": {"hostname": "a"}}"#,
        "spec.validation.caCertificateRefs",
    ),
    (
        "BackendTLSPolicy",
        r#"{"targetRefs": [{"group": "", "kind": "Service", "name": "a"}, {"group": "", "kind": "Service", "name": "a"}], "validation": {"hostname": "a", "wellKnownCACertificates": "System"}}"#,
        "spec.targetRefs[1]",
    ),
    (
        "BackendTLSPolicy",
        r#"{"targetRefs": [{"group": "", "kind": "Service", "name": "a"}], "validation": {"hostname": "a", "wellKnownCACertificates": "System", "subjectAltNames": [{"type": "URI", "hostname": "a"}]}}"#,
        "spec.validation.subjectAltNames[0]",
    ),
    (
        "Ingress",
        r#"{"rules": [{"http": {"paths": [{"path": "a", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 1}}}}]}}]}"#,
        "spec.rules[0].http.paths[0].path",
    ),
    (
        "Ingress",
        r#"{"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}]}"#,
        "spec.rules[0].http.paths[0].backend",
    ),
    ("Ingress", r#"{"defaultBackend": {}}"#, "spec.defaultBackend"),
    ("Ingress", r#"{"defaultBackend": {"service": {"name": "a"}}}"#, "spec.defaultBackend.service.port"),
    (
        "Ingress",
        r#"{"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {}}}}]}}]}"#,
        "spec.rules[0].http.paths[0].backend.service.port",
    ),
    ("Service", r#"{"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}"#, "spec.ports[1]"),
    ("Service", r#"{"ports": [{"port": 1, "name": "a"}, {"port": 2}]}"#, "spec.ports[1].name"),
];

#[test]
fn each_rule_of_gateway_api_and_kubernetes_is_judged() {
    for (name, spec, field) in VIOLATIONS_OF_OTHERS {
        let said = told(name, serde_json::from_str(spec).unwrap());
        assert!(said.len() == 1 && said[0].starts_with(&format!("{field}: ")), "{name} {spec}: {said:?}");
    }
}

#[test]
fn the_matches_of_all_rules_are_counted() {
    let rules =
        json!([{ "matches": vec![json!({}); 64] }, { "matches": vec![json!({}); 64] }, { "matches": [{}] }]);
    assert_eq!(
        told("HTTPRoute", json!({ "rules": rules })),
        ["spec.rules: The rules have 129 matches; at most 128 are allowed."]
    );
}

/// The published definitions of Gateway API, where the test cluster has downloaded them.
fn published() -> Option<Vec<Value>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let module = std::fs::read_to_string(format!("{root}/testdata/cluster/go.mod")).unwrap();
    let line = module.lines().find(|line| line.trim().starts_with("sigs.k8s.io/gateway-api ")).unwrap();
    let version = line.trim().split(' ').nth(1).unwrap();
    let cache = std::env::var_os("GOMODCACHE").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join("go/pkg/mod")))?;
    let folder = cache.join(format!("sigs.k8s.io/gateway-api@{version}/config/crd/experimental"));
    let files = std::fs::read_dir(folder).ok()?;
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let values = texts.flat_map(|text| {
        documents(&text).iter().map(|document| document.decode().unwrap()).collect::<Vec<_>>()
    });
    Some(values.filter(|value| value["kind"] == "CustomResourceDefinition").collect())
}

/// Samples that tell the patterns of Gateway API apart.
const SAMPLES: &[&str] = &[
    "",
    "a",
    "A",
    "a.b",
    "A.b",
    "a..b",
    ".a",
    "a.",
    "*",
    "*.a",
    "*.a.b",
    "a*",
    "-a",
    "a-",
    "a-b",
    "a_b",
    "1",
    "1.2.3.4",
    "a/b",
    "a.b/c",
    "a.b/c/d",
    "a.b/%20",
    "a.b/@",
    "A.b/c",
    "HTTP",
    "HTTPS",
    "TCP ",
    "System",
    "a.b/C-d",
    "5s",
    "5",
    "5ms",
    "1h30m",
    "123456s",
    "1h1m1s1ms",
    "1h1m1s1ms1s",
    "-5s",
    "1d",
    "x y",
    "x  y",
    " x",
    "x\ty",
    "x\u{e9}",
    "X-Shop",
    "x:y",
    "https://a.b",
    "https://*.a",
    "http://a:80",
    "http://a:808080",
    "https://*",
    "https://",
    "ftp://a",
    "https://a/b",
    "spiffe://a/b",
    "a://",
    "a:b",
    "/a",
    "/a%2F",
    "/a%2",
    "/a b",
    "/a?b",
    "/~!$&'()*+,;=:@-._",
    "`|~",
    "a@b",
    "K\u{212a}",
];

struct Comparison {
    path: String,
    differences: Vec<String>,
}

impl Comparison {
    #[expect(clippy::too_many_lines, reason = "one comparison after the other")]
    fn compare(&mut self, schema: &Value, node: &Node) {
        let mut differ = |what: &str, published: String, ours: String| {
            if published != ours {
                self.differences.push(format!("{} {what}: {published}, not {ours}", self.path));
            }
        };
        let number = |name: &str| schema[name].as_u64();
        let ours = |find: fn(&Limit) -> Option<(u64, u64)>| {
            node.limits.iter().find_map(find).unwrap_or((0, u64::MAX))
        };
        let bounds = |least: &str, most: &str| (number(least).unwrap_or(0), number(most).unwrap_or(u64::MAX));
        let show = |bounds: (u64, u64)| format!("{bounds:?}");
        differ(
            "items",
            show(bounds("minItems", "maxItems")),
            show(ours(|limit| match limit {
                Limit::Items(least, most) => Some((*least, *most)),
                _ => None,
            })),
        );
        differ(
            "length",
            show(bounds("minLength", "maxLength")),
            show(ours(|limit| match limit {
                Limit::Length(least, most) => Some((*least, *most)),
                _ => None,
            })),
        );
        differ(
            "entries",
            show(bounds("", "maxProperties")),
            show(ours(|limit| match limit {
                Limit::Entries(most) => Some((0, *most)),
                _ => None,
            })),
        );
        let range = node.limits.iter().find_map(|limit| match limit {
            Limit::Range(least, most) => Some((*least, *most)),
            _ => None,
        });
        let published =
            (schema["minimum"].as_i64().unwrap_or(i64::MIN), schema["maximum"].as_i64().unwrap_or(i64::MAX));
        differ("range", format!("{published:?}"), format!("{:?}", range.unwrap_or((i64::MIN, i64::MAX))));
        let is_set = node.limits.contains(&Limit::Set);
        differ("set", (schema["x-kubernetes-list-type"] == "set").to_string(), is_set.to_string());
        let key = node.limits.iter().find_map(|limit| match limit {
            Limit::Key(key) => Some(*key),
            _ => None,
        });
        differ("key", format!("{:?}", schema["x-kubernetes-list-map-keys"][0].as_str()), format!("{key:?}"));
        if let Some(pattern) = schema["pattern"].as_str() {
            let pattern = Regex::new(pattern).unwrap();
            let format = node.limits.iter().find_map(|limit| match limit {
                Limit::Format(format) => Some(*format),
                _ => None,
            });
            for sample in SAMPLES {
                let holds = format.is_none_or(|format: Format| format.holds(sample));
                // An address has any type whose name contains one of the known ones.
                if !self.path.ends_with("addresses[].type") {
                    differ(
                        &format!("format of {sample:?}"),
                        pattern.is_match(sample).to_string(),
                        holds.to_string(),
                    );
                }
            }
        }
        let enumeration =
            schema["enum"].as_array().map(|all| all.iter().map(ToString::to_string).collect::<BTreeSet<_>>());
        let choices = match &node.form {
            Form::Text(choices) if !choices.is_empty() => {
                Some(choices.iter().map(|choice| format!("{choice:?}")).collect::<BTreeSet<_>>())
            }
            _ => node.limits.iter().find_map(|limit| match limit {
                Limit::Numbers(numbers) => Some(numbers.iter().map(ToString::to_string).collect()),
                Limit::OneOf(texts) => Some(texts.iter().map(|text| format!("{text:?}")).collect()),
                _ => None,
            }),
        };
        let enumeration = enumeration.filter(|_| !matches!(node.form, Form::Any));
        differ("choices", format!("{enumeration:?}"), format!("{choices:?}"));
        match &node.form {
            Form::Object { fields, required } => {
                let published = schema["properties"].as_object().cloned().unwrap_or_default();
                let names = |names: Vec<&String>| format!("{:?}", names.into_iter().collect::<BTreeSet<_>>());
                // The types have these fields of a newer or an older version.
                let of_other_versions = ["filters", "routability", "idleTimeout"];
                let is_extra = |name: &String| {
                    !published.contains_key(name) && of_other_versions.contains(&name.as_str())
                };
                differ(
                    "fields",
                    names(published.keys().collect()),
                    names(fields.keys().filter(|name| !is_extra(name)).collect()),
                );
                let needed: Vec<String> = schema["required"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|name| name.as_str().unwrap().to_owned())
                    .collect();
                differ("required", names(needed.iter().collect()), names(required.iter().collect()));
                for (name, field) in fields {
                    if let Some(schema) = published.get(name) {
                        self.below(&format!(".{name}"), schema, field);
                    }
                }
            }
            Form::List(item) => self.below("[]", &schema["items"], item),
            Form::Map(entry) => self.below("{}", &schema["additionalProperties"], entry),
            _ => {}
        }
    }

    fn below(&mut self, step: &str, schema: &Value, node: &Node) {
        let length = self.path.len();
        self.path.push_str(step);
        self.compare(schema, node);
        self.path.truncate(length);
    }
}

#[test]
fn the_limits_are_those_of_the_published_definitions() {
    let Some(published) = published() else {
        println!("NOT RUN: the definitions of Gateway API are not here; tools/build-cluster downloads them");
        return;
    };
    let mut differences = Vec::new();
    let mut compared = 0;
    for one in published {
        let Some(kind) = Kind::from_group_kind(GATEWAY_GROUP, one["spec"]["names"]["kind"].as_str().unwrap())
        else {
            continue;
        };
        let versions = one["spec"]["versions"].as_array().unwrap();
        let version = versions.iter().find(|version| version["name"] == kind.version()).unwrap();
        let Form::Object { fields, .. } = &definition(kind).form else { panic!("{kind} is no object") };
        let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut comparison = Comparison { path: format!("{kind}.spec"), differences: Vec::new() };
        comparison.compare(schema, &fields["spec"]);
        differences.extend(comparison.differences);
        compared += 1;
    }
    assert!(compared >= 9, "{compared} definitions");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn each_limit_of_the_tables_is_one_of_a_field() {
    fn paths(node: &Node, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        match &node.form {
            Form::Object { fields, .. } => {
                for (name, node) in fields {
                    paths(node, &format!("{path}.{name}"), found);
                }
            }
            Form::List(item) => paths(item, &format!("{path}[]"), found),
            Form::Map(entry) => paths(entry, &format!("{path}{{}}"), found),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for kind in Kind::ALL {
        paths(definition(*kind), kind.as_str(), &mut all);
    }
    for table in [limits::OF_GATEWAY_API, limits::OF_KUBERNETES, limits::OF_METADATA] {
        for (end, _) in table {
            assert!(
                all.iter().any(|path| limits::find(table, path).is_some() && limits::is_end(end, path)),
                "{end}"
            );
        }
    }
    for rule in [rules::OF_GATEWAY_API, rules::OF_KUBERNETES, rules::OF_PINGSIX].into_iter().flatten() {
        assert!(all.iter().any(|path| limits::is_end(rule.at, path)), "{}", rule.at);
    }
}
