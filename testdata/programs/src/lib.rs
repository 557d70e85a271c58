//! Programs that tests run: ports that stay free for them, where they are installed, a real etcd, and its protocol.
//!
//! ```no_run
//! # async fn a_test() {
//! use pingsix_test_programs::{Etcd, free_address};
//!
//! let Some(mut etcd) = Etcd::start().await else { return };
//! let listener = free_address();
//! println!("PingSIX listens on {listener} and reads from {}", etcd.address());
//! etcd.kill().await;
//! etcd.start_again().await;
//! # }
//! ```
//!
//! - A [free port](free_port) stays free for the program that starts there, also a second time: the system hands it to no
//!   other process, and this crate to no other test.
//! - A test without a needed program prints `NOT RUN`, past the harness, and returns; with
//!   `PINGSIX_PROGRAMS=required` it fails instead.
//! - A [program of this workspace](program) is as new as its sources.
//! - An error about a program that ends early, or does not come up in time, has its output.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test without its program has failed"
)]

mod etcd;
mod page;
mod ports;
mod programs;
/// The protocol of etcd, client and server: the file of `pingsix-sink`, where it is private.
#[path = "../../../pingsix-sink/src/proto.rs"]
pub mod proto;
mod workspace;

pub use etcd::{Etcd, Signal};
pub use page::commands;
pub use ports::{free_address, free_port};
pub use programs::{Output, find, pingsix, pingsix_config, run, skipped};
pub use workspace::{program, program_of};
