//! The program beside each PingSIX, for functions that PingSIX lacks.
//!
//! ```text
//! flags, environment ──► Arguments (checked) ──► run ──► the roles that are asked for
//!                                                         │
//!         etcd feed, file ──► Documents ──► Streams ◄─────┤
//!                                                         └──► Responder
//! ```
//!
//! Each role is off by default:
//!
//! - [`responder`], `--responder`: an HTTP upstream for the answers that PingSIX lacks.
//! - `stream`, `--streams`: a proxy for TCP, UDP and TLS, as the stream documents of a Gateway have it.
//!
//! With the feature `program`, which is the default, the crate is the program. Without the feature it is the library of
//! the responder alone.

#[cfg(feature = "program")]
mod arguments;
#[cfg(feature = "program")]
pub mod documents;
#[cfg(feature = "program")]
mod feed;
#[cfg(feature = "program")]
mod log;
#[cfg(feature = "program")]
mod metrics;
#[cfg(feature = "program")]
mod pages;
#[cfg(feature = "program")]
mod program;
pub mod responder;
#[cfg(feature = "program")]
mod run;
#[cfg(feature = "program")]
mod status;
#[cfg(feature = "program")]
mod status_key;
#[cfg(feature = "program")]
pub mod stream;

#[cfg(feature = "program")]
pub use program::main;
