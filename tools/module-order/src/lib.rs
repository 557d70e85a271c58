//! Checks that the modules of a crate import only those that come earlier in a declared order, so that they form layers.
//!
//! `order.txt` declares the order. A test of this crate holds it against the sources; `tools/check-boundaries` runs it.
//! [`knots`] need no declaration: modules below one parent do not import each other in a circle. `knots.txt` names the ones
//! that are left to untie.
//!
//! Tests inside of the sources may import anything. Documentation may link to anything.

mod imports;
mod knots;
mod order;
mod sources;

pub use knots::{Knot, knots};
pub use order::{Order, violations};
pub use sources::Sources;

#[cfg(test)]
mod tests;
