//! Patterns that authors write, and patterns that would take memory without end.

use super::*;

fn of(pattern: &str) -> Result<usize, String> {
    memory(&regex_syntax::parse(pattern).unwrap())
}

#[test]
fn prefixes_and_ends_of_annotations_are_not_charged() {
    for pattern in [
        "^/api(?:(/)(.*))?$",
        "^/api(?:/(.*))?$",
        "^/api(/.*)?$",
        "^/(.*)$",
        "^/old/path$",
        "^/v[0-9]+/(.*)$",
    ] {
        assert_eq!(of(pattern).map(charge), Ok(0), "{pattern}");
    }
    assert_eq!(charge(memory_of_prefix(FREE_PREFIX)), 0);
    assert_eq!(charge(memory_of_origins([r"^https://[^/:]+\.shop\.example\.com$".len()].into_iter())), 0);
}

#[test]
fn a_pattern_with_one_way_to_go_on_is_charged_by_its_size() {
    for (pattern, most) in [
        ("^/users/([^/]+)/([0-9]+)$", 300),
        ("^/blog/([0-9]{4})/([0-9]{2})/([0-9]{2})/(.+)$", 1000),
        (r"^/users/([^/]+)/(\d+)$", 4000),
        (r"^/p/(\w+)$", 25_000),
    ] {
        let charged = of(pattern).map(charge).unwrap();
        assert!(charged <= most, "{pattern}: {charged}");
    }
}

#[test]
fn a_pattern_that_matches_in_several_ways_is_charged_for_the_longest_path() {
    for pattern in ["^/(.*)/(.*)$", "^(.*?)(?:/api/(.*))(.*)$", r"^/img/(.+)\.(png|jpg|gif|webp)$"] {
        let charged = of(pattern).map(charge).unwrap();
        assert!((50_000..100_000).contains(&charged), "{pattern}: {charged}");
    }
}

#[test]
fn patterns_that_take_memory_without_end_are_refused() {
    let literals = |count: usize| (0..count).map(|n| format!("{n:08b}")).collect::<Vec<_>>().join("|");
    for pattern in [
        // Exponentially many states.
        "^/p1/(?:[ab]*a[ab]{13}c)*$",
        "^/p1/((?:[ab]*a[ab]{13}c)*)$",
        "^/p1/(?:[ab]*a[ab]{13}c)*(.*)$",
        "^/.*a.{9}$",
        "^/(.*)(?:x.{20}|y.{19})$",
        // Many groups, and many alternatives at each place.
        &format!("^/(?:{}a|ab)*(.*)$", "()".repeat(20)),
        &format!("^/(?:{})*(.*)$", vec!["(a)"; 50].join("|")),
        "^/(?:(?:a?b?c?d?e?f?g?h?){20})*(.*)x$",
        // Large counts and Unicode.
        "^/(.{1,100})/(.*)$",
        r"^/(?:\w*\d)*(.*)$",
        "^(?:/[^/]*){0,100}(/x.*)$",
        // A word boundary of Unicode, with which the lazy DFA gives up.
        r"^/a\b.*$",
    ] {
        assert!(of(pattern).is_err(), "{pattern}: {:?}", of(pattern));
    }
    assert!(of(&format!("^/(?:{})/(.*)$", literals(100))).is_ok());
}

#[test]
fn a_refusal_names_the_bound() {
    let message = of("^/.*a.{9}$").unwrap_err();
    assert!(
        message.starts_with("PingSIX may need more than 4194304 bytes of memory for the pattern."),
        "{message}"
    );
    let message = of(&format!("^/(?:{})*(.*)$", vec!["(a)"; 50].join("|"))).unwrap_err();
    assert!(message.contains("at most 768 may be"), "{message}");
}

#[test]
fn the_backtracking_counts_what_each_byte_adds() {
    let alternatives = |pattern: &str| {
        let config = Config::new().shrink(false);
        alternatives(&Compiler::new().configure(config).build(pattern).unwrap())
    };
    assert_eq!(alternatives("^/abc(d)$"), 0);
    assert_eq!(alternatives("^/(.*)/(.*)$"), 1);
    assert_eq!(alternatives("^/(?:a?b?)*(.*)$"), 3);
}
