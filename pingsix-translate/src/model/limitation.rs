//! Limitations: served parts that differ from the author's intent.

use std::fmt;
use std::sync::Arc;

use super::{Capability, FieldPath, ObjectKey, Problem, Reason, Severity};

/// A difference between the author's intent and the served configuration. Displays as `spec.rules[0]: Sentence.`
///
/// Unlike a [`Refusal`](super::Refusal), a limitation does not affect serving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limitation {
    pub(crate) at: FieldPath,
    pub(crate) message: String,
    /// The missing capability; `None` for another cause.
    pub(crate) capability: Option<Capability>,
}

impl Limitation {
    pub(crate) fn new(at: FieldPath, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), capability: None }
    }

    /// The problem of an object with this limitation.
    pub(crate) fn of(&self, object: &Arc<ObjectKey>) -> Problem {
        Problem {
            object: object.clone(),
            field: self.at.clone(),
            severity: Severity::Warning,
            reason: Reason::Limited,
            message: self.message.clone(),
        }
    }
}

impl Capability {
    /// The limitation of a field whose message has no values.
    pub(crate) fn limit(self, at: FieldPath) -> Limitation {
        self.limit_with(at, &[])
    }

    /// The limitation of a field. The values replace the placeholders of the message.
    pub(crate) fn limit_with(self, at: FieldPath, values: &[&str]) -> Limitation {
        Limitation { capability: Some(self), ..Limitation::new(at, self.message(values)) }
    }
}

impl fmt::Display for Limitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}
