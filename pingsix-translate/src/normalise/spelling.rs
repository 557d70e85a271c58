//! Other spellings of a path, which PingSIX takes for other paths and which many backends take for the same one.
//!
//! PingSIX compares paths byte by byte. Beside a rule with less protection, a protected path therefore gets one Route
//! with many literal prefixes that answers 400. The prefixes are the ways to write the path which no client needs:
//!
//! - at the beginning of an element: an empty element, a dot, two dots, a slash or backslash that is encoded;
//! - in an element: a character that needs no encoding, encoded;
//! - an element as a whole, with another encoding of characters that may have one;
//! - behind an element: a character that ends the element for some backends, such as the semicolon of a path parameter.
//!
//! The Route yields to rules with exact paths alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex_syntax::hir::literal::Extractor;

use super::path::{MAX_PATH, PathProblem, encode};
use super::{Path, PathKind};

/// The beginnings of elements that normalising backends drop, or take for other elements. Encoded slashes and backslashes
/// begin an element of their own.
const BEFORE: [&str; 19] = [
    "/", ";", "\\", "%2e", "%2E", "%2f", "%2F", "%5c", "%5C", "%3b", "%3B", "./", ".;", ".\\", ".%", "../",
    "..;", "..\\", "..%",
];

/// The ends of elements for some backends.
const BEHIND: [&str; 9] = [";", "%2f", "%2F", "%5c", "%5C", "%3b", "%3B", "%00", "\\"];

/// The largest number of other spellings of a path.
pub(super) const MAX_OTHERS: usize = 512;

/// The largest number of combinations of the spellings of the encoded bytes of an element. Where there are more, the one with
/// small letters stands for them.
const MAX_COMBINATIONS: usize = 16;

/// A text with which other spellings of a path begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) text: String,
    pub(crate) ends: SpellingEnds,
}

/// The spellings that begin with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpellingEnds {
    /// Whether the text itself is a spelling.
    pub(crate) alone: bool,
    /// Whether longer paths that begin with the text are spellings.
    pub(crate) longer: bool,
}

impl Path {
    /// The other spellings of a path, if it has any. A path has the same with and without a slash at its end.
    pub(crate) fn spellings(&self) -> Option<Self> {
        let kind = match self.kind {
            PathKind::Prefix | PathKind::Exact => PathKind::Spellings,
            PathKind::Literal => PathKind::LiteralSpellings,
            PathKind::Spellings | PathKind::LiteralSpellings => return None,
        };
        let text = match self.text.strip_suffix('/') {
            Some(stem) => Arc::from(stem),
            None => self.text.clone(),
        };
        has_other_spellings(&text).then_some(Self { kind, text })
    }

    /// The paths that stand for one that cannot be matched; none if no request has it.
    pub(super) fn in_place_of(written: &str) -> Vec<Self> {
        written.starts_with('/').then(|| below(written)).into_iter().collect()
    }

    /// The paths of a match: every spelling of a path that is refused, or the path alone.
    pub(super) fn with_spellings(self, written: &str, problem: Option<PathProblem>) -> Vec<Self> {
        if problem.is_some() { all_spellings(&self, written) } else { vec![self] }
    }
}

impl Spelling {
    const fn longer(text: String, alone: bool) -> Self {
        Self { text, ends: SpellingEnds { alone, longer: true } }
    }
}

/// Whether a path without a slash at its end has other spellings. The root has none.
fn has_other_spellings(text: &str) -> bool {
    !text.is_empty() && !text.contains("//")
}

/// The other spellings of a path without a slash at its end: at most [`MAX_OTHERS`], most useful first. `is_open`: whether the
/// path is a literal prefix, which has the end of its last element itself.
pub(crate) fn other_spellings(text: &str, is_open: bool) -> Vec<Spelling> {
    let mut elements: Vec<(&str, &str)> = Vec::new();
    for (slash, _) in text.match_indices('/') {
        let (directory, rest) = text.split_at(slash + 1);
        elements.push((directory, rest.split('/').next().unwrap_or_default()));
    }
    let last = elements.len().saturating_sub(1);
    let ended = elements.len() - usize::from(is_open && !elements.is_empty());
    let inside = elements.iter().enumerate().flat_map(|(at, &(directory, element))| {
        let encoded = encoded_letters(directory, element).into_iter();
        let encoded = encoded.map(move |(text, is_end)| Spelling::longer(text, is_end && at == last));
        let others = other_elements(element).into_iter().flat_map(move |other| {
            let text = [directory, &other].concat();
            if is_open && at == last {
                return vec![Spelling::longer(text, true)];
            }
            // Longer names are others.
            let alone = Spelling { text: text.clone(), ends: SpellingEnds { alone: true, longer: false } };
            let below = Spelling::longer(text + "/", at == last);
            (at == last).then_some(alone).into_iter().chain([below]).collect()
        });
        encoded.chain(others)
    });
    let behind = elements[..ended].iter().enumerate().rev().flat_map(|(at, &(directory, element))| {
        BEHIND.iter().map(move |end| Spelling::longer([directory, element, end].concat(), at == last))
    });
    let before = elements.iter().flat_map(|&(directory, _)| {
        BEFORE.iter().map(move |begin| Spelling::longer([directory, begin].concat(), false))
    });
    let mut seen = BTreeSet::new();
    let all = inside.chain(behind).chain(before).filter(|spelling| spelling.text.len() <= MAX_PATH);
    all.filter(|spelling| seen.insert(spelling.text.clone())).take(MAX_OTHERS).collect()
}

/// The largest number of spellings of a refused path. Where there are more, the prefix before them stands for all.
const MAX_SPELLINGS: usize = 16;

/// The paths that stand for every spelling of a path that is refused: encoded characters with their hexadecimal digits in
/// either case, and characters that a request may have unencoded. A pattern of PingSIX cannot have braces, so in place of a
/// path with one there is the prefix before the brace.
fn all_spellings(path: &Path, written: &str) -> Vec<Path> {
    let units = units(written);
    let mut count = 1;
    let fits = |unit: &&Unit<'_>| {
        count *= unit.spellings().len();
        !matches!(unit.written, "{" | "}") && count <= MAX_SPELLINGS
    };
    let first: Vec<&Unit<'_>> = units.iter().take_while(fits).collect();
    let is_whole = first.len() == units.len();
    let texts = combinations(first.into_iter().map(|unit| unit.spellings()));
    let mut paths = Vec::from([path.clone()]);
    for text in texts {
        let other = if is_whole {
            Path { kind: path.kind, text: text.into() }
        } else {
            Path::everything_below(&text)
        };
        if paths.iter().all(|known| *known != other) {
            paths.push(other);
        }
    }
    paths
}

/// The largest number of beginnings of a regular expression.
const MAX_BEGINNINGS: usize = 16;

/// The paths that stand for everything that a regular expression matches: its literal prefix, or its beginnings where PingSIX
/// could not have the prefix alone; everything, if there are none.
pub(crate) fn beginnings(pattern: &str) -> Vec<Path> {
    let anchored = pattern.strip_prefix('^').unwrap_or(pattern);
    let text = literal_prefix(anchored);
    let whole = below(&text);
    if whole.kind == PathKind::Literal || (text.ends_with('/') && !whole.is_root()) {
        return vec![whole];
    }
    // Other dialects have no operators for sets.
    let has_operators = ["&&", "--", "~~"].iter().any(|operator| anchored.contains(operator));
    let parsed = regex_syntax::parse(anchored).ok().filter(|_| !has_operators);
    let alternatives = parsed.and_then(|parsed| {
        let found = Extractor::new().limit_total(MAX_BEGINNINGS).extract(&parsed);
        let texts = found.literals()?.iter().map(|literal| std::str::from_utf8(literal.as_bytes()).ok());
        let paths: Option<BTreeSet<Path>> = texts.map(|text| text.map(below)).collect();
        paths.filter(|paths| paths.iter().all(|path| path != &whole && !path.is_root()))
    });
    alternatives.map_or_else(|| vec![whole], |paths| paths.into_iter().collect())
}

/// The text before the first character that has a meaning in a regular expression.
fn literal_prefix(anchored: &str) -> String {
    let mut text = String::new();
    let mut letters = anchored.chars().peekable();
    // An alternative may begin with something else.
    while let Some(letter) = letters.next().filter(|_| !anchored.contains('|')) {
        let literal = match letter {
            '\\' => letters.next_if(char::is_ascii_punctuation),
            _ => Some(letter).filter(|letter| !"^$.|?*+()[]{}".contains(*letter)),
        };
        let Some(literal) = literal else { break };
        // The character may be missing.
        if letters.peek().is_some_and(|next| "?*{".contains(*next)) {
            break;
        }
        text.push(literal);
    }
    text
}

/// The path that stands for everything that begins with a text, up to a brace.
fn below(text: &str) -> Path {
    let text = text.get(..MAX_PATH).unwrap_or(text);
    let text = encode(text.split(['{', '}']).next().unwrap_or_default());
    if text.len() > MAX_PATH { Path::root() } else { Path::everything_below(&text) }
}

/// A character of a path, or an encoded byte.
#[derive(Clone, Copy)]
struct Unit<'t> {
    written: &'t str,
    /// The byte that is encoded.
    encoded: Option<u8>,
}

fn units(text: &str) -> Vec<Unit<'_>> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let encoded = encoded_byte(rest);
        let (written, behind) = rest.split_at(if encoded.is_some() { 3 } else { letter.len_utf8() });
        units.push(Unit { written, encoded });
        rest = behind;
    }
    units
}

impl Unit<'_> {
    /// The byte, of a character that is one.
    fn byte(self) -> Option<u8> {
        self.encoded.or_else(|| self.written.bytes().next().filter(u8::is_ascii))
    }

    /// Whether it means the same with and without encoding.
    fn is_unreserved(self) -> bool {
        self.byte().is_some_and(is_unreserved)
    }

    /// As clients write it (RFC 3986, 6.2.2).
    fn usual(self) -> String {
        match self.encoded {
            None => self.written.to_owned(),
            Some(byte) if is_unreserved(byte) => char::from(byte).to_string(),
            Some(_) => self.written.to_ascii_uppercase(),
        }
    }

    /// Every spelling that requests may have.
    fn spellings(self) -> BTreeSet<String> {
        if let Some(byte) = self.encoded {
            return encodings(byte);
        }
        let letter = self.written.chars().next().unwrap_or_default();
        // Requests have these characters as they are.
        if letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/".contains(letter) {
            return BTreeSet::from([letter.to_string()]);
        }
        let mut all = combinations(self.written.bytes().map(encodings));
        if !matches!(letter, ' ' | '?' | '#') && !letter.is_control() {
            all.insert(letter.to_string());
        }
        all
    }
}

/// The encodings of the characters of an element that no client encodes, up to the character, each with whether the element
/// ends there.
fn encoded_letters(directory: &str, element: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut before = directory.to_owned();
    for unit in units(element) {
        let is_end = before.len() + unit.written.len() == directory.len() + element.len();
        let byte = unit.byte().filter(|byte| is_unreserved(*byte));
        for other in byte.into_iter().flat_map(encodings).filter(|other| other != unit.written) {
            found.push(([&*before, &other].concat(), is_end));
        }
        before.push_str(unit.written);
    }
    found
}

/// Other ways to write an element as a whole, which clients may send for others with the same beginning: characters that have
/// to be encoded, raw or with other letters among the digits, and characters that may be encoded. The usual way to write the
/// element is not among them: it may be the path of another rule.
fn other_elements(element: &str) -> BTreeSet<String> {
    let units = units(element);
    let of_digits = |unit: &Unit<'_>| match unit.encoded {
        Some(byte) if !is_unreserved(byte) => encodings(byte),
        Some(_) | None => BTreeSet::from([unit.written.to_owned()]),
    };
    let count = units.iter().map(|unit| of_digits(unit).len()).fold(1, usize::saturating_mul);
    let mut found = if count > MAX_COMBINATIONS {
        BTreeSet::from([units.iter().filter_map(|unit| of_digits(unit).pop_last()).collect()])
    } else {
        combinations(units.iter().map(of_digits))
    };
    found.insert(with_raw_letters(element));
    for (at, unit) in
        units.iter().enumerate().filter(|(_, unit)| unit.encoded.is_none() && !unit.is_unreserved())
    {
        for code in unit.byte().into_iter().flat_map(encodings) {
            let parts = units.iter().enumerate();
            found.insert(parts.map(|(index, unit)| if index == at { &code } else { unit.written }).collect());
        }
    }
    let usual: String = units.iter().map(|unit| unit.usual()).collect();
    found.retain(|other| other != element && *other != usual);
    found
}

/// An element with the characters raw that have to be encoded, as far as a request and a pattern may have them.
fn with_raw_letters(element: &str) -> String {
    let mut raw = String::new();
    let mut rest = element;
    while let Some(written) = rest.chars().next() {
        let bytes: Vec<u8> = (0..4).map_while(|at| encoded_byte(rest.get(3 * at..)?)).collect();
        let letter = bytes.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
        let letter = letter.filter(|letter| !letter.is_control() && !"/{}%?# ".contains(*letter));
        let letter = letter.filter(|letter| !u8::try_from(*letter).is_ok_and(is_unreserved));
        raw.push(letter.unwrap_or(written));
        rest = &rest[letter.map_or(written.len_utf8(), |letter| 3 * letter.len_utf8())..];
    }
    raw
}

/// Every text with one of each set.
fn combinations(sets: impl Iterator<Item = BTreeSet<String>>) -> BTreeSet<String> {
    sets.fold(BTreeSet::from([String::new()]), |texts, next| {
        texts.iter().flat_map(|text| next.iter().map(move |next| [&**text, next].concat())).collect()
    })
}

/// A character that means the same with and without encoding (RFC 3986, 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The byte that a text begins with in percent-encoding.
fn encoded_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix('%')?.get(..2)?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

/// The percent-encodings of a byte: each letter among the digits in both cases.
pub(super) fn encodings(byte: u8) -> BTreeSet<String> {
    let (upper, lower) = (format!("{byte:02X}"), format!("{byte:02x}"));
    let digit = |of: &str, at: usize| of.get(at..=at).unwrap_or_default().to_owned();
    let mixed = [&upper, &lower]
        .into_iter()
        .flat_map(|first| [&upper, &lower].map(|second| format!("%{}{}", digit(first, 0), digit(second, 1))));
    mixed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    fn spellings(kind: PathKind, text: &str) -> Vec<String> {
        let literal = Path::literal(text).filter(|_| kind == PathKind::Literal);
        let path = literal.unwrap_or_else(|| Path::parse(kind, text).0.unwrap());
        let Some(path) = path.spellings() else { return Vec::new() };
        let all = other_spellings(&path.text, path.kind == PathKind::LiteralSpellings);
        all.into_iter().map(|spelling| spelling.text).collect()
    }

    #[test]
    fn other_spellings_stand_before_in_and_behind_each_element() {
        let guards = spellings(PathKind::Prefix, "/am/x.y");
        for expected in [
            "//",
            "/./",
            "/../",
            "/%2e",
            "/..;",
            "/%2F",
            "/;",
            "/\\",
            "/..%",
            "/%61",
            "/a%6d",
            "/a%6D",
            "/am;",
            "/am%2f",
            "/am//",
            "/am/../",
            "/am/%78",
            "/am/x%2e",
            "/am/x%2E",
            "/am/x.%79",
            "/am/x.y;",
            "/am/x.y%3B",
            "/am/;",
        ] {
            assert!(guards.iter().any(|guard| guard == expected), "{expected} in {guards:?}");
        }
        assert!(guards.iter().all(|guard| !"/am/x.y/z".starts_with(&**guard)), "{guards:?}");
        assert_eq!(guards, spellings(PathKind::Prefix, "/am/x.y/"));
    }

    #[test]
    fn other_ways_to_write_an_element_stand_for_it_as_a_whole() {
        let others = |text: &str| {
            let all = other_spellings(text, false).into_iter();
            let of_whole = all.filter(|spelling| !spelling.ends.longer).map(|spelling| spelling.text);
            of_whole.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(others("/b%C3%bc"), "/b%C3%Bc /b%C3%bC /b%c3%BC /b%c3%Bc /b%c3%bC /b%c3%bc /b\u{fc}");
        assert_eq!(others("/a%7Cb"), "/a%7cb /a|b");
        assert_eq!(others("/x@y"), "/x%40y");
        assert_eq!(others("/%7Bid%7D"), "/%7Bid%7d /%7bid%7D /%7bid%7d");
        assert_eq!(others("/%E2%82%AC%E2%82%AC").split(' ').count(), 2);
        // The usual way to write the element may be the path of another rule.
        assert_eq!(others("/%7Ealice"), "");
        assert_eq!(others("/b%c3%bc").split(' ').filter(|other| *other == "/b%C3%BC").count(), 0);
    }

    #[test]
    fn no_spelling_begins_as_clients_write_other_paths() {
        for path in ["/%7Ealice", "/%c3%bcber", "/%61", "/a%7Cb", "/.hidden/%2Ewell", "/x@y", "/b%C3%BCro"] {
            for spelling in other_spellings(path, false).into_iter().filter(|spelling| spelling.ends.longer) {
                for other in [
                    "/~bob",
                    "/%C3%96st",
                    "/about",
                    "/a%7Cc",
                    "/a|c",
                    "/.hidden/.well-known",
                    "/x@z",
                    "/x%40z",
                    "/b%C3%A4r",
                    "/b%c3%a4r",
                    "/b\u{e4}r",
                ] {
                    assert!(
                        !other.starts_with(&*spelling.text),
                        "{other} begins with {} of {path}",
                        spelling.text
                    );
                }
            }
        }
    }

    #[test]
    fn a_literal_prefix_has_its_own_end_and_the_root_has_no_other_spellings() {
        assert!(!spellings(PathKind::Literal, "/adm").contains(&"/adm;".to_owned()));
        assert_eq!(spellings(PathKind::Prefix, "/"), Vec::<String>::new());
        assert_eq!(Path::unwritten().spellings(), None);
    }

    #[test]
    fn the_text_of_a_spelling_may_be_the_whole_path() {
        let whole = |text: &str| -> Vec<String> {
            let all = other_spellings(text, false).into_iter();
            all.filter(|spelling| spelling.ends.alone).map(|spelling| spelling.text).collect()
        };
        assert_eq!(
            whole("/b/a"),
            [
                "/b/%61", "/b/a;", "/b/a%2f", "/b/a%2F", "/b/a%5c", "/b/a%5C", "/b/a%3b", "/b/a%3B",
                "/b/a%00", "/b/a\\"
            ]
        );
    }

    fn refused(kind: PathKind, text: &str) -> Vec<String> {
        let path = Path::parse(kind, text).0.unwrap();
        let kind = |kind| match kind {
            PathKind::Exact => "=",
            PathKind::Prefix => "",
            PathKind::Literal | PathKind::Spellings | PathKind::LiteralSpellings => "*",
        };
        all_spellings(&path, text).iter().map(|path| format!("{}{}", kind(path.kind), path.text)).collect()
    }

    #[test]
    fn a_refused_path_stands_for_all_its_spellings() {
        assert_eq!(refused(PathKind::Exact, "/a|b"), ["=/a%7Cb", "=/a%7cb", "=/a|b"]);
        assert_eq!(
            refused(PathKind::Prefix, "/b\u{fc}"),
            [
                "/b%C3%BC", "/b%C3%Bc", "/b%C3%bC", "/b%C3%bc", "/b%c3%BC", "/b%c3%Bc", "/b%c3%bC",
                "/b%c3%bc", "/b\u{fc}"
            ]
        );
        assert_eq!(refused(PathKind::Prefix, "/{admin}"), ["/%7Badmin%7D", "/"]);
        assert_eq!(refused(PathKind::Prefix, "/users/{id}"), ["/users/%7Bid%7D", "/users"]);
        assert_eq!(refused(PathKind::Exact, "/users/id-{id}"), ["=/users/id-%7Bid%7D", "*/users/id-"]);
        assert_eq!(refused(PathKind::Prefix, "/a/%2fb"), ["/a/%2fb", "/a/%2Fb"]);
        let many = refused(PathKind::Prefix, "/ab\u{fc}\u{fc}");
        assert!(many.len() <= 1 + MAX_SPELLINGS, "{many:?}");
        assert!(many.contains(&"*/ab\u{fc}".to_owned()), "{many:?}");
    }

    #[test]
    fn a_regular_expression_has_the_literal_prefix_of_everything_it_matches() {
        let prefix = |pattern| {
            let paths = beginnings(pattern);
            paths.iter().map(|path| &*path.text).collect::<Vec<_>>().join(" ")
        };
        for (pattern, expected) in [
            ("/admin/[0-9]+", "/admin"),
            ("^/admin-.*", "/admin-"),
            ("/api/v[12]/admin", "/api/v1/admin /api/v2/admin"),
            (r"/a\.b(c|d)", "/a.bc /a.bd"),
            ("/v[12]/admin", "/v1/admin /v2/admin"),
            ("/(admin|internal)/.*", "/admin /internal"),
            ("/v[0-9]+", "/v0 /v1 /v2 /v3 /v4 /v5 /v6 /v7 /v8 /v9"),
            ("/[ab]/x", "/a /b"),
            ("/[ab]", "/"),
            ("/v.*", "/"),
            ("/(?!public)admin", "/"),
            ("/caf\u{e9}-.*", "/caf%C3%A9-"),
            ("/b%C3%BCro-[0-9]+", "/b%C3%BCro-"),
            ("/ab{2}c", "/abbc"),
            ("/[a&&b]dmin", "/"),
            (r"/a\.b.c", "/a.b"),
            ("/adminx?", "/admin"),
            ("/admin*", "/admi"),
            (".*/admin", "/"),
            ("/admin|/secret", "/admin /secret"),
            ("/admin|.*", "/"),
            ("(?i)/ab", "/AB /Ab /aB /ab"),
            ("", "/"),
        ] {
            assert_eq!(prefix(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn the_number_of_other_spellings_is_bounded() {
        assert_eq!(spellings(PathKind::Prefix, &"/abcdefgh".repeat(100)).len(), MAX_OTHERS);
    }
}
