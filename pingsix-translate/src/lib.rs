//! Gateway API objects in, PingSIX configuration and verdicts out.

mod attach;
mod field;
mod lower;
mod object;
mod options;
pub mod pingsix;
mod provenance;
mod resolve;
pub mod responder;
mod route;
mod snapshot;
mod translate;
mod translation;
pub mod verdict;
