//! Path matches, and which of them PingSIX can express.

use std::sync::Arc;

/// The comparison of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathKind {
    /// Element-wise prefix.
    Prefix,
    /// Byte for byte.
    Exact,
}

/// A path match that can be expressed as PingSIX patterns.
///
/// Ordered by precedence: exact before prefix, then by the number of characters as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Path {
    pub(crate) kind: PathKind,
    /// The path as written, with percent-encoding of characters that PingSIX cannot match.
    pub(crate) text: Arc<str>,
}

/// Longest path that still fits the priority (CRDs allow 1024 characters).
pub(crate) const MAX_PATH: usize = 2046;

/// The fault of a path, which may be usable nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFlaw {
    /// The path has no leading slash: no request can have it, so it cannot be matched.
    NotAbsolute,
    /// The path is longer than [`MAX_PATH`], so it cannot be matched.
    TooLong,
    /// The path contains a character or sequence that the API forbids; the percent-encoded text is still matched.
    Forbidden(&'static str),
}

impl PathFlaw {
    /// The fault of a path in one sentence; `forbidden` ends the sentence for a path that its API does not allow.
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

    /// The first segment: a covering path has the same, or none, which is empty.
    pub(crate) fn first_segment(&self) -> &str {
        let text = self.text.strip_prefix('/').unwrap_or(&self.text);
        text.split_once('/').map_or(text, |(first, _)| first)
    }

    /// Reads a path as written. With a flaw that leaves it usable, the path is there as well.
    pub(crate) fn parse(kind: PathKind, text: &str) -> (Option<Self>, Option<PathFlaw>) {
        if !text.starts_with('/') {
            return (None, Some(PathFlaw::NotAbsolute));
        }
        if text.len() > MAX_PATH {
            return (None, Some(PathFlaw::TooLong));
        }
        if kind == PathKind::Prefix && text.ends_with("//") {
            // An empty element at the end: as a prefix it would be one of everything below its parent.
            return (None, Some(PathFlaw::Forbidden("//")));
        }
        let flaw = forbidden_sequence(text).or_else(|| forbidden_character(text)).map(PathFlaw::Forbidden);
        let text = if flaw.is_some() { encode(text) } else { text.to_owned() };
        if text.len() > MAX_PATH {
            return (None, Some(PathFlaw::TooLong));
        }
        (Some(Self { kind, text: Arc::from(text) }), flaw)
    }

    /// The elements a prefix consists of, without the trailing slash: `/foo` and `/foo/` are the same prefix.
    /// Empty for the root.
    pub(crate) fn stem(&self) -> &str {
        match self.kind {
            PathKind::Exact => &self.text,
            PathKind::Prefix => self.text.strip_suffix('/').unwrap_or(&self.text),
        }
    }

    /// Whether it matches every path that another one does.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match self.kind {
            PathKind::Exact => self == other,
            PathKind::Prefix => {
                let rest = other.stem().strip_prefix(self.stem());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }

    /// Sort key: the longer and the more exact, the larger. Fits 12 bits.
    pub(crate) fn precedence(&self) -> u32 {
        // `parse` bounds the length by MAX_PATH; the guard of a listener and `unwritten` have 0.
        let length = u32::try_from(self.text.len()).unwrap_or(u32::MAX).min(2047);
        match self.kind {
            PathKind::Prefix => length,
            PathKind::Exact => 2048 + length,
        }
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.precedence(), &self.text).cmp(&(other.precedence(), &other.text))
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
fn encode(text: &str) -> String {
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
        let (path, flaw) = Path::parse(PathKind::Exact, "/a/{id}");
        assert_eq!(&*path.unwrap().text, "/a/%7Bid%7D");
        assert_eq!(flaw, Some(PathFlaw::Forbidden("{")));
    }

    #[test]
    fn a_relative_path_cannot_be_matched() {
        assert_eq!(Path::parse(PathKind::Prefix, "foo"), (None, Some(PathFlaw::NotAbsolute)));
    }
}
