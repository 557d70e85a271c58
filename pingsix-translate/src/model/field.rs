//! Paths to fields of an object, as Kubernetes writes them: `spec.rules[2].backendRefs[0].port`.

use std::fmt;

/// A path to a field. Cheap to extend; displays in the notation of Kubernetes' own messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path of a top-level field such as `spec`.
    pub fn new(root: &str) -> Self {
        Self(root.to_owned())
    }

    /// Descends into a named field.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            return Self(name.to_owned());
        }
        Self(format!("{}.{name}", self.0))
    }

    /// Descends into an element of a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The notation as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `spec.rules[rule]`
pub(crate) fn rule(rule: usize) -> FieldPath {
    FieldPath(format!("spec.rules[{rule}]"))
}

/// `spec.rules[rule].matches[index]`
pub(crate) fn rule_match(rule: usize, index: usize) -> FieldPath {
    FieldPath(format!("spec.rules[{rule}].matches[{index}]"))
}

/// `spec.rules[rule].http.paths[path]`, of an Ingress
pub(crate) fn ingress_path(rule: usize, path: usize) -> FieldPath {
    FieldPath(format!("spec.rules[{rule}].http.paths[{path}]"))
}

/// `spec.defaultBackend`, of an Ingress
pub(crate) fn default_backend() -> FieldPath {
    FieldPath("spec.defaultBackend".to_owned())
}

/// `spec.tls[index]`, of an Ingress
pub(crate) fn tls(index: usize) -> FieldPath {
    FieldPath(format!("spec.tls[{index}]"))
}
