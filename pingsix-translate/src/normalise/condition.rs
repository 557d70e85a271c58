//! Header and query conditions, which PingSIX evaluates in `traffic-split` rules.

use crate::model::{Capability, FieldPath, Reason, Refusal};

/// The variable of a condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Variable {
    /// A request header; the name is in lower case, since names are case-insensitive.
    Header(String),
    /// A query parameter; the name is as written, since names are case-sensitive.
    Query(String),
}

/// The expectation of a condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Expectation {
    /// The value is this one.
    Equals(String),
    /// A value is present. Replaces a condition that PingSIX cannot evaluate, in a rule that fails closed: requests
    /// that the rule might have matched must not fall to another rule.
    Present,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Condition {
    pub(crate) variable: Variable,
    pub(crate) expectation: Expectation,
}

impl Condition {
    pub(crate) fn is_header(&self) -> bool {
        matches!(self.variable, Variable::Header(_))
    }
}

/// Adds a condition; `None` when it can be neither evaluated nor approximated by the presence of a value.
pub(super) fn push_condition(
    conditions: &mut Vec<Condition>,
    variable: Variable,
    value: &str,
    regex: bool,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<()> {
    // Gateway API: of equivalent names, only the first entry counts.
    if conditions.iter().any(|earlier| earlier.variable == variable) {
        return Some(());
    }
    let mut refuse = |field: &str, message: String| {
        refusals.push(Refusal::new(at().child(field), Reason::UnsupportedValue, message));
    };
    let lacks = |capability: Capability, field: &str| capability.refuse(at().child(field));
    match &variable {
        Variable::Header(name) => {
            if name == "host" {
                refusals.push(lacks(Capability::HostCondition, "name"));
                return None;
            }
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                refuse("name", format!("\"{name}\" is not a header name."));
                return None;
            }
        }
        Variable::Query(name) if name.is_empty() => {
            refuse("name", "The name of a query parameter is empty.".to_owned());
            return None;
        }
        Variable::Query(_) => {}
    }
    let expectation = if regex {
        refusals.push(lacks(Capability::RegexCondition, "type"));
        Expectation::Present
    } else if value.is_empty() {
        refusals.push(lacks(Capability::EmptyCondition, "value"));
        return None;
    } else if matches!(variable, Variable::Header(_)) && !is_visible_ascii(value) {
        refusals.push(lacks(Capability::NonAsciiCondition, "value"));
        return None;
    } else {
        Expectation::Equals(value.to_owned())
    };
    conditions.push(Condition { variable, expectation });
    Some(())
}

/// Whether a header value is possible after parsing: no control characters, no surrounding blanks.
fn is_visible_ascii(value: &str) -> bool {
    value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim_matches(' ').len() == value.len()
}
