//! The embedded etcd server: TLS, certificates, and the clients that they admit. Tests read the log of the
//! whole program.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test that cannot go on fails")]

mod access;
#[path = "../support/authority.rs"]
mod authority;
mod certificates;
mod fair_limits;
#[path = "../support/log.rs"]
mod log;
mod tls;
mod tls_rotation;
#[path = "../support/wire.rs"]
mod wire;
