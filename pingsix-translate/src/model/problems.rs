//! The problems of a translation.

use std::fmt;
use std::sync::Arc;

use super::Problem;
use crate::shared_map::{Change, SharedMap};

/// A sorted set of problems. Copies are cheap, and share their unchanged parts.
///
/// The set counts how often a problem was added, because several sources may have the same one.
#[derive(Clone, Default)]
pub struct Problems(SharedMap<Arc<Problem>, usize>);

impl Problems {
    /// No problems.
    pub const fn new() -> Self {
        Self(SharedMap::new())
    }

    /// The number of problems.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no problems.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Problem> {
        self.0.keys().map(|problem| &**problem)
    }

    /// A copy of each problem, in order.
    pub fn to_vec(&self) -> Vec<Problem> {
        self.iter().cloned().collect()
    }

    /// Adds a problem.
    pub fn add(&mut self, problem: Problem) {
        if let Some(sources) = self.0.get_mut(&problem) {
            *sources += 1;
        } else {
            self.0.insert(Arc::new(problem), 1);
        }
    }

    /// Takes a problem back that was [added](Self::add).
    pub fn remove(&mut self, problem: &Problem) {
        match self.0.get_mut(problem) {
            Some(sources) if *sources > 1 => *sources -= 1,
            Some(_) => {
                self.0.remove(problem);
            }
            None => {}
        }
    }

    /// The problems that came since an earlier copy, and those that went. Shared parts are not read.
    pub fn changes<'p>(&'p self, before: &'p Self) -> ProblemChanges<'p> {
        let mut changes = ProblemChanges::default();
        for change in self.0.changes(&before.0) {
            match change {
                Change::Added(problem, _) => changes.added.push(problem),
                Change::Removed(problem, _) => changes.removed.push(problem),
                Change::Replaced(..) => {}
            }
        }
        changes
    }
}

/// The difference between two sets of problems.
#[derive(Debug, Default)]
pub struct ProblemChanges<'p> {
    /// The new problems.
    pub added: Vec<&'p Arc<Problem>>,
    /// The problems that are gone.
    pub removed: Vec<&'p Arc<Problem>>,
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = Box<dyn DoubleEndedIterator<Item = &'p Problem> + 'p>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        problems.into_iter().for_each(|problem| self.add(problem));
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        let mut all = Self::new();
        all.extend(problems);
        all
    }
}

impl From<Vec<Problem>> for Problems {
    fn from(problems: Vec<Problem>) -> Self {
        problems.into_iter().collect()
    }
}

impl PartialEq for Problems {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FieldPath, Kind, ObjectKey, Reason, Severity};

    fn problem(name: &str) -> Problem {
        Problem {
            object: Arc::new(ObjectKey::new(Kind::HttpRoute, "shop", name)),
            field: FieldPath::new("spec"),
            severity: Severity::Error,
            reason: Reason::UnsupportedValue,
            message: "This is wrong.".to_owned(),
        }
    }

    fn names<'p>(problems: impl IntoIterator<Item = &'p Arc<Problem>>) -> Vec<&'p str> {
        problems.into_iter().map(|problem| &*problem.object.name.name).collect()
    }

    #[test]
    fn a_problem_of_two_sources_stays_until_both_are_gone() {
        let mut problems: Problems = ["b", "a", "b"].map(problem).into_iter().collect();
        assert_eq!(problems.len(), 2);
        problems.remove(&problem("b"));
        assert_eq!(problems, ["a", "b"].map(problem).into_iter().collect());
        problems.remove(&problem("b"));
        problems.remove(&problem("c"));
        assert_eq!(problems, [problem("a")].into_iter().collect());
    }

    #[test]
    fn changes_are_the_problems_that_came_and_went() {
        let before: Problems = ["a", "b", "c"].map(problem).into_iter().collect();
        let mut now = before.clone();
        now.add(problem("a"));
        now.add(problem("d"));
        now.remove(&problem("b"));
        let ProblemChanges { added, removed } = now.changes(&before);
        assert_eq!((names(added), names(removed)), (vec!["d"], vec!["b"]));
    }
}
