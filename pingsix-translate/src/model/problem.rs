//! Problems: what is wrong with objects, with field and sentence.

use std::fmt;
use std::sync::Arc;

use super::{FieldPath, ObjectKey, Reason};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something the author asked for is not served.
    Error,
    /// Everything is served, with a difference or a loss that the author may not expect.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Something wrong with an object. Displays as `HTTPRoute shop/cart: spec.rules[0]: message`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The object.
    pub object: Arc<ObjectKey>,
    /// The field.
    pub field: FieldPath,
    /// The severity.
    pub severity: Severity,
    /// The reason in the vocabulary of conditions.
    pub reason: Reason,
    /// One full sentence.
    pub message: String,
}

/// The part of a message with [`Reason::NoEndpoints`] before the Service that answers instead.
pub const SHARE_OF_DEFAULT: &str = "its share of requests goes to Service ";

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.object, self.field, self.message)
    }
}
