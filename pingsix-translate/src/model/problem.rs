//! Problems: what is wrong with an object, at which field, in one sentence.

use std::fmt;
use std::sync::Arc;

use super::{FieldPath, ObjectKey, Reason};

/// How much a problem costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something the author asked for is not served.
    Error,
    /// Everything is served, but not quite as asked, or less of it than the author may expect.
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
    /// The object at fault.
    pub object: Arc<ObjectKey>,
    /// The field at fault.
    pub field: FieldPath,
    /// How much it costs.
    pub severity: Severity,
    /// Why, as the word a condition uses.
    pub reason: Reason,
    /// One full sentence that names what is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.object, self.field, self.message)
    }
}
