//! The sink for an etcd of the user's, on a real one. Runs when `etcd` and `etcdctl` are on the PATH.
//!
//! What it has in common with every other sink is in the contract.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod access;
#[path = "../support/authority.rs"]
mod authority;
mod chaos;
#[path = "../support/documents.rs"]
mod documents;
mod encryption;
#[path = "../support/pingsix.rs"]
mod gateway;
#[path = "../support/graph.rs"]
mod graph;
mod lab;
#[path = "../support/log.rs"]
mod log;
mod others;
mod outages;
mod pingsix;
#[path = "../support/relay.rs"]
mod relay;
mod transactions;
#[path = "../support/wire.rs"]
mod wire;
