//! Limits: what an author asked for and gets, though not quite as asked.

use std::fmt;
use std::sync::Arc;

use super::{FieldPath, ObjectKey, Problem, Reason, Severity};

/// How what is served differs from what an author asked for. Displays as `spec.rules[0]: Sentence.`
///
/// Unlike a [`Refusal`](super::Refusal), it takes nothing away: whatever it says, the object is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) at: FieldPath,
    pub(crate) message: String,
}

impl Limit {
    pub(crate) fn new(at: FieldPath, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// As a problem of an object.
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

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}
