//! The reader of an etcd: on a real etcd, on the embedded server, and on servers that do not keep the protocol.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "../support/authority.rs"]
mod authority;
mod embedded;
mod etcd;
mod garbage;
mod reading;
#[path = "../support/wire.rs"]
mod wire;
