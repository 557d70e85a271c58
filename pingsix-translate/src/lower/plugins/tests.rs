//! What the patterns that filters become do to paths and origins.

use std::collections::BTreeSet;

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

#[test]
fn wildcard_origins_stand_for_names_below_a_domain() {
    let pattern = |domain: Option<&str>, port| {
        let domain = domain.map(str::to_owned);
        Regex::new(&origin_pattern(&WildcardOrigin { scheme: "https", domain, port })).unwrap()
    };
    let below = pattern(Some("shop.example"), None);
    for allowed in ["https://a.shop.example", "https://a.b.shop.example"] {
        assert!(below.is_match(allowed), "{allowed}");
    }
    for refused in [
        "https://shop.example",
        "https://a.shop.example:8443",
        "http://a.shop.example",
        "https://a-shop.example",
        "https://a.shopxexample",
        "https://evil.example/.shop.example",
        "https://a.shop.example.evil",
    ] {
        assert!(!below.is_match(refused), "{refused}");
    }
    assert!(pattern(None, Some(8443)).is_match("https://any.example:8443"));
}

#[test]
fn credentials_and_any_origin_become_what_pingsix_takes() {
    let any = Cors {
        origins: Origins::Any,
        methods: Names::Any,
        headers: Names::Any,
        expose: Names::Listed(BTreeSet::new()),
        max_age: 5,
        credentials: true,
    };
    let lowered = lower_cors(&any);
    assert_eq!((lowered.allow_methods.as_str(), lowered.allow_headers.as_str()), ("**", "**"));
    assert_eq!(lowered.allow_origins_by_regex, Some(vec!["^.+$".to_owned()]));
    assert_eq!(lowered.expose_headers, None);
    let open = lower_cors(&Cors { credentials: false, ..any });
    assert_eq!(open.allow_origins, "*");
    assert_eq!(open.allow_origins_by_regex, None);
}
