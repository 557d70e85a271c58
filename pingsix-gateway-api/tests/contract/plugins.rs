//! What plugins do that translation relies on, and where it must not.

mod cors;
mod rewrite;

/// The prefix of these tests; each has its own below it.
const SCOPES: &str = "/contract/plugins";
