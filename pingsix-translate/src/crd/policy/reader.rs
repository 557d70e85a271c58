//! Reads the spec of a policy field by field.
//!
//! An object of which a part cannot be read must not count as absent, because its targets would be open. That happens
//! when the definition in the cluster is newer than this program. So an unreadable field stays in the spec, the targets
//! count as far as they can be read, and the policy is invalid.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A field that cannot be read, or that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct UnreadableField {
    /// The path below `spec`, such as `authorization.allow[0]`.
    pub(crate) field: String,
    /// The reason, a phrase. It quotes no value, because a credential may stand in the wrong field.
    pub(crate) message: &'static str,
}

impl UnreadableField {
    /// The field of the spec that cannot be read, such as `authorization`.
    pub(crate) fn top_level(&self) -> &str {
        self.field.split(['.', '[']).next().unwrap_or_default()
    }
}

/// A reader of the fields of a spec.
pub(in crate::crd) struct SpecReader {
    /// The fields that are not read yet.
    fields: Map<String, Value>,
    unreadable: Vec<UnreadableField>,
}

impl SpecReader {
    /// # Errors
    ///
    /// The spec is not an object.
    pub(in crate::crd) fn new<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { fields: Map::deserialize(deserializer)?, unreadable: Vec::new() })
    }

    /// The value of a field; `None` if the field is absent, null or unreadable.
    pub(in crate::crd) fn field<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.fields.remove(name).filter(|value| !value.is_null())?;
        self.read(value, name)
    }

    /// The entries of a list that can be read.
    pub(in crate::crd) fn list<T: DeserializeOwned>(&mut self, name: &str) -> Vec<T> {
        let entries: Vec<Value> = self.field(name).unwrap_or_default();
        let entries = entries.into_iter().enumerate();
        entries.filter_map(|(index, entry)| self.read(entry, &format!("{name}[{index}]"))).collect()
    }

    fn read<T: DeserializeOwned>(&mut self, value: Value, at: &str) -> Option<T> {
        let mut unknown = Vec::new();
        let mut note = |path: serde_ignored::Path<'_>| unknown.push(path.to_string());
        let read = serde_path_to_error::deserialize(serde_ignored::Deserializer::new(value, &mut note));
        self.unreadable.extend(unknown.into_iter().map(|path| unknown_field(below(at, &path))));
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                let path = error.path().to_string();
                let field = if path == "." { at.to_owned() } else { below(at, &path) };
                let message = "its value has a form that this version of the controller does not know";
                self.unreadable.push(UnreadableField { field, message });
                None
            }
        }
    }

    /// The unreadable fields, after all known fields have been read.
    pub(in crate::crd) fn finish(mut self) -> Vec<UnreadableField> {
        self.unreadable.extend(self.fields.into_iter().map(|(name, _)| unknown_field(name)));
        self.unreadable
    }
}

/// A path below another one. In the paths of `serde_ignored`, an index stands between points, and a question mark for a
/// value that may be absent.
fn below(at: &str, path: &str) -> String {
    path.split('.').fold(at.to_owned(), |at, step| match step.parse::<usize>() {
        Ok(index) => format!("{at}[{index}]"),
        Err(_) if step == "?" => at,
        Err(_) if step.starts_with('[') => at + step,
        Err(_) => format!("{at}.{step}"),
    })
}

fn unknown_field(field: String) -> UnreadableField {
    UnreadableField { field, message: "this version of the controller does not know the field" }
}
