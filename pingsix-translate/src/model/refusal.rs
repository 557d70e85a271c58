//! Refusals: parts of an object that cannot be honoured, with field and reason.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::{Capability, FieldPath, ObjectKey, Problem, Reason, Severity};

/// Reason why a part of an object cannot be honoured. Displays as `spec.rules[0]: Sentence.`
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refusal {
    pub(crate) at: FieldPath,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// The missing capability; `None` if the input itself is at fault.
    pub(crate) capability: Option<Capability>,
}

impl Refusal {
    pub(crate) fn new(at: FieldPath, reason: Reason, message: impl Into<String>) -> Self {
        Self { at, reason, message: message.into(), capability: None }
    }

    /// The problem of an object with this refusal.
    pub(crate) fn of(&self, object: &Arc<ObjectKey>) -> Problem {
        Problem {
            object: object.clone(),
            field: self.at.clone(),
            severity: Severity::Error,
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
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// Several refusals or limitations as one message.
pub(crate) fn joined<'a, T: fmt::Display + 'a>(sentences: impl IntoIterator<Item = &'a T>) -> String {
    let mut message = String::new();
    for sentence in sentences {
        if !message.is_empty() {
            message.push(' ');
        }
        // Writing to a String cannot fail.
        let _ = write!(message, "{sentence}");
    }
    message
}
