//! The behaviour of plugins on which translation relies, and its limits. Each plugin of PingSIX takes part.

mod answers;
mod cors;
mod late;
mod poison;
mod rewrite;

/// The prefix of these tests; each has its own below it.
const SCOPES: &str = "/contract/plugins";
