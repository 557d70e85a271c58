//! One value to one object.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use base64::Engine as _;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::misread::metadata_problem;
use super::problem::{ManifestProblem, ManifestReason};
use super::yaml::unquoted;
use crate::for_each_kind;
use crate::model::{GATEWAY_GROUP, Kind, ObjectKey};
use crate::snapshot::{Identified, Object};

/// The content of a value. The `Debug` text has no content of objects, which may be Secrets.
pub enum Decoded {
    /// `null`.
    Nothing,
    /// The items of a list, each with its type.
    List(Vec<Value>),
    /// An object.
    Object {
        /// The object.
        object: Object,
        /// The paths of the fields that its kind lacks.
        ignored: Vec<String>,
    },
    /// An object of a kind that translation does not read.
    UnknownKind {
        /// The API group; empty for the core group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// A value that is no object, or an object that cannot be used.
    Problem(ManifestProblem),
}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::List(items) => write!(f, "List({} items)", items.len()),
            Self::Object { object, ignored } => {
                f.debug_struct("Object").field("object", object).field("ignored", ignored).finish()
            }
            Self::UnknownKind { group, kind } => {
                f.debug_struct("UnknownKind").field("group", group).field("kind", kind).finish()
            }
            Self::Problem(problem) => f.debug_tuple("Problem").field(problem).finish(),
        }
    }
}

/// The namespace of a manifest that names none.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

fn problem(object: &str, field: &str, reason: ManifestReason, message: impl Into<String>) -> Decoded {
    Decoded::Problem(ManifestProblem {
        line: None,
        object: object.to_owned(),
        key: None,
        field: field.to_owned(),
        reason,
        message: message.into(),
    })
}

/// Decodes a value: an object, as far as translation reads its kind, or a list. The object gets the defaults of an API
/// server that translation needs. Messages never quote the data of a Secret or a ConfigMap, or headers that filters set.
pub fn decode(value: Value) -> Decoded {
    decode_with(value, Ignored::Listed)
}

/// As [`decode`], without the list of the fields that the kind lacks, which takes most of the time.
pub fn decode_known_fields(value: Value) -> Decoded {
    decode_with(value, Ignored::NotListed)
}

/// Whether the fields that a kind lacks are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ignored {
    Listed,
    NotListed,
}

fn decode_with(value: Value, ignored: Ignored) -> Decoded {
    let mut fields = match value {
        Value::Null => return Decoded::Nothing,
        Value::Object(fields) => fields,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let message = "A manifest is an object with apiVersion and kind.";
            return problem("", "", ManifestReason::NotAManifest, message);
        }
    };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if kind.is_empty() || api_version.is_empty() {
        let missing = if kind.is_empty() { "kind" } else { "apiVersion" };
        let message = format!("A manifest needs {missing}.");
        // A chart's description has an apiVersion, and its values and a kustomization may have neither.
        if kind.is_empty() && !fields.contains_key("metadata") {
            return problem("", missing, ManifestReason::NotAManifest, message);
        }
        let object = shown_object(&kind, &fields);
        return problem(&object, missing, ManifestReason::NotAnObject, message);
    }
    if kind.ends_with("List")
        && let Some(items) = fields.get_mut("items")
    {
        return match items {
            Value::Array(items) => Decoded::List(with_type(std::mem::take(items), &api_version, &kind)),
            Value::Null => Decoded::List(Vec::new()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                problem(&kind, "items", ManifestReason::NotAnObject, "The items of a list are an array.")
            }
        };
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(known) = Kind::from_group_kind(group, &kind) else {
        // Ours by name, but under a group of Kubernetes' own: a typing error rather than a kind of another project.
        let namesake = Kind::ALL.iter().copied().find(|known| known.as_str() == kind);
        return match namesake {
            Some(known) if is_group_of_kubernetes(group) => {
                let message = format!(
                    "Kind {kind} has apiVersion {}, not {api_version}.{}",
                    known.api_version(),
                    advice(known)
                );
                let object = shown_object(&kind, &fields);
                problem(&object, "apiVersion", ManifestReason::UnsupportedVersion, message)
            }
            // An API server refuses the object, whose author expects an effect.
            Some(_) | None if group == GATEWAY_GROUP => problem(
                &shown_object(&kind, &fields),
                "kind",
                ManifestReason::UnsupportedKind,
                format!("Gateway API has no kind {kind}, or it is not known here, so the object is ignored."),
            ),
            Some(_) | None => Decoded::UnknownKind { group: group.to_owned(), kind },
        };
    };
    let is_supported = known.versions().contains(&version);
    if is_supported
        && let Some((field, message)) =
            metadata_problem(known.as_str(), known.is_namespaced(), fields.get("metadata"))
    {
        return problem(&shown_object(&kind, &fields), field, ManifestReason::NotAnObject, message);
    }
    let string_data = if known == Kind::Secret { merge_string_data(&mut fields) } else { Ok(()) };
    as_stored(known, &mut fields);
    if !is_supported {
        let message = format!(
            "apiVersion {api_version} of {kind} is not supported; use {}.{}",
            known.api_version(),
            advice(known)
        );
        return problem_of(
            known,
            fields.get("metadata"),
            "apiVersion",
            ManifestReason::UnsupportedVersion,
            message,
        );
    }
    if let Err(field) = string_data {
        let message = "The object does not decode: the value is no string.".to_owned();
        return problem_of(known, fields.get("metadata"), &field, ManifestReason::DoesNotDecode, message);
    }
    decode_as(known, fields, ignored)
}

/// The problem of an object of a known kind with this metadata.
fn problem_of(
    kind: Kind,
    metadata: Option<&Value>,
    field: &str,
    reason: ManifestReason,
    message: String,
) -> Decoded {
    let text = |field: &str| metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_str);
    let key = ObjectKey::new(kind, text("namespace").unwrap_or_default(), text("name").unwrap_or_default());
    Decoded::Problem(ManifestProblem {
        line: None,
        object: key.to_string(),
        key: Some(key).filter(|key| !key.name.name.is_empty()),
        field: field.to_owned(),
        reason,
        message,
    })
}

/// Items of a typed list may leave their type out.
fn with_type(items: Vec<Value>, api_version: &str, list_kind: &str) -> Vec<Value> {
    let kind = list_kind.strip_suffix("List").unwrap_or_default();
    if kind.is_empty() {
        return items;
    }
    items
        .into_iter()
        .map(|mut item| {
            if let Value::Object(fields) = &mut item {
                fields.entry("apiVersion").or_insert_with(|| json!(api_version));
                fields.entry("kind").or_insert_with(|| json!(kind));
            }
            item
        })
        .collect()
}

/// The fields that are others in a version that is not supported.
const fn advice(kind: Kind) -> &'static str {
    if matches!(kind, Kind::Ingress) {
        " There, a backend has service.name and service.port in place of serviceName and servicePort, spec.backend is \
         spec.defaultBackend, and each path needs a pathType."
    } else {
        ""
    }
}

/// Groups that Kubernetes has, or had: `Ingress` was once of `extensions`, `Gateway` of `networking.x-k8s.io`.
fn is_group_of_kubernetes(group: &str) -> bool {
    matches!(group, "" | "extensions") || group.ends_with("k8s.io")
}

/// The kind and the name of an object, as far as they are written.
fn shown_object(kind: &str, fields: &Map<String, Value>) -> String {
    let metadata = fields.get("metadata");
    let text = |field: &str| metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_str);
    let shown = match (text("namespace"), text("name")) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (_, name) => format!("{kind} {}", name.unwrap_or_default()),
    };
    shown.trim().to_owned()
}

/// Fills in what an API server would have, where decoding or translation needs it.
fn as_stored(kind: Kind, fields: &mut Map<String, Value>) {
    // Types of an older version are the current ones.
    fields.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for name in ["annotations", "labels"] {
            // Go reads null as the empty text.
            let texts = metadata.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten();
            texts.filter(|(_, text)| text.is_null()).for_each(|(_, text)| *text = json!(""));
        }
        if !kind.is_namespaced() {
            metadata.remove("namespace");
        } else if metadata.get("namespace").is_none_or(|namespace| namespace.is_null() || namespace == "") {
            metadata.insert("namespace".to_owned(), json!(DEFAULT_NAMESPACE));
        }
    }
    if kind == Kind::EndpointSlice {
        for endpoints in ["endpoints", "ports"] {
            if fields.get(endpoints).is_none_or(Value::is_null) {
                fields.insert(endpoints.to_owned(), json!([]));
            }
        }
    }
}

/// `stringData` is for writing only: the API server moves it into `data`.
///
/// # Errors
///
/// The field whose value is no string, which the API server refuses.
fn merge_string_data(fields: &mut Map<String, Value>) -> Result<(), String> {
    let texts = match fields.remove("stringData") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(texts)) => texts,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err("stringData".to_owned());
        }
    };
    let encoded = texts.into_iter().map(|(name, text)| match text {
        Value::String(_) | Value::Null => {
            let text = text.as_str().unwrap_or_default();
            Ok((name, json!(base64::engine::general_purpose::STANDARD.encode(text))))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("stringData.{name}"))
        }
    });
    let encoded: Map<String, Value> = encoded.collect::<Result<_, _>>()?;
    if let Value::Object(data) = fields.entry("data").or_insert_with(|| json!({})) {
        data.extend(encoded);
    }
    Ok(())
}

macro_rules! decode_as {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        fn decode_as(kind: Kind, fields: Map<String, Value>, ignored: Ignored) -> Decoded {
            match kind { $(Kind::$kind => typed(fields, Object::$kind, ignored),)+ }
        }
    };
}

for_each_kind! { decode_as }

fn typed<K: Identified>(
    fields: Map<String, Value>,
    object: impl FnOnce(Arc<K>) -> Object,
    ignored: Ignored,
) -> Decoded {
    let kind = K::KIND;
    let value = Value::Object(fields);
    // The path of a problem is found by a second attempt, because most objects have none.
    let decoded = K::Wire::deserialize(&value).or_else(|_| serde_path_to_error::deserialize(&value));
    match decoded {
        Ok(decoded) => {
            let mut lost_fields = Vec::new();
            if ignored == Ignored::Listed
                && let Ok(kept) = serde_json::to_value(&decoded)
            {
                lost(&value, &kept, &mut String::new(), &mut lost_fields);
            }
            Decoded::Object { object: object(Arc::new(decoded.into())), ignored: lost_fields }
        }
        Err(error) => {
            let field = match error.path().to_string() {
                path if path == "." => String::new(),
                path => path,
            };
            let message = error.inner().to_string();
            // The decoder quotes unknown values. Headers that filters set may be credentials.
            let may_be_secret = matches!(kind, Kind::Secret | Kind::ConfigMap)
                || field.split(['.', '[']).any(|part| matches!(part, "set" | "add" | "value"));
            let message = if may_be_secret { unquoted(&message) } else { message };
            // The decoder's word for a value of an enumeration.
            let message = message.replacen("unknown variant", "unknown value", 1);
            let message = format!("The object does not decode: {message}.");
            problem_of(kind, value.get("metadata"), &field, ManifestReason::DoesNotDecode, message)
        }
    }
}

/// The paths of fields that did not survive decoding, the outermost of each.
fn lost(before: &Value, after: &Value, path: &mut String, ignored: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                let empty = value.is_null()
                    || value.as_object().is_some_and(Map::is_empty)
                    || value.as_array().is_some_and(Vec::is_empty);
                if empty || (path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind")) {
                    continue;
                }
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                match after.get(name) {
                    Some(kept) => lost(value, kept, path, ignored),
                    // The API server writes these fields, and no stage reads them.
                    None if path == "status" || path.starts_with("metadata.") => {}
                    None => ignored.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, (value, kept)) in before.iter().zip(after).enumerate() {
                let length = path.len();
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
                lost(value, kept, path, ignored);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
