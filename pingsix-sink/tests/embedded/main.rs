//! The embedded etcd server from a client's view.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "../support/authority.rs"]
mod authority;
mod bounds;
mod coalesce;
mod connections;
#[path = "../support/data_plane.rs"]
mod data_plane;
mod etcdctl;
#[path = "../support/gateway.rs"]
mod gateway;
mod like_etcd;
mod pingsix;
mod range;
mod revisions;
mod services;
mod watch;
#[path = "../support/wire.rs"]
mod wire;
