//! The program beside each PingSIX, for what PingSIX cannot do itself.
//!
//! ```text
//! flags, environment ──► Arguments (checked) ──► run ──► the roles that are asked for
//! ```
//!
//! Each role is off by default:
//!
//! - [`responder`], `--responder`: an HTTP upstream for the answers that PingSIX lacks.

mod arguments;
mod log;
mod program;
pub mod responder;
mod run;

pub use program::main;
