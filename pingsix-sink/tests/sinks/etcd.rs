//! The sink for an external etcd, on a real one. Runs when `etcd` and `etcdctl` are on the PATH.
//!
//! The contract has the tests that all sinks share.

mod access;
mod chaos;
mod encryption;
mod etcd_test;
mod others;
mod outages;
mod pingsix;
mod transactions;
