//! The controller's parts on a real API server. Where it is not built, these tests say that they did not run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod watch;
