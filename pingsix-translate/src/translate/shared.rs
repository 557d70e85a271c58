//! What many routes have alike, held once.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::attach::Attachment;
use crate::route::{Match, ParentRef, Route};
use crate::verdict::ParentVerdict;

/// What is said of routes by their parents, which is the same for most routes of a Gateway, and what their rules match
/// beside hostnames.
#[derive(Debug, Default)]
pub(super) struct Shared {
    parent_refs: Equal<ParentRef>,
    matches: Equal<Match>,
    pub(super) attachments: Equal<Attachment>,
    pub(super) parents: Equal<ParentVerdict>,
}

impl Shared {
    /// The route, to be kept.
    pub(super) fn route(&mut self, mut route: Route) -> Arc<Route> {
        route.parent_refs = self.parent_refs.share(route.parent_refs);
        for rule in &mut route.rules {
            rule.matches = self.matches.share(std::mem::take(&mut rule.matches));
        }
        Arc::new(route)
    }
}

/// Lists of which equal ones are the same.
#[derive(Debug)]
pub(super) struct Equal<T> {
    lists: BTreeSet<Arc<[T]>>,
    /// At how many lists those that nobody else holds are dropped.
    most: usize,
}

impl<T> Default for Equal<T> {
    fn default() -> Self {
        Self { lists: BTreeSet::new(), most: Self::FEW }
    }
}

impl<T> Equal<T> {
    /// How many lists may be kept in vain.
    const FEW: usize = 64;
}

impl<T: Ord> Equal<T> {
    /// The list that is equal to this one.
    pub(super) fn share(&mut self, list: impl AsRef<[T]> + Into<Arc<[T]>>) -> Arc<[T]> {
        if let Some(known) = self.lists.get(list.as_ref()) {
            return known.clone();
        }
        if self.lists.len() >= self.most {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.most = 2 * self.lists.len() + Self::FEW;
        }
        let list = list.into();
        self.lists.insert(list.clone());
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_the_same() {
        let mut equal = Equal::default();
        let one = equal.share(vec![1, 2]);
        assert!(Arc::ptr_eq(&one, &equal.share(vec![1, 2])));
        assert!(!Arc::ptr_eq(&one, &equal.share(vec![2])));
    }

    #[test]
    fn what_nobody_holds_any_more_is_dropped() {
        let mut equal = Equal::default();
        let held = equal.share(vec![0]);
        for number in 0..10_000 {
            equal.share(vec![number]);
            assert!(equal.lists.len() <= 2 + Equal::<i32>::FEW);
        }
        assert!(Arc::ptr_eq(&held, &equal.share(vec![0])));
    }
}
