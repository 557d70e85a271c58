//! The READMEs of the libraries show the programs of `testdata/outside`, which CI builds.

use std::fs;

use crate::root;

/// The programs, each with the page that shows it.
const PROGRAMS: [(&str, &str); 4] = [
    ("src/bin/translate.rs", "pingsix-gateway-api/README.md"),
    ("src/bin/serve.rs", "pingsix-gateway-api/README.md"),
    ("src/bin/operator.rs", "pingsix-gateway-api/README.md"),
    ("tests/contract.rs", "pingsix-sink/README.md"),
];

/// The most lines of a program, without its imports.
const MAX_LINES: usize = 20;

/// The program without its description.
fn code(program: &str) -> String {
    let text = fs::read_to_string(root().join("testdata/outside").join(program)).unwrap();
    let lines = text.lines().skip_while(|line| line.is_empty() || line.starts_with("//!"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn readmes_show_the_programs_that_are_built() {
    for (program, page) in PROGRAMS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert!(text.contains(&format!("testdata/outside/{program}")), "{page} does not name {program}");
        assert!(text.contains(&format!("\n{}```\n", code(program))), "{page} does not show {program}");
    }
}

#[test]
fn the_programs_are_short() {
    for (program, _) in PROGRAMS {
        let code = code(program);
        let counts =
            |line: &&str| !line.is_empty() && !line.starts_with("use ") && !line.trim().starts_with("//");
        let lines = code.lines().filter(counts).count();
        assert!(lines <= MAX_LINES, "{program} has {lines} lines");
    }
}
