//! The manifests of `deploy/`: that their roles are what the library asks for and what a controller uses, that Pods made
//! from them are admitted, and that what refers to something finds it.
//!
//! No Pod runs here. Parts that need a PingSIX binary or openssl say when they did not run.

mod example;
mod installation;
mod least_privilege;
pub(crate) mod manifests;
mod pods;
mod references;
mod requests;
mod rights;
mod secrets;
