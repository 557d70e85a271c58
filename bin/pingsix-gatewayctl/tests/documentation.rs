//! The claims of the documentation name checks that exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// For each row of the table under a heading: the row, and what its last column has in backticks.
fn named_checks<'a>(document: &'a str, heading: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    document
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cell = line.trim_end_matches('|').rsplit('|').next().unwrap();
            (line, cell.split('`').skip(1).step_by(2).collect())
        })
        .collect()
}

#[test]
fn every_invariant_names_a_check_that_exists() {
    let document = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let checks = named_checks(&document, "## Invariants");
    assert!(checks.len() >= 10, "the table of invariants is missing");
    for (index, (line, check)) in checks.into_iter().enumerate() {
        assert!(line.starts_with(&format!("| {} |", index + 1)), "{} comes next: {line}", index + 1);
        assert!(check.first().is_some_and(|first| is_file(first)), "no check: {line}");
        let (mut file, mut text) = ("", String::new());
        for name in check {
            if is_file(name) {
                file = name;
                text = fs::read_to_string(root().join(file))
                    .unwrap_or_else(|_| panic!("no file {file}: {line}"));
            } else {
                assert!(text.contains(&format!("fn {name}(")), "no test {name} in {file}");
            }
        }
    }
}

/// Tests have names without dots and slashes.
fn is_file(name: &str) -> bool {
    name.contains(['.', '/'])
}

#[test]
fn invariants_are_numbered_in_order() {
    let document = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    for (index, (line, _)) in named_checks(&document, "## Invariants").into_iter().enumerate() {
        assert!(
            line.starts_with(&format!("| {} |", index + 1)),
            "this should be number {}: {line}",
            index + 1
        );
    }
}

#[test]
fn every_deviation_names_a_test_that_shows_it() {
    let document = fs::read_to_string(root().join("docs/mapping.md")).unwrap();
    let tests = fs::read_to_string(root().join("pingsix-translate/tests/deviations.rs")).unwrap();
    let deviations = named_checks(&document, "## Deviations");
    assert!(!deviations.is_empty());
    for (line, names) in &deviations {
        let [name] = names.as_slice() else { panic!("no test: {line}") };
        assert!(tests.contains(&format!("fn {name}(")), "no test {name}");
    }
    assert_eq!(tests.matches("#[test]").count(), deviations.len(), "a test has no row");
}
