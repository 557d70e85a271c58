//! The other sinks, the URLs of all of them, and the plan of a publication.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test that cannot go on fails")]

mod admin;
#[path = "../support/admin_double.rs"]
mod admin_double;
#[path = "../support/authority.rs"]
mod authority;
#[path = "../support/data_plane.rs"]
mod data_plane;
mod etcd;
mod file;
mod fuzzing;
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/log.rs"]
mod log;
mod plan;
#[path = "../support/relay.rs"]
mod relay;
mod target;
mod target_address;
mod target_read;
#[path = "../support/wire.rs"]
mod wire;
