//! Problems of manifests.

use std::fmt;

use crate::model::{ObjectKey, Severity};

/// A problem of a manifest. It never quotes the data of a Secret. Displays as
/// `line 4: HTTPRoute shop/cart: spec.rules[0]: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// The line of the text, from 1; `None` for an object that is in no text.
    pub line: Option<usize>,
    /// Kind, namespace and name, as far as they are known.
    pub object: String,
    /// The key of an object with a known kind and a name that does not decode or has an unsupported version.
    pub key: Option<ObjectKey>,
    /// The path of the field; empty for the whole object.
    pub field: String,
    /// The reason.
    pub reason: ManifestReason,
    /// One sentence.
    pub message: String,
}

impl ManifestProblem {
    /// The severity.
    pub const fn severity(&self) -> Severity {
        self.reason.severity()
    }
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        for part in [&self.object, &self.field] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ManifestProblem {}

/// The reason of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ManifestReason {
    /// The text is no YAML.
    NotYaml,
    /// The value has neither kind nor metadata.
    NotAManifest,
    /// The object lacks a kind, an apiVersion or a name.
    NotAnObject,
    /// Gateway API has no such kind, or translation does not know it.
    UnsupportedKind,
    /// Translation does not read objects of this version, or the group is wrong.
    UnsupportedVersion,
    /// A field has a wrong type, or a required field is missing.
    DoesNotDecode,
    /// An object with the same kind, namespace and name comes before.
    Duplicate,
    /// The kind has no such field, so the field has no effect, and `kubectl apply` refuses the object.
    UnknownField,
    /// Translation does not read objects of this kind.
    UnknownKind,
}

impl ManifestReason {
    /// The reason in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotYaml => "NotYaml",
            Self::NotAManifest => "NotAManifest",
            Self::NotAnObject => "NotAnObject",
            Self::UnsupportedKind => "UnsupportedKind",
            Self::UnsupportedVersion => "UnsupportedVersion",
            Self::DoesNotDecode => "DoesNotDecode",
            Self::Duplicate => "Duplicate",
            Self::UnknownField => "UnknownField",
            Self::UnknownKind => "UnknownKind",
        }
    }

    /// The severity: an error if an API server refuses the object.
    pub const fn severity(self) -> Severity {
        match self {
            Self::UnknownKind => Severity::Warning,
            Self::UnknownField
            | Self::NotYaml
            | Self::NotAManifest
            | Self::NotAnObject
            | Self::UnsupportedKind
            | Self::UnsupportedVersion
            | Self::DoesNotDecode
            | Self::Duplicate => Severity::Error,
        }
    }
}
