//! A match of a rule, of any kind of route.

use super::{Condition, Conditions, Path};

/// One match of a rule: all parts must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Match {
    /// Index into `spec.rules[].matches`.
    pub(crate) index: usize,
    pub(crate) path: Path,
    pub(crate) method: Option<&'static str>,
    /// Conditions on headers and the query.
    pub(crate) conditions: Conditions,
}

impl Match {
    /// The matches for these paths under these conditions. Where a path or a condition is inexpressible, all requests for the
    /// path, or for the one that stands for it, go to `closing`.
    pub(super) fn all(
        index: usize,
        paths: Result<Vec<Path>, Vec<Path>>,
        method: Option<&'static str>,
        conditions: Option<Vec<Condition>>,
        closing: &mut Vec<Self>,
    ) -> Vec<Self> {
        let is_expressible = paths.is_ok() && conditions.is_some();
        let paths = paths.unwrap_or_else(|in_place| in_place);
        let conditions = Conditions::from(conditions.unwrap_or_default());
        let matches =
            paths.into_iter().map(|path| Self { index, path, method, conditions: conditions.clone() });
        let matches: Vec<Self> = matches.collect();
        if is_expressible {
            return matches;
        }
        closing.extend(matches);
        Vec::new()
    }
}
