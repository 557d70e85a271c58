//! The controller, its parts and its manifests on a real API server.
//!
//! Needs the test cluster (`just cluster`); without it every test prints that it did not run.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "how long things took is of interest where a test fails"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod completeness;
mod deploy;
mod embedding;
mod faults;
mod history;
mod kinds;
mod leaders;
mod life;
mod load;
mod machine;
mod managed;
mod monitoring;
mod noise;
mod parameters;
mod pingsix;
mod pki;
mod processes;
mod provision;
mod quarantine;
mod quickstart;
mod reader;
mod replicas;
mod secrets;
mod security;
mod sinks;
mod status;
mod test_env;
mod upgrade;
mod watch;
