//! The violations of acceptance rules.

use std::fmt;

use super::Rule;
use crate::pingsix::DocumentKey;

/// The consequence of a violation, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// PingSIX accepts the configuration and misinterprets it.
    Misbehaves,
    /// PingSIX accepts the configuration, and then fails every affected request or omits a protection. The output of
    /// translation must not have such a violation.
    Harmful,
    /// PingSIX's worker refuses the whole configuration at its compilation, or dies.
    RejectedLate,
    /// PingSIX refuses the whole configuration at decoding or validation.
    Rejected,
    /// PingSIX cannot synchronise, and becomes unready.
    Fatal,
}

/// The place of a violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The configuration as a whole.
    Configuration,
    /// A key that names no document, as it stands below the prefix.
    Key(String),
    /// A document.
    Document(DocumentKey),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration => f.write_str("configuration"),
            Self::Key(key) => f.write_str(key),
            Self::Document(key) => key.fmt(f),
        }
    }
}

/// One violation of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place of the violation.
    pub subject: Subject,
    /// The path of the field in the document, for example `plugins.redirect.regex_uri`; empty for the document
    /// itself.
    pub field: String,
    /// The consequence of the violation.
    pub severity: Severity,
    /// The violated rule.
    pub rule: Rule,
    /// One full sentence without secrets.
    pub message: String,
}

impl Violation {
    /// A violation of a document.
    pub(super) fn of(
        document: &DocumentKey,
        rule: Rule,
        severity: Severity,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let subject = Subject::Document(document.clone());
        Self { subject, field: field.into(), severity, rule, message: message.into() }
    }

    /// Whether PingSIX refuses the configuration for this violation, at any stage.
    pub fn is_refusal(&self) -> bool {
        self.severity > Severity::Harmful
    }

    /// Whether translation intends this: Gateway API demands literal paths, and translation itself reports such a field of
    /// an Ingress.
    pub fn is_intended(&self) -> bool {
        self.rule == Rule::LiteralWildcard
    }

    /// The PingSIX source file that the rule mirrors.
    pub const fn source(&self) -> &'static str {
        self.rule.source()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, field, rule, message, .. } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "{subject}{colon}{field}: {message} [{rule}, {}]", rule.source())
    }
}

/// Whether PingSIX would refuse the configuration at any stage: whether a violation is worse than
/// [`Severity::Harmful`].
pub fn is_refused(violations: &[Violation]) -> bool {
    violations.iter().any(Violation::is_refusal)
}

/// Whether the configuration must not reach PingSIX, because it [is refused](is_refused) or a violation is
/// [`Severity::Harmful`].
pub fn is_unfit(violations: &[Violation]) -> bool {
    violations.iter().any(|violation| violation.severity >= Severity::Harmful)
}
