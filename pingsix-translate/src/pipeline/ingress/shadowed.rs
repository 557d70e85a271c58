//! Parts of Ingresses that never get a request, because another document takes the same requests first.

use std::collections::BTreeMap;

use crate::model::{Origin, Problem, Provenance, Reason, Section, Severity};
use crate::pingsix::DocumentKey;
use crate::shared_map::{Change, SharedMap};

/// The parts of Ingresses without requests, by the document that takes them.
#[derive(Debug, Default)]
pub(super) struct Shadowed {
    provenance: SharedMap<DocumentKey, Provenance>,
    problems: BTreeMap<DocumentKey, Vec<Problem>>,
}

impl Shadowed {
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

/// The sources that a document shadows. A default backend yields to every path by design, so only another default
/// backend shadows one.
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
            "It gets no requests: {} of {} is for the same requests and comes first.",
            first.field(),
            first.object
        ),
    });
    problems.collect()
}
