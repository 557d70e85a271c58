//! A map from paths that knows which path answers where which other does.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use thin_vec::ThinVec;

use crate::normalise::{Path, PathKind};

/// The requests of a path, of one method or of all methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Region<'a> {
    pub(super) path: &'a Path,
    /// `None` stands for all methods without a region of their own.
    pub(super) method: Option<&'static str>,
}

impl Region<'_> {
    /// Sort key inside a group, as in a Route's priority.
    pub(super) fn rank(self) -> (u32, bool) {
        (self.path.precedence(), self.method.is_some())
    }

    /// Whether the region has requests with this method.
    pub(super) fn takes(self, method: Option<&'static str>) -> bool {
        self.method.is_none() || self.method == method
    }

    /// Whether some request has the methods of both.
    pub(super) fn meets(self, method: Option<&'static str>) -> bool {
        method.is_none() || self.takes(method)
    }
}

/// The values of the regions of one text, first in their order first.
type Values<'a, T> = ThinVec<(Region<'a>, T)>;

/// A map from regions that finds the regions covering a path and those below it in logarithmic time. Most maps have one
/// region, and a node of a `BTreeMap` has room for eleven, so the lists are thin.
#[derive(Debug)]
pub(super) struct PathMap<'a, T> {
    exact: BTreeMap<&'a str, Values<'a, T>>,
    /// By stem; regions of one stem differ in method or in a trailing slash.
    prefix: BTreeMap<&'a str, Values<'a, T>>,
    /// By text.
    literal: BTreeMap<&'a str, Values<'a, T>>,
}

impl<T> Default for PathMap<'_, T> {
    fn default() -> Self {
        Self { exact: BTreeMap::new(), prefix: BTreeMap::new(), literal: BTreeMap::new() }
    }
}

impl<'a, T> PathMap<'a, T> {
    /// The value of a region; a new one has the default.
    pub(super) fn entry(&mut self, region: Region<'a>) -> &mut T
    where
        T: Default,
    {
        let map = match region.path.kind {
            PathKind::Prefix => &mut self.prefix,
            // Other spellings are in no cell; they would stand alone, as an exact path does.
            PathKind::Exact | PathKind::Spellings | PathKind::LiteralSpellings => &mut self.exact,
            PathKind::Literal => &mut self.literal,
        };
        let list = map.entry(region.path.stem()).or_default();
        let at = list.iter().position(|(other, _)| *other == region).unwrap_or_else(|| {
            let at = list.partition_point(|(other, _)| other.rank() > region.rank());
            if list.is_empty() {
                // Most often it stays the only one.
                list.reserve_exact(1);
            }
            list.insert(at, (region, T::default()));
            at
        });
        &mut list[at].1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Region<'a>, &T)> {
        self.exact.values().chain(self.prefix.values()).chain(self.literal.values()).flat_map(regions)
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = (Region<'a>, T)> {
        let Self { exact, prefix, literal } = self;
        exact.into_values().chain(prefix.into_values()).chain(literal.into_values()).flatten()
    }

    /// The value of a region, if there is one.
    pub(super) fn get(&self, region: Region<'a>) -> Option<&T> {
        let mut covering = self.covering(region.path);
        covering.find_map(|(other, value)| (other == region).then_some(value))
    }

    /// The regions that match wherever `path` does, in their order.
    pub(super) fn covering<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = (Region<'a>, &'s T)> + 's {
        let is_exact = path.kind == PathKind::Exact;
        let exact = is_exact.then(|| self.exact.get(&*path.text)).flatten();
        // An element prefix does not cover the literal prefix of the same text.
        let is_covered = |stem: &&str| path.kind != PathKind::Literal || stem.len() < path.text.len();
        let stems = stems(path.stem()).filter(is_covered);
        let prefix = stems.filter_map(|stem| self.prefix.get(stem));
        let literal = prefixes_in(&self.literal, path.stem()).map(|(_, values)| values);
        exact
            .into_iter()
            .flat_map(regions)
            .chain(in_order(prefix.flat_map(regions), literal.flat_map(regions)))
    }

    /// The regions that match in a proper part of the prefix `path`.
    pub(super) fn below<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = (Region<'a>, &'s T)> + 's {
        let (kind, stem) = (path.kind, path.stem());
        let is_under = move |text: &str| text.strip_prefix(stem).is_some_and(|rest| rest.starts_with('/'));
        let from = move |map: &'s BTreeMap<&'a str, Values<'a, T>>| {
            map.range::<str, _>((Bound::Included(stem), Bound::Unbounded))
                .take_while(move |(text, _)| kind != PathKind::Exact && text.starts_with(stem))
        };
        let is_literal = kind == PathKind::Literal;
        let exact = from(&self.exact).filter(move |(text, _)| is_literal || **text == stem || is_under(text));
        let prefix = from(&self.prefix).filter(move |(text, _)| is_literal || is_under(text));
        let literal = from(&self.literal)
            .filter(move |(text, _)| if is_literal { **text != stem } else { is_under(text) });
        exact.chain(prefix).chain(literal).flat_map(|(_, values)| regions(values))
    }
}

/// The regions of a list with their values.
fn regions<'s, 'a, T>(
    values: &'s Values<'a, T>,
) -> impl Iterator<Item = (Region<'a>, &'s T)> + use<'s, 'a, T> {
    values.iter().map(|(region, value)| (*region, value))
}

/// Regions of two orders in one.
fn in_order<'a, 's, T: 's>(
    one: impl Iterator<Item = (Region<'a>, &'s T)>,
    other: impl Iterator<Item = (Region<'a>, &'s T)>,
) -> impl Iterator<Item = (Region<'a>, &'s T)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some((first, _)), Some((second, _))) if first.rank() < second.rank() => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

/// The entries whose keys are prefixes of a text, longest first.
pub(super) fn prefixes_in<'m, K: Borrow<str> + Ord, V>(
    map: &'m BTreeMap<K, V>,
    text: &str,
) -> impl Iterator<Item = (&'m K, &'m V)> {
    let last_up_to = |text: &str| {
        let last = map.range::<str, _>((Bound::Unbounded, Bound::Included(text))).next_back();
        last.map(|(key, _)| key.borrow())
    };
    prefixes(text, last_up_to).into_iter().filter_map(|prefix| map.get_key_value(prefix))
}

/// The texts of a sorted set that are prefixes of a text, longest first. `last_up_to` finds the last one up to a text.
pub(super) fn prefixes<'m>(text: &str, last_up_to: impl Fn(&str) -> Option<&'m str>) -> Vec<&'m str> {
    let mut found = Vec::new();
    let mut rest = Some(text);
    while let Some(last) = rest.and_then(&last_up_to) {
        let text = rest.unwrap_or_default();
        let letters = last.chars().zip(text.chars()).take_while(|(one, other)| one == other);
        let common = &text[..letters.map(|(letter, _)| letter.len_utf8()).sum()];
        rest = if common.len() == last.len() {
            found.push(last);
            common.char_indices().next_back().map(|(at, _)| &common[..at])
        } else {
            // A longer prefix of the text would come between this one and the text.
            Some(common)
        };
    }
    found
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

    fn map(paths: &[Path]) -> PathMap<'_, ()> {
        let mut map = PathMap::default();
        for path in paths {
            map.entry(Region { path, method: None });
        }
        map
    }

    fn texts<'a>(found: impl Iterator<Item = (Region<'a>, &'a ())>) -> String {
        found.map(|(region, ())| text(region.path)).collect::<Vec<_>>().join(" ")
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
        let map = map(&paths);
        let covering = |path: Path| texts(map.covering(&path));
        let below = |path: Path| texts(map.below(&path));
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
                map.covering(other).any(|(region, ())| region.path == one),
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
        let map = map(&paths);
        assert_eq!(texts(map.covering(path)), covering, "covering {}", text(path));
        assert_eq!(texts(map.below(path)), below, "below {}", text(path));
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
