//! Random objects: those that the crate tries its picture of a cluster with.

#[path = "../../../src/fixture/objects.rs"]
mod shared;

use pingsix_translate::Kind;

pub(super) use shared::{NAMESPACES, Pairs, object};

/// Every kind that is watched.
pub(super) const KINDS: &[Kind] = Kind::ALL;
