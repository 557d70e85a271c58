//! Other spellings of a path, which PingSIX takes for other paths and which many backends take for the same one.
//!
//! PingSIX compares paths byte by byte. Beside a rule with less protection, a protected path therefore gets a guard, one
//! Route with many literal prefixes that answers 400. The prefixes are the ways to write the path which no client needs:
//!
//! - at the begin of an element: an empty element, a dot, two dots, a slash or backslash that is encoded;
//! - in an element: one of its characters encoded, or the hexadecimal digits of an encoded one in other letters;
//! - behind an element: what ends it for some backends, such as the semicolon of a path parameter.
//!
//! A guard yields to rules with exact paths alone.

use std::collections::BTreeSet;

use regex_syntax::hir::literal::Extractor;

use super::path::MAX_PATH;
use super::{Path, PathKind};

/// The beginnings of elements that normalising backends drop, or take for other elements. Encoded slashes and backslashes
/// begin an element of their own.
const BEFORE: [&str; 36] = [
    "/", ";/", ";\\", ";%2f", ";%2F", ";%5c", ";%5C", "\\", "%2e", "%2E", "%2f", "%2F", "%5c", "%5C", "%3b/",
    "%3B/", "./", ".;", ".\\", ".%2e", ".%2E", ".%2f", ".%2F", ".%5c", ".%5C", ".%3b", ".%3B", "../", "..;",
    "..\\", "..%2f", "..%2F", "..%5c", "..%5C", "..%3b", "..%3B",
];

/// The ends of elements for some backends.
const BEHIND: [&str; 9] = [";", "%2f", "%2F", "%5c", "%5C", "%3b", "%3B", "%00", "\\"];

/// The largest number of other spellings of a path.
pub(super) const MAX_OTHERS: usize = 256;

/// A literal prefix of other spellings of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spelling {
    pub(crate) text: String,
    /// Whether the text alone spells the path, too.
    pub(crate) is_whole: bool,
}

/// Whether a path without a slash at its end has other spellings. The root has none.
pub(super) fn has_other_spellings(text: &str) -> bool {
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
    let part = |text: String| Spelling { text, is_whole: false };
    let before = elements
        .iter()
        .flat_map(|&(directory, _)| BEFORE.iter().map(move |begin| part([directory, begin].concat())));
    let ended = elements.len() - usize::from(is_open && !elements.is_empty());
    let behind = elements[..ended].iter().enumerate().rev().flat_map(|(at, &(directory, element))| {
        let text = move |end: &&str| [directory, element, end].concat();
        BEHIND.iter().map(move |end| Spelling { text: text(end), is_whole: at == last })
    });
    let inside = elements.iter().enumerate().flat_map(|(at, &(directory, element))| {
        let spellings = in_element(directory, element).into_iter();
        spellings.map(move |(text, is_end)| Spelling { text, is_whole: is_end && at == last })
    });
    let mut seen = BTreeSet::new();
    let all = before.chain(behind).chain(inside).filter(|spelling| spelling.text.len() <= MAX_PATH);
    all.filter(|spelling| seen.insert(spelling.text.clone())).take(MAX_OTHERS).collect()
}

/// The largest number of spellings of a refused path. Where there are more, the prefix before them stands for all.
const MAX_SPELLINGS: usize = 16;

/// The paths that stand for every spelling of a path that is refused: encoded characters with their hexadecimal digits in
/// either case, and characters that a request may have unencoded. A pattern of PingSIX cannot have braces, so in place of a
/// path with one there is the prefix before the brace.
pub(super) fn all_spellings(path: &Path, written: &str) -> Vec<Path> {
    let mut texts = vec![String::new()];
    let mut is_whole = true;
    for unit in units(written) {
        let alternatives = unit.spellings();
        if matches!(unit, Unit::Raw('{' | '}')) || texts.len() * alternatives.len() > MAX_SPELLINGS {
            is_whole = false;
            break;
        }
        texts = texts
            .iter()
            .flat_map(|text| alternatives.iter().map(move |next| [&**text, next].concat()))
            .collect();
    }
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
    let alternatives = regex_syntax::parse(anchored).ok().and_then(|parsed| {
        let found = Extractor::new().limit_total(MAX_BEGINNINGS).extract(&parsed);
        let texts = found.literals()?.iter().map(|literal| std::str::from_utf8(literal.as_bytes()).ok());
        let paths: Option<BTreeSet<Path>> = texts.map(|text| text.map(below)).collect();
        paths.filter(|paths| paths.iter().all(|path| path != &whole && !path.is_root()))
    });
    alternatives.map_or_else(|| vec![whole], |paths| paths.into_iter().collect())
}

/// What comes before the first character that has a meaning in a regular expression.
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

/// The path that stands for everything that begins with a text.
pub(super) fn below(text: &str) -> Path {
    let text = text.get(..MAX_PATH).unwrap_or(text);
    if text.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}%".contains(&byte)) {
        Path::everything_below(text)
    } else {
        Path::root()
    }
}

/// A part of a path, as it is written.
#[derive(Clone, Copy)]
enum Unit {
    Raw(char),
    Encoded(u8),
}

fn units(text: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let byte = encoded_byte(rest);
        units.push(byte.map_or(Unit::Raw(letter), Unit::Encoded));
        rest = &rest[if byte.is_some() { 3 } else { letter.len_utf8() }..];
    }
    units
}

impl Unit {
    fn spellings(self) -> BTreeSet<String> {
        match self {
            Self::Encoded(byte) => encodings(byte),
            // Requests have these characters as they are.
            Self::Raw(letter) if letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/".contains(letter) => {
                BTreeSet::from([letter.to_string()])
            }
            Self::Raw(letter) => {
                let mut bytes = [0; 4];
                let encoded = letter.encode_utf8(&mut bytes).bytes().map(encodings);
                let empty = BTreeSet::from([String::new()]);
                let mut all = encoded.fold(empty, |texts, next| {
                    texts
                        .iter()
                        .flat_map(|text| next.iter().map(move |next| [&**text, next].concat()))
                        .collect()
                });
                if !matches!(letter, ' ' | '?' | '#') && !letter.is_control() {
                    all.insert(letter.to_string());
                }
                all
            }
        }
    }
}

/// The other spellings of the characters of an element, each with whether the element ends there.
fn in_element(directory: &str, element: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut rest = element;
    while let Some(letter) = rest.chars().next() {
        let before = &element[..element.len() - rest.len()];
        let encoded = encoded_byte(rest);
        let (unit, behind) = rest.split_at(if encoded.is_some() { 3 } else { letter.len_utf8() });
        let bytes = encoded.map_or_else(|| unit.as_bytes().to_vec(), |byte| vec![byte]);
        for other in bytes.into_iter().flat_map(encodings).filter(|other| other != unit) {
            found.push(([directory, before, &other].concat(), behind.is_empty()));
        }
        if let Some(raw) = raw(rest) {
            let is_end = rest.len() == 3 * raw.len_utf8();
            found.push((format!("{directory}{before}{raw}"), is_end));
        }
        rest = behind;
    }
    found
}

/// The character that an encoding at the beginning of a text stands for, if a request and a pattern may have it.
fn raw(text: &str) -> Option<char> {
    let bytes: Vec<u8> = (0..4).map_while(|at| encoded_byte(text.get(3 * at..)?)).collect();
    let letter = bytes.utf8_chunks().next()?.valid().chars().next()?;
    Some(letter).filter(|letter| !letter.is_control() && !"/{}%?# ".contains(*letter))
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
    fn the_guards_of_a_path_stand_before_in_and_behind_each_element() {
        let guards = spellings(PathKind::Prefix, "/am/x.y");
        for expected in [
            "//",
            "/./",
            "/../",
            "/%2e",
            "/..;",
            "/%2F",
            "/;/",
            "/\\",
            "/..%5C",
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
            "/am/;/",
        ] {
            assert!(guards.iter().any(|guard| guard == expected), "{expected} in {guards:?}");
        }
        assert!(guards.iter().all(|guard| !"/am/x.y/z".starts_with(&**guard)), "{guards:?}");
        assert_eq!(guards, spellings(PathKind::Prefix, "/am/x.y/"));
    }

    #[test]
    fn the_other_letters_of_hexadecimal_digits_are_other_spellings() {
        let guards = spellings(PathKind::Exact, "/b%C3%bc");
        for expected in ["/b%c3", "/b%C3%BC", "/b%C3%Bc", "/b\u{fc}"] {
            assert!(guards.iter().any(|guard| guard == expected), "{expected} in {guards:?}");
        }
        assert!(!guards.iter().any(|guard| "/b%C3%bc".starts_with(&**guard)), "{guards:?}");
    }

    #[test]
    fn a_character_that_a_request_may_have_is_another_spelling_of_its_encoding() {
        for (text, raw) in
            [("/a%7Cb", "/a|"), ("/%61", "/a"), ("/x@y", "/x%40"), ("/%E2%82%ACx", "/\u{20ac}")]
        {
            let guards = spellings(PathKind::Exact, text);
            assert!(guards.iter().any(|guard| guard == raw), "{raw} in {guards:?}");
        }
        assert!(
            !spellings(PathKind::Exact, "/%7Bid%7D%20%C3")
                .iter()
                .any(|guard| guard.contains(['{', ' ', '\u{c3}']))
        );
    }

    #[test]
    fn a_literal_prefix_has_its_own_end_and_the_root_has_no_guards() {
        assert!(!spellings(PathKind::Literal, "/adm").contains(&"/adm;".to_owned()));
        assert_eq!(spellings(PathKind::Prefix, "/"), Vec::<String>::new());
        assert_eq!(Path::unwritten().spellings(), None);
    }

    #[test]
    fn the_text_of_a_spelling_may_be_the_whole_path() {
        let whole = |text: &str| -> Vec<String> {
            let all = other_spellings(text, false).into_iter();
            all.filter(|spelling| spelling.is_whole).map(|spelling| spelling.text).collect()
        };
        assert_eq!(
            whole("/b/a"),
            [
                "/b/a;", "/b/a%2f", "/b/a%2F", "/b/a%5c", "/b/a%5C", "/b/a%3b", "/b/a%3B", "/b/a%00",
                "/b/a\\", "/b/%61"
            ]
        );
        assert_eq!(whole("/b/%c3").last().unwrap(), "/b/%c3".replace("c3", "C3").as_str());
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
            (r"/a\.b.c", "/a.b"),
            ("/adminx?", "/admin"),
            ("/admin*", "/admi"),
            (".*/admin", "/"),
            ("/admin|/secret", "/admin /secret"),
            ("/admin|.*", "/"),
            ("(?i)/admin", "/"),
            ("", "/"),
        ] {
            assert_eq!(prefix(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn guards_are_bounded() {
        assert_eq!(spellings(PathKind::Prefix, &"/abcdefgh".repeat(100)).len(), MAX_OTHERS);
    }
}
