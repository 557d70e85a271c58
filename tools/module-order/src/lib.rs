//! Checks that the modules of a crate import only those that come earlier in a declared order, so that they form layers.
//!
//! `order.txt` declares the order. A test of this crate holds it against the sources; `tools/check-boundaries` runs it.
//! Import cycles need no declaration: modules below one parent do not import each other, directly or through others
//! ([`import_cycles`]).
//!
//! Tests inside of the sources may import anything. Documentation may link to anything.

mod cycles;
mod imports;
mod order;
mod sources;

pub use cycles::{ImportCycle, import_cycles};
pub use order::{Order, violations};
pub use sources::Sources;

#[cfg(test)]
mod tests;
