//! A bounded list of problems.

use std::sync::Arc;

use crate::model::{FieldPath, ObjectKey, Problem, Reason, Severity};

/// Problems of the hosts of an Ingress. An Ingress may have thousands of hosts, so the first problems are listed one by
/// one, and all others become one problem.
pub(super) struct BoundedProblems<'p, P> {
    problems: &'p mut Vec<Problem>,
    key: &'p Arc<ObjectKey>,
    listed: usize,
    others: Option<OtherProblems<P>>,
}

/// The problems behind the listed ones: the first problem of the highest severity, and the number of all.
struct OtherProblems<P> {
    severity: Severity,
    reason: Reason,
    place: P,
    count: usize,
}

impl<'p, P> BoundedProblems<'p, P> {
    const MAX_LISTED_PROBLEMS: usize = 8;

    pub(super) fn new(problems: &'p mut Vec<Problem>, key: &'p Arc<ObjectKey>) -> Self {
        Self { problems, key, listed: 0, others: None }
    }

    /// Adds a problem. `describe` returns the field and the message.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        reason: Reason,
        place: P,
        describe: impl FnOnce(P) -> (FieldPath, String),
    ) {
        if self.listed < Self::MAX_LISTED_PROBLEMS {
            self.listed += 1;
            self.push(severity, reason, describe(place));
            return;
        }
        let count = self.others.as_ref().map_or(0, |others| others.count) + 1;
        self.others = Some(match self.others.take() {
            // The lowest severity in the order of the type is the most severe one.
            Some(others) if others.severity <= severity => OtherProblems { count, ..others },
            _ => OtherProblems { severity, reason, place, count },
        });
    }

    /// Adds the problem for all others. `describe` receives the place of the first severe problem, and the number of
    /// problems.
    pub(super) fn finish(mut self, describe: impl FnOnce(P, usize) -> (FieldPath, String)) {
        if let Some(OtherProblems { severity, reason, place, count }) = self.others.take() {
            self.push(severity, reason, describe(place, count));
        }
    }

    fn push(&mut self, severity: Severity, reason: Reason, (field, message): (FieldPath, String)) {
        self.problems.push(Problem { object: self.key.clone(), field, severity, reason, message });
    }
}
