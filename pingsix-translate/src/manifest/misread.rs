//! Values that YAML reads as another type than their author meant.

use serde_json::Value;

use crate::model::article;

/// The type of a value, in words. The words have no content, which may be secret.
pub const fn type_in_words(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The problem of the name or the namespace of an object, with its field. A namespace may be absent.
pub fn metadata_problem(
    kind: &str,
    is_namespaced: bool,
    metadata: Option<&Value>,
) -> Option<(&'static str, String)> {
    let value =
        |field: &str| metadata.and_then(|metadata| metadata.get(field)).filter(|value| !value.is_null());
    match value("name") {
        Some(Value::String(name)) if !name.is_empty() => {}
        None | Some(Value::String(_)) => {
            let article = if article(kind) == "an" { "An" } else { "A" };
            return Some(("metadata.name", format!("{article} {kind} needs a name.")));
        }
        Some(other) => return Some(("metadata.name", not_a_name("metadata.name", other))),
    }
    match value("namespace").filter(|_| is_namespaced) {
        None | Some(Value::String(_)) => None,
        Some(other) => Some(("metadata.namespace", not_a_name("metadata.namespace", other))),
    }
}

/// How to write a text that YAML reads as another type; empty if it is none.
pub const fn how_to_quote(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "Write it in quotes: without them, words such as yes, no, on and off are booleans.",
        Value::Number(_) => "Write it in quotes.",
        Value::Null => "Write a text in quotes: without them, ~ and the word null are no text.",
        Value::String(_) | Value::Array(_) | Value::Object(_) => "",
    }
}

/// A name is never secret, so the message quotes it.
fn not_a_name(field: &str, value: &Value) -> String {
    let quotes = how_to_quote(value);
    match value {
        Value::Bool(truth) => format!("{field} is the boolean {truth}. {quotes}"),
        Value::Number(number) => format!("{field} is the number {number}. {quotes}"),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            format!("{field} is {}, and a name is a text.", type_in_words(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_are_no_texts_are_shown_with_what_to_write() {
        for (metadata, expected) in [
            (json!({ "name": "a" }), None),
            (json!({ "name": "a", "namespace": null }), None),
            (json!({ "name": "" }), Some("An Ingress needs a name.")),
            (json!({ "name": null }), Some("An Ingress needs a name.")),
            (json!({ "name": 2048 }), Some("metadata.name is the number 2048. Write it in quotes.")),
            (json!({ "name": ["a"] }), Some("metadata.name is a list, and a name is a text.")),
            (
                json!({ "name": "a", "namespace": true }),
                Some(
                    "metadata.namespace is the boolean true. Write it in quotes: without them, words such as yes, no, on and \
                     off are booleans.",
                ),
            ),
        ] {
            let message = metadata_problem("Ingress", true, Some(&metadata)).map(|(_, message)| message);
            assert_eq!(message.as_deref(), expected, "{metadata}");
        }
        assert!(
            metadata_problem("IngressClass", false, Some(&json!({ "name": "a", "namespace": 1 }))).is_none()
        );
    }
}
