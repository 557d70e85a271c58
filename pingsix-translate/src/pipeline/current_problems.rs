//! The problems of the last translation, changed along with their sources.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{ObjectKey, Problem, Problems};

/// The current problems. Routes and Ingresses add and remove theirs when they change, so thousands of them cost a change of
/// another object nothing. The rest is compared with the last translation.
#[derive(Debug, Default)]
pub(super) struct CurrentProblems {
    all: Problems,
    /// The problems that each translation computes again. The list is sorted and has no repetitions.
    recomputed: Vec<Problem>,
    /// The objects with changed problems.
    changed: BTreeSet<Arc<ObjectKey>>,
}

impl CurrentProblems {
    /// All problems.
    pub(super) const fn all(&self) -> &Problems {
        &self.all
    }

    /// Replaces the problems of a source.
    pub(super) fn replace(&mut self, before: &[Problem], now: &[Problem]) {
        if before == now {
            return;
        }
        for problem in now {
            self.add(problem);
        }
        for problem in before {
            self.remove(problem);
        }
    }

    /// Replaces the problems that are computed for each translation.
    pub(super) fn replace_recomputed(&mut self, mut now: Vec<Problem>) {
        now.sort();
        now.dedup();
        let before = std::mem::replace(&mut self.recomputed, now);
        let (mut old, mut new) = (before.iter().peekable(), self.recomputed.iter().peekable());
        while let Some(order) = match (old.peek(), new.peek()) {
            (None, None) => None,
            (Some(_), None) => Some(std::cmp::Ordering::Less),
            (None, Some(_)) => Some(std::cmp::Ordering::Greater),
            (Some(old), Some(new)) => Some(old.cmp(new)),
        } {
            let (gone, came) = (order.is_le().then(|| old.next()), order.is_ge().then(|| new.next()));
            match (gone.flatten(), came.flatten()) {
                (Some(gone), None) => self.all.remove(gone),
                (None, Some(came)) => self.all.add(came.clone()),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
    }

    pub(super) fn add(&mut self, problem: &Problem) {
        self.changed.insert(problem.object.clone());
        self.all.add(problem.clone());
    }

    pub(super) fn remove(&mut self, problem: &Problem) {
        self.changed.insert(problem.object.clone());
        self.all.remove(problem);
    }

    /// The objects with changed problems since the last translation, apart from those that are computed for each translation.
    pub(super) const fn changed(&self) -> &BTreeSet<Arc<ObjectKey>> {
        &self.changed
    }

    /// Forgets what has changed.
    pub(super) fn clear_changed(&mut self) {
        self.changed.clear();
    }
}
