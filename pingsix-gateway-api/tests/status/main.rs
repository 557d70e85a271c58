//! Statuses, Events and Leases on a real API server, which knows what no script does: validation, defaults, no-op writes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod lab;
mod lease;
mod verdicts;
