//! A map from paths that knows which path answers where which other does.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use thin_vec::ThinVec;

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

/// A map from paths that finds the entries covering a path and the entries below it in logarithmic time. Most maps have one
/// entry, and a node of a `BTreeMap` has room for eleven, so the lists are thin.
#[derive(Debug)]
pub(super) struct PathMap<'a, T> {
    exact: BTreeMap<&'a str, ThinVec<T>>,
    /// By stem; entries of one stem differ in method or in a trailing slash.
    prefix: BTreeMap<&'a str, ThinVec<T>>,
    /// By text.
    literal: BTreeMap<&'a str, ThinVec<T>>,
}

impl<'a, T: PathEntry> PathMap<'a, T> {
    pub(super) fn new() -> Self {
        Self { exact: BTreeMap::new(), prefix: BTreeMap::new(), literal: BTreeMap::new() }
    }

    /// The entry for exactly this path and method, made if need be.
    pub(super) fn entry(
        &mut self,
        path: &'a Path,
        method: Option<&'static str>,
        make: impl FnOnce() -> T,
    ) -> &mut T {
        let map = match path.kind {
            PathKind::Prefix => &mut self.prefix,
            // Other spellings are in no cell; they would stand alone, as an exact path does.
            PathKind::Exact | PathKind::Spellings | PathKind::LiteralSpellings => &mut self.exact,
            PathKind::Literal => &mut self.literal,
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
        self.exact.values().chain(self.prefix.values()).chain(self.literal.values()).flatten()
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        let Self { exact, prefix, literal } = self;
        exact.into_values().chain(prefix.into_values()).chain(literal.into_values()).flatten()
    }

    /// The entries that match wherever `path` does, in their order.
    pub(super) fn covering<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s T> + 's {
        let is_exact = path.kind == PathKind::Exact;
        let exact = is_exact.then(|| self.exact.get(&*path.text)).flatten();
        // An element prefix does not cover the literal prefix of the same text.
        let is_covered = |stem: &&str| path.kind != PathKind::Literal || stem.len() < path.text.len();
        let stems = stems(path.stem()).filter(is_covered);
        let prefix = stems.filter_map(|stem| self.prefix.get(stem)).flatten();
        let literal = prefixes_in(&self.literal, path.stem()).into_iter().flat_map(|(_, items)| items);
        exact.into_iter().flatten().chain(in_order(prefix, literal))
    }

    /// The entries that match in a proper part of the prefix `path`.
    pub(super) fn below<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s T> + 's {
        let (kind, stem) = (path.kind, path.stem());
        let is_under = move |text: &str| text.strip_prefix(stem).is_some_and(|rest| rest.starts_with('/'));
        let from = move |map: &'s BTreeMap<&'a str, ThinVec<T>>| {
            map.range::<str, _>((Bound::Included(stem), Bound::Unbounded))
                .take_while(move |(text, _)| kind != PathKind::Exact && text.starts_with(stem))
        };
        let is_literal = kind == PathKind::Literal;
        let exact = from(&self.exact).filter(move |(text, _)| is_literal || **text == stem || is_under(text));
        let prefix = from(&self.prefix).filter(move |(text, _)| is_literal || is_under(text));
        let literal = from(&self.literal)
            .filter(move |(text, _)| if is_literal { **text != stem } else { is_under(text) });
        exact.chain(prefix).chain(literal).flat_map(|(_, items)| items)
    }
}

/// Entries of two orders in one.
fn in_order<'s, T: PathEntry + 's>(
    one: impl Iterator<Item = &'s T>,
    other: impl Iterator<Item = &'s T>,
) -> impl Iterator<Item = &'s T> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if first.rank() < second.rank() => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

/// The entries whose keys are prefixes of a text, longest first.
pub(super) fn prefixes_in<'m, K: Borrow<str> + Ord, V>(
    map: &'m BTreeMap<K, V>,
    text: &str,
) -> Vec<(&'m K, &'m V)> {
    let mut found = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let last = map.range::<str, _>((Bound::Unbounded, Bound::Included(text))).next_back();
        let Some((key, value)) = last else { break };
        let common = common_prefix(key.borrow(), text);
        if common.len() == key.borrow().len() {
            found.push((key, value));
            rest = without_last_letter(common);
        } else {
            // A longer prefix of the text would come between this key and the text.
            rest = Some(common);
        }
    }
    found
}

/// The text that two texts begin with.
pub(super) fn common_prefix<'t>(one: &str, other: &'t str) -> &'t str {
    let letters = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    let length: usize = letters.map(|(letter, _)| letter.len_utf8()).sum();
    &other[..length]
}

pub(super) fn without_last_letter(text: &str) -> Option<&str> {
    let mut letters = text.chars();
    letters.next_back().map(|_| letters.as_str())
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

    fn literal(text: &str) -> Path {
        Path::literal(text).unwrap()
    }

    /// Exact paths are written with `=`, and literal prefixes with a star.
    fn text(path: &Path) -> String {
        match path.kind {
            PathKind::Exact => format!("={}", path.text),
            PathKind::Prefix => path.text.to_string(),
            PathKind::Literal | PathKind::Spellings | PathKind::LiteralSpellings => {
                format!("{}*", path.text)
            }
        }
    }

    #[test]
    fn literal_prefixes_stand_between_the_element_prefixes_around_them() {
        let paths = [
            prefix("/"),
            prefix("/ab"),
            prefix("/ab/"),
            prefix("/ab/cd"),
            prefix("/abc"),
            literal("/ab"),
            literal("/abc"),
            literal("/ab/cd"),
            exact("/ab"),
            exact("/abx"),
        ];
        let mut map = PathMap::new();
        for path in &paths {
            map.entry(path, None, || Entry(path.clone()));
        }
        let texts =
            |found: Vec<&Entry>| found.iter().map(|entry| text(&entry.0)).collect::<Vec<_>>().join(" ");
        let covering = |path: Path| texts(map.covering(&path).collect());
        let below = |path: Path| texts(map.below(&path).collect());
        assert_eq!(covering(literal("/ab")), "/ab* /");
        assert_eq!(covering(literal("/ab/cd")), "/ab/cd* /ab/ /ab /ab* /");
        assert_eq!(covering(prefix("/ab/cd")), "/ab/cd /ab/cd* /ab/ /ab /ab* /");
        assert_eq!(covering(prefix("/abc")), "/abc /abc* /ab* /");
        assert_eq!(covering(exact("/abcd")), "/abc* /ab* /");
        assert_eq!(covering(exact("/abx")), "=/abx /ab* /");
        assert_eq!(below(literal("/ab")), "=/ab =/abx /ab/ /ab /ab/cd /abc /ab/cd* /abc*");
        assert_eq!(below(prefix("/ab")), "=/ab /ab/cd /ab/cd*");
        for (one, other) in paths.iter().flat_map(|one| paths.iter().map(move |other| (one, other))) {
            assert_eq!(
                map.covering(other).any(|entry| entry.0 == *one),
                one.covers(other),
                "{} covers {}",
                text(one),
                text(other)
            );
        }
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
    fn covering_paths_come_longest_first_and_a_path_is_not_below_itself() {
        check(&prefix("/a"), "/a/ /a /", "=/a =/a/ =/a/b /a/b");
        check(&prefix("/a/b"), "/a/b /a/ /a /", "=/a/b");
        check(&exact("/a"), "=/a /a/ /a /", "");
        check(&exact("/a/"), "=/a/ /a/ /a /", "");
        check(&exact("/ab"), "=/ab /", "");
        check(&exact("/"), "=/ /", "");
        check(&prefix("/"), "/", "=/ =/a =/a/ =/a/b =/ab /a/ /a /a-b /a/b");
    }
}
