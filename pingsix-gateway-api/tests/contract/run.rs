//! Configuration of the tests: PingSIX's binary and the number of cases.

use std::env;
use std::io::Write as _;
use std::path::PathBuf;

/// The binary; `None`, with a message, without it.
pub(crate) fn binary(test: &str) -> Option<PathBuf> {
    let binary = env::var_os("PINGSIX_BIN").filter(|name| !name.is_empty()).map(PathBuf::from);
    if binary.is_none() {
        print_message(&format!("{test}: NOT RUN: PINGSIX_BIN does not name a PingSIX binary"));
    }
    binary
}

/// Unlike `eprintln!`, seen also when the test passes.
pub(crate) fn print_message(text: &str) {
    // In one piece, because other tests speak at the same time.
    let _ = std::io::stderr().write_all(format!("\npingsix: {text}\n").as_bytes());
}

/// The least number of requests that a test compares.
pub(crate) fn cases() -> usize {
    number("CONTRACT_CASES").map_or(20_000, |cases| usize::try_from(cases).unwrap())
}

/// The source of random cases.
pub(crate) fn seed() -> u64 {
    number("CONTRACT_SEED").unwrap_or(20_26_11)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}
