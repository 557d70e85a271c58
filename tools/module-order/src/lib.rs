//! Checks that the modules of a crate import only those that come earlier in a declared order, so that they form layers.
//!
//! `order.txt` declares the order. A test of this crate holds it against the sources; `tools/check-boundaries` runs it.
//! Tests inside of the sources may import anything. Documentation may link to anything.

mod imports;
mod order;
mod sources;

pub use order::{Order, violations};
pub use sources::Sources;

#[cfg(test)]
mod tests;
