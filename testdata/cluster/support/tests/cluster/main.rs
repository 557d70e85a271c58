//! The promises of the test cluster, checked on real clusters.

// They look at processes where Linux shows them.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking, also in what it shares with others, and says what it measured"
)]

mod access;
mod definitions;
mod faults;
mod lifetime;
mod node;
mod start;
mod support;
