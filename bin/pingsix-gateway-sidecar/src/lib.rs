//! The program beside each PingSIX.
//!
//! - [`stream`] serves TCP routes and TLS routes, as the documents of a stream prefix say;
//! - [`documents`] has these documents as they are read.

pub mod documents;
pub mod stream;
