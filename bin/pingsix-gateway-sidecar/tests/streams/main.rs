//! The stream role as its clients see it, over loopback.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in what it shares with others"
)]

mod certificates;
mod drain;
mod failover;
mod few_files;
mod files;
mod fuzzing;
mod hostile;
mod https;
mod listeners;
#[path = "../shared/pingsix.rs"]
mod pingsix;
mod routing;
mod support;
mod terminate;
mod udp;
