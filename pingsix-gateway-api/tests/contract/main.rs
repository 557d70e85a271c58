//! The models of PingSIX and the real PingSIX, which must agree.
//!
//! Requests travel over HTTP/1.1 and h2c with prior knowledge, and over TLS with HTTP/1.1 and HTTP/2 as ALPN says. For
//! the latter a second process reads the same prefix: one that offers h2c breaks HTTP/1.1 over TLS.
//!
//! The tests run when `PINGSIX_BIN` names a PingSIX binary, and say so when they did not run. `CONTRACT_CASES` is
//! the number of requests each of them compares at least, `CONTRACT_SEED` what their cases are drawn from.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::format_push_string,
    reason = "a test fails by panicking, also in what it shares with others, and says what it did not run"
)]

mod acceptance;
mod accepted;
mod authority;
mod backend_tls;
mod backend_traffic;
mod client;
mod comparison;
mod connection;
mod echo;
mod etcd;
mod expectations;
mod feed;
mod harness;
mod hostile;
mod hosts;
mod keys;
mod mirror;
mod nodes;
mod objects;
mod paths;
mod patterns;
mod plugins;
mod policy_env;
mod process;
#[cfg(feature = "controller")]
mod quarantine;
mod random_policies;
mod received;
mod redirect;
mod rng;
mod routing;
mod run;
mod scenarios;
mod security;
mod telemetry;
mod tls;
mod traffic;
mod units;

/// The oracle and the random tables of translation's own property tests.
#[allow(
    dead_code,
    unused_imports,
    clippy::all,
    clippy::pedantic,
    reason = "the tests of translation use more of them, and are judged where they stand"
)]
#[path = "../../../pingsix-translate/tests/properties"]
mod properties {
    /// Without its tests.
    pub(crate) mod adversary {
        pub(crate) mod attack;
        pub(crate) mod fixtures;
    }
    pub(crate) mod answer;
    pub(crate) mod case;
    pub(crate) mod effect;
    pub(crate) mod evaluate;
    pub(crate) mod generate;
    /// Without its tests.
    pub(crate) mod ingress {
        /// The class of the Ingresses.
        pub(crate) const CLASS: &str = "pingsix";
        pub(crate) mod annotated;
        mod generate;
        pub(crate) use generate::table;
    }
    pub(crate) mod oracle;
    pub(crate) mod probe;
    pub(crate) mod protection;
}

// They call each other by these names.
use properties::{answer, effect, evaluate, generate, oracle, probe, protection};
