//! Nonsensical objects. Fuzzing uses the same file, so it needs nothing that other tests have.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use pingsix_translate::pingsix::RouteTable;
use pingsix_translate::pingsix::validate::{DnsNames, ValidateOptions, validate};
use pingsix_translate::status::{StatusMerge, judge_gateway_class, judge_pingsix_proxy, with_delivery};
use pingsix_translate::stream;
use pingsix_translate::{
    Kind, Layout, Object, ObjectName, Objects, Options, Translation, for_each_kind, translate,
    translate_ingress,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Makes objects of all kinds from bytes, most of them damaged somewhere, and translates every Gateway and IngressClass in every
/// way. Returns what must never happen; panics are for the caller to notice.
pub(crate) fn exercise(bytes: &[u8]) -> Vec<String> {
    let mut source = Source { bytes: bytes.iter() };
    let mut objects = templates();
    // Some objects twice, under names that may be the same.
    for _ in 0..source.below(3) {
        let copy = objects[source.below(objects.len())].clone();
        objects.push(copy);
    }
    for _ in 0..=source.below(12) {
        let at = source.below(objects.len());
        damage(&mut objects[at], &mut source);
    }
    let mut all = Objects::default();
    for object in objects {
        if let Some(object) = decode(object) {
            all.insert(object);
        }
    }
    let proxies = all.proxies().map(|(name, proxy)| (name.clone(), proxy.clone())).collect();
    let merge = StatusMerge::without_times("example.com/controller");
    for (_, proxy) in all.proxies() {
        drop(merge.pingsix_proxy(&Value::Null, &judge_pingsix_proxy(proxy)));
    }
    for (_, class) in all.gateway_classes() {
        let verdict = judge_gateway_class(class, &proxies, &Options::default());
        drop(verdict.map(|verdict| merge.gateway_class(&Value::Null, &verdict)));
    }
    let mut violations = Vec::new();
    let classes: Vec<ObjectName> = all.ingress_classes().map(|(name, _)| name.clone()).collect();
    for snapshot in classes.iter().filter_map(|class| all.ingress_snapshot(&class.name)) {
        let options = Options { route_names: true, ..Options::default() };
        check(&translate_ingress(&snapshot, &options), &options, &mut violations);
    }
    let names: Vec<ObjectName> = all.gateways().map(|(name, _)| name.clone()).collect();
    for snapshot in names.iter().filter_map(|name| all.snapshot(name)) {
        for layout in [Layout::Shared, Layout::PerPort] {
            for responder in [None, Some(([127, 0, 0, 1], 9080).into())] {
                let options =
                    Options { layout, responder, stream: responder.is_some(), ..Options::default() };
                check(&translate(&snapshot, &options), &options, &mut violations);
            }
        }
    }
    violations
}

fn check(translation: &Translation, options: &Options, violations: &mut Vec<String>) {
    for (key, plane) in &translation.data_planes {
        let rules = ValidateOptions {
            prefix: key.prefix(&options.root),
            dns_names: DnsNames::Refuse,
            ..ValidateOptions::default()
        };
        for violation in validate(&plane.config, &rules) {
            violations.push(format!("{key}: {violation:?}"));
        }
        let table = RouteTable::new(&plane.config);
        for backwards in [false, true] {
            let order = (0..table.len()).map(|index| if backwards { table.len() - 1 - index } else { index });
            if let Err(error) = table.insert_in(order) {
                violations.push(format!("{key}: {error}: {}", error.source().unwrap()));
            }
        }
    }
    for (key, plane) in &translation.stream_planes {
        violations
            .extend(stream::validate(&plane.config).iter().map(|violation| format!("{key}: {violation}")));
        if !plane.config.iter().map(|(key, _)| key).eq(plane.provenance.keys()) {
            violations.push(format!("{key}: not every document has a provenance"));
        }
    }
    for problem in &translation.verdicts.problems {
        if problem.message.is_empty() || problem.field.as_str().is_empty() {
            violations.push(format!("a problem does not say what it is: {problem:?}"));
        }
    }
    let finished = with_delivery(translation.verdicts.clone(), &BTreeMap::new());
    let merge = StatusMerge::without_times(&options.controller_name);
    drop(finished.gateway.map(|gateway| merge.gateway(&Value::Null, &gateway)));
    for verdict in finished.routes.values() {
        drop(merge.route(&Value::Null, verdict));
    }
}

/// Bytes that are used up one by one; zeros when there are no more.
struct Source<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

impl Source<'_> {
    fn byte(&mut self) -> usize {
        self.bytes.next().copied().map_or(0, usize::from)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.byte() % bound.max(1)
    }
}

/// Replaces, removes or repeats something at a random place.
fn damage(value: &mut Value, source: &mut Source<'_>) {
    // Walk down: at each level, one more byte says where.
    let step = source.byte();
    match value {
        Value::Object(members) if !members.is_empty() && !step.is_multiple_of(8) => {
            let key = members.keys().nth(step / 8 % members.len()).cloned().unwrap_or_default();
            if step % 8 == 1 {
                members.remove(&key);
            } else if let Some(member) = members.get_mut(&key) {
                damage(member, source);
            }
        }
        Value::Array(elements) if !elements.is_empty() && !step.is_multiple_of(8) => {
            let index = step / 8 % elements.len();
            match step % 8 {
                1 => {
                    elements.remove(index);
                }
                2 => {
                    let copy = elements[index].clone();
                    elements.extend(std::iter::repeat_n(copy, 1 + source.below(20)));
                }
                3 => elements.clear(),
                _ => damage(&mut elements[index], source),
            }
        }
        Value::String(text) if step.is_multiple_of(4) => text.push_str(&string(source)),
        Value::String(text) => *text = string(source),
        Value::Number(_) => *value = json!(NUMBERS[source.below(NUMBERS.len())]),
        Value::Object(members) => {
            members.insert(string(source), garbage(source));
        }
        Value::Array(elements) => elements.push(garbage(source)),
        Value::Null | Value::Bool(_) => *value = garbage(source),
    }
}

fn garbage(source: &mut Source<'_>) -> Value {
    match source.below(6) {
        0 => Value::Null,
        1 => json!(source.below(2) == 0),
        2 => json!(NUMBERS[source.below(NUMBERS.len())]),
        3 => json!([]),
        4 => json!({}),
        _ => json!(string(source)),
    }
}

const NUMBERS: [i64; 16] = [
    0,
    1,
    -1,
    2,
    80,
    443,
    8080,
    599,
    65_535,
    65_536,
    1_000_000,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    i64::MAX,
    i64::MIN,
];

fn string(source: &mut Source<'_>) -> String {
    const STRINGS: [&str; 64] = [
        "",
        " ",
        "/",
        "//",
        "/a//b",
        "{",
        "}",
        "{*p}",
        "/{x}",
        "/{*p}",
        "/{{x}}",
        "/a{b}c",
        "/%zz",
        "/%",
        "/%2F",
        "/é",
        "é",
        "\u{0}",
        "\n",
        "a b",
        "/a b",
        "/a?b=c",
        "/a#b",
        "*",
        "*.",
        "*.*.com",
        "**",
        ".",
        "..",
        "a..b",
        "-a",
        "a-",
        "EXAMPLE.com",
        "127.0.0.1",
        "[::1]",
        "::1",
        "fe80::1%eth0",
        "0.0.0.0",
        "256.1.1.1",
        "http://x",
        "-1",
        "0",
        "10s",
        "0s",
        "1h1m",
        "-5s",
        "99999999999999999999s",
        "(((",
        ".*",
        "\"",
        "\\",
        "Exact",
        "PathPrefix",
        "RegularExpression",
        "HTTPS",
        "TLS",
        "Gateway",
        "HTTPRoute",
        "Service",
        "shop",
        "gateway",
        "web",
        "kubernetes.io/h2c",
        "Host",
    ];
    match source.below(STRINGS.len() + 4) {
        0 => "a".repeat(10_000),
        1 => format!("/{}", "b/".repeat(5_000)),
        2 => format!("{}.example.com", "c".repeat(250)),
        3 => (0..source.below(8))
            .map(|_| char::from(u8::try_from(source.byte()).unwrap_or_default()))
            .collect(),
        known => STRINGS[known - 4].to_owned(),
    }
}

fn decode(object: Value) -> Option<Object> {
    fn read<T: DeserializeOwned>(object: Value) -> Option<Arc<T>> {
        T::deserialize(object).ok().map(Arc::new)
    }
    // The intended kind, which the object may no longer name.
    let kind = object.get("kind").and_then(Value::as_str)?.to_owned();
    let kind = Kind::ALL.iter().find(|known| known.as_str() == kind)?;
    macro_rules! decode {
        ($($kind:ident in $field:ident $facts:tt)+) => {
            match kind { $(Kind::$kind => read(object).map(Object::$kind),)+ }
        };
    }
    for_each_kind! { decode }
}

/// One sane object or more of every kind, with every field that translation may look at.
fn templates() -> Vec<Value> {
    let mut objects = vec![gateway(), listener_set(), route("web"), route("api"), grpc_route()];
    objects.extend([
        ingress_class(),
        ingress(),
        backend_tls_policy(),
        backend_traffic_policy(),
        traffic_policy(),
        config_map(),
    ]);
    objects.extend(["TLSRoute", "TCPRoute", "UDPRoute"].map(stream_route));
    objects.extend([gateway_class(), pingsix_proxy("attached"), pingsix_proxy("managed")]);
    objects.extend(surroundings());
    objects
}

fn gateway_class() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "pingsix"},
        "spec": {
            "controllerName": "pingsix.io/gateway-controller",
            "parametersRef": {"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "infra", "name": "managed"},
        },
    })
}

/// Has every field; it is named as what it is for.
fn pingsix_proxy(mode: &str) -> Value {
    let resources = json!({"limits": {"cpu": 1, "memory": "256Mi"}, "requests": {"cpu": "500m"}});
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "pingsix"}}},
    ]}});
    let spec = if mode == "attached" {
        json!({
            "layout": "PerPort", "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
            "statusUrls": [{"url": "http://10.0.0.9:7085", "port": 80}],
            "sink": {"url": "etcds://etcd.infra:2379", "credentialsSecretRef": {"name": "etcd"}},
        })
    } else {
        json!({
            "image": "pingsix:1", "replicas": 2, "resources": resources,
            "service": {
                "type": "LoadBalancer", "annotations": {"a": "b"}, "loadBalancerClass": "example.com/fast",
                "externalTrafficPolicy": "Local",
            },
            "scheduling": {
                "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "edge", "operator": "Exists"}],
                "affinity": affinity, "priorityClassName": "high",
                "topologySpreadConstraints":
                    [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            },
            "disruptionBudget": {"minAvailable": "50%"}, "serviceAccountName": "edge",
            "podTemplatePatch": {"spec": {"hostNetwork": true, "containers": [{"name": "responder"}]}},
            "process": {
                "threads": 2, "logLevel": "Warn", "status": {"staleAfterSeconds": 60, "failReadinessWhenStale": true},
                "metrics": {"port": 9091}, "dataEncryption": {"keyringSecretRef": {"name": "keys", "key": "ring"}},
            },
            "responder": {"image": "responder:1", "resources": resources},
        })
    };
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy", "metadata": {"namespace": "infra", "name": mode},
        "spec": {mode: spec, "allowOverrides": ["Image", "PodTemplatePatch", "ServiceAccount", "Sink"]},
    })
}

fn ingress_class() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {
            "name": "pingsix",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "ingressclass.kubernetes.io/is-default-class": "true" },
        },
        "spec": { "controller": "pingsix.io/gateway-controller" },
    })
}

fn ingress() -> Value {
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let named = json!({ "service": { "name": "web", "port": { "name": "http" } } });
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "namespace": "shop",
            "name": "web",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "nginx.ingress.kubernetes.io/rewrite-target": "/" },
        },
        "spec": {
            "ingressClassName": "pingsix",
            "defaultBackend": backend,
            "tls": [{ "hosts": ["a.example.com", "*.example.com"], "secretName": "cert" }, { "secretName": "cert" }],
            "rules": [
                { "host": "a.example.com", "http": { "paths": [
                    { "path": "/", "pathType": "Prefix", "backend": backend },
                    { "path": "/foo", "pathType": "Exact", "backend": named },
                    { "path": "/bar/", "pathType": "ImplementationSpecific", "backend": backend },
                ] } },
                { "host": "*.example.com" },
                { "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } },
            ],
        },
    })
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": { "namespace": "shop", "name": "gateway", "generation": 3 },
        "spec": {
            "gatewayClassName": "pingsix",
            "addresses": [{ "type": "IPAddress", "value": "10.0.0.1" }],
            "infrastructure": { "labels": { "a": "b" } },
            "allowedListeners": { "namespaces": { "from": "Same" } },
            "tls": { "frontend": { "default": {}, "perPort": [{ "port": 8443, "tls": {} }] } },
            "listeners": [
                { "name": "any", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "All" } } },
                {
                    "name": "wild", "port": 80, "protocol": "HTTP", "hostname": "*.example.com",
                    "allowedRoutes": {
                        "kinds": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute" }],
                        "namespaces": {
                            "from": "Selector",
                            "selector": {
                                "matchLabels": { "team": "shop" },
                                "matchExpressions": [{ "key": "team", "operator": "In", "values": ["shop"] }],
                            },
                        },
                    },
                },
                { "name": "exact", "port": 8080, "protocol": "HTTP", "hostname": "a.example.com" },
                {
                    "name": "tls", "port": 443, "protocol": "HTTPS", "hostname": "b.example.com",
                    "tls": { "mode": "Terminate", "certificateRefs": [{ "group": "", "kind": "Secret", "name": "cert" }] },
                },
                {
                    "name": "ended", "port": 8883, "protocol": "TLS", "hostname": "*.example.com",
                    "tls": { "mode": "Terminate", "certificateRefs": [{ "name": "cert" }] },
                },
                { "name": "passed", "port": 8883, "protocol": "TLS", "tls": { "mode": "Passthrough" } },
                { "name": "tcp", "port": 5432, "protocol": "TCP" },
                { "name": "udp", "port": 53, "protocol": "UDP" },
            ],
        },
    })
}

fn listener_set() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": { "namespace": "shop", "name": "more", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "parentRef": { "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "shop", "name": "gateway" },
            "listeners": [
                { "name": "own", "port": 80, "protocol": "HTTP", "hostname": "own.example.com" },
                { "name": "same", "port": 8080, "protocol": "HTTP", "hostname": "a.example.com" },
                {
                    "name": "tls", "port": 443, "protocol": "HTTPS", "hostname": "*.example.com",
                    "tls": { "mode": "Terminate", "certificateRefs": [{ "group": "", "kind": "Secret", "namespace": "shop", "name": "cert" }] },
                    "allowedRoutes": { "kinds": [{ "kind": "HTTPRoute" }], "namespaces": { "from": "All" } },
                },
                { "name": "passed", "port": 8883, "protocol": "TLS", "hostname": "own.example.com", "tls": { "mode": "Passthrough" } },
            ],
        },
    })
}

fn backend_tls_policy() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "BackendTLSPolicy",
        "metadata": { "namespace": "other", "name": "web", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "targetRefs": [{ "group": "", "kind": "Service", "name": "web", "sectionName": "http" }],
            "validation": {
                "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": "authorities" }],
                "wellKnownCACertificates": "System",
                "hostname": "a.example.com",
                "subjectAltNames": [{ "type": "Hostname", "hostname": "b.example.com" }],
            },
            "options": { "a": "b" },
        },
    })
}

fn backend_traffic_policy() -> Value {
    json!({
        "apiVersion": "pingsix.io/v1alpha1",
        "kind": "BackendTrafficPolicy",
        "metadata": { "namespace": "other", "name": "web", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "targetRefs": [{ "group": "", "kind": "Service", "name": "web", "sectionName": "http" }],
            "loadBalancer": { "type": "ConsistentHash", "consistentHash": { "type": "Header", "name": "x-user" } },
            "healthCheck": { "active": {
                "type": "HTTP", "interval": "5s", "healthyThreshold": 2, "unhealthyThreshold": 4, "port": 9000,
                "http": { "path": "/health", "hostname": "a.example.com", "expectedStatuses": [200] },
            } },
            "timeout": { "connect": "1s", "send": "2s", "read": "3s" },
            "retry": { "numRetries": 2, "timeout": "5s", "statusCodes": [] },
            "tls": { "clientCertificateRef": { "name": "cert", "namespace": "shop" } },
        },
    })
}

fn traffic_policy() -> Value {
    json!({
        "apiVersion": "pingsix.io/v1alpha1",
        "kind": "TrafficPolicy",
        "metadata": { "namespace": "shop", "name": "traffic", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "targetRefs": [
                { "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway", "sectionName": "wild" },
                { "group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "more" },
            ],
            "strategy": "Overrides",
            "rateLimit": { "local": {
                "limit": { "requests": 3, "unit": "Minute" }, "key": { "type": "Header", "name": "x-user" },
                "onMissingKey": "Deny", "rejectCode": 503, "quotaHeaders": false,
            } },
            "compression": [{ "type": "Gzip", "level": 6 }, { "type": "Brotli", "level": 11 }],
            "requestID": { "headerName": "X-Id", "inResponse": false },
            "faultInjection": {
                "delay": { "duration": "250ms", "percentage": 5 }, "abort": { "httpStatus": 503, "percentage": 1 },
            },
            "grpcWeb": {},
            "responseHeaders": {
                "set": [{ "name": "A", "value": "1" }], "add": [{ "name": "B", "value": "2" }], "remove": ["C"],
            },
            "cache": { "ttl": "5s", "methods": ["GET"], "statuses": [200, 404] },
        },
    })
}

fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "other", "name": "authorities" },
        "data": { "ca.crt": "-----BEGIN CERTIFICATE-----" },
    })
}

fn route(name: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "namespace": "shop", "name": name, "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "parentRefs": [
                { "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "shop", "name": "gateway" },
                { "name": "gateway", "sectionName": "wild", "port": 80 },
                { "kind": "ListenerSet", "name": "more", "sectionName": "own" },
            ],
            "hostnames": ["a.example.com", "*.example.com", "example.org"],
            "rules": [
                {
                    "name": "first",
                    "matches": [
                        {
                            "path": { "type": "PathPrefix", "value": "/foo" },
                            "method": "GET",
                            "headers": [{ "type": "Exact", "name": "X-Env", "value": "one" }, { "name": "y", "value": "two" }],
                            "queryParams": [{ "type": "Exact", "name": "q", "value": "1" }],
                        },
                        { "path": { "type": "Exact", "value": format!("/{name}") } },
                    ],
                    "backendRefs": [
                        { "group": "", "kind": "Service", "name": "web", "port": 80, "weight": 3 },
                        { "namespace": "other", "name": "web", "port": 80 },
                        { "name": "missing", "port": 80 },
                    ],
                },
                { "backendRefs": [{ "name": "web", "port": 80 }] },
                {
                    "matches": [{ "path": { "value": "/filtered" } }],
                    "filters": [
                        { "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": [{ "name": "a", "value": "b" }], "remove": ["c"] } },
                        { "type": "RequestRedirect", "requestRedirect": { "scheme": "https", "hostname": "x.example.com", "port": 8443, "statusCode": 301, "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/x" } } },
                    ],
                },
                {
                    "matches": [{ "path": { "value": "/rewritten" } }],
                    "filters": [{ "type": "URLRewrite", "urlRewrite": { "hostname": "y.example.com", "path": { "type": "ReplaceFullPath", "replaceFullPath": "/z" } } }],
                    "timeouts": { "request": "10s", "backendRequest": "5s" },
                    "retry": { "attempts": 2, "codes": [500], "backoff": "1s" },
                    "backendRefs": [{ "name": "web", "port": 80, "filters": [{ "type": "ResponseHeaderModifier", "responseHeaderModifier": { "add": [{ "name": "a", "value": "b" }] } }] }],
                },
            ],
        },
    })
}

fn stream_route(kind: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": { "namespace": "shop", "name": "stream", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "parentRefs": [{ "name": "gateway" }, { "name": "gateway", "sectionName": "ended", "port": 8883 }],
            "hostnames": ["a.example.com", "*.example.com", "*.com", "example.org"],
            "rules": [{
                "name": "only",
                "backendRefs": [
                    { "group": "", "kind": "Service", "name": "web", "port": 80, "weight": 3 },
                    { "namespace": "other", "name": "web", "port": 53 },
                    { "name": "missing", "port": 80 },
                ],
            }],
        },
    })
}

fn grpc_route() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GRPCRoute",
        "metadata": { "namespace": "shop", "name": "calls", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "parentRefs": [{ "name": "gateway" }],
            "useDefaultGateways": "All",
            "hostnames": ["a.example.com", "*.example.com"],
            "rules": [
                {
                    "name": "first",
                    "matches": [
                        {
                            "method": { "type": "Exact", "service": "shop.Cart", "method": "Add" },
                            "headers": [{ "type": "Exact", "name": "X-Env", "value": "one" }],
                        },
                        { "method": { "service": "foo" } },
                    ],
                    "backendRefs": [
                        { "group": "", "kind": "Service", "name": "web", "port": 80, "weight": 3 },
                        { "namespace": "other", "name": "web", "port": 80 },
                        { "name": "missing", "port": 80 },
                    ],
                },
                {
                    "filters": [{ "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": [{ "name": "a", "value": "b" }], "remove": ["c"] } }],
                    "sessionPersistence": { "sessionName": "s" },
                    "backendRefs": [{ "name": "web", "port": 80, "filters": [{ "type": "ResponseHeaderModifier", "responseHeaderModifier": { "add": [{ "name": "a", "value": "b" }] } }] }],
                },
            ],
        },
    })
}

fn surroundings() -> Vec<Value> {
    let mut objects = vec![
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": { "name": "pingsix", "generation": 1 },
            "spec": { "controllerName": "pingsix.io/gateway-controller", "parametersRef": { "group": "g", "kind": "K", "name": "n" } },
        }),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
            "metadata": { "namespace": "other", "name": "grant" },
            "spec": {
                "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop" }],
                "to": [{ "group": "", "kind": "Service", "name": "web" }],
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": { "namespace": "shop", "name": "cert" },
            "data": { "tls.crt": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", "tls.key": "AAAA" },
        }),
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": "shop", "labels": { "team": "shop" } },
        }),
    ];
    for namespace in ["shop", "other"] {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": namespace, "name": "web" },
            "spec": { "type": "ClusterIP", "ports": [{ "name": "http", "port": 80, "targetPort": 8080, "appProtocol": "http", "protocol": "TCP" }] },
        }));
        for (kind, address) in [("IPv4", "10.0.0.7"), ("IPv6", "fd00::7"), ("FQDN", "web.example.com")] {
            objects.push(json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "namespace": namespace, "name": format!("web-{}", kind.to_lowercase()),
                    "labels": { "kubernetes.io/service-name": "web" },
                },
                "addressType": kind,
                "endpoints": [{ "addresses": [address], "conditions": { "ready": true, "serving": true, "terminating": false } }],
                "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
            }));
        }
    }
    objects
}

#[cfg(test)]
#[test]
fn every_template_is_an_object_of_its_kind() {
    for template in templates() {
        assert!(decode(template.clone()).is_some(), "{template}");
    }
}
