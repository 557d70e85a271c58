//! Redaction of secrets in logs, errors and dumps.

use std::fmt;

use serde_json::Value;

use super::ResourceKind;

/// The text in the place of a secret.
pub(crate) const REDACTED: &str = "<redacted>";

/// Stands for a secret in `Debug` output.
pub(crate) struct Redacted;

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// The field names that hold secrets in any PingSIX document: the ones PingSIX itself encrypts
/// (`src/config/mod.rs`, `src/plugins/{basic_auth,csrf,jwt_auth,key_auth}.rs`).
pub(super) const SECRET_FIELDS: [&str; 5] = ["client_key", "key", "keys", "password", "secret"];

/// A copy of a plugin's configuration without secrets. Other plugins have a harmless `key`, so only plugins with
/// secrets lose that field.
pub(super) fn redact(plugin: &str, config: &Value) -> Value {
    let holds_secrets = matches!(plugin, "basic-auth" | "csrf" | "jwt-auth" | "key-auth");
    redact_fields(config, holds_secrets)
}

/// A copy of a document without secrets.
pub(super) fn redact_document(kind: ResourceKind, document: &Value) -> Value {
    let Value::Object(fields) = document else { return document.clone() };
    let shown = |(name, field): (&String, &Value)| {
        let field = match (name.as_str(), field) {
            ("plugins", Value::Object(plugins)) => {
                plugins.iter().map(|(plugin, config)| (plugin.clone(), redact(plugin, config))).collect()
            }
            (name, _) if kind == ResourceKind::Ssl && SECRET_FIELDS.contains(&name) => REDACTED.into(),
            (name, field) => redact_field(name, field, false),
        };
        (name.clone(), field)
    };
    fields.iter().map(shown).collect()
}

fn redact_field(name: &str, field: &Value, holds_secrets: bool) -> Value {
    let secret = name == "client_key" || (holds_secrets && SECRET_FIELDS.contains(&name));
    if secret { REDACTED.into() } else { redact_fields(field, holds_secrets) }
}

fn redact_fields(value: &Value, holds_secrets: bool) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), redact_field(name, field, holds_secrets)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| redact_fields(item, holds_secrets)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
