//! Paths and default backends of Ingresses without requests, because another Ingress takes the same requests.

use std::collections::BTreeMap;

use crate::model::{Origin, Problem, Provenance, Reason, Section, Severity};
use crate::pingsix::DocumentKey;
use crate::shared_map::{Change, SharedMap};

/// The problems of these parts, by the document that takes their requests.
#[derive(Debug, Default)]
pub(super) struct ShadowProblems {
    provenance: SharedMap<DocumentKey, Provenance>,
    problems: BTreeMap<DocumentKey, Vec<Problem>>,
}

impl ShadowProblems {
    /// Replaces the origins of documents.
    pub(super) fn update(&mut self, now: &SharedMap<DocumentKey, Provenance>) {
        for change in now.changes(&self.provenance) {
            let (key, problems) = match change {
                Change::Added(key, now) | Change::Replaced(key, _, now) => (key, shadowed(now)),
                Change::Removed(key, _) => (key, Vec::new()),
            };
            if problems.is_empty() {
                self.problems.remove(key);
            } else {
                self.problems.insert(key.clone(), problems);
            }
        }
        self.provenance = now.clone();
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.values().flatten()
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
