//! The manifests of `deploy/`: that their roles are what the library asks for and what a controller uses, that Pods made
//! from them are admitted, and that what refers to something finds it.
//!
//! No Pod runs here. Parts that need the test cluster (`just cluster`), a PingSIX binary or openssl say when they did not
//! run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod example;
mod life;
mod manifests;
mod pods;
mod references;
mod requests;
mod rights;
mod secrets;
