//! The parts of routes and Ingresses that pages show, and searches.
//!
//! The parts come from the JSON of the API, which all kinds share, so that one page serves all kinds. The order and the
//! effect of rules is a matter of translation alone.

use pingsix_translate::snapshot::{AnyRoute, class_of_ingress};
use pingsix_translate::{Kind, Object, ObjectKey};
use serde_json::Value;

/// A route or an Ingress.
#[derive(Clone, Debug)]
pub(super) struct RouteText {
    pub(super) key: ObjectKey,
    /// The hostnames; empty for every host.
    pub(super) hosts: Vec<String>,
    /// The class of an Ingress, if the Ingress names one.
    pub(super) class: Option<String>,
    pub(super) rules: Vec<RuleText>,
}

/// A rule.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleText {
    /// The field of the rule, such as `spec.rules[0]`.
    pub(super) field: String,
    /// `name`, if the rule has one, or the host of the rule of an Ingress.
    pub(super) name: Option<String>,
    pub(super) matches: Vec<MatchText>,
    /// The filters in words, without values that may be secret.
    pub(super) filters: Vec<String>,
    /// Timeouts, retries and the like, in words.
    pub(super) settings: Vec<String>,
    pub(super) backends: Vec<BackendText>,
}

/// One match.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchText {
    /// The type of the match and its path.
    pub(super) path: String,
    /// A path for an example of a request; `None` for a match with an expression.
    pub(super) example: Option<String>,
    pub(super) method: Option<String>,
    pub(super) headers: Vec<String>,
    pub(super) query: Vec<String>,
}

impl MatchText {
    /// The path without the type of the match.
    fn written_path(&self) -> &str {
        self.path.split_once(' ').map_or(&*self.path, |(_, written)| written)
    }
}

/// A backend.
#[derive(Clone, Debug)]
pub(super) struct BackendText {
    /// Kind, namespace, name and port.
    pub(super) text: String,
    /// The Service with its port, if the backend is one.
    pub(super) service: Option<(ObjectKey, i32)>,
    pub(super) weight: i64,
    /// For an Ingress, the field of its path.
    pub(super) matched: Option<String>,
}

/// The JSON of a route or an Ingress; `None` for another kind.
fn value(object: &Object) -> Option<Value> {
    if let Object::Ingress(ingress) = object {
        return serde_json::to_value(&**ingress).ok();
    }
    let value = match AnyRoute::of(object.clone())? {
        AnyRoute::HttpRoute(route) => serde_json::to_value(&*route),
        AnyRoute::GrpcRoute(route) => serde_json::to_value(&*route),
        AnyRoute::TlsRoute(route) => serde_json::to_value(&*route),
        AnyRoute::TcpRoute(route) => serde_json::to_value(&*route),
        AnyRoute::UdpRoute(route) => serde_json::to_value(&*route),
    };
    value.ok()
}

/// The text that has every hostname and path of an object, so that most objects are ruled out without decoding.
fn haystack(object: &Object) -> Option<String> {
    if let Object::Ingress(ingress) = object {
        return serde_json::to_string(&ingress.spec).ok();
    }
    Some(AnyRoute::of(object.clone())?.text())
}

/// Whether the name, a hostname or a path of a route or an Ingress contains a text in lower case.
pub(super) fn contains(object: &Object, search: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(search);
    if has(&object.key().name.to_string()) {
        return true;
    }
    // JSON escapes these characters, so the text may be missed. The path of a GRPCRoute is written in two parts.
    let may_be_missed = search.contains(['"', '\\'])
        || search.chars().any(char::is_control)
        || (object.key().kind == Kind::GrpcRoute && search.contains('/'));
    if !may_be_missed && !haystack(object).is_some_and(|text| has(&text)) {
        return false;
    }
    let Some(route) = RouteText::of(object) else { return false };
    let of_rules = route.rules.iter().flat_map(|rule| &rule.matches);
    route.hosts.iter().any(|host| has(host)) || of_rules.map(MatchText::written_path).any(has)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A field with a value.
fn present<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).filter(|value| !value.is_null())
}

/// The text of a field; empty if it is absent.
fn field(value: &Value, name: &str) -> String {
    present(value, name).map(text).unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

impl RouteText {
    /// The parts of a route or an Ingress; `None` for another kind.
    pub(super) fn of(object: &Object) -> Option<Self> {
        let value = value(object)?;
        let (key, spec) = (object.key(), &value["spec"]);
        if let Object::Ingress(ingress) = object {
            let class = class_of_ingress(ingress).map(str::to_owned);
            return Some(Self { class, ..Self::of_ingress(key, spec) });
        }
        let rules = list(spec, "rules").enumerate().map(|(index, rule)| rule_of_route(&key, index, rule));
        let rules = rules.collect();
        Some(Self { hosts: list(spec, "hostnames").map(text).collect(), class: None, rules, key })
    }

    fn of_ingress(key: ObjectKey, spec: &Value) -> Self {
        let mut hosts: Vec<String> = list(spec, "rules").map(|rule| field(rule, "host")).collect();
        hosts.retain(|host| !host.is_empty());
        hosts.dedup();
        let mut rules: Vec<RuleText> = Vec::new();
        for (index, rule) in list(spec, "rules").enumerate() {
            let at = format!("spec.rules[{index}]");
            let mut read =
                RuleText { field: at.clone(), name: rule.get("host").map(text), ..RuleText::default() };
            for (number, path) in list(&rule["http"], "paths").enumerate() {
                let (kind, written) = (field(path, "pathType"), field(path, "path"));
                let written = if written.is_empty() { "/".to_owned() } else { written };
                // An annotation may make the path an expression.
                let may_be_expression = kind == "ImplementationSpecific"
                    && written.contains(['(', ')', '[', '{', '|', '*', '+', '?', '\\', '^', '$']);
                read.matches.push(MatchText {
                    path: format!("{kind} {written}"),
                    example: (!may_be_expression).then_some(written),
                    ..MatchText::default()
                });
                let matched = Some(format!("{at}.http.paths[{number}]"));
                read.backends.push(BackendText { matched, ..ingress_backend(&key, &path["backend"]) });
            }
            rules.push(read);
        }
        if let Some(backend) = present(spec, "defaultBackend") {
            rules.push(RuleText {
                field: "spec.defaultBackend".to_owned(),
                name: Some("default backend".to_owned()),
                backends: vec![ingress_backend(&key, backend)],
                ..RuleText::default()
            });
        }
        Self { key, hosts, class: None, rules }
    }
}

fn ingress_backend(key: &ObjectKey, backend: &Value) -> BackendText {
    let service = &backend["service"];
    let name = field(service, "name");
    let (number, port_name) = (service["port"]["number"].as_i64(), field(&service["port"], "name"));
    if name.is_empty() {
        let resource = &backend["resource"];
        let text = format!("{} {}", field(resource, "kind"), field(resource, "name"));
        return BackendText { text, service: None, weight: 1, matched: None };
    }
    let service = ObjectKey::new(Kind::Service, key.name.namespace.clone(), &name);
    let port = number.map_or(port_name, |number| number.to_string());
    let number = number.and_then(|number| i32::try_from(number).ok());
    BackendText {
        text: format!("{service} port {port}"),
        service: number.map(|number| (service, number)),
        weight: 1,
        matched: None,
    }
}

fn rule_of_route(key: &ObjectKey, index: usize, rule: &Value) -> RuleText {
    let written = list(rule, "matches").filter(|_| key.kind.has_requests());
    let mut matches: Vec<MatchText> = written.map(|matched| match_of(key.kind, matched)).collect();
    // A rule without matches is one with a match for everything.
    if matches.is_empty() && key.kind.has_requests() {
        matches.push(match_of(key.kind, &Value::Null));
    }
    let settings = ["timeouts", "retry", "sessionPersistence"].into_iter().filter_map(|name| {
        let setting = present(rule, name)?;
        Some(format!("{name}: {}", in_words(setting)))
    });
    RuleText {
        field: format!("spec.rules[{index}]"),
        name: present(rule, "name").map(text),
        matches,
        filters: list(rule, "filters").map(filter).collect(),
        settings: settings.collect(),
        backends: list(rule, "backendRefs").map(|backend| backend_of(key, backend)).collect(),
    }
}

fn match_of(kind: Kind, matched: &Value) -> MatchText {
    let condition = |condition: &Value| {
        let sign = if field(condition, "type") == "RegularExpression" { "~" } else { "=" };
        format!("{} {sign} {}", field(condition, "name"), field(condition, "value"))
    };
    let headers = list(matched, "headers").map(condition).collect();
    let is_literal = list(matched, "headers")
        .chain(list(matched, "queryParams"))
        .all(|condition| field(condition, "type") != "RegularExpression");
    if kind == Kind::GrpcRoute {
        let method = &matched["method"];
        let (service, name) = (field(method, "service"), field(method, "method"));
        let part = |part: &str| if part.is_empty() { "*".to_owned() } else { part.to_owned() };
        let is_literal = is_literal
            && !service.is_empty()
            && !name.is_empty()
            && field(method, "type") != "RegularExpression";
        let example = is_literal.then(|| format!("/{service}/{name}"));
        let path = format!("/{}/{}", part(&service), part(&name));
        return MatchText { path, example, headers, ..MatchText::default() };
    }
    let path = &matched["path"];
    let kind = path.get("type").map_or_else(|| "PathPrefix".to_owned(), text);
    let written = path.get("value").map_or_else(|| "/".to_owned(), text);
    MatchText {
        path: format!("{kind} {written}"),
        example: (is_literal && kind != "RegularExpression").then_some(written),
        method: present(matched, "method").map(text),
        headers,
        query: list(matched, "queryParams").map(condition).collect(),
    }
}

/// A filter by its type, with names of headers and the target of redirects. Values of headers may be credentials.
fn filter(filter: &Value) -> String {
    let kind = field(filter, "type");
    let one_of = |names: [&str; 2]| names.into_iter().find_map(|name| present(filter, name));
    if let Some(modifier) = one_of(["requestHeaderModifier", "responseHeaderModifier"]) {
        let named = |verb: &str| {
            let names: Vec<String> = list(modifier, verb)
                .map(|header| if header.is_string() { text(header) } else { field(header, "name") })
                .collect();
            (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
        };
        let parts: Vec<String> = ["set", "add", "remove"].into_iter().filter_map(named).collect();
        return format!("{kind}: {}", parts.join("; "));
    }
    if let Some(details) = one_of(["requestRedirect", "urlRewrite"]) {
        return format!("{kind}: {}", in_words(details));
    }
    if let Some(reference) = present(filter, "extensionRef") {
        return format!("{kind}: {} {}", field(reference, "kind"), field(reference, "name"));
    }
    kind
}

/// An object of plain values as `name value, name value`.
fn in_words(value: &Value) -> String {
    if let Some(fields) = value.as_object() {
        let present = fields.iter().filter(|(_, value)| !value.is_null());
        let part = |(name, value): (&String, &Value)| {
            let words = in_words(value);
            if value.is_object() { format!("{name} ({words})") } else { format!("{name} {words}") }
        };
        return present.map(part).collect::<Vec<_>>().join(", ");
    }
    let Some(values) = value.as_array() else { return text(value) };
    values.iter().map(in_words).collect::<Vec<_>>().join(" ")
}

fn backend_of(key: &ObjectKey, backend: &Value) -> BackendText {
    let kind = present(backend, "kind").map_or_else(|| "Service".to_owned(), text);
    let is_service = kind == Kind::Service.as_str() && field(backend, "group").is_empty();
    let namespace = present(backend, "namespace").map_or_else(|| key.name.namespace.to_string(), text);
    let name = field(backend, "name");
    let port = backend["port"].as_i64().and_then(|port| i32::try_from(port).ok());
    let port_text = port.map(|port| format!(" port {port}")).unwrap_or_default();
    let of_service = || (ObjectKey::new(Kind::Service, namespace.as_str(), &name), port);
    let service = is_service.then(of_service).and_then(|(service, port)| Some((service, port?)));
    BackendText {
        text: format!("{kind} {namespace}/{name}{port_text}"),
        service,
        weight: backend.get("weight").and_then(Value::as_i64).unwrap_or(1),
        matched: None,
    }
}
