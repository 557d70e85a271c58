//! The judgement of manifests by the definitions of their kinds: unknown fields, wrong forms, limits and rules.
//!
//! An API server does the same before it stores an object, and `kubectl apply` refuses the object then. So only manifests in
//! files are judged. The fields and their forms are those of the types; the limits and rules of Gateway API, which its types
//! lack, stand in two tables.

mod definition;
mod format;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a limit concerns one form of values, and is no limit of others"
)]
mod judge;
mod limits;
mod rules;
mod similar;
#[cfg(test)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a limit concerns one form of values, and is no limit of others"
)]
mod tests;

pub(crate) use judge::{SchemaProblem, problems};
pub(crate) use similar::{misspelled, similar};
