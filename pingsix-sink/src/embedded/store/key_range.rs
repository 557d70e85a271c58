//! The key range of a request.

use std::ops::Range;

use bytes::Bytes;

use crate::chunks::{Chunks, Sorted};
use crate::desired::Scope;

/// One key, or all keys between two bounds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::embedded) enum KeyRange {
    /// Exactly this key.
    One(Bytes),
    /// From `start` inclusive to `end` exclusive.
    Span { start: Bytes, end: Option<Bytes> },
}

impl KeyRange {
    /// Decodes `key` and `range_end` as etcd does: an empty end means one key, a single zero byte means no end. The
    /// bytes are copied, because slices would keep the whole request in memory as long as the watch.
    pub(in crate::embedded) fn new(key: impl AsRef<[u8]>, range_end: impl AsRef<[u8]>) -> Self {
        let key = Bytes::copy_from_slice(key.as_ref());
        match range_end.as_ref() {
            [] => Self::One(key),
            [0] => Self::Span { start: key, end: None },
            end => Self::Span { start: key, end: Some(Bytes::copy_from_slice(end)) },
        }
    }

    /// The scope prefix that equals the range, if any: the range has every key of that scope and no other.
    pub(in crate::embedded) fn as_prefix(&self) -> Option<&str> {
        let Self::Span { start, end: Some(end) } = self else { return None };
        let prefix = start.strip_suffix(b"/")?;
        std::str::from_utf8(prefix).ok().filter(|_| end.strip_suffix(b"0") == Some(prefix))
    }

    /// The first key of the range.
    pub(in crate::embedded) fn start(&self) -> &Bytes {
        match self {
            Self::One(key) => key,
            Self::Span { start, .. } => start,
        }
    }

    pub(in crate::embedded) fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::One(one) => **one == *key,
            Self::Span { start, end } => **start <= *key && end.as_ref().is_none_or(|end| *key < **end),
        }
    }

    /// Whether the range is empty.
    pub(in crate::embedded) fn is_empty(&self) -> bool {
        matches!(self, Self::Span { start, end: Some(end) } if end <= start)
    }

    /// Whether the range overlaps the keys of `scope`.
    pub(in crate::embedded) fn overlaps(&self, scope: &Scope) -> bool {
        !self.is_empty() && !self.is_after(scope) && self.reaches(scope)
    }

    /// Whether all keys of `scope` precede the range.
    ///
    /// The keys of a scope are the interval from "<prefix>/" up to "<prefix>0", because '0' follows '/'.
    pub(in crate::embedded) fn is_after(&self, scope: &Scope) -> bool {
        self.start().iter().ge(scope.as_str().as_bytes().iter().chain(b"0"))
    }

    /// Whether the range ends after the first possible key of `scope`.
    pub(in crate::embedded) fn reaches(&self, scope: &Scope) -> bool {
        let first = scope.as_str().as_bytes().iter().chain(b"/");
        match self {
            Self::One(key) => key.iter().ge(first),
            Self::Span { end, .. } => end.as_ref().is_none_or(|end| end.iter().gt(first)),
        }
    }

    /// Whether the range contains only keys of `scope`.
    pub(in crate::embedded) fn within(&self, scope: &Scope) -> bool {
        let prefix = scope.as_str().as_bytes();
        match self {
            Self::One(_) => self.overlaps(scope),
            Self::Span { start, end } => {
                start.iter().ge(prefix.iter().chain(b"/"))
                    && end.as_ref().is_some_and(|end| end.iter().le(prefix.iter().chain(b"0")))
            }
        }
    }

    /// The ranks of the `values` whose keys are in the range.
    pub(in crate::embedded) fn of<T: Sorted<SortKey = [u8]>>(&self, values: &Chunks<T>) -> Range<usize> {
        let start = values.partition_point(|value| *value.sort_key() < **self.start());
        let end = match self {
            Self::One(key) => values.partition_point(|value| *value.sort_key() <= **key),
            Self::Span { end: Some(end), .. } => values.partition_point(|value| *value.sort_key() < **end),
            Self::Span { end: None, .. } => values.len(),
        };
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl Sorted for Bytes {
        type SortKey = [u8];

        fn sort_key(&self) -> &[u8] {
            self
        }
    }

    fn range(key: &str, end: &str) -> KeyRange {
        KeyRange::new(Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(end.as_bytes()))
    }

    #[test]
    fn a_range_overlaps_the_scopes_of_its_keys() {
        let scope = Scope::new("/p/web").unwrap();
        let overlapping = [
            ("/p/web/", "/p/web0"),
            ("/p/web", "/p/wec"),
            ("/p/web/routes/a", ""),
            ("/p/", "/p0"),
            ("/", "\0"),
            ("\0", "\0"),
            ("/p/web/routes/", "/p/web/routes0"),
            ("/p/web-", "/p/web0"),
        ];
        for (key, end) in overlapping {
            assert!(range(key, end).overlaps(&scope), "{key:?} {end:?}");
        }
        let apart = [
            ("/p/api/", "/p/api0"),
            ("/p/webinar/", "/p/webinar0"),
            ("/p/web", ""),
            ("health", ""),
            ("/p/web0", "\0"),
            ("/p/web", "/p/web/"),
            ("/p/web:80/", "/p/web:800"),
            ("/p/web0", "/p/web/"),
        ];
        for (key, end) in apart {
            assert!(!range(key, end).overlaps(&scope), "{key:?} {end:?}");
        }
    }

    #[test]
    fn a_range_is_within_a_scope_when_it_has_no_other_keys() {
        let scope = Scope::new("/p/web").unwrap();
        for (key, end) in [("/p/web/", "/p/web0"), ("/p/web/a", "/p/web/b"), ("/p/web/a", "")] {
            assert!(range(key, end).within(&scope), "{key:?} {end:?}");
        }
        for (key, end) in [
            ("/p/", "/p0"),
            ("/p/web/", "\0"),
            ("/p/web", "/p/web0"),
            ("/p/web", "/p/wec"),
            ("/p/web/", "/p/web1"),
            ("/p/web", ""),
            ("/p/web0", ""),
            ("/p/web:80/", "/p/web:800"),
            ("\0", "\0"),
        ] {
            assert!(!range(key, end).within(&scope), "{key:?} {end:?}");
        }
    }

    proptest! {
        #[test]
        fn a_range_with_a_key_of_a_scope_overlaps_it(
            start in "[/a0.]{0,5}", end in "[/a0.]{0,5}", rest in "[/a0.]{0,3}",
        ) {
            let scope = Scope::new("/a/a").unwrap();
            let range = range(&start, &end);
            let key = format!("/a/a/{rest}");
            prop_assert!(!range.contains(key.as_bytes()) || range.overlaps(&scope));
        }

        #[test]
        fn a_range_within_a_scope_contains_no_key_of_another(
            start in "[/a0.]{0,6}", end in "[/a0.]{0,6}", key in "[/a0.]{0,6}",
        ) {
            let range = range(&start, &end);
            let inside = range.within(&Scope::new("/a/a").unwrap());
            prop_assert!(!inside || !range.contains(key.as_bytes()) || key.starts_with("/a/a/"));
        }

        #[test]
        fn the_entries_of_a_range_are_those_it_contains(
            keys in prop::collection::btree_set("[ab/0]{1,3}", 0..12), start in "[ab/0]{0,3}", end in "[ab/0]{0,3}|\0",
        ) {
            let keys: BTreeSet<Bytes> = keys.into_iter().map(Bytes::from).collect();
            let range = range(&start, &end);
            let expected: Vec<_> = keys.iter().filter(|key| range.contains(key)).collect();
            let chunks = Chunks::sorted(keys.iter().cloned().collect());
            prop_assert_eq!(chunks.between(range.of(&chunks)).collect::<Vec<_>>(), expected);
        }
    }
}
