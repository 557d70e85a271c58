//! The program, as a process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

mod authority;
mod cluster;
mod configuration;
mod deploy;
mod process;
mod running;
mod sinks;
mod targets;
#[cfg(feature = "otel")]
mod traces;

use assert_cmd::cargo::CommandCargoExt as _;
use std::process::Command;

/// The program, with no other variables than those it needs to start.
fn program() -> Command {
    let mut command = Command::cargo_bin("pingsix-gateway-controller").unwrap();
    command.env_clear();
    command
}
