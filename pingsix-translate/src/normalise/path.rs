//! Path matches, and which of them PingSIX can express.

use std::sync::Arc;

/// The comparison of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathKind {
    /// Element-wise prefix.
    Prefix,
    /// Prefix of bytes, which may end inside an element.
    Literal,
    /// Byte for byte.
    Exact,
    /// Prefixes of bytes that spell another path: one of whole elements, or an exact one. No rule has it.
    Spellings,
    /// As [`Spellings`](Self::Spellings), of a prefix of bytes.
    LiteralSpellings,
}

/// A path match that can be expressed as PingSIX patterns.
///
/// Ordered by precedence: exact before prefix, then by the number of characters as written.
///
/// Two paths are nested or disjoint. Let a request have both a literal prefix `t` and an element prefix `p`. If `t` is a
/// prefix of `p`, then everything below `p` begins with `t`. If not, `p` is a proper prefix of `t`, and because the request
/// goes on with a slash after `p`, so does `t`: everything that begins with `t` is below `p`. Two literal prefixes of one
/// text are prefixes of each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Path {
    pub(crate) kind: PathKind,
    /// The path as written, with percent-encoding of characters that PingSIX cannot match.
    pub(crate) text: Arc<str>,
}

/// Longest path that still fits the priority (CRDs allow 1024 characters).
pub(crate) const MAX_PATH: usize = 2046;

/// The problem of a path, which may be usable nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathProblem {
    /// The path has no leading slash: no request can have it, so it cannot be matched.
    NotAbsolute,
    /// The path is longer than [`MAX_PATH`], so it cannot be matched.
    TooLong,
    /// The path contains a character or sequence that the API forbids; the percent-encoded text is still matched.
    Forbidden(&'static str),
}

impl PathProblem {
    /// The problem of a path in one sentence; `forbidden` ends the sentence for a path that its API does not allow.
    pub(crate) fn message(self, path: &str, forbidden: &str) -> String {
        match self {
            Self::NotAbsolute => {
                format!("Path \"{path}\" does not start with a slash; no request can match.")
            }
            Self::TooLong => format!("The path is longer than {MAX_PATH} characters."),
            Self::Forbidden(what) => format!("Path \"{path}\" contains {what}, which {forbidden}."),
        }
    }
}

impl Path {
    /// The prefix that matches everything.
    pub(crate) fn root() -> Self {
        Self { kind: PathKind::Prefix, text: Arc::from("/") }
    }

    /// The prefix that matches everything and yields to every path that is written, also to the root.
    pub(crate) fn unwritten() -> Self {
        Self { kind: PathKind::Prefix, text: Arc::from("") }
    }

    /// The prefix of bytes with a text, of which the last element has two characters at least (see
    /// [`precedence`](Self::precedence)).
    pub(crate) fn literal(text: &str) -> Option<Self> {
        let (_, last) = text.rsplit_once('/')?;
        let fits = text.starts_with('/') && last.len() > 1 && text.len() <= MAX_PATH;
        fits.then(|| Self { kind: PathKind::Literal, text: Arc::from(text) })
    }

    /// The narrowest path that stands for everything that begins with a text. If less than two characters of the text are in
    /// its last element, the whole parent is closed.
    pub(crate) fn everything_below(text: &str) -> Self {
        Self::literal(text).unwrap_or_else(|| {
            let parent = text.rsplit_once('/').map_or("", |(parent, _)| parent);
            if parent.is_empty() || !parent.starts_with('/') {
                Self::root()
            } else {
                Self { kind: PathKind::Prefix, text: Arc::from(parent) }
            }
        })
    }

    /// The first segment: a covering path has the same, or none, which is empty. A prefix that ends inside the first
    /// segment covers several, so it has none.
    pub(crate) fn first_segment(&self) -> &str {
        let text = self.text.strip_prefix('/').unwrap_or(&self.text);
        match text.split_once('/') {
            Some((first, _)) => first,
            None if matches!(self.kind, PathKind::Literal | PathKind::LiteralSpellings) => "",
            None => text,
        }
    }

    /// Reads a path as written. With a problem that leaves it usable, the path is there as well.
    pub(crate) fn parse(kind: PathKind, text: &str) -> (Option<Self>, Option<PathProblem>) {
        if !text.starts_with('/') {
            return (None, Some(PathProblem::NotAbsolute));
        }
        if text.len() > MAX_PATH {
            return (None, Some(PathProblem::TooLong));
        }
        if kind == PathKind::Prefix && text.ends_with("//") {
            // An empty element at the end: as a prefix it would be one of everything below its parent.
            return (None, Some(PathProblem::Forbidden("//")));
        }
        let problem =
            forbidden_sequence(text).or_else(|| forbidden_character(text)).map(PathProblem::Forbidden);
        let text = if problem.is_some() { encode(text) } else { text.to_owned() };
        if text.len() > MAX_PATH {
            return (None, Some(PathProblem::TooLong));
        }
        (Some(Self { kind, text: Arc::from(text) }), problem)
    }

    /// Whether it matches every path.
    pub(crate) fn is_root(&self) -> bool {
        self.kind == PathKind::Prefix && self.stem().is_empty()
    }

    /// The elements a prefix consists of, without the trailing slash: `/foo` and `/foo/` are the same prefix.
    /// Empty for the root.
    pub(crate) fn stem(&self) -> &str {
        match self.kind {
            PathKind::Prefix => self.text.strip_suffix('/').unwrap_or(&self.text),
            PathKind::Exact | PathKind::Literal | PathKind::Spellings | PathKind::LiteralSpellings => {
                &self.text
            }
        }
    }

    /// Whether it matches every path that another one does.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match self.kind {
            PathKind::Exact | PathKind::Spellings | PathKind::LiteralSpellings => self == other,
            PathKind::Literal => other.stem().starts_with(&*self.text),
            PathKind::Prefix => {
                let is_whole = |rest: &str| rest.is_empty() && other.kind != PathKind::Literal;
                let rest = other.stem().strip_prefix(self.stem());
                rest.is_some_and(|rest| is_whole(rest) || rest.starts_with('/'))
            }
        }
    }

    /// Sort key: the longer and the more exact, the larger. Fits 12 bits.
    ///
    /// A literal prefix comes before the element prefixes that cover it and after those that it covers. It covers the element
    /// prefix of its own text, so it has one less than its length. An element prefix that covers it ends before its last
    /// element, which has two characters at least, so none has this number.
    ///
    /// Other spellings come before all prefixes and after all exact paths: 2047, which is more than the longest path has
    /// ([`MAX_PATH`]).
    pub(crate) fn precedence(&self) -> u32 {
        // `parse` bounds the length by MAX_PATH; the guard of a listener and `unwritten` have 0.
        let length = u32::try_from(self.text.len()).unwrap_or(u32::MAX).min(2047);
        match self.kind {
            PathKind::Prefix => length,
            PathKind::Literal => length.saturating_sub(1),
            PathKind::Spellings | PathKind::LiteralSpellings => 2047,
            PathKind::Exact => 2048 + length,
        }
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |path: &Self| (path.precedence(), path.kind);
        key(self).cmp(&key(other)).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Sequences that the CRD schema of `HTTPPathMatch` forbids.
fn forbidden_sequence(text: &str) -> Option<&'static str> {
    ["//", "/./", "/../", "%2f", "%2F", "#"]
        .into_iter()
        .find(|sequence| text.contains(sequence))
        .or_else(|| ["/..", "/."].into_iter().find(|end| text.ends_with(end)))
}

/// Characters outside RFC 3986 `pchar` and `/`.
fn forbidden_character(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits =
                    bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
                if !digits {
                    return Some("% without two hexadecimal digits");
                }
            }
            b'{' => return Some("{"),
            b'}' => return Some("}"),
            b'?' => return Some("?"),
            b' ' => return Some("a blank"),
            _ if is_pchar(byte) => {}
            _ => return Some("a character outside of RFC 3986"),
        }
        at += 1;
    }
    None
}

fn is_pchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte)
}

/// Percent-encodes characters that PingSIX's matcher or a request line cannot carry; clients send `%7B` for `{`.
pub(super) fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if is_pchar(byte) || byte == b'%' {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Path {
        Path::parse(PathKind::Prefix, text).0.unwrap()
    }

    fn exact(text: &str) -> Path {
        Path::parse(PathKind::Exact, text).0.unwrap()
    }

    #[test]
    fn a_trailing_slash_does_not_change_a_prefix() {
        assert_eq!(prefix("/foo/").stem(), prefix("/foo").stem());
        assert_eq!(exact("/foo/").stem(), "/foo/");
        assert_eq!(Path::root().stem(), "");
        assert_eq!(Path::unwritten().stem(), "");
    }

    #[test]
    fn exact_paths_precede_prefixes_and_longer_ones_shorter_ones() {
        assert!(exact("/a") > prefix("/a/b/c"));
        assert!(prefix("/foo/") > prefix("/foo"));
        assert!(prefix("/foo") > Path::root());
        assert!(Path::root() > Path::unwritten());
        assert!(exact(&format!("/{}", "a".repeat(MAX_PATH - 1))).precedence() < 1 << 12);
    }

    #[test]
    fn braces_are_matched_as_clients_send_them() {
        let (path, problem) = Path::parse(PathKind::Exact, "/a/{id}");
        assert_eq!(&*path.unwrap().text, "/a/%7Bid%7D");
        assert_eq!(problem, Some(PathProblem::Forbidden("{")));
    }

    #[test]
    fn a_relative_path_cannot_be_matched() {
        assert_eq!(Path::parse(PathKind::Prefix, "foo"), (None, Some(PathProblem::NotAbsolute)));
    }
}
