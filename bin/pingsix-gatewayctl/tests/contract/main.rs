//! `serve` and the real PingSIX, from manifests on disk to answers.
//!
//! The tests run when `PINGSIX_BIN` names a PingSIX binary, and say so when they did not run. `CONTRACT_CASES` and
//! `CONTRACT_SEED` are those of the contract tests of `pingsix-gateway-api`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::format_push_string,
    reason = "a test fails by panicking, also in what it shares with others, and says what it did not run"
)]

mod generated;
mod quickstart;
mod scenarios;
mod serve;

/// The start of PingSIX, and requests to it.
#[allow(dead_code, reason = "other contract tests use more of them")]
#[path = "../../../../pingsix-gateway-api/tests/contract"]
mod harness {
    pub(crate) mod authority;
    pub(crate) mod client;
    pub(crate) mod comparison;
    pub(crate) mod echo;
    pub(crate) mod etcd;
    pub(crate) mod nodes;
    pub(crate) mod process;
    pub(crate) mod received;
    pub(crate) mod run;
}

/// The oracle and the random tables of translation's own property tests.
#[allow(
    dead_code,
    unused_imports,
    clippy::all,
    clippy::pedantic,
    reason = "the tests of translation use more of them, and are judged where they stand"
)]
#[path = "../../../../pingsix-translate/tests/properties"]
mod properties {
    pub(crate) mod answer;
    pub(crate) mod case;
    pub(crate) mod effect;
    pub(crate) mod evaluate;
    pub(crate) mod generate;
    pub(crate) mod oracle;
    pub(crate) mod probe;
    pub(crate) mod protection;
}

// They call each other by these names.
use harness::{authority, client, comparison, echo, etcd, nodes, process, received, run};
use properties::{answer, effect, evaluate, oracle, probe, protection};
