//! Plugins that change requests and responses on their way.

use pingsix_translate::read_regex_uri;
use serde_json::{Map, Value, json};

use super::{Effects, Level};
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Fields};

/// The fields of a change of headers.
const CHANGES: [&str; 3] = ["set", "add", "remove"];

/// Reads `{set, add, remove}`, or a map of headers to set, as the same fields of a filter.
fn header_changes(field: Field, report: &mut Report) -> Map<String, Value> {
    let Some(mut fields) = field.object(report) else { return Map::new() };
    let is_new = |name: &&str| fields.value(name).is_some_and(|value| !value.is_null() && !value.is_string());
    let lists = if CHANGES.iter().any(is_new) {
        let set = fields.object("set", report).map(|set| values(set, report));
        let add = fields.take("add").map(|add| {
            if add.value.is_array() {
                lines(add, report)
            } else {
                add.object(report).map(|add| values(add, report)).unwrap_or_default()
            }
        });
        let mut remove = fields.texts("remove", report);
        remove.retain(|(place, name)| {
            let is_free = is_free(name, place, report);
            if is_free {
                report.exact(place, "The header is removed.");
            }
            is_free
        });
        fields.finish(report);
        let remove = remove.into_iter().map(|(_, name)| json!(name)).collect();
        [set.unwrap_or_default(), add.unwrap_or_default(), remove]
    } else {
        [values(fields, report), Vec::new(), Vec::new()]
    };
    let lists = CHANGES.into_iter().zip(lists).filter(|(_, list)| !list.is_empty());
    lists.map(|(name, list)| (name.to_owned(), Value::Array(list))).collect()
}

/// Whether a filter has room for the changes.
fn fits(changes: &Map<String, Value>, place: &Place, report: &mut Report) -> bool {
    let fits = changes.values().all(|list| list.as_array().is_none_or(|list| list.len() <= 16));
    if !fits {
        report.blocking(place, Reason::TooMany, "A filter changes at most 16 headers of each sort.");
    }
    fits
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
                let message =
                    "An empty value removes the header in some versions of APISIX and not in others.";
                report.blocking(&place, Reason::UnsupportedHeader, message);
            } else if value.contains('$') {
                let message = "The value has a variable, and headers have constant values.";
                report.blocking(&place, Reason::UnsupportedVariable, message);
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
            _ => {
                let message = "The value has a variable or no name, and headers have constant values.";
                report.blocking(&place, Reason::UnsupportedVariable, message);
            }
        }
    }
    headers
}

pub(super) fn proxy_rewrite(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let has_variable = |text: &str| text.contains('$');
    if let Some((place, uri)) = config.text("uri", report) {
        if has_variable(&uri) || uri.contains('?') || !uri.starts_with('/') {
            let message = "The new path has a variable or a query, and paths are replaced by constant ones.";
            report.blocking(&place, Reason::UnsupportedVariable, message);
        } else {
            report.exact(&place, "The field becomes ReplaceFullPath.");
            effects.path = Some(json!({ "type": "ReplaceFullPath", "replaceFullPath": uri }));
        }
    }
    if let Some(field) = config.take("regex_uri") {
        let place = field.place.clone();
        let texts = field.list(report).into_iter().filter_map(|item| Some(item.text(report)?.1));
        match texts.collect::<Vec<_>>().as_slice() {
            _ if effects.path.is_some() => report.exact(&place, "APISIX does not use the field beside uri."),
            [pattern, template] => match read_regex_uri(pattern, template) {
                Ok(path) => {
                    report.exact(&place, "The field becomes an HTTPRouteFilter.");
                    effects.regex = Some(json!({ "path": path }));
                }
                Err(why) => report.blocking(&place, Reason::UnsupportedRewrite, why),
            },
            _ => {
                let message = "A rule has one pattern and one new path.";
                report.blocking(&place, Reason::UnsupportedRewrite, message);
            }
        }
    }
    if let Some((place, host)) = config.text("host", report) {
        if has_variable(&host) || host.contains(':') {
            let message = "The new host has a variable or a port, and hosts are replaced by constant names.";
            report.blocking(&place, Reason::UnsupportedVariable, message);
        } else {
            report.exact(&place, "The field becomes urlRewrite.hostname.");
            effects.hostname = Some(host);
        }
    }
    config.refuse(["method"], report, "HTTPRoutes do not change methods.");
    if let Some(field) = config.take("headers") {
        let place = field.place.clone();
        let changes = header_changes(field, report);
        if fits(&changes, &place, report) && !changes.is_empty() {
            effects
                .filters
                .push(json!({ "type": "RequestHeaderModifier", "requestHeaderModifier": changes }));
        }
    }
    if let Some((place, unsafe_uri)) = config.truth("use_real_request_uri_unsafe", report) {
        if unsafe_uri {
            report.blocking(&place, Reason::UnsupportedField, "PingSIX normalises paths.");
        } else {
            report.exact(&place, "Paths are normalised.");
        }
    }
    config.drop(["scheme"], report, "The scheme is that of the Service.");
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
                let message = "Headers of responses can be changed, and nothing else of them.";
                report.blocking(&field.place, Reason::UnsupportedField, message);
            }
        }
    }
    let Some(field) = config.take("headers") else { return config.finish(report) };
    let changes = header_changes(field, report);
    config.finish(report);
    if !fits(&changes, &place, report) || changes.is_empty() {
        return;
    }
    if level == Level::Gateway {
        effects.treat("responseHeaders", Value::Object(changes), &place, report);
    } else {
        effects.filters.push(json!({ "type": "ResponseHeaderModifier", "responseHeaderModifier": changes }));
    }
}
