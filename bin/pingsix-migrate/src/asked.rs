//! Requests that the objects of the input describe: one for each path, and one for each further host.

use std::collections::BTreeMap;

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use super::answer::Request;
use super::report::Place;
use super::source::{SourceKind, Sources, list};

/// The host of requests to a rule for all hosts.
const ANY_HOST: &str = "any.example";

/// A request, and the part of the input that describes it.
pub(crate) struct Asked {
    pub(crate) place: Place,
    pub(crate) request: Request,
    /// Whether the input describes the connection alone.
    pub(crate) is_connection: bool,
}

/// The requests of all objects.
pub(crate) fn asked(sources: &Sources) -> Vec<Asked> {
    let mut all = Vec::new();
    let vars = vars(sources);
    for (key, value) in &sources.kept {
        let place = Place::object(key.to_string());
        if key.kind == Kind::Ingress {
            ingress(&place, value, &mut all);
        } else if matches!(key.kind, Kind::HttpRoute | Kind::GrpcRoute)
            && let Some(headers) = vars.get(key).cloned().unwrap_or_else(|| Some(Vec::new()))
        {
            route(key.kind, &place, value, &headers, &mut all);
        }
    }
    for source in sources.of_kind(SourceKind::ApisixRoute) {
        let rules = source.spec.value("http").and_then(Value::as_array).into_iter().flatten();
        for (index, rule) in rules.enumerate() {
            apisix_rule(&source.place.at("spec.http").item(index), rule, &mut all);
        }
    }
    all
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'v>(value: &'v Value, pointer: &str) -> Vec<&'v str> {
    list(value, pointer).filter_map(Value::as_str).collect()
}

/// A host that a name of hosts stands for.
fn host(written: &str) -> String {
    match written.strip_prefix('*') {
        _ if written.is_empty() => ANY_HOST.to_owned(),
        Some(parent) => format!("any{parent}"),
        None => written.to_ascii_lowercase(),
    }
}

/// Adds a request, if a client can send it.
fn add(place: &Place, request: Request, is_connection: bool, all: &mut Vec<Asked>) {
    let has_path = request.path.starts_with('/') && request.path.parse::<http::uri::PathAndQuery>().is_ok();
    if has_path && request.host.parse::<http::uri::Authority>().is_ok() {
        all.push(Asked { place: place.clone(), request, is_connection });
    }
}

/// Adds a request for each path, and one for each further host.
fn add_all(place: &Place, hosts: &[&str], requests: &[Request], all: &mut Vec<Asked>) {
    let (first, rest) = hosts.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let of_host = |request: &Request, name: &str| Request { host: host(name), ..request.clone() };
    for request in requests {
        add(place, of_host(request, first), false, all);
    }
    for name in rest {
        if let Some(request) = requests.first() {
            add(place, of_host(request, name), false, all);
        }
    }
}

fn ingress(place: &Place, ingress: &Value, all: &mut Vec<Asked>) {
    let annotation = |name: &str| {
        let annotations = ingress.pointer("/metadata/annotations");
        let value = annotations.and_then(|all| all.get(format!("nginx.ingress.kubernetes.io/{name}")));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    // The paths of a canary are those of another Ingress.
    if annotation("canary") == "true" {
        return;
    }
    let is_regular = annotation("use-regex") == "true" || !annotation("rewrite-target").is_empty();
    for (index, rule) in list(ingress, "/spec/rules").enumerate() {
        let rule_place = place.at("spec.rules").item(index).at("http.paths");
        for (index, path) in list(rule, "/http/paths").enumerate() {
            let written = text(path, "path");
            // In APISIX, an asterisk at the end stands for anything.
            let sample = match written.strip_suffix("/*") {
                _ if is_regular => literal(written).to_owned(),
                Some(prefix) => format!("{prefix}/any"),
                None => written.to_owned(),
            };
            let sample = if sample.is_empty() { "/".to_owned() } else { sample };
            let request = Request::get(&host(text(rule, "host")), &sample);
            add(&rule_place.item(index), request, false, all);
        }
    }
    for (index, tls) in list(ingress, "/spec/tls").enumerate() {
        for (number, name) in texts(tls, "/hosts").into_iter().enumerate() {
            let at = place.at("spec.tls").item(index).at("hosts").item(number);
            add(&at, Request { https: true, ..Request::get(&host(name), "/") }, true, all);
        }
    }
}

/// The beginning of a regular expression that stands for itself.
fn literal(written: &str) -> &str {
    let anchored = written.strip_prefix('^').unwrap_or(written);
    let end = anchored.find(['(', ')', '[', ']', '{', '}', '*', '+', '?', '|', '^', '$', '\\']);
    let (literal, rest) = anchored.split_at(end.unwrap_or(anchored.len()));
    // These repeat the character before, perhaps never.
    let mut kept = literal.chars();
    if rest.starts_with(['*', '+', '?', '{']) {
        let _ = kept.next_back();
    }
    kept.as_str()
}

fn apisix_rule(place: &Place, rule: &Value, all: &mut Vec<Asked>) {
    let mut request = Request::get(ANY_HOST, "/");
    let mut query = Vec::new();
    for expression in list(rule, "/match/exprs") {
        let value = match text(expression, "op") {
            "Equal" => text(expression, "value"),
            "In" => texts(expression, "/set").into_iter().next().unwrap_or_default(),
            // There may be no request for others.
            _ => return,
        };
        let Some(subject) = expression.get("subject") else { return };
        match text(subject, "scope") {
            "Header" => request.headers.push((text(subject, "name").to_owned(), value.to_owned())),
            "Query" => query.push(format!("{}={value}", text(subject, "name"))),
            _ => return,
        }
    }
    request.query = (!query.is_empty()).then(|| query.join("&"));
    if let Some(method) = texts(rule, "/match/methods").first() {
        request.method = method.to_ascii_uppercase();
    }
    let paths = texts(rule, "/match/paths").into_iter().map(|path| Request {
        path: match path.strip_suffix("/*") {
            Some(prefix) => format!("{prefix}/any"),
            None => path.to_owned(),
        },
        ..request.clone()
    });
    add_all(place, &texts(rule, "/match/hosts"), &paths.collect::<Vec<_>>(), all);
}

/// Headers that HTTPRoutePolicies ask for, by routes; `None` if they ask for something else.
fn vars(sources: &Sources) -> BTreeMap<ObjectKey, Option<Vec<(String, String)>>> {
    let mut all: BTreeMap<ObjectKey, Option<Vec<(String, String)>>> = BTreeMap::new();
    for policy in sources.of_kind(SourceKind::HttpRoutePolicy) {
        let conditions = policy.spec.value("vars").and_then(Value::as_array).into_iter().flatten();
        let headers: Option<Vec<(String, String)>> = conditions
            .map(|condition| {
                let [name, operator, value] = condition.as_array()?.as_slice() else { return None };
                let name = name.as_str()?.strip_prefix("http_")?.replace('_', "-");
                let value = if operator == "==" { value } else { value.as_array()?.first()? };
                Some((name, value.as_str()?.to_owned()))
            })
            .collect();
        let targets = policy.spec.value("targetRefs").and_then(Value::as_array).into_iter().flatten();
        for target in targets {
            let name = ObjectName::new(&*policy.name.namespace, text(target, "name"));
            let held =
                all.entry(ObjectKey { kind: Kind::HttpRoute, name }).or_insert_with(|| Some(Vec::new()));
            match (held.as_mut(), &headers) {
                (Some(held), Some(headers)) => held.extend(headers.iter().cloned()),
                _ => *held = None,
            }
        }
    }
    all
}

fn route(kind: Kind, place: &Place, route: &Value, headers: &[(String, String)], all: &mut Vec<Asked>) {
    let hosts = texts(route, "/spec/hostnames");
    for (index, rule) in list(route, "/spec/rules").enumerate() {
        let place = place.at("spec.rules").item(index);
        let anything = Value::Object(serde_json::Map::new());
        let mut matches: Vec<&Value> = list(rule, "/matches").collect();
        if matches.is_empty() {
            matches.push(&anything);
        }
        let requests = matches.into_iter().filter_map(|matched| request_of_match(kind, matched, headers));
        add_all(&place, &hosts, &requests.collect::<Vec<_>>(), all);
    }
}

/// A request for a match; `None` for one with regular expressions.
fn request_of_match(kind: Kind, matched: &Value, headers: &[(String, String)]) -> Option<Request> {
    let mut request = Request { headers: headers.to_vec(), ..Request::get(ANY_HOST, "/") };
    let is_exact = |condition: &Value| text(condition, "type") != "RegularExpression";
    if kind == Kind::GrpcRoute {
        let method = matched.get("method").unwrap_or(&Value::Null);
        let or_any = |name: &'static str| match text(method, name) {
            "" => "any".to_owned(),
            written => written.to_owned(),
        };
        request.path = format!("/{}/{}", or_any("service"), or_any("method"));
        "POST".clone_into(&mut request.method);
        request.http2 = true;
        is_exact(method).then_some(())?;
    } else {
        if let Some(path) = matched.get("path").filter(|path| path.get("value").is_some()) {
            is_exact(path).then_some(())?;
            text(path, "value").clone_into(&mut request.path);
        }
        if let Some(method) = matched.get("method").and_then(Value::as_str) {
            method.clone_into(&mut request.method);
        }
    }
    for header in list(matched, "/headers") {
        is_exact(header).then_some(())?;
        request.headers.push((text(header, "name").to_owned(), text(header, "value").to_owned()));
    }
    let mut query = Vec::new();
    for parameter in list(matched, "/queryParams") {
        is_exact(parameter).then_some(())?;
        query.push(format!("{}={}", text(parameter, "name"), text(parameter, "value")));
    }
    request.query = (!query.is_empty()).then(|| query.join("&"));
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn a_repeated_character_is_not_asked_for() {
        for (written, expected) in [
            ("/foo.*", "/foo"),
            ("^/api/?(.*)", "/api"),
            ("/a(/|$)(.*)", "/a"),
            ("/a/(.*)", "/a/"),
            ("*", ""),
        ] {
            assert_eq!(literal(written), expected, "{written}");
        }
    }
}
