//! Paths and default backends of Ingresses without requests, because another Ingress takes the same requests.

use std::collections::BTreeMap;

use crate::counts::decrement;
use crate::model::{Origin, Problem, Provenance, Reason, Section, Severity};
use crate::pipeline::diff::{ProvenanceDiff, Provenances};

/// The problems of these parts, each with the number of documents that take their requests.
#[derive(Debug, Default)]
pub(super) struct ShadowProblems {
    provenance: Provenances,
    problems: BTreeMap<Problem, usize>,
}

impl ShadowProblems {
    /// Replaces the origins of documents.
    pub(super) fn update(&mut self, now: Provenances) {
        let before = std::mem::replace(&mut self.provenance, now);
        let ProvenanceDiff { removed, added } = ProvenanceDiff::between(&before, &self.provenance);
        for problem in removed.into_iter().flat_map(shadowed) {
            decrement(&mut self.problems, &problem);
        }
        for problem in added.into_iter().flat_map(shadowed) {
            *self.problems.entry(problem).or_default() += 1;
        }
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.keys()
    }
}

/// The problems of the sources that a document shadows. A default backend has a lower precedence than every path by
/// design, so only another default backend shadows a default backend.
fn shadowed(provenance: &Provenance) -> Vec<Problem> {
    let Provenance::Rules { decisions, shadowed, .. } = provenance else { return Vec::new() };
    let Some(first) = decisions.iter().find_map(|decision| decision.origin.as_ref()) else {
        return Vec::new();
    };
    let is_path = |origin: &Origin| matches!(origin.section, Section::Match { .. });
    let unexpected = shadowed.iter().filter(|origin| is_path(origin) || !is_path(first));
    let problems = unexpected.map(|origin| Problem {
        object: origin.object.clone(),
        field: origin.field(),
        severity: Severity::Warning,
        reason: Reason::Shadowed,
        message: format!(
            "This part of the Ingress gets no requests: {} of {} matches the same requests and takes precedence.",
            first.field(),
            first.object
        ),
    });
    problems.collect()
}
