//! The manifests of `deploy/`: their roles equal the permissions of the library and the use of a controller, their
//! Pods are admitted, and their references resolve.
//!
//! No Pod runs here. Parts that need a PingSIX binary or openssl print that they did not run.

mod chart;
mod example;
mod installation;
mod least_privilege;
pub(crate) mod manifests;
mod pods;
mod references;
mod requests;
mod rights;
mod secrets;
