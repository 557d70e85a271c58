//! The rules about several fields of Gateway API, of Kubernetes and of our own kinds.
//!
//! An API server evaluates the rules of Gateway API and of our kinds as CEL (`x-kubernetes-validations`), after its defaults.
//!
//! `kube-cel` 0.8 evaluates CEL in Rust, and could take the place of the last table, which has the rules of our kinds. For 120
//! lines, it would bring 14 crates (a runtime of ANTLR, `chrono` and a second `thiserror` among them), and its violations name
//! the value of a rule alone, not the field. The rules of Gateway API would stay, because its types lack them.

use std::collections::BTreeSet;

use gateway_api::Duration;
use serde_json::Value;

use super::format::Format;

/// A violation: the field below the value of the rule, and a sentence.
pub(super) type Violation = (String, String);

/// A rule about a value.
pub(super) struct Rule {
    /// The end of the path of the values, as in the tables of limits.
    pub(super) at: &'static str,
    pub(super) violation: fn(&Value) -> Option<Violation>,
}

const fn rule(at: &'static str, violation: fn(&Value) -> Option<Violation>) -> Rule {
    Rule { at, violation }
}

/// The rules of Gateway API.
pub(super) const OF_GATEWAY_API: &[Rule] = &[
    rule("filters[]", |filter| union(filter, "type", FILTERS)),
    rule("requestRedirect.path", |path| union(path, "type", PATHS)),
    rule("urlRewrite.path", |path| union(path, "type", PATHS)),
    rule("subjectAltNames[]", |name| union(name, "type", ALT_NAMES)),
    rule("externalAuth", |auth| union(auth, "protocol", &[("HTTP", "http"), ("GRPC", "grpc")])),
    rule("sessionPersistence", |session| {
        let cookie = has(session, "cookieConfig");
        let message = "The field cookieConfig is for sessions of type Cookie.";
        (cookie && text_or(session, "type", "Cookie") != "Cookie").then(|| violation("cookieConfig", message))
    }),
    rule("sessionPersistence", |session| {
        let permanent = session["cookieConfig"]["lifetimeType"] == "Permanent";
        let message = "A session with a permanent cookie needs absoluteTimeout.";
        (permanent && !has(session, "absoluteTimeout")).then(|| violation("absoluteTimeout", message))
    }),
    rule("filters", one_filter_of_each_type),
    rule("requestMirror", |mirror| {
        let both = has(mirror, "percent") && has(mirror, "fraction");
        both.then(|| violation("fraction", "A mirror has percent or fraction, and not both."))
    }),
    rule("fraction", |fraction| {
        let denominator = fraction["denominator"].as_i64().unwrap_or(100);
        let beyond = fraction["numerator"].as_i64().is_some_and(|numerator| numerator > denominator);
        beyond.then(|| {
            violation(
                "numerator",
                format!("The numerator is greater than the denominator, which is {denominator}."),
            )
        })
    }),
    rule("allowMethods", any_alone),
    rule("allowHeaders", any_alone),
    rule("allowOrigins", any_alone),
    rule("HTTPRoute.spec.rules[].matches[].path", path_of_match),
    rule("GRPCRoute.spec.rules[].matches[].method", method_of_match),
    rule("HTTPRoute.spec.rules[]", redirect_without_backends),
    rule("HTTPRoute.spec.rules[]", prefix_of_one_match),
    rule("HTTPRoute.spec.rules", matches_of_all_rules),
    rule("GRPCRoute.spec.rules", matches_of_all_rules),
    rule("spec.rules", |rules| {
        repeated(rules, |rule| Some(rule["name"].as_str()?.to_owned()), "Another rule has the same name.")
    }),
    rule("timeouts", backend_request_within_request),
    rule("backendRefs[]", port_of_service),
    rule("backendRef", port_of_service),
    rule("parentRefs", distinct_references),
    rule("TLSRoute.spec.hostnames", |hostnames| {
        let address = list(hostnames)
            .iter()
            .position(|host| host.as_str().is_some_and(|host| host.parse::<std::net::IpAddr>().is_ok()));
        address.map(|index| violation(format!("[{index}]"), "A hostname is no IP address."))
    }),
    rule("listeners[]", tls_and_hostname_of_protocol),
    rule("Gateway.spec.listeners", distinct_listeners),
    rule("ListenerSet.spec.listeners", distinct_listeners),
    rule("listeners[].tls", |tls| {
        let needed = text_or(tls, "mode", "Terminate") == "Terminate"
            && list(&tls["certificateRefs"]).is_empty()
            && tls["options"].as_object().is_none_or(serde_json::Map::is_empty);
        needed.then(|| {
            violation("certificateRefs", "A listener that terminates TLS needs certificateRefs or options.")
        })
    }),
    rule("Gateway.spec.addresses", |addresses| {
        let address = |one: &Value| {
            let of_type = text_or(one, "type", "IPAddress");
            let value = one["value"].as_str().filter(|_| matches!(of_type, "IPAddress" | "Hostname"))?;
            Some(format!("{of_type} {value}"))
        };
        repeated(addresses, address, "The address is there twice.")
    }),
    rule("Gateway.spec.addresses[]", |address| {
        let value = address["value"].as_str()?;
        let wrong = text_or(address, "type", "IPAddress") == "Hostname" && !Format::Hostname.holds(value);
        wrong.then(|| violation("value", format!("{value:?} has to be {}.", Format::Hostname.in_words())))
    }),
    rule("infrastructure.annotations", |annotations| {
        let wrong = annotations.as_object()?.keys().find(|name| !Format::AnnotationName.holds(name))?;
        let message = format!("The name of an annotation has {}.", Format::AnnotationName.in_words());
        Some(violation(wrong, message))
    }),
    rule("BackendTLSPolicy.spec.validation", |validation| {
        let of_refs = !list(&validation["caCertificateRefs"]).is_empty();
        let well_known = !text_or(validation, "wellKnownCACertificates", "").is_empty();
        (of_refs == well_known).then(|| {
            violation(
                "caCertificateRefs",
                "Exactly one of caCertificateRefs and wellKnownCACertificates has to be set.",
            )
        })
    }),
    rule("BackendTLSPolicy.spec.targetRefs", distinct_references),
];

/// The rules of Kubernetes.
pub(super) const OF_KUBERNETES: &[Rule] = &[
    rule("Ingress.spec.rules[].http.paths[]", |path| {
        let value = path["path"].as_str().unwrap_or_default();
        let is_kept = text_or(path, "pathType", "ImplementationSpecific") == "ImplementationSpecific"
            && value.is_empty();
        (!is_kept && !value.starts_with('/')).then(|| violation("path", "A path begins with '/'."))
    }),
    rule("Ingress.spec.rules[].http.paths[].backend", backend_of_ingress),
    rule("Ingress.spec.defaultBackend", backend_of_ingress),
    rule("backend.service", port_of_ingress),
    rule("defaultBackend.service", port_of_ingress),
    rule("Service.spec.ports", |ports| {
        repeated(ports, |port| Some(port["name"].as_str()?.to_owned()), "Another port has the same name.")
    }),
    rule("Service.spec.ports", |ports| {
        let unnamed = list(ports).iter().position(|port| !has(port, "name"))?;
        (list(ports).len() > 1)
            .then(|| violation(format!("[{unnamed}].name"), "Each of several ports needs a name."))
    }),
];

fn violation(field: impl Into<String>, message: impl Into<String>) -> Violation {
    (field.into(), message.into())
}

/// Whether an object has a field.
pub(super) fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn text_or<'v>(object: &'v Value, field: &str, default: &'v str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or(default)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The second of two entries with the same key.
fn repeated(entries: &Value, key: impl Fn(&Value) -> Option<String>, message: &str) -> Option<Violation> {
    let mut seen = BTreeSet::new();
    let again = list(entries).iter().position(|entry| key(entry).is_some_and(|key| !seen.insert(key)))?;
    Some(violation(format!("[{again}]"), message))
}

/// The types of filters, with the field that each needs.
const FILTERS: &[(&str, &str)] = &[
    ("RequestHeaderModifier", "requestHeaderModifier"),
    ("ResponseHeaderModifier", "responseHeaderModifier"),
    ("RequestMirror", "requestMirror"),
    ("RequestRedirect", "requestRedirect"),
    ("URLRewrite", "urlRewrite"),
    ("CORS", "cors"),
    ("ExternalAuth", "externalAuth"),
    ("ExtensionRef", "extensionRef"),
];

const PATHS: &[(&str, &str)] =
    &[("ReplaceFullPath", "replaceFullPath"), ("ReplacePrefixMatch", "replacePrefixMatch")];

const ALT_NAMES: &[(&str, &str)] = &[("Hostname", "hostname"), ("URI", "uri")];

/// An object has the field that belongs to the value of its tag, and none that belongs to another value.
fn union(object: &Value, tag: &str, arms: &[(&str, &str)]) -> Option<Violation> {
    let chosen = object[tag].as_str()?;
    let missing = arms.iter().find(|(value, field)| *value == chosen && !has(object, field));
    if let Some((value, field)) = missing {
        return Some(violation("", format!("With {tag} {value}, the field {field} is required.")));
    }
    let (value, field) = arms.iter().find(|(value, field)| *value != chosen && has(object, field))?;
    Some(violation(*field, format!("The field {field} is for {tag} {value}, and {tag} is {chosen}.")))
}

fn one_filter_of_each_type(filters: &Value) -> Option<Violation> {
    let single = ["RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "CORS"];
    let of_type =
        |filter: &Value| Some(filter["type"].as_str().filter(|of_type| single.contains(of_type))?.to_owned());
    repeated(filters, of_type, "Another filter of this type comes before; there may be one.").or_else(|| {
        let position = |of_type: &str| list(filters).iter().position(|filter| filter["type"] == of_type);
        let last = position("RequestRedirect")?.max(position("URLRewrite")?);
        Some(violation(format!("[{last}]"), "There may be RequestRedirect or URLRewrite, and not both."))
    })
}

/// `*` stands for all others.
fn any_alone(names: &Value) -> Option<Violation> {
    let any = list(names).iter().position(|name| name == "*")?;
    (list(names).len() > 1).then(|| violation(format!("[{any}]"), "'*' has to be the only entry."))
}

fn path_of_match(path: &Value) -> Option<Violation> {
    let value = text_or(path, "value", "/");
    if text_or(path, "type", "PathPrefix") == "RegularExpression" {
        return None;
    }
    let within = ["//", "/./", "/../", "%2f", "%2F", "#"].into_iter().find(|part| value.contains(part));
    let at_end = ["/..", "/."].into_iter().find(|end| value.ends_with(end));
    let message = if !value.starts_with('/') {
        "A path begins with '/'.".to_owned()
    } else if let Some(part) = within.or(at_end) {
        format!("A path has no {part:?}.")
    } else if !Format::UriPath.holds(value) {
        format!("{value:?} has to be {}.", Format::UriPath.in_words())
    } else {
        return None;
    };
    Some(violation("value", message))
}

fn method_of_match(method: &Value) -> Option<Violation> {
    if !has(method, "service") && !has(method, "method") {
        return has(method, "type").then(|| violation("", "A match by method needs service or method."));
    }
    if text_or(method, "type", "Exact") != "Exact" {
        return None;
    }
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let service = method["service"].as_str();
    let is_service = |service: &str| service.strip_prefix('.').unwrap_or(service).split('.').all(is_word);
    if service.is_some_and(|service| !is_service(service)) {
        return Some(violation("service", "A service is a name such as shop.v1.Cart."));
    }
    let wrong = method["method"].as_str().is_some_and(|name| !is_word(name));
    wrong.then(|| violation("method", "A method is a name of letters, digits and '_'."))
}

fn redirect_without_backends(rule: &Value) -> Option<Violation> {
    let redirects = list(&rule["filters"]).iter().any(|filter| has(filter, "requestRedirect"));
    let both = redirects && !list(&rule["backendRefs"]).is_empty();
    both.then(|| violation("backendRefs", "A rule with a RequestRedirect has no backendRefs."))
}

/// A prefix is replaced where there is one.
fn prefix_of_one_match(rule: &Value) -> Option<Violation> {
    let replaces = |filters: &Value| {
        let mut paths = list(filters)
            .iter()
            .flat_map(|filter| [&filter["requestRedirect"]["path"], &filter["urlRewrite"]["path"]]);
        paths.any(|path| path["type"] == "ReplacePrefixMatch" && has(path, "replacePrefixMatch"))
    };
    let is_needed = replaces(&rule["filters"])
        || list(&rule["backendRefs"]).iter().any(|backend| replaces(&backend["filters"]));
    if !is_needed {
        return None;
    }
    // Without matches, the API server adds the prefix "/"; a match without a path has this prefix, too.
    let has_prefix = match list(&rule["matches"]) {
        [] => !has(rule, "matches"),
        [only] => text_or(&only["path"], "type", "PathPrefix") == "PathPrefix",
        _ => false,
    };
    (!has_prefix).then(|| {
        violation("matches", "A rule with replacePrefixMatch needs exactly one match, of type PathPrefix.")
    })
}

fn matches_of_all_rules(rules: &Value) -> Option<Violation> {
    let count: usize = list(rules).iter().map(|rule| list(&rule["matches"]).len()).sum();
    (count > 128).then(|| violation("", format!("The rules have {count} matches; at most 128 are allowed.")))
}

fn backend_request_within_request(timeouts: &Value) -> Option<Violation> {
    let duration = |field: &str| timeouts[field].as_str()?.parse::<Duration>().ok();
    let (request, backend) = (duration("request")?, duration("backendRequest")?);
    let message = "The timeout of an attempt, backendRequest, is longer than that of the request, request.";
    (!request.is_zero() && backend.as_millis() > request.as_millis())
        .then(|| violation("backendRequest", message))
}

fn port_of_service(backend: &Value) -> Option<Violation> {
    let is_service =
        text_or(backend, "group", "").is_empty() && text_or(backend, "kind", "Service") == "Service";
    (is_service && !has(backend, "port")).then(|| violation("port", "A reference to a Service needs a port."))
}

/// An object, or each part of it once.
fn distinct_references(parents: &Value) -> Option<Violation> {
    let object = |parent: &Value| {
        let field = |name: &str, default| text_or(parent, name, default).to_owned();
        [
            field("group", "gateway.networking.k8s.io"),
            field("kind", "Gateway"),
            field("namespace", ""),
            field("name", ""),
        ]
        .join("/")
    };
    let part = |parent: &Value| {
        format!("{} {}", text_or(parent, "sectionName", ""), parent["port"].as_i64().unwrap_or_default())
    };
    repeated(
        parents,
        |parent| Some(format!("{} {}", object(parent), part(parent))),
        "The same reference comes before.",
    )
    .or_else(|| {
        let is_whole = |parent: &Value| {
            (text_or(parent, "sectionName", "").is_empty(), parent["port"].as_i64().unwrap_or_default() == 0)
        };
        let mut first = std::collections::BTreeMap::new();
        let differs = list(parents).iter().position(|parent| {
            *first.entry(object(parent)).or_insert(is_whole(parent)) != is_whole(parent)
        })?;
        Some(violation(
            format!("[{differs}]"),
            "References to one object set the same of sectionName and port.",
        ))
    })
}

fn tls_and_hostname_of_protocol(listener: &Value) -> Option<Violation> {
    let protocol = listener["protocol"].as_str()?;
    let mode = listener["tls"]["mode"].as_str();
    match protocol {
        "HTTP" | "TCP" | "UDP" if has(listener, "tls") => {
            Some(violation("tls", format!("A listener with protocol {protocol} has no tls.")))
        }
        "TCP" | "UDP" if !text_or(listener, "hostname", "").is_empty() => {
            Some(violation("hostname", format!("A listener with protocol {protocol} has no hostname.")))
        }
        "HTTPS" if mode.is_some_and(|mode| mode != "Terminate") => Some(violation(
            "tls.mode",
            "A listener with protocol HTTPS has the mode Terminate; Passthrough is for protocol TLS.",
        )),
        "TLS" if !has(listener, "tls") => Some(violation("tls", "A listener with protocol TLS needs tls.")),
        _ => None,
    }
}

fn distinct_listeners(listeners: &Value) -> Option<Violation> {
    let place = |listener: &Value| {
        let port = listener["port"].as_i64()?;
        Some(format!("{port} {} {:?}", text_or(listener, "protocol", ""), listener["hostname"].as_str()))
    };
    let (listener, message) =
        repeated(listeners, place, "Another listener has the same port, protocol and hostname.")?;
    Some(violation(format!("{listener}.hostname"), message))
}

fn backend_of_ingress(backend: &Value) -> Option<Violation> {
    (has(backend, "service") == has(backend, "resource"))
        .then(|| violation("", "A backend has exactly one of service and resource."))
}

fn port_of_ingress(service: &Value) -> Option<Violation> {
    let port = &service["port"];
    (has(port, "name") == has(port, "number"))
        .then(|| violation("port", "The port has exactly one of name and number."))
}

/// A violation with the message of the definition, unless the rule holds.
fn unless(holds: bool, message: &str) -> Option<Violation> {
    unless_at("", holds, message)
}

/// The same with a field below the value of the rule.
fn unless_at(field: impl Into<String>, holds: bool, message: &str) -> Option<Violation> {
    (!holds).then(|| violation(field, format!("An API server refuses the object: {message}.")))
}

/// The rules of our own kinds, with the messages of their definitions.
pub(super) const OF_PINGSIX: &[Rule] = &[
    rule("SecurityPolicy.spec", |spec| {
        let count =
            ["apiKeyAuth", "basicAuth", "jwt", "anonymous"].iter().filter(|field| has(spec, field)).count();
        unless(count <= 1, "at most one of apiKeyAuth, basicAuth, jwt and anonymous may be set")
    }),
    rule("SecurityPolicy.spec", |spec| {
        let fields =
            ["apiKeyAuth", "basicAuth", "jwt", "anonymous", "authorization", "clientIP", "cors", "csrf"];
        sets_one_of(spec, &fields)
    }),
    rule("SecurityPolicy.spec", |spec| {
        unless(!overrides(spec) || !has(spec, "anonymous"), "anonymous overrides no authentication")
    }),
    rule("TrafficPolicy.spec", |spec| {
        let fields = [
            "rateLimit",
            "compression",
            "requestID",
            "faultInjection",
            "grpcWeb",
            "responseHeaders",
            "cache",
        ];
        sets_one_of(spec, &fields)
    }),
    rule("SecurityPolicy.spec", targets_of_one_class),
    rule("SecurityPolicy.spec", ingresses_without_section),
    rule("SecurityPolicy.spec", overrides_of_wide_targets),
    rule("TrafficPolicy.spec", targets_of_one_class),
    rule("TrafficPolicy.spec", ingresses_without_section),
    rule("TrafficPolicy.spec", overrides_of_wide_targets),
    rule("SecurityPolicy.spec.jwt", |jwt| {
        let one = has(jwt, "secretRef") != has(jwt, "publicKeyRef");
        unless(one, "exactly one of secretRef and publicKeyRef has to be set")
    }),
    rule("SecurityPolicy.spec.authorization", |networks| {
        unless(has(networks, "allow") || has(networks, "deny"), "one of allow and deny has to be set")
    }),
    rule("TrafficPolicy.spec.responseHeaders", |changes| {
        let one = ["set", "add", "remove"].iter().any(|field| has(changes, field));
        unless(one, "one of set, add and remove has to be set")
    }),
    rule("rateLimit.local.key", |key| {
        let of_address = text_or(key, "type", "RemoteAddress") == "RemoteAddress";
        unless(
            of_address != has(key, "name"),
            "a Header, a Cookie and a QueryParam need a name, a RemoteAddress has none",
        )
    }),
    rule("TrafficPolicy.spec.faultInjection", |injected| {
        unless(has(injected, "delay") || has(injected, "abort"), "one of delay and abort has to be set")
    }),
    rule("TrafficPolicy.spec.compression", |types| {
        unless(
            repeated(types, |one| Some(one["type"].as_str()?.to_owned()), "").is_none(),
            "each type may be listed once",
        )
    }),
    rule("TrafficPolicy.spec.compression[]", |one| {
        let beyond = one["type"] == "Gzip" && one["level"].as_i64().is_some_and(|level| level > 9);
        unless_at("level", !beyond, "Gzip has the levels 1 to 9")
    }),
    rule("PingsixProxy.spec", |spec| {
        unless(
            has(spec, "attached") != has(spec, "managed"),
            "exactly one of attached and managed has to be set",
        )
    }),
    rule("managed.service", |service| {
        let balanced = text_or(service, "type", "LoadBalancer") == "LoadBalancer";
        unless(
            balanced || !has(service, "loadBalancerClass"),
            "loadBalancerClass is for Services of type LoadBalancer",
        )
    }),
    rule("managed.service", |service| {
        let internal = service["type"] == "ClusterIP";
        unless(
            !internal || !has(service, "externalTrafficPolicy"),
            "externalTrafficPolicy is for Services that are reached from outside the cluster",
        )
    }),
    rule("disruptionBudget", |budget| {
        let one = has(budget, "minAvailable") != has(budget, "maxUnavailable");
        unless(one, "exactly one of minAvailable and maxUnavailable has to be set")
    }),
    rule("HTTPRouteFilter.spec", |spec| {
        unless(
            has(spec, "urlRewrite") != has(spec, "directResponse"),
            "exactly one of urlRewrite and directResponse has to be set",
        )
    }),
    rule("directResponse", |response| {
        let empty = text_or(response, "body", "").is_empty();
        let bodiless =
            response["statusCode"].as_i64().is_some_and(|status| [204, 205, 304].contains(&status));
        unless_at("body", empty || !bodiless, "responses with status 204, 205 and 304 have no body")
    }),
    rule("BackendTrafficPolicy.spec.targetRefs", |targets| {
        let of_service =
            |target: &Value| text_or(target, "group", "").is_empty() && target["kind"] == "Service";
        unless(list(targets).iter().all(of_service), "the targets have to be Services")
    }),
    rule("BackendTrafficPolicy.spec.loadBalancer", |balancer| {
        let hashes = balancer["type"] == "ConsistentHash";
        unless(
            hashes == has(balancer, "consistentHash"),
            "consistentHash belongs to the type ConsistentHash, which needs it",
        )
    }),
    rule("consistentHash", |hash| {
        let named = ["Header", "Cookie", "QueryParam"].iter().any(|of_type| hash["type"] == *of_type);
        unless(
            named == has(hash, "name"),
            "a Header, a Cookie and a QueryParam need a name, the other types have none",
        )
    }),
    rule("healthCheck.active", |check| {
        unless(
            text_or(check, "type", "HTTP") == "HTTP" || !has(check, "http"),
            "http belongs to the type HTTP",
        )
    }),
];

fn overrides(spec: &Value) -> bool {
    spec["strategy"] == "Overrides"
}

fn sets_one_of(spec: &Value, fields: &[&str]) -> Option<Violation> {
    unless(fields.iter().any(|field| has(spec, field)), "a policy has to set a field beside targetRefs")
}

/// Whether each target is of one of these kinds.
fn targets_are(spec: &Value, kinds: &[&str]) -> bool {
    let kinds_of_targets = list(&spec["targetRefs"]).iter().map(|target| text_or(target, "kind", ""));
    kinds_of_targets.into_iter().all(|kind| kinds.contains(&kind))
}

const WIDE: &[&str] = &["Gateway", "ListenerSet"];

fn targets_of_one_class(spec: &Value) -> Option<Violation> {
    let one = [WIDE, &["HTTPRoute", "GRPCRoute"], &["Ingress"]].iter().any(|kinds| targets_are(spec, kinds));
    unless(one, "the targets have to be Gateways and ListenerSets, or routes, or Ingresses")
}

fn ingresses_without_section(spec: &Value) -> Option<Violation> {
    let is_wrong = |target: &Value| target["kind"] == "Ingress" && has(target, "sectionName");
    let wrong = list(&spec["targetRefs"]).iter().position(is_wrong)?;
    unless_at(format!("targetRefs[{wrong}].sectionName"), false, "an Ingress has no sections")
}

fn overrides_of_wide_targets(spec: &Value) -> Option<Violation> {
    let allowed = !overrides(spec) || targets_are(spec, WIDE);
    unless(allowed, "only policies of Gateways and ListenerSets may have the strategy Overrides")
}
