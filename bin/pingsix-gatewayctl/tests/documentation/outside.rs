//! The READMEs of the libraries show the programs of `testdata/outside`, which CI builds.

use std::fs;

use crate::root;

/// The programs, each with the page that shows it and the most lines of its code, without imports.
const PROGRAMS: [(&str, &str, usize); 4] = [
    ("src/bin/translate.rs", "pingsix-gateway-api/README.md", 20),
    ("src/bin/serve.rs", "pingsix-gateway-api/README.md", 20),
    ("src/bin/operator.rs", "pingsix-gateway-api/README.md", 25),
    ("tests/contract.rs", "pingsix-sink/README.md", 20),
];

/// The program without its description.
fn code(program: &str) -> String {
    let text = fs::read_to_string(root().join("testdata/outside").join(program)).unwrap();
    let lines = text.lines().skip_while(|line| line.is_empty() || line.starts_with("//!"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn readmes_show_the_programs_that_are_built() {
    for (program, page, _) in PROGRAMS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert!(text.contains(&format!("testdata/outside/{program}")), "{page} does not name {program}");
        assert!(text.contains(&format!("\n{}```\n", code(program))), "{page} does not show {program}");
    }
}

#[test]
fn the_programs_are_short() {
    for (program, _, most) in PROGRAMS {
        let code = code(program);
        let counts =
            |line: &&str| !line.is_empty() && !line.starts_with("use ") && !line.trim().starts_with("//");
        let lines = code.lines().filter(counts).count();
        assert!(lines <= most, "{program} has {lines} lines");
    }
}
