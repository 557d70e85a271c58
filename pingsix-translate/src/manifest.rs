//! Manifests to objects: the objects that an API server would have stored, as far as translation needs them.
//!
//! [`Objects::from_yaml`] reads a whole text, and [`Objects::apply`] one object. The functions below them are for programs
//! that have a place or a report of their own: [`documents`] cuts a text into documents, and [`decode`] decodes one value.
//!
//! ```
//! use pingsix_translate::Objects;
//!
//! let (objects, problems) = Objects::from_yaml(
//!     "apiVersion: v1\nkind: Service\nmetadata: { name: cart, namespace: shop }\nspec: { ports: [{ port: 80 }] }\n\
//!      ---\nkind: [\n",
//! );
//! assert_eq!(objects.services().count(), 1);
//! assert!(problems[0].to_string().starts_with("line 6: The document is not valid YAML"));
//! ```

mod decode;
mod document;
mod lines;
mod misread;
mod problem;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeSet;

use kube::core::{ApiResource, DynamicObject, TypeMeta};
use serde_json::Value;

use decode::DEFAULT_NAMESPACE;
pub use decode::{Decoded, decode, decode_known_fields};
pub use document::{Document, YamlError, documents};
pub use lines::Lines;
pub use misread::{how_to_quote, metadata_problem, type_in_words};
pub use problem::{ManifestProblem, ManifestReason};

use crate::model::{Kind, ObjectKey, Severity};
use crate::snapshot::{Objects, key_of};

/// The most lists in a list.
const MAX_LIST_DEPTH: usize = 8;

impl Objects {
    /// The objects of a text, in the form of `kubectl apply` and of `kubectl get -o yaml` or `-o json`, with the
    /// problems.
    ///
    /// A problem costs its document, and no other one. Of two objects with one key the first counts.
    ///
    /// A route without its SecurityPolicy is open to all. A program that publishes documents therefore stops at a
    /// problem with the severity [`Error`](crate::status::Severity::Error), as [`try_from_yaml`](Self::try_from_yaml)
    /// does.
    pub fn from_yaml(text: &str) -> (Self, Vec<ManifestProblem>) {
        let mut reading = Reading::default();
        for document in documents(text) {
            match document.decode() {
                Ok(value) => reading.add(value, document.line(), MAX_LIST_DEPTH),
                Err(error) => {
                    let message = format!("The document is not valid YAML: {}.", error.message);
                    reading.report(error.line, String::new(), ManifestReason::NotYaml, message);
                }
            }
        }
        (reading.objects, reading.problems)
    }

    /// The objects of a text, if an API server would take all of its documents. Kinds that translation does not read have no
    /// effect.
    ///
    /// # Errors
    ///
    /// The first [`ManifestProblem`] with the severity [`Error`](crate::status::Severity::Error).
    pub fn try_from_yaml(text: &str) -> Result<Self, ManifestProblem> {
        let (objects, problems) = Self::from_yaml(text);
        match problems.into_iter().find(|problem| problem.severity() == Severity::Error) {
            Some(problem) => Err(problem),
            None => Ok(objects),
        }
    }

    /// Adds an object of any kind that translation reads, or replaces the one with the same key. Returns the key.
    ///
    /// The items of a list of a built-in kind have no types; [`apply_as`](Self::apply_as) takes them.
    ///
    /// # Errors
    ///
    /// [`ManifestProblem`] for a kind that translation does not read, or an object that does not decode. A former
    /// version of the object is removed then; a route without its SecurityPolicy is open to all.
    pub fn apply(&mut self, object: DynamicObject) -> Result<ObjectKey, ManifestProblem> {
        let problem = |reason, object: &str, message| ManifestProblem {
            line: None,
            object: object.to_owned(),
            key: None,
            field: String::new(),
            reason,
            message,
        };
        let value = serde_json::to_value(object)
            .map_err(|_| problem(ManifestReason::NotAnObject, "", "The object is no JSON.".to_owned()))?;
        match decode(value) {
            Decoded::Object { object, .. } => {
                let key = object.key();
                self.insert(object);
                Ok(key)
            }
            Decoded::Problem(problem) => {
                if let Some(key) = &problem.key {
                    self.remove(key);
                }
                Err(problem)
            }
            Decoded::UnknownKind { group, kind } => Err(unknown_kind(&group, &kind)),
            Decoded::Nothing | Decoded::List(_) => {
                Err(problem(ManifestReason::NotAnObject, "", "A list is no object.".to_owned()))
            }
        }
    }

    /// [`apply`](Self::apply) for an object of a list or a watch of `resource`, which may have no types.
    ///
    /// # Errors
    ///
    /// Those of [`apply`](Self::apply).
    pub fn apply_as(
        &mut self,
        resource: &ApiResource,
        mut object: DynamicObject,
    ) -> Result<ObjectKey, ManifestProblem> {
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        self.apply(object)
    }

    /// Removes an object. Returns whether it was there. An object without types is not found; [`remove`](Self::remove)
    /// removes by key.
    pub fn delete(&mut self, object: &DynamicObject) -> bool {
        let Some(types) = &object.types else { return false };
        let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
        let Some(kind) = Kind::from_group_kind(group, &types.kind) else { return false };
        let key = key_of(kind, &object.metadata);
        let is_without = kind.is_namespaced() && key.name.namespace.is_empty();
        let key = if is_without { ObjectKey::new(kind, DEFAULT_NAMESPACE, &*key.name.name) } else { key };
        self.remove(&key)
    }
}

fn unknown_kind(group: &str, kind: &str) -> ManifestProblem {
    let of_group = if group.is_empty() { "the core group" } else { group };
    ManifestProblem {
        line: None,
        object: String::new(),
        key: None,
        field: "kind".to_owned(),
        reason: ManifestReason::UnknownKind,
        message: format!("Kind {kind} of {of_group} is not read, so the object is ignored."),
    }
}

/// The objects and problems of a text so far.
#[derive(Default)]
struct Reading {
    objects: Objects,
    problems: Vec<ManifestProblem>,
    /// Kinds that are reported once.
    unknown: BTreeSet<(String, String)>,
}

impl Reading {
    fn add(&mut self, value: Value, line: usize, depth: usize) {
        match decode(value) {
            Decoded::Nothing => {}
            Decoded::List(_) if depth == 0 => {
                let message = "Lists are nested too deeply.".to_owned();
                self.report(line, String::new(), ManifestReason::NotAManifest, message);
            }
            Decoded::List(items) => items.into_iter().for_each(|item| self.add(item, line, depth - 1)),
            Decoded::Object { object, ignored } => {
                let key = object.key();
                if self.objects.contains(&key) {
                    let message = "The object is already defined; this one is ignored.".to_owned();
                    return self.report(line, key.to_string(), ManifestReason::Duplicate, message);
                }
                self.problems.extend(ignored.into_iter().map(|field| ManifestProblem {
                    line: Some(line),
                    object: key.to_string(),
                    key: None,
                    message: format!("The API has no field {field}, so the field has no effect."),
                    field,
                    reason: ManifestReason::UnknownField,
                }));
                self.objects.insert(object);
            }
            Decoded::UnknownKind { group, kind } => {
                let problem = unknown_kind(&group, &kind);
                if self.unknown.insert((group, kind)) {
                    self.problems.push(ManifestProblem { line: Some(line), ..problem });
                }
            }
            Decoded::Problem(problem) => self.problems.push(ManifestProblem { line: Some(line), ..problem }),
        }
    }

    fn report(&mut self, line: usize, object: String, reason: ManifestReason, message: String) {
        self.problems.push(ManifestProblem {
            line: Some(line),
            object,
            key: None,
            field: String::new(),
            reason,
            message,
        });
    }
}
