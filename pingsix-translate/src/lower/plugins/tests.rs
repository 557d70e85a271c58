//! What the patterns that filters become do to paths.

use regex::Regex;

use super::*;

/// As PingSIX applies pairs: the first pattern found in the path gives the whole new path (`src/utils/mod.rs`).
fn apply(pairs: &[String], path: &str) -> String {
    for pair in pairs.chunks(2) {
        let [pattern, template] = pair else { panic!("pairs come in twos: {pairs:?}") };
        if let Some(found) = Regex::new(pattern).unwrap().captures(path) {
            return template.replace("$1", found.get(1).map_or("", |group| group.as_str()));
        }
    }
    path.to_owned()
}

#[test]
fn prefixes_are_replaced_as_the_table_of_the_specification_says() {
    let cases = [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo/", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "/xyz/", "/foo", "/xyz/"),
        ("/foo", "/xyz/", "/foo/", "/xyz/"),
        ("/foo", "", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "", "/foo", "/"),
        ("/foo", "/", "/foo/", "/"),
        ("/", "/xyz", "/bar", "/xyz/bar"),
        ("/", "/xyz", "/", "/xyz/"),
        ("/a.b", "/x y", "/a.b/c%2Fd", "/x%20y/c%2Fd"),
        ("/a", "b", "/a/c", "/b/c"),
    ];
    for (matched, replacement, path, expected) in cases {
        let pairs = replace_prefix(matched, replacement);
        assert_eq!(apply(&pairs, path), expected, "{matched} by {replacement:?} in {path}: {pairs:?}");
    }
}

#[test]
fn a_dot_in_a_prefix_is_a_dot() {
    let pairs = replace_prefix("/a.b", "/x");
    assert_eq!(apply(&pairs, "/a-b"), "/a-b");
}
