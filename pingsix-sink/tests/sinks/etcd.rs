//! The sink for an etcd of the user's, on a real one. Runs when `etcd` and `etcdctl` are on the PATH.
//!
//! The contract has the tests that all sinks share.

mod access;
mod chaos;
mod encryption;
mod lab;
mod others;
mod outages;
mod pingsix;
mod transactions;
