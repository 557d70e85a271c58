//! What plugins do that translation relies on, and where it must not. Each plugin of PingSIX takes part.

mod answers;
mod cors;
mod late;
mod poison;
mod rewrite;

/// The prefix of these tests; each has its own below it.
const SCOPES: &str = "/contract/plugins";
