//! Header and query conditions, which PingSIX evaluates in `traffic-split` rules.

/// What a condition looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Variable {
    /// A request header; the name is in lower case, since names are case-insensitive.
    Header(String),
    /// A query parameter; the name is as written, since names are case-sensitive.
    Query(String),
}

/// What a condition asks of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Expectation {
    /// The value is this one.
    Equals(String),
    /// There is a value. Stands for a condition that PingSIX cannot evaluate, in a rule that answers 500: what
    /// the rule might have matched must not fall to another rule.
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
