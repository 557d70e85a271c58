//! The context of the rules of one document, and the reports of its violations.

use std::collections::BTreeSet;

use garde::Validate;

use super::{Rule, Severity, ValidateOptions, Violation};
use crate::pingsix::field_rules::SEPARATOR;
use crate::pingsix::{Config, DocumentKey, ResourceKind};

/// The checked document and its configuration.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) undecodable: &'a BTreeSet<DocumentKey>,
    pub(super) options: &'a ValidateOptions,
    pub(super) key: &'a DocumentKey,
}

impl Context<'_> {
    /// A violation of this document.
    pub(super) fn violation(
        &self,
        rule: Rule,
        severity: Severity,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Violation {
        Violation::of(self.key, rule, severity, field, message)
    }

    /// Reports a reference to a document that does not exist.
    pub(super) fn check_reference(
        &self,
        kind: ResourceKind,
        id: &str,
        field: impl FnOnce() -> String,
        violations: &mut Vec<Violation>,
    ) {
        let target = DocumentKey::new(kind, id);
        if !self.config.contains(&target) && !self.undecodable.contains(&target) {
            let message = format!("There is no document {target}.");
            violations.push(self.violation(Rule::Reference, Severity::Rejected, field(), message));
        }
    }

    /// Reports the violations of a value by its `garde` attributes, below a field of this document.
    pub(super) fn check_fields<T: Validate<Context = ()>>(
        &self,
        value: &T,
        at: &str,
        built_in: Rule,
        severity: Severity,
        violations: &mut Vec<Violation>,
    ) {
        let Err(report) = value.validate() else { return };
        for (path, error) in report.iter() {
            let path = path.to_string();
            let dot = if at.is_empty() || path.is_empty() { "" } else { "." };
            let (rule, message) = match error.message().split_once(SEPARATOR) {
                Some((ident, sentence)) => (Rule::from_ident(ident).unwrap_or(built_in), sentence.to_owned()),
                None => (built_in, format!("The value is refused: {}.", error.message())),
            };
            violations.push(self.violation(rule, severity, format!("{at}{dot}{path}"), message));
        }
    }
}
