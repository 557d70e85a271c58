//! Refusals: parts of an object that translation does not honour, with field and reason.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::{Capability, FieldPath, ObjectKey, Problem, Reason, Severity};

/// Reason why a part of an object is not honoured. Displays as `spec.rules[0]: Sentence.`
///
/// A refusal with [`Reason::Limited`] is a **limitation**: the part is served, with a difference from the author's
/// intent. With every other reason, the part is not served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refusal {
    pub(crate) at: FieldPath,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// The missing capability; `None` for another cause.
    pub(crate) capability: Option<Capability>,
}

impl Refusal {
    pub(crate) fn new(at: FieldPath, reason: Reason, message: impl Into<String>) -> Self {
        Self { at, reason, message: message.into(), capability: None }
    }

    /// A limitation.
    pub(crate) fn limited(at: FieldPath, message: impl Into<String>) -> Self {
        Self::new(at, Reason::Limited, message)
    }

    /// Whether this is a limitation.
    pub(crate) fn is_limited(&self) -> bool {
        self.reason == Reason::Limited
    }

    /// The problem of an object with this refusal.
    pub(crate) fn of(&self, object: &Arc<ObjectKey>) -> Problem {
        Problem {
            object: object.clone(),
            field: self.at.clone(),
            severity: if self.is_limited() { Severity::Warning } else { Severity::Error },
            reason: self.reason,
            message: self.message.clone(),
        }
    }
}

impl Capability {
    /// The refusal of a field whose message has no values.
    pub(crate) fn refuse(self, at: FieldPath) -> Refusal {
        self.refuse_with(at, &[])
    }

    /// The refusal of a field. The values replace the placeholders of the message.
    pub(crate) fn refuse_with(self, at: FieldPath, values: &[&str]) -> Refusal {
        let refusal = Refusal::new(at, self.row().reason, self.message(values));
        Refusal { capability: Some(self), ..refusal }
    }

    /// The limitation of a field whose message has no values.
    pub(crate) fn limit(self, at: FieldPath) -> Refusal {
        self.limit_with(at, &[])
    }

    /// The limitation of a field. The values replace the placeholders of the message.
    pub(crate) fn limit_with(self, at: FieldPath, values: &[&str]) -> Refusal {
        Refusal { reason: Reason::Limited, ..self.refuse_with(at, values) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// Several refusals as one message.
pub(crate) fn joined<'a>(refusals: impl IntoIterator<Item = &'a Refusal>) -> String {
    let mut message = String::new();
    for refusal in refusals {
        if !message.is_empty() {
            message.push(' ');
        }
        // Writing to a String cannot fail.
        let _ = write!(message, "{refusal}");
    }
    message
}
