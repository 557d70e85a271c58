//! Untyped configurations in their stored form.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Encryption, Rule, Severity, Subject, ValidateOptions, Violation, validate_known};
use crate::pingsix::config::relative_key;
use crate::pingsix::kind::canonical_prefix;
use crate::pingsix::known_fields::known_fields;
use crate::pingsix::secret::SECRET_FIELDS;
use crate::pingsix::{
    Config, Document, DocumentKey, GlobalRule, KeyError, ResourceKind, Route, Service, Ssl, Upstream,
    json_len, listed_len,
};

/// Every violation of the etcd keys and values of a whole prefix, that of the options; see [`super`].
///
/// The check covers values that are no JSON, and the value of PingSIX's guard key. The last value of a repeated key counts,
/// as in a store.
pub fn validate_pairs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    pairs: impl IntoIterator<Item = (K, V)>,
    options: &ValidateOptions,
) -> Vec<Violation> {
    let prefix = canonical_prefix(&options.prefix);
    let guard_key = format!("{prefix}.pingsix_graph_revision");
    let mut stored = Stored::default();
    for (key, value) in pairs {
        let (key, value) = (key.as_ref(), value.as_ref());
        if key == guard_key.as_bytes() && value != b"pingsix-graph-v1" && value != b"1" {
            let subject = Subject::Key(".pingsix_graph_revision".to_owned());
            let message = "The guard of the prefix holds a value that PingSIX does not know.".to_owned();
            stored.violation(subject, Severity::Fatal, Rule::Guard, message);
        }
        match relative_key(&prefix, key) {
            Ok(None) => {}
            Ok(Some(key)) => stored.put(key, serde_json::from_slice(value).map_err(|_| value.len())),
            Err(error) => stored.reject_key(&String::from_utf8_lossy(key), &error),
        }
    }
    stored.validate(options)
}

/// Every violation of PingSIX's static form, the top level of its YAML file as a JSON value; see [`super`].
///
/// The process configuration beside the lists is ignored. Numbers are judged as in JSON, although PingSIX's YAML
/// reader accepts `1.0` for an integer. PingSIX decrypts no secret of the static form, so the option for encryption
/// has no effect.
pub fn validate_static(value: &Value, options: &ValidateOptions) -> Vec<Violation> {
    let options = &ValidateOptions { encryption: Encryption::Literal, ..options.clone() };
    let mut stored = Stored::default();
    let Value::Object(lists) = value else {
        let message = "A static configuration is an object.".to_owned();
        stored.violation(Subject::Configuration, Severity::Rejected, Rule::Decode, message);
        return stored.validate(options);
    };
    for (name, list) in lists {
        let Some(kind) = ResourceKind::from_segment(name) else {
            if !matches!(name.as_str(), "pingora" | "pingsix") {
                let message = format!("PingSIX refuses the top-level field \"{name}\".");
                stored.violation(Subject::Configuration, Severity::Rejected, Rule::Decode, message);
            }
            continue;
        };
        let Value::Array(items) = list else {
            let message = format!("The top-level field \"{name}\" is not a list.");
            stored.violation(Subject::Configuration, Severity::Rejected, Rule::Decode, message);
            continue;
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let subject = || Subject::Key(format!("{name}[{index}]"));
            match item.get("id").and_then(Value::as_str).unwrap_or_default() {
                "" => {
                    let message = "An item of a static configuration needs an id.".to_owned();
                    stored.violation(subject(), Severity::Rejected, Rule::StaticId, message);
                }
                id if !seen.insert(id) => {
                    let message = format!("The id \"{id}\" is given twice.");
                    stored.violation(subject(), Severity::Rejected, Rule::StaticId, message);
                }
                id => stored.put(DocumentKey::new(kind, id), Ok(item.clone())),
            }
        }
    }
    stored.validate(options)
}

/// The documents of a store: values, or the length of a text that is no JSON.
#[derive(Default)]
struct Stored {
    values: BTreeMap<DocumentKey, Result<Value, usize>>,
    violations: Vec<Violation>,
}

impl Stored {
    fn put(&mut self, key: DocumentKey, value: Result<Value, usize>) {
        self.values.insert(key, value);
    }

    fn violation(&mut self, subject: Subject, severity: Severity, rule: Rule, message: String) {
        self.violations.push(Violation { subject, field: String::new(), severity, rule, message });
    }

    fn reject_key(&mut self, key: &str, error: &KeyError) {
        let message = format!("PingSIX cannot synchronise: {error}.");
        self.violation(Subject::Key(key.to_owned()), Severity::Fatal, Rule::Key, message);
    }

    fn validate(self, options: &ValidateOptions) -> Vec<Violation> {
        let Self { values, mut violations } = self;
        let prefix = canonical_prefix(&options.prefix).len();
        let mut bytes = 0;
        let mut config = Config::new();
        let mut undecodable = BTreeSet::new();
        for (key, value) in values {
            let length = value.as_ref().map_or_else(|length| *length, json_len);
            bytes += listed_len(prefix + key.len(), length);
            let document = match &value {
                Ok(value) => {
                    check_unknown_fields(&key, value, &mut violations);
                    Document::decode(key.kind, value).map_err(|_| explain_document(key.kind, value))
                }
                Err(_) => Err((String::new(), "it is no JSON".to_owned())),
            };
            match document {
                Ok(document) => {
                    config.insert(key.id, document);
                }
                Err((field, reason)) => {
                    let message = format!("The value does not decode: {reason}.");
                    violations.push(Violation::of(&key, Rule::Decode, Severity::Rejected, field, message));
                    undecodable.insert(key);
                }
            }
        }
        violations.extend(validate_known(&config, &undecodable, bytes, options));
        violations.sort_by(|one, other| one.subject.cmp(&other.subject));
        violations
    }
}

fn check_unknown_fields(key: &DocumentKey, value: &Value, violations: &mut Vec<Violation>) {
    let Value::Object(fields) = value else { return };
    // These have no effect in APISIX either.
    let harmless = ["create_time", "update_time", "labels", "desc"];
    let known = match key.kind {
        ResourceKind::Upstream => known_fields::<Upstream>(),
        ResourceKind::Service => known_fields::<Service>(),
        ResourceKind::Route => known_fields::<Route>(),
        ResourceKind::GlobalRule => known_fields::<GlobalRule>(),
        ResourceKind::Ssl => known_fields::<Ssl>(),
    };
    for name in fields.keys().map(String::as_str) {
        let active = name == "status" && fields.get(name) == Some(&Value::from(1));
        if !known.contains(&name) && !harmless.contains(&name) && !active {
            let message = format!("PingSIX ignores the field \"{name}\".");
            violations.push(Violation::of(key, Rule::IgnoredField, Severity::Misbehaves, name, message));
        }
    }
}

fn explain_document(kind: ResourceKind, value: &Value) -> (String, String) {
    match kind {
        ResourceKind::Upstream => explain::<Upstream>(value),
        ResourceKind::Service => explain::<Service>(value),
        ResourceKind::Route => explain::<Route>(value),
        ResourceKind::GlobalRule => explain::<GlobalRule>(value),
        ResourceKind::Ssl => explain::<Ssl>(value),
    }
}

/// The field at which a value fails to decode, and the reason. The text omits the value, which may be a secret.
pub(super) fn explain<T: DeserializeOwned>(value: &Value) -> (String, String) {
    let Err(error) = serde_path_to_error::deserialize::<_, T>(value) else {
        return (String::new(), "it decodes only in part".to_owned());
    };
    let path = error.path().to_string();
    let field = if path == "." { String::new() } else { path };
    let leaf = field.rsplit(['.', '[']).find(|part| !part.ends_with(']')).unwrap_or_default();
    let reason = if SECRET_FIELDS.contains(&leaf) {
        "it has the wrong type".to_owned()
    } else {
        without_text(&error.inner().to_string())
    };
    (field, reason)
}

/// Removes the quoted value from a message of serde.
fn without_text(message: &str) -> String {
    match (message.find("string \""), message.rfind("\", expected")) {
        (Some(start), Some(end)) => {
            let before = message.get(..start).unwrap_or_default();
            let after = message.get(end + 1..).unwrap_or_default();
            format!("{before}string{after}")
        }
        _ => message.to_owned(),
    }
}
