//! The responder as its clients see it: over loopback, on both protocols, at its limits, and behind PingSIX.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test fails by panicking, also in what it shares with others"
)]

mod answers;
mod binary;
mod client;
mod limits;
mod pingsix;
#[path = "../shared/pingsix.rs"]
mod process;
mod shutdown;
