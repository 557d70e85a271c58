//! Paths and default backends of Ingresses without requests, because another Ingress takes the same requests.

use crate::model::{Origin, Problem, Provenance, Reason, Section, Severity};
use crate::pipeline::current_problems::CurrentProblems;
use crate::pipeline::diff::{ProvenanceDiff, Provenances};

/// The origins of documents, which say so.
#[derive(Debug, Default)]
pub(super) struct ShadowedParts {
    provenance: Provenances,
}

impl ShadowedParts {
    /// Replaces the origins, and changes the problems of these parts.
    pub(super) fn update(&mut self, now: Provenances, problems: &mut CurrentProblems) {
        let before = std::mem::replace(&mut self.provenance, now);
        let ProvenanceDiff { removed, added } = ProvenanceDiff::between(&before, &self.provenance);
        for problem in added.into_iter().flat_map(shadowed) {
            problems.add(&problem);
        }
        for problem in removed.into_iter().flat_map(shadowed) {
            problems.remove(&problem);
        }
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
