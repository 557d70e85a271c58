//! The object behind a document.

use pingsix_translate::{Origin, Section};
use serde::Serialize;

/// The object, and its part, from which a document comes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Source {
    /// Kind, namespace and name.
    pub object: String,
    /// The field.
    pub field: String,
    /// Index into `spec.rules`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// Index into `spec.rules[rule].matches`, or `spec.rules[rule].http.paths` of an Ingress.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matched: Option<usize>,
}

impl Source {
    pub(super) fn of(origin: &Origin) -> Self {
        Self {
            object: origin.object.to_string(),
            field: origin.field().to_string(),
            rule: origin.section.rule(),
            matched: match origin.section {
                Section::Match { index, .. } => Some(index),
                Section::Whole | Section::Rule(_) | Section::DefaultBackend | Section::Tls(_) => None,
            },
        }
    }
}
