//! The findings, their places and their output.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use pingsix_gateway_api::pipeline;
pub(crate) use pingsix_migrate::counted;
use pingsix_migrate::printable;
use pingsix_translate::manifest::{Document, ManifestReason, YamlError};
use pingsix_translate::status::Severity;
use serde::Serialize;

/// The place of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct DocumentLocation {
    /// The file as it was named, or found below a named directory.
    pub(crate) file: String,
    /// The document in the file, from 1; 0 for an object that is in no file.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) document: usize,
    /// The line it starts at, from 1; for a finding about a field or a problem in the text, the line of these; 0 for an
    /// object that is in no file.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) line: usize,
    /// The path of an object in a document with a list of objects, such as `items[3]`.
    #[serde(skip)]
    pub(crate) item: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl DocumentLocation {
    pub(crate) fn of(file: &str, document: &Document<'_>) -> Self {
        Self {
            file: file.to_owned(),
            document: document.number(),
            line: document.line(),
            item: String::new(),
        }
    }

    /// The place of an object without a line.
    pub(crate) fn of_object_in(file: &str, document: usize) -> Self {
        Self { file: file.to_owned(), document, line: 0, item: String::new() }
    }
}

impl fmt::Display for DocumentLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.file) } else { write!(f, "{}:{}", self.file, self.line) }
    }
}

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// A part of the input is not served.
    Error,
    /// The object is served in part, or in another way than its text suggests.
    Warning,
    /// Good to know.
    Info,
}

impl Level {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
        }
    }
}

/// Something to say about the input. It never quotes the data of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<DocumentLocation>,
    /// Kind, namespace and name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) object: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    pub(crate) severity: Level,
    /// One word.
    pub(crate) reason: String,
    /// One sentence or more.
    pub(crate) message: String,
}

/// Reasons of findings about manifests; those about objects come from the pipeline.
pub(crate) mod reason {
    use super::ManifestReason;

    pub(crate) const UNREADABLE: &str = "Unreadable";
    pub(crate) const NOT_YAML: &str = ManifestReason::NotYaml.as_str();
    pub(crate) const NOT_A_MANIFEST: &str = ManifestReason::NotAManifest.as_str();
    pub(crate) const UNKNOWN_KIND: &str = ManifestReason::UnknownKind.as_str();
    pub(crate) const KIND_OF_OTHER_GATEWAY: &str = "KindOfOtherGateway";
    pub(crate) const NOTHING_TO_CHECK: &str = "NothingToCheck";
    pub(crate) const DOES_NOT_DECODE: &str = ManifestReason::DoesNotDecode.as_str();
    pub(crate) const UNSUPPORTED_VERSION: &str = ManifestReason::UnsupportedVersion.as_str();
    pub(crate) const UNKNOWN_FIELD: &str = ManifestReason::UnknownField.as_str();
    pub(crate) const INVALID_FIELD: &str = "InvalidField";
    pub(crate) const DUPLICATE: &str = ManifestReason::Duplicate.as_str();
    pub(crate) const NO_STREAMS: &str = "StreamsNotTranslated";
    pub(crate) const NO_SERVICE: &str = "NoService";
    pub(crate) const NO_ENDPOINT_SLICES: &str = "NoEndpointSlices";
    pub(crate) const PARAMETERS_NOT_GIVEN: &str = "ParametersNotGiven";
    pub(crate) const NO_MANIFESTS: &str = "NoManifests";
    pub(crate) const STREAM_DOCUMENTS: &str = "StreamDocuments";
}

impl Finding {
    pub(crate) fn of(finding: &pipeline::Finding, place: Option<&DocumentLocation>) -> Self {
        Self::new(finding.severity.into(), finding.reason, &*finding.message)
            .about(&finding.object, place)
            .of_field(&*finding.field)
    }

    /// A finding about the input as a whole.
    pub(crate) fn new(severity: Level, reason: &str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.to_owned(), message.into());
        Self { place: None, object: String::new(), field: String::new(), severity, reason, message }
    }

    /// The same about a document.
    pub(crate) fn at(self, place: DocumentLocation) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The same about an object, which has a place if it is in the input.
    pub(crate) fn about(self, object: &impl fmt::Display, place: Option<&DocumentLocation>) -> Self {
        Self { place: place.cloned(), object: object.to_string(), ..self }
    }

    /// The same about a field.
    pub(crate) fn of_field(self, field: impl Into<String>) -> Self {
        Self { field: field.into(), ..self }
    }

    /// An input without anything to judge.
    pub(crate) fn empty_input(message: impl Into<String>) -> Self {
        Self::new(Level::Error, reason::NOTHING_TO_CHECK, message)
    }

    /// A document that is no YAML.
    pub(crate) fn not_yaml(place: DocumentLocation, error: &YamlError) -> Self {
        let message = format!("The document is not valid YAML: {}.", error.message);
        Self::new(Level::Error, reason::NOT_YAML, message).at(DocumentLocation { line: error.line, ..place })
    }

    /// `error: spec.rules[0]: Message. [Reason]`
    pub(crate) fn statement(&self) -> String {
        let Self { severity, field, reason, message, .. } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        printable(format!("{}: {field}{colon}{message} [{reason}]", severity.as_str()))
    }

    /// The subject of the finding, for a heading.
    fn subject(&self) -> String {
        printable(match (&self.place, self.object.is_empty()) {
            (Some(place), true) if place.document == 0 => place.to_string(),
            (Some(place), true) => format!("{place} (document {})", place.document),
            (Some(place), false) => format!("{place} {}", self.object),
            (None, true) => "input".to_owned(),
            (None, false) => self.object.clone(),
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), self.statement())
    }
}

/// The number of findings of each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl Tally {
    pub(crate) fn of(findings: &[Finding]) -> Self {
        let count = |level| findings.iter().filter(|finding| finding.severity == level).count();
        Self { errors: count(Level::Error), warnings: count(Level::Warning) }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", counted(self.errors, "error"), counted(self.warnings, "warning"))
    }
}

/// Prints findings under the object they are about.
pub(crate) fn print_grouped(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let mut groups: BTreeMap<(Option<&DocumentLocation>, &str), Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        groups.entry((finding.place.as_ref(), &finding.object)).or_default().push(finding);
    }
    for mut group in groups.into_values() {
        group.sort_by_key(|finding| (finding.severity, &finding.field));
        if let Some(first) = group.first() {
            writeln!(out, "{}", first.subject())?;
        }
        for finding in group {
            writeln!(out, "  {}", finding.statement())?;
        }
    }
    Ok(())
}
