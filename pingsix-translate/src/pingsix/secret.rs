//! Key material never reaches logs, errors or dumps.

use std::fmt;

use serde_json::Value;

/// Stands for a secret in `Debug` output.
pub(crate) struct Redacted;

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// The field names that hold secrets in any PingSIX document: the ones PingSIX itself encrypts
/// (`src/config/mod.rs`, `src/plugins/{basic_auth,csrf,jwt_auth,key_auth}.rs`).
pub(super) const SECRET_FIELDS: [&str; 5] = ["client_key", "key", "keys", "password", "secret"];

/// A copy of a plugin's configuration that may be shown. `key` is also the name of harmless fields, so only
/// the configurations of the plugins that hold secrets lose it.
pub(super) fn redact(plugin: &str, config: &Value) -> Value {
    let holds_secrets = matches!(plugin, "basic-auth" | "csrf" | "jwt-auth" | "key-auth");
    redact_fields(config, holds_secrets)
}

fn redact_fields(value: &Value, holds_secrets: bool) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| {
                let secret =
                    name == "client_key" || (holds_secrets && SECRET_FIELDS.contains(&name.as_str()));
                let shown = if secret { "<redacted>".into() } else { redact_fields(field, holds_secrets) };
                (name.clone(), shown)
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| redact_fields(item, holds_secrets)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
