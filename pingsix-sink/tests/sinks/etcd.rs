//! The sink for an etcd of the user's, on a real one. Runs when `etcd` and `etcdctl` are on the PATH.
//!
//! What it has in common with every other sink is in the contract.

mod access;
mod chaos;
mod encryption;
mod lab;
mod others;
mod outages;
mod pingsix;
mod transactions;
