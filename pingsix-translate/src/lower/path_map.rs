//! A map from paths that knows which path answers where which other does.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::normalise::{Path, PathKind};

/// Something that answers for a path, and maybe one method only.
pub(super) trait PathEntry {
    fn path(&self) -> &Path;
    fn method(&self) -> Option<&'static str>;

    /// Sort key inside a group, as in a Route's priority.
    fn rank(&self) -> (u32, bool) {
        (self.path().precedence(), self.method().is_some())
    }

    /// Whether requests with this method reach it; no method stands for all that have nothing of their own.
    fn takes(&self, method: Option<&'static str>) -> bool {
        self.method().is_none() || self.method() == method
    }
}

/// A map from paths that finds the entries covering a path and the entries below it in logarithmic time.
#[derive(Debug)]
pub(super) struct PathMap<'a, T> {
    exact: BTreeMap<&'a str, Vec<T>>,
    /// By stem; entries of one stem differ in method or in a trailing slash.
    prefix: BTreeMap<&'a str, Vec<T>>,
}

impl<'a, T: PathEntry> PathMap<'a, T> {
    pub(super) fn new() -> Self {
        Self { exact: BTreeMap::new(), prefix: BTreeMap::new() }
    }

    /// The entry for exactly this path and method, made if need be.
    pub(super) fn entry(
        &mut self,
        path: &'a Path,
        method: Option<&'static str>,
        make: impl FnOnce() -> T,
    ) -> &mut T {
        let map = match path.kind {
            PathKind::Exact => &mut self.exact,
            PathKind::Prefix => &mut self.prefix,
        };
        let list = map.entry(path.stem()).or_default();
        let rank = (path.precedence(), method.is_some());
        let at = list.iter().position(|item| item.path() == path && item.method() == method).unwrap_or_else(
            || {
                let at = list.partition_point(|item| item.rank() > rank);
                if list.is_empty() {
                    // Most often it stays the only one.
                    list.reserve_exact(1);
                }
                list.insert(at, make());
                at
            },
        );
        &mut list[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.prefix.values()).flatten()
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.exact.into_values().chain(self.prefix.into_values()).flatten()
    }

    /// The entries that match wherever `path` does, in their order.
    pub(super) fn covering<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s T> + 's {
        let exact = match path.kind {
            PathKind::Exact => self.exact.get(&*path.text),
            PathKind::Prefix => None,
        };
        exact
            .into_iter()
            .flatten()
            .chain(stems(path.stem()).filter_map(|stem| self.prefix.get(stem)).flatten())
    }

    /// The entries that match in a proper part of the prefix `path`.
    pub(super) fn below<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s T> + 's {
        let stem = path.stem();
        let is_prefix = path.kind == PathKind::Prefix;
        let under = move |text: &str| text.strip_prefix(stem).is_some_and(|rest| rest.starts_with('/'));
        let exact = self
            .exact
            .range::<str, _>((Bound::Included(stem), Bound::Unbounded))
            .take_while(move |(text, _)| is_prefix && text.starts_with(stem))
            .filter(move |(text, _)| **text == stem || under(text));
        let prefix = self
            .prefix
            .range::<str, _>((Bound::Included(stem), Bound::Unbounded))
            .take_while(move |(text, _)| is_prefix && text.starts_with(stem))
            .filter(move |(text, _)| under(text));
        exact.chain(prefix).flat_map(|(_, items)| items)
    }
}

/// The stems of all prefixes that match a path or everything under it, longest first: for `/a/b` it is `/a/b`,
/// `/a` and the empty one of the root.
fn stems(text: &str) -> impl Iterator<Item = &str> {
    // An exact path may end with a slash; that is no stem, but its parent is.
    let whole = (!text.ends_with('/')).then_some(text);
    whole.into_iter().chain(text.rmatch_indices('/').map(|(at, _)| &text[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Entry(Path);

    impl PathEntry for Entry {
        fn path(&self) -> &Path {
            &self.0
        }

        fn method(&self) -> Option<&'static str> {
            None
        }
    }

    fn prefix(text: &str) -> Path {
        Path::parse(PathKind::Prefix, text).0.unwrap()
    }

    fn exact(text: &str) -> Path {
        Path::parse(PathKind::Exact, text).0.unwrap()
    }

    /// Exact paths are written with `=`.
    fn text(path: &Path) -> String {
        format!("{}{}", if path.kind == PathKind::Exact { "=" } else { "" }, path.text)
    }

    fn check(path: &Path, covering: &str, below: &str) {
        let paths = [
            prefix("/"),
            prefix("/a"),
            prefix("/a/"),
            prefix("/a/b"),
            prefix("/a-b"),
            exact("/"),
            exact("/a"),
            exact("/a/"),
            exact("/ab"),
            exact("/a/b"),
        ];
        let mut map = PathMap::new();
        for path in &paths {
            map.entry(path, None, || Entry(path.clone()));
        }
        let texts =
            |found: Vec<&Entry>| found.iter().map(|entry| text(&entry.0)).collect::<Vec<_>>().join(" ");
        assert_eq!(texts(map.covering(path).collect()), covering, "covering {}", text(path));
        assert_eq!(texts(map.below(path).collect()), below, "below {}", text(path));
    }

    #[test]
    fn what_covers_a_path_comes_longest_first_and_what_is_below_excludes_itself() {
        check(&prefix("/a"), "/a/ /a /", "=/a =/a/ =/a/b /a/b");
        check(&prefix("/a/b"), "/a/b /a/ /a /", "=/a/b");
        check(&exact("/a"), "=/a /a/ /a /", "");
        check(&exact("/a/"), "=/a/ /a/ /a /", "");
        check(&exact("/ab"), "=/ab /", "");
        check(&exact("/"), "=/ /", "");
        check(&prefix("/"), "/", "=/ =/a =/a/ =/a/b =/ab /a/ /a /a-b /a/b");
    }
}
