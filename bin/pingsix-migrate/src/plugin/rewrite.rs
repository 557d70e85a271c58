//! Plugins that change requests and responses on their way.

use pingsix_translate::read_regex_uri;
use serde_json::{Value, json};

use super::{Effects, Level};
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Fields};

/// A change of headers.
#[derive(Default)]
struct HeaderChanges {
    set: Vec<Value>,
    add: Vec<Value>,
    remove: Vec<Value>,
}

impl HeaderChanges {
    /// Reads `{set, add, remove}`, or a map of headers to set.
    fn read(field: Field, report: &mut Report) -> Self {
        let mut changes = Self::default();
        let Some(mut fields) = field.object(report) else { return changes };
        let has = |fields: &Fields, name: &str| {
            fields.clone().take(name).is_some_and(|field| !field.value.is_string())
        };
        let is_new = ["set", "add", "remove"].iter().any(|name| has(&fields, name));
        if !is_new {
            changes.set = values(fields, report);
            return changes;
        }
        if let Some(set) = fields.take("set").and_then(|field| field.object(report)) {
            changes.set = values(set, report);
        }
        if let Some(add) = fields.take("add") {
            changes.add = if add.value.is_array() {
                lines(add, report)
            } else {
                add.object(report).map(|add| values(add, report)).unwrap_or_default()
            };
        }
        for (place, name) in fields.texts("remove", report) {
            if is_free(&name, &place, report) {
                report.exact(&place, "The header is removed.");
                changes.remove.push(json!(name));
            }
        }
        fields.finish(report);
        changes
    }

    fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }

    fn is_too_long(&self) -> bool {
        [&self.set, &self.add, &self.remove].iter().any(|list| list.len() > 16)
    }

    fn value(self) -> Value {
        let mut value = serde_json::Map::new();
        for (name, list) in [("set", self.set), ("add", self.add), ("remove", self.remove)] {
            if !list.is_empty() {
                value.insert(name.to_owned(), Value::Array(list));
            }
        }
        Value::Object(value)
    }
}

/// Headers that filters do not change.
const FIXED: [&str; 6] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "x-pingsix-redirect"];

/// Whether filters can change the header.
fn is_free(name: &str, place: &Place, report: &mut Report) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_free = !name.is_empty()
        && name.len() <= 256
        && name.bytes().all(is_token)
        && !FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(name));
    if !is_free {
        report.blocking(place, Reason::UnsupportedHeader, "Filters cannot change the header.");
    }
    is_free
}

/// Headers of a map. The values may be secret.
fn values(mut fields: Fields, report: &mut Report) -> Vec<Value> {
    let mut headers = Vec::new();
    for (name, field) in fields.rest() {
        if let Some((place, value)) = field.text_or_number(report) {
            if value.is_empty() {
                report.blocking(
                    &place,
                    Reason::UnsupportedHeader,
                    "An empty value removes the header in some versions of APISIX and not in others.",
                );
            } else if value.contains('$') {
                report.blocking(
                    &place,
                    Reason::UnsupportedVariable,
                    "The value has a variable, and headers have constant values.",
                );
            } else if is_free(&name, &place, report) {
                report.exact(&place, "The header gets the value.");
                headers.push(json!({ "name": name, "value": value }));
            }
        }
    }
    headers
}

/// Headers as texts `name: value`.
fn lines(field: Field, report: &mut Report) -> Vec<Value> {
    let mut headers = Vec::new();
    for item in field.list(report) {
        let Some((place, line)) = item.text(report) else { continue };
        match line.split_once(':') {
            Some((name, value)) if !value.contains('$') => {
                if is_free(name.trim(), &place, report) {
                    report.exact(&place, "The header gets the value.");
                    headers.push(json!({ "name": name.trim(), "value": value.trim() }));
                }
            }
            _ => report.blocking(
                &place,
                Reason::UnsupportedVariable,
                "The value has a variable or no name, and headers have constant values.",
            ),
        }
    }
    headers
}

pub(super) fn proxy_rewrite(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let has_variable = |text: &str| text.contains('$');
    if let Some((place, uri)) = config.text("uri", report) {
        if has_variable(&uri) || uri.contains('?') || !uri.starts_with('/') {
            report.blocking(
                &place,
                Reason::UnsupportedVariable,
                "The new path has a variable or a query, and paths are replaced by constant ones.",
            );
        } else {
            report.exact(&place, "The field becomes ReplaceFullPath.");
            effects.path = Some(json!({ "type": "ReplaceFullPath", "replaceFullPath": uri }));
        }
    }
    if let Some(field) = config.take("regex_uri") {
        let place = field.place.clone();
        let texts: Vec<String> = field
            .list(report)
            .into_iter()
            .filter_map(|item| item.text(report))
            .map(|(_, text)| text)
            .collect();
        match texts.as_slice() {
            _ if effects.path.is_some() => report.exact(&place, "APISIX does not use the field beside uri."),
            [pattern, template] => match read_regex_uri(pattern, template) {
                Ok(path) => {
                    report.exact(&place, "The field becomes an HTTPRouteFilter.");
                    effects.regex = Some(json!({ "path": path }));
                }
                Err(why) => report.blocking(&place, Reason::UnsupportedRewrite, why),
            },
            _ => report.blocking(
                &place,
                Reason::UnsupportedRewrite,
                "A rule has one pattern and one new path.",
            ),
        }
    }
    if let Some((place, host)) = config.text("host", report) {
        if has_variable(&host) || host.contains(':') {
            report.blocking(
                &place,
                Reason::UnsupportedVariable,
                "The new host has a variable or a port, and hosts are replaced by constant names.",
            );
        } else {
            report.exact(&place, "The field becomes urlRewrite.hostname.");
            effects.hostname = Some(host);
        }
    }
    if let Some(field) = config.take("method") {
        report.blocking(&field.place, Reason::UnsupportedField, "HTTPRoutes do not change methods.");
    }
    if let Some(field) = config.take("headers") {
        let place = field.place.clone();
        let changes = HeaderChanges::read(field, report);
        if changes.is_too_long() {
            report.blocking(&place, Reason::TooMany, "A filter changes at most 16 headers of each sort.");
        } else if !changes.is_empty() {
            effects.filters.push(json!({
                "type": "RequestHeaderModifier", "requestHeaderModifier": changes.value(),
            }));
        }
    }
    if let Some((place, unsafe_uri)) = config.truth("use_real_request_uri_unsafe", report) {
        if unsafe_uri {
            report.blocking(&place, Reason::UnsupportedField, "PingSIX normalises paths.");
        } else {
            report.exact(&place, "Paths are normalised.");
        }
    }
    config.drop("scheme", report, "The scheme is that of the Service.");
    config.finish(report);
}

pub(super) fn response_rewrite(mut config: Fields, level: Level, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    for name in ["status_code", "body", "body_base64", "filters", "vars"] {
        if let Some(field) = config.take(name) {
            let is_off = field.value.as_bool() == Some(false);
            if is_off {
                report.exact(&field.place, "The value asks for nothing.");
            } else {
                report.blocking(
                    &field.place,
                    Reason::UnsupportedField,
                    "Headers of responses can be changed, and nothing else of them.",
                );
            }
        }
    }
    let Some(field) = config.take("headers") else { return config.finish(report) };
    let changes = HeaderChanges::read(field, report);
    config.finish(report);
    if changes.is_too_long() {
        report.blocking(&place, Reason::TooMany, "A filter changes at most 16 headers of each sort.");
    } else if changes.is_empty() {
    } else if level == Level::Gateway {
        effects.treat("responseHeaders", changes.value(), &place, report);
    } else {
        effects.filters.push(json!({
            "type": "ResponseHeaderModifier", "responseHeaderModifier": changes.value(),
        }));
    }
}
