//! Values as YAML for people: short things stand on one line, and what names a thing comes first.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::yaml;

/// The longest line of several values. One value may be longer, because messages are never wrapped.
const MAX_LINE_BYTES: usize = 110;

/// The first and the last fields; all others are between them, sorted by name.
const FIRST: [&str; 7] = ["type", "status", "object", "severity", "reason", "field", "name"];
const LAST: [&str; 4] = ["message", "observedGeneration", "conditions", "listeners"];

/// Writes a field and its value, indented by a number of blanks.
pub(crate) fn write_field(out: &mut String, indent: usize, name: &str, value: &Value) {
    pad(out, indent);
    push_scalar(out, name);
    out.push(':');
    write_value(out, indent, value);
}

/// The value after a colon, up to the end of the line or over several lines.
fn write_value(out: &mut String, indent: usize, value: &Value) {
    match value {
        Value::String(text) if text.contains('\n') => write_text(out, indent + 2, text),
        Value::Object(fields) if !fields.is_empty() && !is_short(value, indent) => {
            out.push('\n');
            write_fields(out, indent + 2, fields);
        }
        Value::Array(items) if !items.is_empty() && !is_short(value, indent) => {
            out.push('\n');
            for item in items {
                write_item(out, indent, item);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push(' ');
            push_inline(out, value);
            out.push('\n');
        }
    }
}

fn write_fields(out: &mut String, indent: usize, fields: &Map<String, Value>) {
    for (name, value) in ordered(fields) {
        write_field(out, indent, name, value);
    }
}

fn write_item(out: &mut String, indent: usize, item: &Value) {
    pad(out, indent);
    out.push('-');
    match item {
        Value::Object(fields) if !is_flat(item) => {
            let mut block = String::new();
            write_fields(&mut block, indent + 2, fields);
            out.push(' ');
            out.push_str(block.trim_start());
        }
        Value::Array(_) | Value::Object(_) => {
            out.push(' ');
            push_inline(out, item);
            out.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => write_value(out, indent, item),
    }
}

/// A literal block; texts that would not survive one are quoted.
fn write_text(out: &mut String, indent: usize, text: &str) {
    let literal = text.strip_suffix('\n').filter(|body| {
        body.lines().all(|line| !line.is_empty() && !line.starts_with(char::is_whitespace))
            && !body.contains(|c: char| c.is_control() && c != '\n')
    });
    let Some(body) = literal else {
        out.push(' ');
        push_quoted(out, text);
        out.push('\n');
        return;
    };
    out.push_str(" |\n");
    for line in body.lines() {
        pad(out, indent);
        out.push_str(line);
        out.push('\n');
    }
}

/// Whether a field's value stands on its line. Objects with several fields are easier to compare line by line.
fn is_short(value: &Value, indent: usize) -> bool {
    let plain = match value {
        Value::Object(fields) if fields.len() > 1 => fields.len() <= 3 && fields.values().all(is_scalar),
        Value::Array(items) => !items.iter().any(Value::is_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            is_flat(value)
        }
    };
    plain && !holds_lines(value) && indent + inline(value).len() <= MAX_LINE_BYTES
}

/// Whether an object stands on one line as an item of a list: when it holds nothing but scalars, or little.
fn is_flat(value: &Value) -> bool {
    let Value::Object(fields) = value else { return true };
    let lists_objects =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    let little = || !fields.values().any(lists_objects) && inline(value).len() <= MAX_LINE_BYTES;
    !holds_lines(value) && (fields.values().all(is_scalar) || little())
}

const fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

fn holds_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(items) => items.iter().any(holds_lines),
        Value::Object(fields) => fields.values().any(holds_lines),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn inline(value: &Value) -> String {
    let mut text = String::new();
    push_inline(&mut text, value);
    text
}

fn push_inline(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, value)) in ordered(fields).into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                push_scalar(out, name);
                out.push_str(": ");
                push_inline(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                push_inline(out, value);
            }
            out.push(']');
        }
        Value::String(text) => push_scalar(out, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{value}");
        }
    }
}

/// Quotes a scalar only if YAML needs it, also inside of brackets.
fn push_scalar(out: &mut String, text: &str) {
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '<'));
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-=:<> ()*+".contains(&byte))
        && !text.contains(": ")
        && !text.ends_with([' ', ':']);
    if starts && plain && yaml::decode(text).is_some_and(|value| value == text) {
        out.push_str(text);
    } else {
        push_quoted(out, text);
    }
}

/// JSON's quotes are YAML's.
fn push_quoted(out: &mut String, text: &str) {
    let _ = write!(out, "{}", Value::from(text));
}

fn ordered(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let place = |list: &[&str], name: &str| list.iter().position(|known| *known == name);
    let mut ordered: Vec<_> = fields.iter().collect();
    ordered.sort_by_key(|(name, _)| {
        let first = place(&FIRST, name).unwrap_or(FIRST.len());
        let last = place(&LAST, name).map_or(0, |place| place + 1);
        (last, first)
    });
    ordered
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> String {
        let mut out = String::new();
        write_field(&mut out, 0, "top", value);
        out
    }

    #[test]
    fn a_written_value_is_read_back() {
        let value = json!({
            "uris": ["/", "/{*p}", "*.example.com", "yes", "1e3", "0x1f", "null", "~", "a: b", "# no", " x ", "", "!=", "=="],
            "pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "odd": "a\n\n b\n\n", "tail": "a\nb",
            "vars": [[["http_x-env", "==", "a, b"], ["arg_page", "!=", ""]], []], "nodes": { "10.0.0.1:80": 1, "[::1]:80": 2 },
            "rules": [{ "weighted": [{ "id": "u", "weight": 7 }, { "id": "v", "weight": 3 }], "x": {} }, { "text": "a\nb\n" }],
            "long": ["x".repeat(80), "y".repeat(80)], "empty": {}, "list": [], "number": -1, "float": 1.5, "no": false, "null": null,
            "12:30": "12:30", "2026-01-01": "2026-01-01", "message": "Say: \"it\" #1, {a}.", "<redacted>": "<redacted>",
        });
        let text = written(&value);
        let read = yaml::decode(&text).unwrap_or_else(|| panic!("no document in:\n{text}"));
        assert_eq!(read["top"], value, "{text}");
    }

    #[test]
    fn a_condition_stands_on_a_line() {
        let condition = json!({ "conditions": [{
            "message": "All is well.", "observedGeneration": 1, "reason": "Accepted", "status": "True", "type": "Accepted",
        }] });
        assert_eq!(
            written(&condition),
            "top:\n  conditions:\n  - {type: Accepted, status: \"True\", reason: Accepted, message: All is well., observedGeneration: 1}\n"
        );
    }
}
